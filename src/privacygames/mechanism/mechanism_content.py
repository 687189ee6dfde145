"""The content of a mechanism file: encoding as a header and arrays, and decoding with validation of every part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.certificates import AdversaryDuals, DualSolution, Provenance, RatioDuals, Statement, check_form
from privacygames.errors import GuaranteeViolated, InvalidFile
from privacygames.mechanism.binary_container import (
    NEWEST_VERSION,
    VERSION,
    Arrays,
    Header,
    require_array,
    require_indices,
    require_integer,
    require_number,
    require_text,
    well_formed,
)
from privacygames.mechanism.disclosure import Disclosure
from privacygames.problem import MAX_ADVERSARIES, Adversary, Bounds, DistortionGuarantee
from privacygames.spaces import LabelBudget, Space, decode_space, encode_space

DISTANCES = ("distance", "distinguishability")
"""Arrays that a space with a matrix of distances may refer to instead of storing its own."""

VERSION_2_GUARANTEES = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
"""Guarantees of version 2 of the format, which are always written; others are written only where they are set."""

MAX_ADVERSARY_ENTRIES = 2 * 10**8
"""Maximum number of entries of all adversaries' errors and attacks: a small file may refer to one array many times."""

StoreMatrix = Callable[[FloatArray], str]
"""Function that adds a matrix to the arrays of a file unless it is there already, and returns its name."""


@dataclass(frozen=True)
class MechanismContent:
    """The content of a file: the statement, the spaces of its rows and columns, and its provenance."""

    statement: Statement
    secrets: Space
    observables: Space
    provenance: Provenance


def encode_content(content: MechanismContent, *, dual_solution: bool = True) -> tuple[Header, Arrays]:
    """The header and arrays of a file; without ``dual_solution`` it is smaller but does not prove optimality."""
    statement = content.statement
    arrays: Arrays = {"weights": statement.weights, "prior": statement.prior}
    arrays |= {"cost": statement.cost, "distance": statement.distance}
    if not np.array_equal(statement.distance, statement.distinguishability):
        arrays["distinguishability"] = statement.distinguishability

    def store(matrix: FloatArray) -> str:
        for name in DISTANCES:
            if np.array_equal(matrix, arrays.get(name, matrix[:0])):
                return name
        name = f"distances_{len(arrays)}"
        arrays[name] = matrix
        return name

    same_space = content.observables == content.secrets
    header: Header = {
        "disclosure": Disclosure.PRIOR.value,
        "promises": _encode_bounds(statement.bounds, arrays, store),
        "bits": statement.bits,
        "hashes": asdict(statement.content_hashes),
        "provenance": asdict(content.provenance),
        "secrets": encode_space(content.secrets, store=store),
        "observables": None if same_space else encode_space(content.observables, secrets=content.secrets, store=store),
    }
    if dual_solution and statement.dual_solution is not None:
        named = bool(statement.bounds.named_adversaries)
        header["multipliers"] = _encode_dual_solution(statement.dual_solution, arrays, named=named)
    return header, arrays


def oldest_version(header: Header) -> int:
    """The oldest version of the format that can express the guarantees in a header: the one to write."""
    return VERSION if set(header["promises"]) <= set(VERSION_2_GUARANTEES) else NEWEST_VERSION


def decode_content(header: Header, arrays: Arrays) -> MechanismContent:
    """Decode the header and arrays of a file.

    Raises:
        InvalidFile: they are invalid or inconsistent; no other error is raised for any content.
    """
    with well_formed("the content of the file"):
        return _decode_content(header, arrays)


def _decode_content(header: Header, arrays: Arrays) -> MechanismContent:
    n, m = arrays["weights"].shape  # spaces must have these sizes, so that a small file cannot describe a huge one
    encoded = [header["secrets"], header["observables"]]
    if header.get("format") == 1:
        encoded = [_upgrade_space(table) for table in encoded]
    allowance = LabelBudget()
    secrets = decode_space(encoded[0], matrices=arrays, size=n, allowance=allowance)
    observables = secrets
    if encoded[1] is not None:
        observables = decode_space(encoded[1], secrets=secrets, matrices=arrays, size=m, allowance=allowance)
    bounds = _decode_bounds(header["promises"], arrays, secrets, allowance)
    distinguishability = "distinguishability" if "distinguishability" in arrays else "distance"
    statement = Statement(
        weights=require_array(arrays, "weights", "<i8", (n, m)),
        bits=require_integer(header["bits"]),
        prior=require_array(arrays, "prior", "<f8", (n,)),
        cost=require_array(arrays, "cost", "<f8", (m, n)),
        distance=require_array(arrays, "distance", "<f8", (n, n)),
        distinguishability=require_array(arrays, distinguishability, "<f8", (n, n)),
        bounds=bounds,
        dual_solution=None,
    )
    if "multipliers" in header:
        guesses = [len(adversary.errors) for adversary in statement.adversaries]
        named = bool(header["promises"].get("against"))
        dual_solution = _decode_dual_solution(header["multipliers"], arrays, (n, m), guesses, named=named)
        statement = replace(statement, dual_solution=dual_solution)
    origin = header["provenance"]
    provenance = Provenance(
        require_text(origin["solver"]), require_text(origin["version"]), require_number(origin["repair_cost"])
    )
    if asdict(statement.content_hashes) != header["hashes"]:
        raise InvalidFile("the prior, cost or distances in the file differ from those that the guarantees refer to")
    try:
        check_form(statement)
    except GuaranteeViolated as error:
        raise InvalidFile(str(error)) from None
    return MechanismContent(statement, secrets, observables, provenance)


def _upgrade_space(table: Any) -> Any:
    """A space of format 1 with the keys of format 2: format 1 wrote all values as labels, and an empty box."""
    if not isinstance(table, Mapping):
        return table
    keys = {"numbers": "values", "sets": "sets"}
    upgraded = {keys.get(table["kind"], key) if key == "labels" else key: value for key, value in table.items()}
    if table["kind"] == "sets":
        upgraded["sets"] = [label["set"] for label in upgraded["sets"]]
    return {key: value for key, value in upgraded.items() if not (key == "box" and value is None)}


def _encode_bounds(bounds: Bounds, arrays: Arrays, store: StoreMatrix) -> Header:
    """The bounds for the header; the matrices of adversaries are added to ``arrays``, each once."""
    values = bounds.plain_values()
    table: Header = {name: values.pop(name) for name in VERSION_2_GUARANTEES}
    table |= {name: value for name, value in values.items() if value is not None and value is not False}
    if bounds.named_adversaries:
        table["against"] = [_encode_guarantee(guarantee, arrays, store) for guarantee in bounds.distortion]
    return table


def _encode_guarantee(guarantee: DistortionGuarantee, arrays: Arrays, store: StoreMatrix) -> Header:
    adversary = guarantee.adversary
    prior, errors, guesses = adversary.prior, adversary.errors, adversary.guesses
    return {
        "name": adversary.name,
        "distortion": guarantee.distortion,
        "prior": None if prior is None else _store_once(prior.probabilities, "belief", arrays),
        "errors": None if errors is None else _store_once(errors, "errors", arrays),
        "guesses": None if guesses is None else encode_space(guesses, store=store),
    }


def _store_once(numbers: FloatArray, kind: str, arrays: Arrays) -> str:
    """The name of the array with these values, which is added if there is none."""
    for name, array in arrays.items():
        if array.dtype == numbers.dtype and np.array_equal(array, numbers):
            return name
    name = f"{kind}_{len(arrays)}"
    arrays[name] = numbers
    return name


def _decode_bounds(header: Any, arrays: Arrays, secrets: Space, allowance: LabelBudget) -> Bounds:
    table = dict(header)
    against = table.pop("against", [])
    if not isinstance(against, list) or len(against) > MAX_ADVERSARIES:
        raise InvalidFile(f"the guarantees against adversaries must be a list, of at most {MAX_ADVERSARIES}")
    guesses = [len(secrets if each["errors"] is None else arrays[require_text(each["errors"])]) for each in against]
    if sum(guesses) * sum(arrays["weights"].shape) > MAX_ADVERSARY_ENTRIES:
        raise InvalidFile(f"the adversaries' errors and attacks would have more than {MAX_ADVERSARY_ENTRIES} numbers")
    if against:
        if table.pop("distortion", None) is not None:
            raise InvalidFile("distortion is guaranteed either as a number or against each of several adversaries")
        table["distortion"] = tuple(_decode_guarantee(each, arrays, secrets, allowance) for each in against)
    return Bounds(**table)


def _decode_guarantee(header: Any, arrays: Arrays, secrets: Space, allowance: LabelBudget) -> DistortionGuarantee:
    count = len(secrets)
    prior = errors = guesses = None
    if header["prior"] is not None:
        weights = require_array(arrays, require_text(header["prior"]), "<f8", (count,))
        prior = Prior(secrets, weights)
        if not np.array_equal(prior.probabilities, weights):
            raise InvalidFile("the prior of an adversary does not sum to one")
    if header["errors"] is not None:
        name = require_text(header["errors"])
        errors = require_array(arrays, name, "<f8", (len(arrays[name]), count))
        if header["guesses"] is not None:
            guesses = decode_space(header["guesses"], matrices=arrays, size=len(errors), allowance=allowance)
    distortion = None if header["distortion"] is None else require_number(header["distortion"])
    adversary = Adversary(require_text(header["name"]), prior=prior, errors=errors, guesses=guesses)
    return DistortionGuarantee(adversary, distortion)


def _encode_dual_solution(dual_solution: DualSolution, arrays: Arrays, *, named: bool) -> Header:
    """The dual solution's part of the header; its arrays are added to ``arrays``.

    Files contain one attack over the secrets and, where adversaries are named, one more for each of them.

    Args:
        dual_solution: the dual values.
        arrays: all arrays of the file.
        named: whether the bounds name adversaries, instead of the problem's own only.
    """
    ratios, adversaries = dual_solution.ratios, dual_solution.adversaries
    unused = np.zeros((dual_solution.rows, len(arrays["prior"])))
    unused[:, 0] = 1.0  # an attack without effect
    own = AdversaryDuals(0.0, unused) if named or not adversaries else adversaries[0]
    arrays |= _encode_attack("attack", own.attack)
    arrays |= {
        "like": dual_solution.output_rows.astype(np.int32),
        "ratio_observable": ratios.observable,
        "ratio_secret": ratios.secret,
        "ratio_other": ratios.other,
        "ratio_value": ratios.value,
    }
    if dual_solution.secret_weights is not None:
        arrays["secret_weights"] = dual_solution.secret_weights
    if dual_solution.worst_cost_duals is not None:
        arrays["limit_weights"] = dual_solution.worst_cost_duals
    header: Header = {"cost": dual_solution.cost_dual, "distortion": own.dual, "rows": dual_solution.rows}
    if named:
        header["against"] = [duals.dual for duals in adversaries]
        for number, duals in enumerate(adversaries):
            arrays |= _encode_attack(f"attack{number}", duals.attack)
    return header


def _decode_dual_solution(
    header: Any, arrays: Arrays, shape: tuple[int, int], guesses: Sequence[int], *, named: bool
) -> DualSolution:
    """The dual solution of a file.

    Args:
        header: the part of the header with the dual solution.
        arrays: all arrays of the file.
        shape: the numbers of secrets and observables.
        guesses: for each adversary of the bounds, the number of guesses they choose from.
        named: whether the file lists adversaries by name.
    """
    n, m = shape
    rows = require_integer(header["rows"])
    if not 1 <= rows <= m:
        raise InvalidFile("the dual values do not fit the observables")
    against = header.get("against", [])
    if len(against) != (len(guesses) if named else 0):
        raise InvalidFile("the dual values do not fit the adversaries")
    own = AdversaryDuals(require_number(header["distortion"]), _decode_attack("attack", arrays, rows, n))
    adversaries = (own,)[: len(guesses)]
    if named:
        adversaries = tuple(
            AdversaryDuals(require_number(dual), _decode_attack(f"attack{number}", arrays, rows, size))
            for number, (dual, size) in enumerate(zip(against, guesses, strict=True))
        )
    count = (len(arrays["ratio_value"]),)
    ratios = RatioDuals(
        require_indices(arrays, "ratio_observable", count, rows),
        require_indices(arrays, "ratio_secret", count, n),
        require_indices(arrays, "ratio_other", count, n),
        require_array(arrays, "ratio_value", "<f8", count),
    )
    secret_weights, worst_cost_duals = (
        require_array(arrays, name, "<f8", (n,)) if name in arrays else None
        for name in ("secret_weights", "limit_weights")
    )
    return DualSolution(
        ratios=ratios,
        output_rows=require_indices(arrays, "like", (m,), rows).astype(np.int64),
        adversaries=adversaries,
        cost_dual=require_number(header["cost"]),
        secret_weights=secret_weights,
        worst_cost_duals=worst_cost_duals,
    )


def _encode_attack(name: str, attack: FloatArray) -> Arrays:
    """The arrays of an attack, which is a sparse matrix."""
    row, column = np.nonzero(attack)
    return {
        f"{name}_row": row.astype(np.int32),
        f"{name}_estimate": column.astype(np.int32),
        f"{name}_value": attack[row, column],
    }


def _decode_attack(name: str, arrays: Arrays, rows: int, columns: int) -> FloatArray:
    count = (len(arrays[f"{name}_value"]),)
    row = require_indices(arrays, f"{name}_row", count, rows)
    column = require_indices(arrays, f"{name}_estimate", count, columns)
    attack = np.zeros((rows, columns))
    attack[row, column] = require_array(arrays, f"{name}_value", "<f8", count)
    return attack

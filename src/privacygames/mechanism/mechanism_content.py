"""What a mechanism file contains, and how it is put together and taken apart."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import Provenance, Statement, check_form
from privacygames.errors import GuaranteeViolated, InvalidFile
from privacygames.mechanism.binary_container import NEWEST, VERSION, Arrays, Header
from privacygames.mechanism.disclosure import Disclosure
from privacygames.mechanism.header_fields import array_of, integer_of, real_of, text_of, well_formed
from privacygames.mechanism.stored_dual_solution import pack_dual_solution, unpack_dual_solution
from privacygames.mechanism.stored_promises import OLD_PROMISES, pack_promises, unpack_promises
from privacygames.spaces import LabelBudget, Space, decode_space, encode_space

MATRICES = ("distance", "distinguishability")
"""Arrays that a space with a matrix of distances may refer to."""


@dataclass(frozen=True)
class MechanismContent:
    """Everything a file holds: the statement, what its rows and columns mean, and where it comes from."""

    statement: Statement
    secrets: Space
    observables: Space
    provenance: Provenance


def pack(contents: MechanismContent, *, dual_solution: bool = True) -> tuple[Header, Arrays]:
    """The header and arrays of a file; without ``multipliers`` it is smaller and proves no optimality."""
    statement = contents.statement
    shared = contents.observables == contents.secrets
    arrays: Arrays = {"weights": statement.weights, "prior": statement.prior}
    arrays |= {"cost": statement.cost, "distance": statement.distance}
    if not np.array_equal(statement.distance, statement.distinguishability):
        arrays["distinguishability"] = statement.distinguishability

    def store(matrix: FloatArray) -> str:
        """Keep a space's own matrix: where a promise is about the very same one, there."""
        for name in MATRICES:
            if np.array_equal(matrix, arrays.get(name, matrix[:0])):
                return name
        name = f"distances_{len(arrays)}"
        arrays[name] = matrix
        return name

    header: Header = {
        "disclosure": Disclosure.PRIOR.value,
        "promises": pack_promises(statement.bounds, arrays, store),
        "bits": statement.bits,
        "hashes": asdict(statement.content_hashes),
        "provenance": asdict(contents.provenance),
        "secrets": encode_space(contents.secrets, store=store),
        "observables": None if shared else encode_space(contents.observables, secrets=contents.secrets, store=store),
    }
    if dual_solution and statement.dual_solution is not None:
        duals, dual_arrays = pack_dual_solution(statement.dual_solution)
        header["multipliers"] = duals
        arrays |= dual_arrays
    return header, arrays


def version_of(header: Header) -> int:
    """The version of the format that a file with this header has: the oldest that knows its promises."""
    return VERSION if set(header["promises"]) <= set(OLD_PROMISES) else NEWEST


def unpack(header: Header, arrays: Arrays) -> MechanismContent:
    """Take a file's content apart, or raise :class:`InvalidFile`: whatever is inside, nothing else escapes."""
    with well_formed("the content of the file"):
        return _unpack(header, arrays)


def _unpack(header: Header, arrays: Arrays) -> MechanismContent:
    n, m = arrays["weights"].shape  # what is described must be of this size: nothing else is built
    described = [header["secrets"], header["observables"]]
    if header.get("format") == 1:
        described = [_of_format_1(table) for table in described]
    allowance = LabelBudget()
    secrets = decode_space(described[0], matrices=arrays, size=n, allowance=allowance)
    observables = secrets
    if described[1] is not None:
        observables = decode_space(described[1], secrets=secrets, matrices=arrays, size=m, allowance=allowance)
    separation = "distinguishability" if "distinguishability" in arrays else "distance"
    statement = Statement(
        weights=array_of(arrays, "weights", "<i8", (n, m)),
        bits=integer_of(header["bits"]),
        prior=array_of(arrays, "prior", "<f8", (n,)),
        cost=array_of(arrays, "cost", "<f8", (m, n)),
        distance=array_of(arrays, "distance", "<f8", (n, n)),
        distinguishability=array_of(arrays, separation, "<f8", (n, n)),
        bounds=(bounds := unpack_promises(header["promises"], arrays, secrets, allowance)),
        dual_solution=None,
    )
    if "multipliers" in header:
        counts = [len(adversary.errors) for adversary in statement.adversaries] if bounds.against else []
        evidence = unpack_dual_solution(header["multipliers"], arrays, (n, m), counts)
        statement = replace(statement, dual_solution=evidence)
    provenance = header["provenance"]
    origin = Provenance(
        text_of(provenance["solver"]), text_of(provenance["version"]), real_of(provenance["repair_cost"])
    )
    contents = MechanismContent(statement, secrets, observables, origin)
    if asdict(statement.content_hashes) != header["hashes"]:
        raise InvalidFile("the prior, cost or distances in the file are not those the promise is about")
    try:
        check_form(statement)
    except GuaranteeViolated as error:
        raise InvalidFile(str(error)) from None
    return contents


def _of_format_1(table: Any) -> Any:
    """A space as format 1 wrote it, in today's words: it called everything labels, and wrote an empty box."""
    if not isinstance(table, Mapping):
        return table
    names = {"numbers": "values", "sets": "sets"}
    renamed = {names.get(table["kind"], key) if key == "labels" else key: value for key, value in table.items()}
    if table["kind"] == "sets":
        renamed["sets"] = [label["set"] for label in renamed["sets"]]
    return {key: value for key, value in renamed.items() if not (key == "box" and value is None)}

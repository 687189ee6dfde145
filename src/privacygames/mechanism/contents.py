"""What a mechanism file contains, and how it is put together and taken apart."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.certificates import Multipliers, Provenance, RatioMultipliers, Statement, check_form
from privacygames.errors import BrokenPromise, InvalidFile, InvalidProblem
from privacygames.mechanism.container import Arrays, Header
from privacygames.problem import Bounds
from privacygames.spaces import Space, describe, space_from

MATRICES = ("distance", "distinguishability")
"""Arrays that a space with a matrix of distances may refer to."""


@dataclass(frozen=True)
class Contents:
    """Everything a file holds: the statement, what its rows and columns mean, and where it comes from."""

    statement: Statement
    secrets: Space
    observables: Space
    provenance: Provenance


def pack(contents: Contents, *, multipliers: bool = True) -> tuple[Header, Arrays]:
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
        "promises": asdict(statement.bounds),
        "bits": statement.bits,
        "hashes": asdict(statement.subject),
        "provenance": asdict(contents.provenance),
        "secrets": describe(contents.secrets, store=store),
        "observables": None if shared else describe(contents.observables, secrets=contents.secrets, store=store),
    }
    if multipliers and statement.multipliers is not None:
        duals, dual_arrays = _pack_multipliers(statement.multipliers)
        header["multipliers"] = duals
        arrays |= dual_arrays
    return header, arrays


def unpack(header: Header, arrays: Arrays) -> Contents:
    """Take a file's content apart, or raise :class:`InvalidFile`: whatever is inside, nothing else escapes."""
    try:
        with np.errstate(all="ignore"):
            return _unpack(header, arrays)
    except InvalidFile:
        raise
    except (
        InvalidProblem,
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InvalidFile(f"the content of the file does not fit together ({type(error).__name__})") from None


def _unpack(header: Header, arrays: Arrays) -> Contents:
    n, m = arrays["weights"].shape  # what is described must be of this size: nothing else is built
    described = [header["secrets"], header["observables"]]
    if header.get("format") == 1:
        described = [_of_format_1(table) for table in described]
    secrets = space_from(described[0], matrices=arrays, size=n)
    observables = secrets
    if described[1] is not None:
        observables = space_from(described[1], secrets=secrets, matrices=arrays, size=m)
    separation = "distinguishability" if "distinguishability" in arrays else "distance"
    statement = Statement(
        weights=_array(arrays, "weights", "<i8", (n, m)),
        bits=_integer(header["bits"]),
        prior=_array(arrays, "prior", "<f8", (n,)),
        cost=_array(arrays, "cost", "<f8", (m, n)),
        distance=_array(arrays, "distance", "<f8", (n, n)),
        distinguishability=_array(arrays, separation, "<f8", (n, n)),
        bounds=Bounds(**header["promises"]),
        multipliers=_unpack_multipliers(header["multipliers"], arrays, n, m) if "multipliers" in header else None,
    )
    provenance = header["provenance"]
    origin = Provenance(_text(provenance["solver"]), _text(provenance["version"]), _real(provenance["repair_cost"]))
    contents = Contents(statement, secrets, observables, origin)
    if asdict(statement.subject) != header["hashes"]:
        raise InvalidFile("the prior, cost or distances in the file are not those the promise is about")
    try:
        check_form(statement)
    except BrokenPromise as error:
        raise InvalidFile(str(error)) from None
    return contents


def _pack_multipliers(given: Multipliers) -> tuple[Header, Arrays]:
    row, column = np.nonzero(given.attack)
    arrays: Arrays = {
        "attack_row": row.astype(np.int32),
        "attack_estimate": column.astype(np.int32),
        "attack_value": given.attack[row, column],
        "like": given.like.astype(np.int32),
        "ratio_observable": given.ratios.observable,
        "ratio_secret": given.ratios.secret,
        "ratio_other": given.ratios.other,
        "ratio_value": given.ratios.value,
    }
    if given.secret_weights is not None:
        arrays["secret_weights"] = given.secret_weights
    duals = {"cost": given.cost_dual, "distortion": given.distortion_dual, "rows": len(given.attack)}
    return duals, arrays


def _unpack_multipliers(header: Any, arrays: Arrays, n: int, m: int) -> Multipliers:
    rows = _integer(header["rows"])
    if not 1 <= rows <= m:
        raise InvalidFile("the multipliers do not fit the observables")
    count = (len(arrays["attack_value"]),)
    attack = np.zeros((rows, n))
    row = _positions(arrays, "attack_row", count, rows)
    attack[row, _positions(arrays, "attack_estimate", count, n)] = _array(arrays, "attack_value", "<f8", count)
    count = (len(arrays["ratio_value"]),)
    ratios = RatioMultipliers(
        _positions(arrays, "ratio_observable", count, rows),
        _positions(arrays, "ratio_secret", count, n),
        _positions(arrays, "ratio_other", count, n),
        _array(arrays, "ratio_value", "<f8", count),
    )
    weights = _array(arrays, "secret_weights", "<f8", (n,)) if "secret_weights" in arrays else None
    like = _positions(arrays, "like", (m,), rows).astype(np.int64)
    return Multipliers(_real(header["cost"]), _real(header["distortion"]), attack, ratios, weights, like)


def _array(arrays: Arrays, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = arrays[name]
    if array.dtype != np.dtype(kind) or array.shape != shape:
        raise InvalidFile(f"array {name!r} has the wrong type or shape")
    return array


def _positions(arrays: Arrays, name: str, shape: tuple[int, ...], limit: int) -> NDArray[np.int32]:
    array = _array(arrays, name, "<i4", shape)
    if ((array < 0) | (array >= limit)).any():
        raise InvalidFile(f"array {name!r} points outside")
    return array


def _real(value: object) -> float:
    if type(value) not in (int, float) or not abs(float(value)) < np.inf:  # type: ignore[arg-type]
        raise InvalidFile("a number in the header is something else")
    return float(value)  # type: ignore[arg-type]


def _integer(value: object) -> int:
    if type(value) is not int:
        raise InvalidFile("a number in the header is not whole")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > 200:
        raise InvalidFile("a text in the header is too long or not plain text")
    return value


def _of_format_1(table: Any) -> Any:
    """A space as format 1 wrote it, in today's words: it called everything labels, and wrote an empty box."""
    if not isinstance(table, Mapping):
        return table
    names = {"numbers": "values", "sets": "sets"}
    renamed = {names.get(table["kind"], key) if key == "labels" else key: value for key, value in table.items()}
    if table["kind"] == "sets":
        renamed["sets"] = [label["set"] for label in renamed["sets"]]
    return {key: value for key, value in renamed.items() if not (key == "box" and value is None)}

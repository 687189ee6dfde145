"""What a mechanism file contains, and how it is put together and taken apart."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import content_hash
from privacygames.bounds import Bounds
from privacygames.errors import BrokenPromise, InvalidFile, InvalidProblem
from privacygames.mechanism.certificate import Provenance
from privacygames.mechanism.container import Arrays, Header
from privacygames.mechanism.statement import Statement, check_form
from privacygames.multipliers import Multipliers, RatioMultipliers
from privacygames.spaces import Categories, Grid, Label, Numbers, Sets, Space

PLAIN: dict[str, Callable[[Any], Space]] = {
    "labels": Space,
    "numbers": Numbers,
    "categories": Categories,
    "sets": Sets,
}
"""Spaces that are their labels; of others (graphs, subsets) a file keeps the labels and the matrices."""

HASHED = ("prior", "cost", "distance", "distinguishability")


@dataclass(frozen=True)
class Contents:
    """Everything a file holds: the statement, what its rows and columns mean, and where it comes from."""

    statement: Statement
    secrets: Space
    observables: Space
    provenance: Provenance

    @property
    def hashes(self) -> dict[str, str]:
        """What the promise is about, by content."""
        return {name: content_hash(getattr(self.statement, name)) for name in HASHED}


def pack(contents: Contents, *, multipliers: bool = True) -> tuple[Header, Arrays]:
    """The header and arrays of a file; without ``multipliers`` it is smaller and proves no optimality."""
    statement = contents.statement
    shared = contents.observables is contents.secrets
    arrays: Arrays = {"weights": statement.weights, "prior": statement.prior}
    arrays |= {"cost": statement.cost, "distance": statement.distance}
    if not np.array_equal(statement.distance, statement.distinguishability):
        arrays["distinguishability"] = statement.distinguishability
    header: Header = {
        "promises": asdict(statement.bounds),
        "bits": statement.bits,
        "hashes": contents.hashes,
        "provenance": asdict(contents.provenance),
        "secrets": describe(contents.secrets),
        "observables": None if shared else describe(contents.observables),
    }
    if multipliers and statement.multipliers is not None:
        prices, price_arrays = _pack_multipliers(statement.multipliers)
        header["multipliers"] = prices
        arrays |= price_arrays
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
    ) as error:
        raise InvalidFile(f"the content of the file does not fit together ({type(error).__name__})") from None


def _unpack(header: Header, arrays: Arrays) -> Contents:
    n, m = arrays["weights"].shape  # what is described must be of this size: nothing else is built
    secrets = space_from(header["secrets"], n)
    observables = secrets if header["observables"] is None else space_from(header["observables"], m)
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
    if contents.hashes != header["hashes"]:
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
    prices = {"cost": given.cost_price, "distortion": given.distortion_price, "rows": len(given.attack)}
    return prices, arrays


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


def describe(space: Space) -> Header:
    """A space as JSON: a grid by its shape, anything else by its labels."""
    if isinstance(space, Grid):
        size = {"columns": space.columns, "rows": space.rows, "width": space.width, "height": space.height}
        return {"kind": "grid", **size, "box": list(space.box) if space.box else None}
    unit = {"unit": space.unit("absolute")} if isinstance(space, Numbers) and space.unit("absolute") else {}
    kind = next((name for name, known in PLAIN.items() if type(space) is known), "labels")
    return {"kind": kind, "labels": [_label_out(label) for label in space.labels], **unit}


def space_from(description: Any, size: int) -> Space:
    """The space a description stands for; labels keep their meaning, distances come from the matrices."""
    if description["kind"] in PLAIN:
        labels = description["labels"]
        if not isinstance(labels, list) or len(labels) != size:
            raise InvalidFile("the file has another number of labels than of rows or columns")
        named = [_label_in(label) for label in labels]
        if description["kind"] == "numbers":
            return Numbers(named, unit=_text(description.get("unit", "")))  # type: ignore[arg-type]
        return PLAIN[description["kind"]](named)
    if description["kind"] != "grid":
        raise InvalidFile("the file describes a kind of space this release does not know")
    columns, rows = _integer(description["columns"]), _integer(description["rows"])
    if columns * rows != size:
        raise InvalidFile("the grid in the file has another number of cells than of rows or columns")
    grid = Grid(columns, rows, _real(description["width"]), _real(description["height"]))
    if description["box"] is not None:
        west, south, east, north = (_real(edge) for edge in description["box"])
        Grid.over((west, south, east, north), columns=1, rows=1)  # refuses an impossible box
        grid.box = (west, south, east, north)
    return grid


def _label_out(label: Label) -> object:
    return {"set": sorted(label)} if isinstance(label, frozenset) else label


def _label_in(label: Any) -> Label:
    return frozenset(label["set"]) if isinstance(label, dict) else label  # Space checks the rest

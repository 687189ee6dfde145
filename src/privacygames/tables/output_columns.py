"""Writes outputs to columns: their label, centre, a random point in them, their bounds, or the set of their members."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import Field, InvalidProblem
from privacygames.spaces import Grid, Numbers, Places, Product, Space, Subsets
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_key import Words
from privacygames.validation import require_choice

OutputForm = Literal["label", "centre", "point", "bounds", "set"]
"""How an output is written: its label; its centre; a random point or member of it; its bounds; the list of its
members."""

PointBits = Callable[[str, IntArray], Words]
"""Random words for a purpose and the outputs drawn, from which random points are made. They never depend on secrets."""

FLOAT_STEP = 2.0**-53
"""Step between the random fractions: a double's precision just below 1."""


class OutputWriter:
    """Writes the outputs of a space to columns.

    Args:
        space: the space of outputs.
        form: how they are written.
        split_product: whether each part of a product has columns of its own.
    """

    def __init__(self, space: Space, form: OutputForm, *, split_product: bool = True) -> None:
        require_choice(form, get_args(OutputForm), "output_form")
        self.space, self.form = space, form
        within = space.underlying if isinstance(space, Subsets) else space
        self._plane = within if isinstance(within, Grid | Places) else None
        self._numbers = within if isinstance(within, Numbers) else None
        split = split_product and isinstance(space, Product)
        self._parts = tuple(OutputWriter(part, form) for part in space.parts) if split else ()  # type: ignore[attr-defined]
        if not self._parts:
            self._require_possible()

    def _require_possible(self) -> None:
        measured = self._plane is not None or self._numbers is not None
        if self.form in ("centre", "point", "bounds") and not measured:
            raise InvalidProblem(
                Field("output_form"), f"={self.form!r} needs places or numbers; {self.space!r} has labels or sets"
            )
        sets = isinstance(self.space, Subsets) or any(isinstance(label, frozenset) for label in self.space.labels)
        if self.form == "set" and not sets:
            raise InvalidProblem(
                Field("output_form"), f"='set' needs observables that are sets; {self.space!r} has labels"
            )

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What each column appends to the name: nothing if there is one column."""
        if self._parts:
            return tuple(suffix for part in self._parts for suffix in part.suffixes)
        if self._plane is not None:
            edges = ("_west", "_south", "_east", "_north")
            return {"centre": ("_x", "_y"), "point": ("_x", "_y"), "bounds": edges}.get(self.form, ("",))
        return ("_low", "_high") if self.form == "bounds" else ("",)

    def types(self, replaced: Sequence[Any]) -> list[Any]:
        """The Arrow type of each column: that of the column it replaces, if it can hold every output."""
        if self._parts:
            cuts = np.cumsum([0, *(len(part.suffixes) for part in self._parts)])
            by_part = (replaced[first:last] for first, last in pairwise(cuts))
            return [kind for part, kinds in zip(self._parts, by_part, strict=True) for kind in part.types(kinds)]
        fitted = [fitting_type(table, kind) for table, kind in zip(self._tables, replaced, strict=True)]
        if self.form == "point" and self._plane is not None:  # centres may be whole numbers; points are not
            types = import_optional("pyarrow").types
            return [
                kind if types.is_floating(kind) else table.type
                for kind, table in zip(fitted, self._tables, strict=True)
            ]
        return fitted

    def columns(self, positions: IntArray, bits: PointBits, types: Sequence[Any], purpose: str = "") -> list[Any]:
        """One Arrow array for each suffix, of the types of :meth:`types`; null for negative positions."""
        if self._parts and isinstance(self.space, Product):
            columns: list[Any] = []
            split = self.space.split(np.maximum(positions, 0))
            for number, (part, of_part) in enumerate(zip(self._parts, split, strict=True)):
                part_types = types[len(columns) : len(columns) + len(part.suffixes)]
                part_positions = np.where(positions < 0, -1, of_part)
                columns += part.columns(part_positions, bits, part_types, f"{purpose}{number}.")
            return columns
        if self.form == "point":
            return self._random_points(positions, bits, types, purpose)
        return [take(table, positions, kind) for table, kind in zip(self._tables, types, strict=True)]

    @cached_property
    def _tables(self) -> list[Any]:
        """For each column, an Arrow array with its value for every output."""
        pa = import_optional("pyarrow")
        if self.form in ("label", "set"):
            return [self._labels]
        if self.form == "point" and self._plane is None:
            labels: Any = self._numbers.labels if self._numbers is not None else ()
            return [_numeric(labels)]
        if self._plane is not None:
            return [pa.array(axis) for axis in (self._edges if self.form == "bounds" else self._middles)]
        return [_numeric(axis) for axis in (self._edges if self.form == "bounds" else self._middles)]

    @cached_property
    def _labels(self) -> Any:
        """The labels, or the members, as an Arrow array."""
        pa = import_optional("pyarrow")
        if self.form == "set" and isinstance(self.space, Subsets):
            return pa.array(
                [[self.space.underlying.labels[member] for member in group] for group in self.space.members]
            )
        labels = [sorted(label) if isinstance(label, frozenset) else label for label in self.space.labels]
        if any(isinstance(label, float) for label in labels) and not any(isinstance(label, str) for label in labels):
            return pa.array(labels, pa.float64())
        try:
            return pa.array(labels)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise InvalidProblem("observables that are texts and numbers mixed have no common type of column") from None

    @cached_property
    def _members(self) -> tuple[IntArray, ...]:
        if isinstance(self.space, Subsets):
            return self.space.members
        return tuple(np.arange(len(self.space), dtype=np.int64)[:, None])

    @cached_property
    def _cells(self) -> FloatArray:
        """West, south, east and north of every cell of the grid; a place is a cell without extent."""
        plane = self._plane
        if plane is None:
            raise InvalidProblem("there is no grid")
        if isinstance(plane, Places):
            return np.hstack([plane.points, plane.points])
        outlines = [plane.outline(label) for label in plane.labels]
        return np.array([(*corners[0], *corners[2]) for corners in outlines])

    @cached_property
    def _middles(self) -> Sequence[Any]:
        if self._plane is not None:
            cells = self._cells
            centres = np.stack([(cells[:, 0] + cells[:, 2]) / 2, (cells[:, 1] + cells[:, 3]) / 2])
            return [np.array([axis[group].mean() for group in self._members]) for axis in centres]
        if not isinstance(self.space, Subsets):
            return [self.space.labels]
        values = self._values
        return [np.array([values[group].mean() for group in self._members])]

    @cached_property
    def _edges(self) -> Sequence[Any]:
        if self._plane is not None:
            cells, members = self._cells, self._members
            reduce = (np.min, np.min, np.max, np.max)
            return [np.array([edge(cells[group, at]) for group in members]) for at, edge in enumerate(reduce)]
        labels: Any = self._numbers.labels if self._numbers is not None else ()
        return [[edge(labels[i] for i in group) for group in self._members] for edge in (min, max)]

    @property
    def _values(self) -> FloatArray:
        return self._numbers.values if self._numbers is not None else np.zeros(0)

    def _random_points(self, positions: IntArray, bits: PointBits, types: Sequence[Any], purpose: str) -> list[Any]:
        """A uniform random member of each output and, if that is a cell, a uniform random point in it."""
        pa = import_optional("pyarrow")
        known = np.maximum(positions, 0)
        sizes = np.array([len(group) for group in self._members])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        share = _fractions(bits(f"{purpose}member", known))
        offset = np.minimum((share * sizes[known]).astype(np.int64), sizes[known] - 1)
        member = np.concatenate(self._members)[starts[known] + offset]
        if self._plane is None:
            return [take(self._tables[0], np.where(positions < 0, -1, member), types[0])]
        coordinates = []
        for axis in (0, 1):
            low, high = self._cells[member, axis], self._cells[member, axis + 2]
            values = low + (high - low) * _fractions(bits(f"{purpose}{'xy'[axis]}", known))
            coordinates.append(pa.array(np.clip(values, low, high), mask=positions < 0).cast(types[axis]))
        return coordinates


def fitting_type(table: Any, replaced: Any) -> Any:
    """The type of the replaced column, if it can hold every output; else the outputs' own."""
    pa = import_optional("pyarrow")
    own = table.type
    if replaced is None or replaced == own:
        return own
    if pa.types.is_dictionary(replaced):
        return _fitting_dictionary(table, replaced)
    if pa.types.is_string(own):
        return replaced if _is_text(replaced) else own
    if not all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (own, replaced)):
        return own
    try:
        table.cast(replaced)  # refuses to round or overflow
    except pa.ArrowInvalid:
        return own
    return replaced


def _fitting_dictionary(table: Any, replaced: Any) -> Any:
    pa = import_optional("pyarrow")
    if fitting_type(table, replaced.value_type) != replaced.value_type:
        return table.type
    if len(table.unique()) < len(table):  # coordinates: many cells have the same longitude; categories are distinct
        return replaced.value_type
    index_fits = replaced.index_type.bit_width >= 32 or len(table) <= 2 ** (replaced.index_type.bit_width - 1)
    return replaced if index_fits else pa.dictionary(pa.int32(), replaced.value_type, ordered=replaced.ordered)


def take(table: Any, positions: IntArray, kind: Any) -> Any:
    """The entries of a table at some positions, null for negative ones. Dictionaries hold possible outputs only."""
    pa = import_optional("pyarrow")
    narrow, has_nulls = positions.astype(np.int32), int(positions.min(initial=0)) < 0
    if not has_nulls and table.type == kind and (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        return pa.array(table.to_numpy().take(narrow))  # several times as fast as Arrow's
    indices = pa.array(narrow, mask=narrow < 0 if has_nulls else None)
    if pa.types.is_dictionary(kind):
        labels = table.cast(kind.value_type)
        return pa.DictionaryArray.from_arrays(indices.cast(kind.index_type), labels, ordered=kind.ordered)
    entries = table.take(indices)
    return entries if entries.type == kind else entries.cast(kind)


def in_category_order(outputs: Any, original: Any, column: str) -> Any:
    """Outputs whose ordered categories have the order of those of the column that they replace.

    The order is a declaration about the column, and comparisons of outputs rely on it. Categories that are not possible
    outputs are left out: they may be secrets.
    """
    pa = import_optional("pyarrow")
    is_dictionary = pa.types.is_dictionary
    if not (is_dictionary(outputs.type) and outputs.type.ordered and is_dictionary(original.type)):
        return outputs
    labels, declared = outputs.dictionary.to_pylist(), original.dictionary.to_pylist()
    if undeclared := set(labels) - set(declared):
        if not len(outputs):
            return outputs
        raise InvalidProblem(
            f"column {column!r} has ordered categories, and {len(undeclared)} of the {len(labels)} possible outputs "
            "are none of them, so their order is unknown: declare every output as a category, or make the column "
            "unordered"
        )
    order = [labels.index(label) for label in declared if label in labels]
    indices = pa.array(np.argsort(order)).take(outputs.indices).cast(outputs.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, outputs.dictionary.take(pa.array(order)), ordered=True)


def _is_text(kind: Any) -> bool:
    types = import_optional("pyarrow").types
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _numeric(values: Iterable[Any]) -> Any:
    """Numbers as integers, if all are; else as floats."""
    return import_optional("pyarrow").array(np.array(list(values)))


def _fractions(words: Words) -> FloatArray:
    """Uniform random numbers in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * FLOAT_STEP

"""From observables to columns: a label, a centre, a random point, bounds, or a set."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces import Grid, Numbers, Product, Space, Subsets
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_key import Words
from privacygames.validation import require_choice

Answer = Literal["label", "centre", "point", "bounds", "set"]
"""How an observable is written: its label; the middle of what it stands for; a random point or member of it; its
bounds; the list of its members."""

Bits = Callable[[str, IntArray], Words]
"""Random words for a purpose and the observables drawn: what a random point is made of. Never depends on the secret."""

FRACTION = 2.0**-53


class AnswerWriter:
    """Columns for the observables of a space.

    Args:
        space: the observables.
        answer: how they are written.
        apart: whether the parts of a product have columns of their own.
    """

    def __init__(self, space: Space, answer: Answer, *, apart: bool = True) -> None:
        require_choice(answer, get_args(Answer), "output_form")
        self.space, self.answer = space, answer
        within = space.underlying if isinstance(space, Subsets) else space
        self._grid = within if isinstance(within, Grid) else None
        self._numbers = within if isinstance(within, Numbers) else None
        split = apart and isinstance(space, Product)
        self._parts = tuple(AnswerWriter(part, answer) for part in space.parts) if split else ()  # type: ignore[attr-defined]
        if not self._parts:
            self._require_possible()

    def _require_possible(self) -> None:
        measured = self._grid is not None or self._numbers is not None
        if self.answer in ("centre", "point", "bounds") and not measured:
            raise InvalidProblem(
                f"output_form={self.answer!r} needs places or numbers; {self.space!r} has labels or sets"
            )
        sets = isinstance(self.space, Subsets) or any(isinstance(label, frozenset) for label in self.space.labels)
        if self.answer == "set" and not sets:
            raise InvalidProblem(f"output_form='set' needs observables that are sets; {self.space!r} has labels")

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What tells the columns apart: empty where there is one column for each."""
        if self._parts:
            return tuple(each for part in self._parts for each in part.suffixes)
        if self._grid is not None:
            edges = ("_west", "_south", "_east", "_north")
            return {"centre": ("_x", "_y"), "point": ("_x", "_y"), "bounds": edges}.get(self.answer, ("",))
        return ("_low", "_high") if self.answer == "bounds" else ("",)

    def types(self, like: Sequence[Any]) -> list[Any]:
        """The type of each column: that of the column it replaces, wherever every answer fits it."""
        if self._parts:
            cuts = np.cumsum([0, *(len(part.suffixes) for part in self._parts)])
            pieces = (like[first:last] for first, last in pairwise(cuts))
            return [each for part, mine in zip(self._parts, pieces, strict=True) for each in part.types(mine)]
        found = [fitting(table, each) for table, each in zip(self._tables, like, strict=True)]
        if self.answer == "point" and self._grid is not None:  # centres may be whole numbers; points are not
            types = import_optional("pyarrow").types
            return [
                kind if types.is_floating(kind) else table.type for kind, table in zip(found, self._tables, strict=True)
            ]
        return found

    def columns(self, positions: IntArray, bits: Bits, types: Sequence[Any], purpose: str = "") -> list[Any]:
        """One Arrow array for each suffix, of the types :meth:`types` gave; null where the position is negative."""
        if self._parts and isinstance(self.space, Product):
            found: list[Any] = []
            split = self.space.split(np.maximum(positions, 0))
            for number, (part, at) in enumerate(zip(self._parts, split, strict=True)):
                mine = types[len(found) : len(found) + len(part.suffixes)]
                found += part.columns(np.where(positions < 0, -1, at), bits, mine, f"{purpose}{number}.")
            return found
        if self.answer == "point":
            return self._points(positions, bits, types, purpose)
        return [taken(table, positions, kind) for table, kind in zip(self._tables, types, strict=True)]

    @cached_property
    def _tables(self) -> list[Any]:
        """For each column, what it holds for each observable: Arrow arrays to take from."""
        pa = import_optional("pyarrow")
        if self.answer in ("label", "set"):
            return [self._labels]
        if self.answer == "point" and self._grid is None:
            labels: Any = self._numbers.labels if self._numbers is not None else ()
            return [_numeric(labels)]
        if self._grid is not None:
            return [pa.array(axis) for axis in (self._edges if self.answer == "bounds" else self._middles)]
        return [_numeric(axis) for axis in (self._edges if self.answer == "bounds" else self._middles)]

    @cached_property
    def _labels(self) -> Any:
        """The labels, or members, as an Arrow array."""
        pa = import_optional("pyarrow")
        if self.answer == "set" and isinstance(self.space, Subsets):
            return pa.array([[self.space.underlying.labels[i] for i in group] for group in self.space.members])
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
        """West, south, east and north of every cell of the grid."""
        grid = self._grid
        if grid is None:
            raise InvalidProblem("there is no grid")
        corners = [grid.outline(label) for label in grid.labels]
        return np.array([(*four[0], *four[2]) for four in corners])

    @cached_property
    def _middles(self) -> Sequence[Any]:
        if self._grid is not None:
            cells = self._cells
            centres = np.stack([(cells[:, 0] + cells[:, 2]) / 2, (cells[:, 1] + cells[:, 3]) / 2])
            return [np.array([axis[group].mean() for group in self._members]) for axis in centres]
        if not isinstance(self.space, Subsets):
            return [self.space.labels]
        values = self._values
        return [np.array([values[group].mean() for group in self._members])]

    @cached_property
    def _edges(self) -> Sequence[Any]:
        if self._grid is not None:
            cells, members = self._cells, self._members
            reduce = (np.min, np.min, np.max, np.max)
            return [np.array([edge(cells[group, at]) for group in members]) for at, edge in enumerate(reduce)]
        labels: Any = self._numbers.labels if self._numbers is not None else ()
        return [[edge(labels[i] for i in group) for group in self._members] for edge in (min, max)]

    @property
    def _values(self) -> FloatArray:
        return self._numbers.values if self._numbers is not None else np.zeros(0)

    def _points(self, positions: IntArray, bits: Bits, types: Sequence[Any], purpose: str) -> list[Any]:
        """A member of each observable, and where it is a cell, a point in it: uniform, by bits of their own."""
        pa = import_optional("pyarrow")
        known = np.maximum(positions, 0)
        sizes = np.array([len(group) for group in self._members])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        share = _fractions(bits(f"{purpose}member", known))
        chosen = np.minimum((share * sizes[known]).astype(np.int64), sizes[known] - 1)
        member = np.concatenate(self._members)[starts[known] + chosen]
        if self._grid is None:
            return [taken(self._tables[0], np.where(positions < 0, -1, member), types[0])]
        found = []
        for axis in (0, 1):
            low, high = self._cells[member, axis], self._cells[member, axis + 2]
            at = low + (high - low) * _fractions(bits(f"{purpose}{'xy'[axis]}", known))
            found.append(pa.array(np.clip(at, low, high), mask=positions < 0).cast(types[axis]))
        return found


def fitting(table: Any, like: Any) -> Any:
    """The type of the column replaced, if every possible answer fits it; else the answers' own."""
    pa = import_optional("pyarrow")
    kinds = pa.types
    own = table.type
    if like is None or like == own:
        return own
    if kinds.is_dictionary(like):
        return _fitting_categories(table, like)
    if kinds.is_string(own):
        return like if _is_text(like) else own
    if not (kinds.is_integer(own) or kinds.is_floating(own)) or not (kinds.is_integer(like) or kinds.is_floating(like)):
        return own
    try:
        table.cast(like)  # refuses what it would have to round or cut
    except pa.ArrowInvalid:
        return own
    return like


def _fitting_categories(table: Any, like: Any) -> Any:
    pa = import_optional("pyarrow")
    if fitting(table, like.value_type) != like.value_type:
        return table.type
    roomy = like.index_type.bit_width >= 32 or len(table) <= 2 ** (like.index_type.bit_width - 1)
    return like if roomy else pa.dictionary(pa.int32(), like.value_type, ordered=like.ordered)


def taken(table: Any, positions: IntArray, kind: Any) -> Any:
    """The entries of a table at some positions, null where these are negative. Dictionaries hold answers only."""
    pa = import_optional("pyarrow")
    mask = positions < 0
    narrow = positions.astype(np.int32)
    at = pa.array(narrow, mask=mask) if mask.any() else pa.array(narrow)
    if pa.types.is_dictionary(kind):
        labels = table.cast(kind.value_type)
        return pa.DictionaryArray.from_arrays(at.cast(kind.index_type), labels, ordered=kind.ordered)
    found = table.take(at)
    return found if found.type == kind else found.cast(kind)


def in_category_order(answers: Any, original: Any, column: str) -> Any:
    """Answers whose ordered categories stand in the order of those of the column that they replace.

    The order is a declaration about the column, and comparisons of answers rely on it. Categories that are no answers
    are left out: they may be secrets.
    """
    pa, kinds = import_optional("pyarrow"), import_optional("pyarrow").types
    if not (kinds.is_dictionary(answers.type) and answers.type.ordered and kinds.is_dictionary(original.type)):
        return answers
    labels, declared = answers.dictionary.to_pylist(), original.dictionary.to_pylist()
    if without_place := set(labels) - set(declared):
        if not len(answers):
            return answers
        raise InvalidProblem(
            f"column {column!r} has ordered categories, and {len(without_place)} of the {len(labels)} possible answers "
            "are none of them, so their order is unknown: declare every answer as a category, or make the column "
            "unordered"
        )
    order = [labels.index(label) for label in declared if label in labels]
    indices = pa.array(np.argsort(order)).take(answers.indices).cast(answers.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, answers.dictionary.take(pa.array(order)), ordered=True)


def _is_text(kind: Any) -> bool:
    types = import_optional("pyarrow").types
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _numeric(values: Iterable[Any]) -> Any:
    """Whole numbers as such, if all are."""
    return import_optional("pyarrow").array(np.array(list(values)))


def _fractions(words: Words) -> FloatArray:
    """Uniform over [0, 1) in steps of 2^-53."""
    return (words >> np.uint64(11)).astype(np.float64) * FRACTION

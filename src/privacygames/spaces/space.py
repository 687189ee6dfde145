"""The base of all spaces: ordered labels, and distances by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, content_hash, require_nonnegative
from privacygames.errors import InvalidProblem, TooLarge, UnknownLabel
from privacygames.immutable import Value
from privacygames.validation import as_list, as_ordered_list

Label = str | int | float | frozenset[str]
"""What names one secret or observable: text, a number, or a set of texts."""

LABEL_TYPES = (str, int, float, set, frozenset)

MOST_TEXT = 10**8
"""The most characters that the labels made for a space may have together: names of sets of labels multiply."""

NamedDistances = dict[str, Callable[["Space"], FloatArray]]
"""Distances by name, each a function of the space whose labels are the rows."""


class Space(Value):
    """An ordered, finite set of labels with named distances between them.

    A distance is a matrix whose rows are the labels that are compared (of estimates or of outputs) and whose columns
    are the secrets of this space. Every space has the distance ``"hamming"``: 0 where labels are equal, 1 elsewhere.
    Two spaces are equal if they are of the same class and everything that defines them is equal; equal labels alone are
    not enough.

    >>> space = pg.Space(["home", "work", "gym"])
    >>> len(space), space.index("work"), space.distance("hamming")[0].tolist()
    (3, 1, [0.0, 1.0, 1.0])
    """

    labels: tuple[Label, ...]
    default_distance = "hamming"

    def __init__(self, labels: Iterable[Label]) -> None:
        plain = tuple(_plain(label) for label in as_ordered_list(labels, "the labels"))
        if not plain:
            raise InvalidProblem("a space needs at least one label; none was given")
        self._fill(labels=plain)
        if len(self._index) != len(plain):
            raise InvalidProblem("the labels of a space must be distinct; some are given twice")

    @staticmethod
    def from_distances(labels: Iterable[Label], distances: ArrayLike) -> "DistanceSpace":
        """A space of labels with the given matrix of distances between them, the distance ``"given"``.

        >>> space = pg.Space.from_distances(["home", "work"], [[0, 3], [3, 0]])
        >>> space.distance("given").tolist()
        [[0.0, 3.0], [3.0, 0.0]]
        """
        return DistanceSpace(labels, distances)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.content

    @property
    def content(self) -> tuple[object, ...]:
        """Everything that defines the space besides its class, as hashable values: two spaces are equal if it is."""
        return (self.labels,)

    @cached_property
    def _index(self) -> Mapping[Label, int]:
        return {label: position for position, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} labels)"

    @property
    def elements(self) -> Sequence[object]:
        """The arguments of a cost or distance function: the labels, unless a subclass defines others."""
        return self.labels

    @property
    def distance_names(self) -> tuple[str, ...]:
        """The names of the distances of this space."""
        return tuple(self.named_distances())

    def distance_unit(self, name: str) -> str:  # noqa: ARG002 - a plain space counts in nothing
        """The unit of a named distance, such as ``"km"``; empty where it has none."""
        return ""

    def index(self, label: object) -> int:
        """Position of a label. The error message does not contain the label, which may be a secret."""
        try:
            return self._index[_plain(label)]
        except (KeyError, InvalidProblem):
            raise UnknownLabel(
                f"the label given is not one of the {len(self)} labels of this space, "
                f"which look like {self.labels[0]!r}"
            ) from None

    def indices(self, labels: Iterable[object]) -> IntArray:
        """Positions of many labels; the error message for an unknown one gives its position, not the label."""
        listed = labels.tolist() if isinstance(labels, np.ndarray) and labels.ndim else as_list(labels, "the labels")
        try:  # millions of plain labels a second, where nothing is wrong
            return np.fromiter(map(self._index.__getitem__, listed), dtype=np.int64, count=len(listed))
        except (KeyError, TypeError):
            pass
        positions = []
        for position, label in enumerate(listed):
            try:
                positions.append(self.index(label))
            except UnknownLabel as error:
                raise UnknownLabel(f"at position {position}: {error}") from None
        return np.array(positions, dtype=np.int64)

    def distance(self, name: str, to: "Space | None" = None) -> FloatArray:
        """The matrix (len(to), len(self)) of a named distance; ``to`` defaults to this space itself."""
        other = self if to is None else to
        if isinstance(other, AggregateSpace) and other is not self:
            return other.aggregate(self.distance(name, other.underlying))
        known = self.named_distances()
        if name not in known:
            raise InvalidProblem(
                f"{type(self).__name__} knows no distance {name!r}; "
                f"choose from {', '.join(known)}, or give a matrix or a function of two labels"
            )
        return known[name](other)

    def named_distances(self) -> NamedDistances:
        """The distances this space knows, by name; a subclass adds its own.

        Each is a function that takes a space (an estimate's or an output's labels, one for each row) and returns the
        matrix of distances to the labels of this space, one for each column.
        """
        return {"hamming": self._hamming}

    def _hamming(self, other: "Space") -> FloatArray:
        matrix = np.ones((len(other), len(self)))
        for row, label in enumerate(other.labels):
            if label in self._index:
                matrix[row, self._index[label]] = 0.0
        return matrix

    def _needs_same_kind(self, other: "Space", name: str) -> Self:
        if not isinstance(other, type(self)):
            raise InvalidProblem(
                f"the {name} distance from a {type(other).__name__} to a {type(self).__name__} is not defined; "
                "give a matrix or a function of two labels"
            )
        return other


class AggregateSpace(Space):
    """Outputs that each stand for several labels of an underlying space."""

    underlying: Space

    def aggregate(self, matrix: FloatArray) -> FloatArray:
        """One row per output from a matrix with one row per underlying label."""
        raise NotImplementedError


class DistanceSpace(Space):
    """Labels with a matrix of distances between them, as :meth:`Space.from_distances` builds it."""

    matrix: FloatArray
    default_distance = "given"

    def __init__(self, labels: Iterable[Label], distances: ArrayLike) -> None:
        super().__init__(labels)
        size = len(self)
        matrix = require_nonnegative(
            distances,
            what="distances",
            shape=(size, size),
            meaning="one row and column per label",
            infinite=True,
        )
        if np.diagonal(matrix).any():
            raise InvalidProblem("distances must have a zero diagonal: a label is at distance 0 from itself")
        self._fill(matrix=matrix)

    @property
    def content(self) -> tuple[object, ...]:
        """The labels, and a hash of the distances."""
        return self.labels, content_hash(self.matrix)

    def named_distances(self) -> NamedDistances:
        """The distances that were given, and Hamming's distance."""
        return {"given": self._given, **super().named_distances()}

    def _given(self, other: Space) -> FloatArray:
        return self.matrix if other == self else self.matrix[self.indices(other.labels)]


def label_text(label: object) -> str:
    """A label as text, the same in every process and release of Python: ``"{Alien, Brazil}"`` for a set."""
    return "{" + ", ".join(sorted(map(str, label))) + "}" if isinstance(label, set | frozenset) else str(label)


def require_label_size(characters: int) -> None:
    """Raise if labels with so many characters in all are not to be built."""
    if characters > MOST_TEXT:
        raise TooLarge(f"the labels would have {characters} characters in all; at most {MOST_TEXT}: give shorter ones")


def display_label(label: Label) -> str:
    """A label for tables and commands: what cannot be printed is escaped."""
    text = label_text(label)
    return text if text.isprintable() else repr(text)


def find_label(space: Space, text: str) -> Label:
    """The label that a text stands for. The error message does not contain it, since it may be the secret."""
    return space.labels[space.index({display_label(label): label for label in space.labels}.get(text, text))]


def _plain(label: object) -> Label:
    """A label as exactly a ``str``, ``int``, ``float`` or ``frozenset``, also from NumPy's scalars and subclasses."""
    if isinstance(label, np.generic | np.ndarray) and not label.ndim and label.dtype.kind not in "mM":  # of times
        label = label.item()
    if isinstance(label, bool) or not isinstance(label, LABEL_TYPES):
        raise InvalidProblem("a label must be text, a number or a set of texts")
    if isinstance(label, str):
        return _plain_text(label)
    if isinstance(label, set | frozenset):
        return frozenset(_plain_text(text) for text in label)
    if not abs(label) < 2**53:
        raise InvalidProblem("a label that is a number must be smaller than 2^53 in size")
    return int(label) if isinstance(label, int) else float(label) + 0.0  # −0.0 is 0.0


def _plain_text(text: object) -> str:
    """Exactly a ``str`` that a file or a terminal can encode: lone surrogates cannot be encoded."""
    if not isinstance(text, str) or not _is_proper(text):
        raise InvalidProblem("a label must be proper text, or a set of proper texts")
    return str.__str__(text)


def _is_proper(text: str) -> bool:
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return False
    return True

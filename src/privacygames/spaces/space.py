"""What every space of secrets or observables has: ordered labels, and distances known by name."""

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

    A distance is a matrix whose rows are what is compared (an estimate, or an observable) and whose columns
    are the secrets of this space. Every space knows ``"hamming"``: 0 where equal, 1 elsewhere. Two spaces are equal
    if they are of the same kind and everything that defines them is the same; labels that look alike are not enough.
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
        """Build a space from labels and the matrix of distances between them (known as ``"given"``)."""
        return DistanceSpace(labels, distances)

    @cached_property
    def _content(self) -> tuple[object, ...]:
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
        """What a cost or distance function is called with: the labels, unless a space says otherwise."""
        return self.labels

    @property
    def distance_names(self) -> tuple[str, ...]:
        """The distances this space knows by name."""
        return tuple(self._named_distances())

    def distance_unit(self, name: str) -> str:  # noqa: ARG002 - a plain space counts in nothing
        """What a named distance counts in, such as ``"km"``; empty where it has no unit."""
        return ""

    def index(self, label: object) -> int:
        """Position of a label. The error does not repeat the label: it may be a secret."""
        try:
            return self._index[_plain(label)]
        except (KeyError, InvalidProblem):
            raise UnknownLabel(
                f"the label given is not one of the {len(self)} labels of this space, "
                f"which look like {self.labels[0]!r}"
            ) from None

    def indices(self, labels: Iterable[object]) -> IntArray:
        """Positions of many labels; an unknown one is named by where it stands, not by what it is."""
        given = labels.tolist() if isinstance(labels, np.ndarray) and labels.ndim else as_list(labels, "the labels")
        try:  # millions of plain labels a second, where nothing is wrong
            return np.fromiter(map(self._index.__getitem__, given), dtype=np.int64, count=len(given))
        except (KeyError, TypeError):
            pass
        found = []
        for position, label in enumerate(given):
            try:
                found.append(self.index(label))
            except UnknownLabel as error:
                raise UnknownLabel(f"at position {position}: {error}") from None
        return np.array(found, dtype=np.int64)

    def distance(self, name: str, to: "Space | None" = None) -> FloatArray:
        """The matrix (len(to), len(self)) of a named distance; ``to`` defaults to this space itself."""
        other = self if to is None else to
        if isinstance(other, AggregateSpace) and other is not self:
            return other.aggregate(self.distance(name, other.underlying))
        known = self._named_distances()
        if name not in known:
            raise InvalidProblem(
                f"{type(self).__name__} knows no distance {name!r}; "
                f"choose from {', '.join(known)}, or give a matrix or a function of two labels"
            )
        return known[name](other)

    def _named_distances(self) -> NamedDistances:
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
    """Observables that each stand for several labels of an underlying space."""

    underlying: Space

    def aggregate(self, matrix: FloatArray) -> FloatArray:
        """Turn a matrix with one row per underlying label into one with a row per observable."""
        raise NotImplementedError


class DistanceSpace(Space):
    """Labels with a matrix of distances between them: what :meth:`Space.from_distances` builds."""

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

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.labels, content_hash(self.matrix)

    def _named_distances(self) -> NamedDistances:
        return {"given": self._given, **super()._named_distances()}

    def _given(self, other: Space) -> FloatArray:
        return self.matrix if other == self else self.matrix[self.indices(other.labels)]


def label_text(label: object) -> str:
    """A label as text, the same in every process and release of Python: ``"{Alien, Brazil}"`` for a set."""
    return "{" + ", ".join(sorted(map(str, label))) + "}" if isinstance(label, set | frozenset) else str(label)


def require_label_size(characters: int) -> None:
    """Refuse to make labels of so many characters in all."""
    if characters > MOST_TEXT:
        raise TooLarge(f"the labels would have {characters} characters in all; at most {MOST_TEXT}: give shorter ones")


def display_label(label: Label) -> str:
    """A label as tables show it and commands read it: what cannot be printed is escaped, so nothing is named by it."""
    text = label_text(label)
    return text if text.isprintable() else repr(text)


def find_label(space: Space, text: str) -> Label:
    """The label a person typed; the error does not repeat it, since it may be the secret."""
    return space.labels[space.index({display_label(label): label for label in space.labels}.get(text, text))]


def _plain(label: object) -> Label:
    """A label as exactly a ``str``, ``int``, ``float`` or ``frozenset``: NumPy's scalars and subclasses become one."""
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
    """Exactly a ``str`` that can be written to a file or a terminal: lone surrogates cannot."""
    if not isinstance(text, str) or not _is_proper(text):
        raise InvalidProblem("a label must be proper text, or a set of proper texts")
    return str.__str__(text)


def _is_proper(text: str) -> bool:
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return False
    return True

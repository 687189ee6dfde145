"""Sets: films watched, pages liked, medicines taken; distances are Jaccard distances."""

from collections.abc import Iterable

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.spaces.space import Label, NamedDistances, Space
from privacygames.validation import as_ordered_list


class Sets(Space):
    """Sets of texts; each set is its own label, and any equal set finds it.

    The order of the sets is that of the list they are given in; the order of the texts in a set has no meaning.

    >>> films = pg.Sets([{"Alien", "Brazil"}, {"Alien"}, set()])
    >>> films.distance("jaccard")[0].tolist()
    [0.0, 0.5, 1.0]
    """

    default_distance = "jaccard"

    def __init__(self, sets: Iterable[Iterable[str]]) -> None:
        given = as_ordered_list(sets, "the sets")
        if any(isinstance(each, str) or not isinstance(each, Iterable) for each in given):
            raise InvalidProblem("Sets takes sets of texts, such as [{'Alien', 'Brazil'}, {'Alien'}]")
        super().__init__(frozenset(each) for each in given)

    def named_distances(self) -> NamedDistances:
        """Jaccard's distance, and Hamming's."""
        return {"jaccard": self._jaccard, **super().named_distances()}

    def _jaccard(self, other: Space) -> FloatArray:
        r"""Jaccard distance :math:`1 - |A ∩ B| / |A ∪ B|`; two empty sets are at distance 0."""
        rows = self._needs_same_kind(other, "jaccard")
        items = {item for label in (*self.labels, *rows.labels) for item in _items(label)}
        column = {item: position for position, item in enumerate(sorted(items))}
        left, right = _incidence(rows, column), _incidence(self, column)
        shared = left @ right.T
        united = left.sum(axis=1)[:, None] + right.sum(axis=1)[None, :] - shared
        return np.asarray(1.0 - np.divide(shared, united, out=np.ones_like(shared), where=united > 0))


def _items(label: Label) -> frozenset[str]:
    return label if isinstance(label, frozenset) else frozenset()


def _incidence(space: Space, column: dict[str, int]) -> FloatArray:
    matrix = np.zeros((len(space), len(column)))
    for row, label in enumerate(space.labels):
        for item in _items(label):
            matrix[row, column[item]] = 1.0
    return matrix

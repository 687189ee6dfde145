r"""The control values of every cell as combinations of those that are free, so that functions are continuous.

Cells of the same size share the control values on their common edge. Where a cell borders on one of twice its side,
its control values on that edge are those of the larger cell's edge, cut in half by de Casteljau's algorithm: means of
them, with weights that are multiples of :math:`2^{-d}`. So a function is a polynomial on the whole edge and the same
from both sides; and control values that are distributions stay distributions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privacygames.arrays import IntArray
from privacygames.points.bernstein import halves
from privacygames.points.cell_tree import CellTree

WEIGHT_BITS = 24
"""Weights of combinations are multiples of 2^-24: the degree times the depth of a mesh is at most this."""

Combination = dict[int, float]
"""Weights of free control values, by number."""


@dataclass(frozen=True)
class Mixtures:
    """Combinations of several free control values, as thresholds for a random integer of ``WEIGHT_BITS`` bits.

    Attributes:
        number: for each control value of each cell, its row here; −1 where it is a free one itself.
        controls: (rows, terms) free control values.
        thresholds: (rows, terms) the integers below which it is this one or one before it.
    """

    number: IntArray
    controls: IntArray
    thresholds: IntArray


@dataclass(frozen=True, eq=False)
class SharedControls:
    """Control values of cells, in the order of cells and with the index of the first axis running fastest.

    Attributes:
        weights: sparse (control values of cells, free control values): rows are non-negative and sum to one.
    """

    weights: Any

    @classmethod
    def of(cls, tree: CellTree, degree: int) -> "SharedControls":
        """The control values of a tree's cells."""
        from scipy.sparse import csr_array

        places = _places(tree, degree)
        combinations = _Builder(tree, degree, places).combinations()
        free = sorted({place for combination in combinations.values() for place in combination})
        number = {place: at for at, place in enumerate(free)}
        rows, columns, values = [], [], []
        for row, place in enumerate(places.ravel().tolist()):
            for control, weight in combinations[place].items():
                rows.append(row)
                columns.append(number[control])
                values.append(weight)
        return cls(csr_array((values, (rows, columns)), shape=(places.size, len(free))))

    @property
    def free(self) -> int:
        """The number of free control values."""
        return int(self.weights.shape[1])

    @cached_property
    def single(self) -> IntArray:
        """For each control value of each cell, the free one that it is; one of its terms where it has several."""
        return np.asarray(self.weights.indices[self.weights.indptr[:-1]], dtype=np.int64)

    @cached_property
    def most_terms(self) -> int:
        """The largest number of free control values in a combination."""
        return int(np.diff(self.weights.indptr).max())

    @cached_property
    def mixtures(self) -> Mixtures:
        """The combinations of several control values, as thresholds for random integers."""
        terms = np.diff(self.weights.indptr)
        several = np.flatnonzero(terms > 1)
        number = np.full(len(terms), -1, dtype=np.int64)
        number[several] = np.arange(len(several))
        controls = np.zeros((len(several), self.most_terms), dtype=np.int64)
        thresholds = np.full(controls.shape, 1 << WEIGHT_BITS, dtype=np.int64)
        for row, at in enumerate(several.tolist()):
            part = slice(self.weights.indptr[at], self.weights.indptr[at + 1])
            count = part.stop - part.start
            controls[row, :count] = self.weights.indices[part]
            numerators = np.ldexp(self.weights.data[part], WEIGHT_BITS).astype(np.int64)
            thresholds[row, :count] = np.cumsum(numerators)
        return Mixtures(number, controls, thresholds)


def _places(tree: CellTree, degree: int) -> IntArray:
    """One integer for the place of each control value of each cell among those of its level, first by level.

    The shape is (cells, (degree + 1) ** axes). Cells of different levels never have the same: where a larger cell has a
    control value, a smaller one beside it may have another.
    """
    levels = tree.cells[:, :1]
    spans = [(count << tree.depth) * degree + 1 for count in tree.counts]
    places = levels.copy()
    for axis in reversed(range(tree.axes)):
        along = tree.cells[:, 1 + axis, None] * degree + np.arange(degree + 1)
        places = (places[:, :, None] * spans[axis] + along[:, None, :]).reshape(len(tree), -1)
    return places


class _Builder:
    """Goes through the cells from the largest to the smallest, and says what the control value at each place is."""

    def __init__(self, tree: CellTree, degree: int, places: IntArray) -> None:
        self._tree, self._degree = tree, degree
        self._places = places.reshape(len(tree), *[degree + 1] * tree.axes)  # the last axis first
        self._known: dict[int, Combination] = {}

    def combinations(self) -> dict[int, Combination]:
        """The combination at every place; free control values are named by their places."""
        levels = self._tree.cells[:, 0]
        for level in range(self._tree.depth + 1):
            cells = np.flatnonzero(levels == level).tolist()
            for cell in cells if level else ():
                for neighbour, axis, step in self._tree.larger_neighbours(cell):
                    self._share_edge(cell, neighbour, axis, step)
            for place in self._places[cells].ravel().tolist():
                self._known.setdefault(place, {place: 1.0})
        return self._known

    def _share_edge(self, cell: int, neighbour: int, axis: int, step: int) -> None:
        """The control values on an edge that is half of a larger cell's edge; on a line, the one at a common end."""
        across = self._tree.axes - 1 - axis  # axes of the array are those of the region, reversed
        inner, outer = (self._degree, 0) if step > 0 else (0, self._degree)
        edge = self._places[cell].take(inner, axis=across).ravel()
        whole = self._places[neighbour].take(outer, axis=across).ravel()
        half = np.ones((1, 1))
        if self._tree.axes > 1:
            half = halves(self._degree)[int(self._tree.cells[cell, 2 - axis]) % 2]
        for place, weights in zip(edge.tolist(), half.tolist(), strict=True):
            combination: Combination = {}
            for other, weight in zip(whole.tolist(), weights, strict=True):
                for control, share in self._known[other].items() if weight else ():
                    combination[control] = combination.get(control, 0.0) + weight * share
            self._known.setdefault(place, combination)

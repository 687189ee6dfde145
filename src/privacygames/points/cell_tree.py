"""The cells of a mesh: those of a regular grid, of which some are halved along every axis, and again."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from privacygames.arrays import IntArray, as_floats, content_hash, freeze
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value

MOST_LEVELS = 5
"""How often a cell may be halved: to a 32nd of its side."""


class CellTree(Value):
    """Cells by their level and position; cells that share an edge differ by at most one level.

    A cell of level l at position p covers the p-th of the ``counts · 2^l`` equal parts along each axis.
    """

    counts: tuple[int, ...]
    """The numbers of cells of level 0 along each axis."""
    cells: IntArray
    """(cells, 1 + axes): the level, and the position along each axis; sorted by the lower corner, last axis first."""

    def __init__(self, counts: Sequence[int]) -> None:
        positions = np.indices(tuple(counts[::-1])).reshape(len(counts), -1)[::-1].T
        self._fill_sorted(tuple(counts), np.hstack([np.zeros((len(positions), 1), dtype=np.int64), positions]))

    @classmethod
    def of(cls, counts: Sequence[int], cells: IntArray) -> "CellTree":
        """The tree with these cells.

        Raises:
            InvalidProblem: they overlap, leave something out, or neighbours differ by more than a level.
        """
        axes = len(counts)
        error = InvalidProblem(
            "the cells of a mesh must cover its region once, next to cells of half or twice the size"
        )
        if cells.ndim != 2 or cells.shape[1] != 1 + axes or not len(cells):
            raise error
        levels, positions = cells[:, 0], cells[:, 1:]
        if (levels < 0).any() or (levels > MOST_LEVELS).any() or (positions < 0).any():
            raise error
        if (positions >= np.array(counts) << levels[:, None]).any():
            raise error
        tree = object.__new__(cls)
        tree._fill_sorted(tuple(counts), cells.astype(np.int64))
        area = (1 << (axes * (tree.depth - levels))).sum()
        if area != np.prod(counts) << (axes * tree.depth) or (tree.lookup < 0).any() or len(tree._unbalanced()):
            raise error
        return tree

    def _fill_sorted(self, counts: tuple[int, ...], cells: IntArray) -> None:
        depth = cells[:, :1].max()
        corners = cells[:, 1:] << (depth - cells[:, :1])
        self._fill(counts=counts, cells=freeze(np.ascontiguousarray(cells[np.lexsort(corners.T)])))

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.counts, content_hash(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def axes(self) -> int:
        """The number of axes."""
        return len(self.counts)

    @property
    def depth(self) -> int:
        """The highest level."""
        return int(self.cells[:, 0].max())

    @cached_property
    def lookup(self) -> IntArray:
        """The cell that covers each cell of the highest level; the last axis comes first."""
        table = np.full([count << self.depth for count in self.counts[::-1]], -1, dtype=np.int64)
        for number, (level, *position) in enumerate(self.cells.tolist()):
            size = 1 << (self.depth - level)
            table[tuple(slice(at * size, (at + 1) * size) for at in position[::-1])] = number
        return table

    def neighbour(self, cell: int, axis: int, step: int) -> int:
        """A cell beyond an edge of another, −1 at the border: the one beside the middle of the edge, if it is larger.

        Args:
            cell: the cell.
            axis: the axis that the edge is orthogonal to.
            step: −1 for the lower edge, 1 for the upper one.
        """
        level, *position = self.cells[cell].tolist()
        size = 1 << (self.depth - level)
        at = [place * size for place in position]
        at[axis] += -1 if step < 0 else size
        if not 0 <= at[axis] < self.counts[axis] << self.depth:
            return -1
        return int(self.lookup[tuple(at[::-1])])

    def larger_neighbours(self, cell: int) -> list[tuple[int, int, int]]:
        """The cells of a lower level beyond the edges of a cell: (neighbour, axis, step)."""
        beyond = [(self.neighbour(cell, axis, step), axis, step) for axis in range(self.axes) for step in (-1, 1)]
        level = self.cells[cell, 0]
        return [edge for edge in beyond if edge[0] >= 0 and self.cells[edge[0], 0] < level]

    def halved(self, chosen: Sequence[int] | IntArray) -> "CellTree":
        """The tree with some cells halved along every axis, and as many others as the difference of levels demands.

        Raises:
            InvalidProblem: there is no such cell, or one would be halved more than :data:`MOST_LEVELS` times.
        """
        tree, left = self, np.unique(self._require_cells(chosen))
        while len(left):
            split, rest = tree.cells[left], np.delete(tree.cells, left, axis=0)
            if (split[:, 0] >= MOST_LEVELS).any():
                raise InvalidProblem(f"a cell of a mesh is halved at most {MOST_LEVELS} times")
            offsets = np.array([[(part >> axis) & 1 for axis in range(self.axes)] for part in range(1 << self.axes)])
            positions = (2 * split[:, None, 1:] + offsets).reshape(-1, self.axes)
            levels = np.repeat(split[:, :1] + 1, len(offsets), axis=0)
            finer = object.__new__(CellTree)
            finer._fill_sorted(self.counts, np.concatenate([rest, np.hstack([levels, positions])]))
            tree, left = finer, finer._unbalanced()
        return tree

    def _require_cells(self, chosen: Sequence[int] | IntArray) -> IntArray:
        """The numbers of cells, checked."""
        given = as_floats(chosen, "the list of cells to halve")
        if given.ndim != 1 or not np.isin(given, np.arange(len(self))).all():
            raise InvalidProblem(f"the cells to halve must be a list of whole numbers from 0 to {len(self) - 1}")
        return given.astype(np.int64)

    def _unbalanced(self) -> IntArray:
        """The cells with a neighbour that is more than one level above them; none along a single axis."""
        if self.axes == 1:
            return np.zeros(0, dtype=np.int64)
        low = [
            neighbour
            for cell in np.flatnonzero(self.cells[:, 0] > 1).tolist()
            for neighbour, _, _ in self.larger_neighbours(cell)
            if self.cells[neighbour, 0] < self.cells[cell, 0] - 1
        ]
        return np.unique(np.array(low, dtype=np.int64))

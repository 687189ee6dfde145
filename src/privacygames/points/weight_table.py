"""Integer weights at the control points of a mesh: probabilities at any point, and exact sampling."""

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, freeze_floats
from privacygames.errors import InvalidProblem
from privacygames.mechanism import RandomWords, Sampler
from privacygames.points.bernstein import RESOLUTION_BITS
from privacygames.points.mesh import Mesh
from privacygames.points.problem import output_coordinates
from privacygames.spaces import Space

Point = float | tuple[float, float]
"""One point: a number on an interval; (x, y), or (longitude, latitude), in an area."""


@dataclass(frozen=True, eq=False)
class PointTable:
    """Exact weights at control points, and what their columns mean.

    Attributes:
        mesh: the mesh.
        observables: the space of outputs.
        weights: (control points, outputs) integers whose rows sum to ``2**bits``.
        bits: that power.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> made = pg.design(problem, epsilon=0.5)
    >>> table = pg.points.PointTable(made.mesh, made.observables, made.weights, made.bits)
    >>> int(table.weights[0].sum()) == 2**table.bits
    True
    """

    mesh: Mesh
    observables: Space
    weights: IntArray
    bits: int

    @cached_property
    def rows(self) -> FloatArray:
        """The weights as probabilities, (control points, outputs), each within a relative 2^-53."""
        return freeze_floats(np.ldexp(self.weights.astype(np.float64), -self.bits))

    @cached_property
    def outputs(self) -> FloatArray:
        """The outputs in the region's coordinates, (outputs, axes)."""
        region = self.mesh.region
        return freeze_floats(region.coordinates(output_coordinates(region, self.observables)))

    @cached_property
    def sampler(self) -> Sampler:
        """The sampler of rows, with randomness from the operating system."""
        return Sampler(self.weights, self.bits)

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """p(o|x) at points in the region's coordinates, (points, outputs)."""
        codes = self.mesh.encode(self.mesh.region.clamp(points))
        return np.asarray(self.mesh.basis(codes) @ self.rows)

    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> FloatArray | Point:
        """A random output for a point, or an array of them for several points."""
        region = self.mesh.region
        given = as_floats(point, "the list of points") if isinstance(point, np.ndarray | list | tuple) else point
        single = np.ndim(given) == region.dimension - 1
        if np.ndim(given) not in (region.dimension - 1, region.dimension):
            what = "a point is a pair of numbers" if region.dimension == 2 else "a secret is a number"
            raise InvalidProblem(f"{what}, and several are an array of them")
        codes = self.mesh.encode(
            region.clamp(np.atleast_1d(given)[None] if single and region.dimension == 2 else np.atleast_1d(given))
        )
        drawn = self.outputs[self.draw(codes, generator)]
        if not single:
            return drawn if region.dimension == 2 else drawn[:, 0]
        first = drawn[0].tolist()
        return (first[0], first[1]) if region.dimension == 2 else float(first[0])

    def draw(self, codes: IntArray, generator: np.random.Generator | None = None) -> IntArray:
        """The index of a random output for each encoded point."""
        sampler = self.sampler if generator is None else self.sampler.using(generator)
        return sampler.draw(self._controls(codes, _uniform(self._comparisons, len(codes), generator)))

    def draw_with(self, codes: IntArray, random_words: RandomWords) -> IntArray:
        """The same with random bits from elsewhere: words 1, 2, … choose a control point, and word 0 an output."""
        uniform = np.empty((self._comparisons, len(codes)), dtype=np.int64)
        for number in range(self._comparisons):  # two numbers of RESOLUTION_BITS bits from each word
            words = random_words(1 + number // 2) >> np.uint64(32 * (number % 2))
            uniform[number] = (words & np.uint64(2**RESOLUTION_BITS - 1)).astype(np.int64)
        return self.sampler.draw_with(self._controls(codes, uniform), random_words(0))

    @property
    def _comparisons(self) -> int:
        """Random integers that choose a control point: one more where some are combinations of others."""
        return self.mesh.axes * self.mesh.degree + int(self.mesh.tree.depth > 0)

    def _controls(self, codes: IntArray, uniform: IntArray) -> IntArray:
        """A random control point for each encoded point: Binomial(degree, t) along each axis of its cell.

        So many of ``degree`` uniform integers below 2^RESOLUTION_BITS lie below where in its cell the point is. On the
        edge of a larger cell, the last integer chooses one of those that the control value there is a mean of.
        """
        degree, shared = self.mesh.degree, self.mesh.shared
        place, inside = self.mesh.split(codes)
        for number in reversed(range(self.mesh.axes)):
            steps = (uniform[number * degree : (number + 1) * degree] < inside[number]).sum(axis=0)
            place = place * (degree + 1) + steps
        control = shared.single[place]
        if self.mesh.tree.depth:
            mixture = shared.mixtures.number[place]
            rows = np.flatnonzero(mixture >= 0)
            below = uniform[-1, rows, None] >= shared.mixtures.thresholds[mixture[rows]]
            control[rows] = shared.mixtures.controls[mixture[rows], below.sum(axis=1)]
        return control


def _uniform(rows: int, count: int, generator: np.random.Generator | None) -> IntArray:
    """Uniform integers of RESOLUTION_BITS bits, (rows, count), from the operating system or a seeded generator."""
    if generator is not None:
        return generator.integers(0, 2**RESOLUTION_BITS, size=(rows, count), dtype=np.int64)
    words = np.frombuffer(os.urandom(4 * rows * count), dtype=np.uint32).reshape(rows, count)
    return (words >> np.uint32(32 - RESOLUTION_BITS)).astype(np.int64)

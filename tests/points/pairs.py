"""Search for two points that break a guarantee: millions of random pairs, decided in exact arithmetic.

Probabilities at many points are computed in floating point with a bound on all rounding. It decides nearly every
pair; the few that are too near to tell, and those nearest to the bound, are decided by whole numbers alone.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

from privacygames import PointMechanism
from privacygames.points import Mesh
from privacygames.points.bernstein import RESOLUTION_BITS
from privacygames.points.shared_controls import WEIGHT_BITS

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

UNIT = 2**RESOLUTION_BITS
ROUNDING = 256 * 2.0**-53
"""Relative error of a probability in floating point, at most: weights, combinations of control values, products of the
basis and sums of non-negative terms are fewer than 200 roundings for the degrees tested."""

EXPONENTIAL_BITS = 200
"""Bits after the point in bounds on exponentials."""

MEASURED = 1e-3
"""Least ε·distance for which the log-ratio is measured in floating point: to 10⁻¹⁰ of it."""


def random_points(mesh: Mesh, rng: np.random.Generator, count: int) -> Array:
    """Points where mistakes would be: anywhere, on lines between cells, at their corners, and outside the region."""
    lengths = np.array(mesh.region.lengths)
    xy = rng.uniform(0, lengths, (count, mesh.axes))
    low, high = mesh.bounds
    edges, cell = np.stack([low, high]), rng.integers(mesh.cells, size=count)
    corner = edges[rng.integers(2, size=(count, mesh.axes)), cell[:, None], np.arange(mesh.axes)]
    kind = rng.integers(4, size=count)
    along = rng.integers(mesh.axes, size=count)
    on_line = kind == 1
    xy[on_line, along[on_line]] = corner[on_line, along[on_line]]
    xy[kind == 2] = corner[kind == 2]
    outside = kind == 3
    xy[outside] += rng.normal(size=(int(outside.sum()), mesh.axes)) * 0.3 * lengths
    return xy


def random_pairs(mesh: Mesh, rng: np.random.Generator, count: int) -> tuple[Codes, Codes]:
    """Encoded pairs of points at distances from 2⁻²² of the smallest cell to the whole region, log-uniform."""
    first = random_points(mesh, rng, count)
    first += rng.integers(-2, 3, first.shape) * mesh.sides.min() / UNIT  # a unit or two beside lines and corners
    smallest, largest = mesh.sides.min() * 2.0**-22, float(np.hypot.reduce(mesh.region.lengths))
    distance = np.exp(rng.uniform(np.log(smallest), np.log(largest), count))
    direction = rng.normal(size=first.shape)
    straight = rng.random(count) < 0.3  # along an axis
    direction[straight] *= np.eye(mesh.axes)[rng.integers(mesh.axes, size=int(straight.sum()))]
    length = np.maximum(np.linalg.norm(direction, axis=1), 1e-300)
    second = first + direction * (distance / length)[:, None]
    one, other = (mesh.encode(np.clip(xy, 0.0, mesh.region.lengths)) for xy in (first, second))
    return one, other


class Evaluator:
    """Probabilities of a mechanism from its integers: in floating point with bounded rounding, and exactly."""

    def __init__(self, mechanism: PointMechanism) -> None:
        mesh = mechanism.mesh
        self.mesh, self.weights = mesh, mechanism.weights
        assert mechanism.bounds.epsilon is not None
        self.epsilon = mechanism.bounds.epsilon
        rows = mesh.shared.weights @ mechanism.weights.astype(np.float64)
        self.local = np.ldexp(rows.reshape(mesh.cells, -1, rows.shape[1]), -mechanism.bits)
        self.binomials = [comb(mesh.degree, i) for i in range(mesh.degree + 1)]

    def probabilities(self, codes: Codes) -> Array:
        """p(o|x), each within a relative :data:`ROUNDING`, (points, outputs)."""
        cell, inside = self.mesh.split(codes)
        basis = np.ones((len(codes), 1))
        for numerators in reversed(inside):
            t = numerators / UNIT
            powers, rest = [np.ones(len(t))], [np.ones(len(t))]
            for _ in range(self.mesh.degree):
                powers.append(powers[-1] * t)
                rest.append(rest[-1] * (1 - t))
            along = np.stack([c * p * r for c, p, r in zip(self.binomials, powers, rest[::-1], strict=True)], axis=1)
            basis = (basis[:, :, None] * along[:, None, :]).reshape(len(codes), -1)
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(self.mesh.cells + 1))
        result = np.empty((len(codes), self.local.shape[2]))
        for number in np.flatnonzero(np.diff(starts)).tolist():
            members = order[starts[number] : starts[number + 1]]
            result[members] = basis[members] @ self.local[number]
        return result

    @cached_property
    def whole(self) -> NDArray[np.object_]:
        """The control values of cells as whole numbers, (cells, control values, outputs), times 2^WEIGHT_BITS."""
        combinations = self.mesh.shared.weights
        total = np.zeros((combinations.shape[0], self.weights.shape[1]), dtype=object)
        rows = np.repeat(np.arange(len(total)), np.diff(combinations.indptr))
        parts = np.ldexp(combinations.data, WEIGHT_BITS).astype(np.int64).astype(object)
        np.add.at(total, rows, parts[:, None] * self.weights.astype(object)[combinations.indices])
        return total.reshape(self.mesh.cells, -1, self.weights.shape[1])

    def exact_probabilities(self, code: int) -> NDArray[np.object_]:
        """p(o|x) as whole numbers, times a power of two that is the same for every point."""
        degree = self.mesh.degree
        cell, inside = self.mesh.split(np.array([code]))
        along = [
            [c * int(t[0]) ** i * (UNIT - int(t[0])) ** (degree - i) for i, c in enumerate(self.binomials)]
            for t in inside
        ]
        shares = along[0] if len(along) == 1 else [y * x for y in along[1] for x in along[0]]
        return np.asarray(np.array(shares, dtype=object) @ self.whole[int(cell[0])])

    def position(self, code: int) -> list[Fraction]:
        """The encoded point itself, in exact fractions of the lines of the mesh."""
        cell, inside = self.mesh.split(np.array([code]))
        level, *parts = self.mesh.tree.cells[int(cell[0])].tolist()
        place = []
        for lines, part, t in zip(self.mesh.lines, parts, inside, strict=True):
            number, within = divmod(part, 1 << level)
            low, high = Fraction(float(lines[number])), Fraction(float(lines[number + 1]))
            place.append(low + (within + Fraction(int(t[0]), UNIT)) / (1 << level) * (high - low))
        return place

    def holds_exactly(self, one: int, other: int) -> bool:
        """Whether both ratios of every output are at most e^(ε·distance), by whole numbers alone."""
        square = sum(((a - b) ** 2 for a, b in zip(self.position(one), self.position(other), strict=True)), Fraction(0))
        grown = exponential_below(Fraction(self.epsilon), square)
        p, q = self.exact_probabilities(one), self.exact_probabilities(other)
        return bool((p << EXPONENTIAL_BITS <= grown * q).all() and (q << EXPONENTIAL_BITS <= grown * p).all())


def exponential_below(epsilon: Fraction, square: Fraction) -> int:
    """A number not above e^(ε·√square), times 2^EXPONENTIAL_BITS: a root and terms of the series, all rounded down."""
    root = isqrt(int(epsilon * epsilon * square * (1 << (2 * EXPONENTIAL_BITS))))
    term = total = 1 << EXPONENTIAL_BITS
    number = 0
    while term:
        number += 1
        term = (term * root >> EXPONENTIAL_BITS) // number
        total += term
    return total


@dataclass(frozen=True)
class PairSearch:
    """What a search among random pairs has found.

    Attributes:
        pairs: how many pairs of different points were compared.
        undecided: for how many floating point could not tell.
        exact: how many were compared in exact arithmetic: the undecided ones, and the nearest to the bound.
        broken: how many broke the guarantee.
        largest: the largest log-ratio, as a share of ε times the distance, where that is above :data:`MEASURED`.
    """

    pairs: int
    undecided: int
    exact: int
    broken: int
    largest: float


def search_pairs(mechanism: PointMechanism, count: int, seed: int, *, batch: int = 50_000) -> PairSearch:
    """Compare random pairs of points under every output."""
    evaluator, rng = Evaluator(mechanism), np.random.default_rng(seed)
    mesh = mechanism.mesh
    reach = 8 * np.spacing(max(mesh.region.lengths))  # by which a decoded coordinate may be off, with room
    pairs = undecided = exact = broken = 0
    largest = 0.0
    while pairs < count:
        one, other = random_pairs(mesh, rng, batch)
        different = np.flatnonzero(one != other)[: count - pairs]
        one, other = one[different], other[different]
        p, q = evaluator.probabilities(one), evaluator.probabilities(other)
        distance = np.linalg.norm(mesh.decode(one) - mesh.decode(other), axis=1)
        allowed = evaluator.epsilon * np.maximum(distance - reach, 0.0) * (1 - 2.0**-50)
        grown = (np.exp(allowed) * (1 - 2.0**-50))[:, None]
        low, high = np.minimum(p, q), np.maximum(p, q)
        clear = (high * (1 + ROUNDING) <= grown * (low * (1 - ROUNDING))).all(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.log(np.where(high > 0, high / low, 1.0).max(axis=1)) / (evaluator.epsilon * distance)
        share[evaluator.epsilon * distance < MEASURED] = 0.0
        nearest = np.unique(np.append(np.flatnonzero(~clear), np.argmax(share)))
        results = [evaluator.holds_exactly(int(one[at]), int(other[at])) for at in nearest]
        pairs, undecided, exact = pairs + len(one), undecided + int((~clear).sum()), exact + len(nearest)
        broken += len(results) - sum(results)
        largest = max(largest, float(share.max()))
    return PairSearch(pairs, undecided, exact, broken, largest)

"""Mechanisms for points: an exact distribution over finitely many outputs for every point of an area."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Sampler
from privacygames.points.bernstein import RESOLUTION_BITS, Mesh
from privacygames.points.verification import check_epsilon, check_weights

Point = tuple[float, float]


@dataclass(frozen=True)
class PointCertificate:
    """What was verified of a mechanism for points.

    Attributes:
        epsilon: per kilometre: p(o|x) ≤ exp(ε·‖x − x'‖)·p(o|x') for every output and any two points of the plane.
        resolution: coordinates are rounded by at most this many kilometres, which adds ε times twice as much to the
            exponent.
        cost: the expected cost under the prior, rounded up.
        bound: no mechanism with this guarantee costs less, on points or of any other form; None where it was not
            computed.

    >>> town = pg.Area(2.0, 2.0)
    >>> prior = pg.points.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)])
    >>> certificate = pg.points.design(prior, [(0.5, 0.5), (1.5, 1.2)], epsilon=1.0).certificate
    >>> certificate.epsilon
    1.0
    """

    epsilon: float
    resolution: float
    cost: float
    bound: float | None

    @property
    def gap(self) -> float | None:
        """(cost − bound) / cost; None without a bound."""
        return None if self.bound is None else (self.cost - self.bound) / self.cost if self.cost else 0.0

    def __str__(self) -> str:
        against = "" if self.bound is None else f"; no mechanism costs less than {self.bound:.6g} (gap {self.gap:.2%})"
        return (
            f"epsilon {self.epsilon:g} per km between any two points (coordinates rounded by "
            f"{self.resolution * 1e6:.2g} mm), cost {self.cost:.6g}{against}"
        )


class PointMechanism:
    """A random output for every point of an area, certified for any two points.

    Rows of integer weights belong to the control points of a mesh. The distribution at a point is their mean, weighted
    by the Bernstein polynomials there: draw i from Binomial(d, t_x) and j from Binomial(d, t_y), then an output from
    row (i, j) of the cell. Each step compares integers from the operating system; no float decides anything.

    Args:
        mesh: the mesh, with its area.
        outputs: the points that may be released, (outputs, 2), as the area counts them.
        weights: (control points, outputs) integers whose rows sum to 2^bits.
        bits: that power.
        epsilon: what to verify, per kilometre.
        cost: the expected cost, for the certificate.
        bound: a lower bound on the cost of every mechanism, for the certificate.

    Raises:
        GuaranteeViolated: the weights do not satisfy the guarantee.

    >>> town = pg.Area(2.0, 2.0)
    >>> prior = pg.points.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.points.design(prior, [(0.5, 0.5), (1.5, 1.2)], epsilon=1.0)
    >>> mechanism.sample((0.51, 0.48)) in [(0.5, 0.5), (1.5, 1.2)]
    True
    """

    def __init__(
        self,
        mesh: Mesh,
        outputs: FloatArray,
        weights: IntArray,
        bits: int,
        *,
        epsilon: float,
        cost: float,
        bound: float | None = None,
    ) -> None:
        check_weights(weights, bits, mesh)
        check_epsilon(weights, mesh, epsilon)
        self.mesh, self.outputs, self.weights, self.bits = mesh, outputs, weights, bits
        self.certificate = PointCertificate(epsilon, mesh.resolution, cost, bound)

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """p(o|x) for each point, (points, outputs), as floats."""
        rows = np.ldexp(self.weights.astype(np.float64), -self.bits)
        return np.asarray(self.mesh.basis(self.mesh.area.clamp(points)) @ rows)

    @overload
    def sample(self, point: Point, generator: np.random.Generator | None = None) -> Point: ...
    @overload
    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> FloatArray | Point: ...
    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> FloatArray | Point:
        """A random output for a point, or an array of them for several points.

        Args:
            point: (x, y) in kilometres, or (longitude, latitude) where the area is over degrees; or many of them.
            generator: a seeded generator for experiments; leave it out for anything private.
        """
        pairs = as_floats(point, "the points")
        if pairs.ndim not in (1, 2):
            raise InvalidProblem("a point is a pair of numbers, and several are an array of shape (many, 2)")
        drawn = self.outputs[self.draw(pairs.reshape(-1, 2) if pairs.ndim == 1 else pairs, generator)]
        return (float(drawn[0, 0]), float(drawn[0, 1])) if pairs.ndim == 1 else drawn

    def draw(self, points: ArrayLike, generator: np.random.Generator | None = None) -> IntArray:
        """The index of a random output for each point."""
        xy = self.mesh.area.clamp(points)
        sampler = self._sampler if generator is None else self._sampler.using(generator)
        (column, inside_x), (row, inside_y) = self.mesh.x.locate(xy[:, 0]), self.mesh.y.locate(xy[:, 1])
        i, j = (_binomial(inside, self.mesh.x.degree, generator) for inside in (inside_x, inside_y))
        degree = self.mesh.x.degree
        return sampler.draw((row * degree + j) * self.mesh.x.controls + column * degree + i)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.weights, self.bits)

    def __repr__(self) -> str:
        return f"PointMechanism({self.mesh!r}, {len(self.outputs)} outputs, cost {self.certificate.cost:.4g})"


def _binomial(inside: IntArray, degree: int, generator: np.random.Generator | None) -> IntArray:
    """Binomial(degree, t) for t = inside / 2^RESOLUTION_BITS: so many uniform integers lie below ``inside``."""
    shape = (degree, len(inside))
    if generator is not None:
        uniform = generator.integers(0, 2**RESOLUTION_BITS, size=shape, dtype=np.int64)
    else:
        words = np.frombuffer(os.urandom(4 * degree * len(inside)), dtype=np.uint32).reshape(shape)
        uniform = (words >> np.uint32(32 - RESOLUTION_BITS)).astype(np.int64)
    return np.asarray((uniform < inside).sum(axis=0))

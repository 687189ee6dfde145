"""Planar noise with a plateau: the cheapest one with an ε and a bound on how well any disk can be guessed."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.baselines.planar import random_uniforms
from privacygames.errors import Field, InvalidProblem
from privacygames.problem import require_epsilon
from privacygames.validation import is_number, require_sides

FAR, NODES = 40, 8
"""Reach beyond a plateau in units of 1/ε, where less than 10⁻¹⁵ is left, and nodes of the quadrature for each unit."""

LARGEST_PLATEAU = 1000.0
"""Radius of a plateau in sides of a map, from which on an output tells nothing."""

HALVINGS = 40
"""Rounds of bisection for a plateau's radius: exact to a relative 10⁻¹²."""


@dataclass(frozen=True)
class PlateauNoise:
    r"""Noise in the plane whose density is constant up to a radius R, and falls by :math:`e^{-ε}` per unit beyond.

    ε holds between any two points of the plane. Given one output, and no knowledge about the point beforehand, the
    posterior density is nowhere larger than on the plateau, so no disk of radius r is guessed with a probability above
    :math:`c\,πr^2`. Of all mechanisms with this ε and this largest density it has the least expected distance
    (docs/theory/weeks.md). Planar Laplace noise is the case R = 0.

    Like :func:`planar_laplace_noise` it is computed in floating point, and not certified;
    :class:`privacygames.points.PlateauMechanism` is.

    Args:
        epsilon: ε per unit of distance.
        plateau: the radius R, 0 or more.

    >>> noise = pg.baselines.PlateauNoise.against_disks(10.0, radius=0.2, probability=0.2642)
    >>> laplace = pg.baselines.PlateauNoise(5.0, 0.0)
    >>> [round(each.probability_within(0.2), 4) for each in (noise, laplace)]
    [0.2642, 0.2642]
    >>> [round(each.expected_distance, 3) for each in (noise, laplace)]
    [0.293, 0.4]
    """

    epsilon: float
    plateau: float

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not self.epsilon > 0:
            raise InvalidProblem(Field("epsilon"), " must be positive: without one, noise has no end")
        if not (is_number(self.plateau) and 0 <= self.plateau < np.inf):
            raise InvalidProblem(Field("plateau"), " must be a radius, 0 or more")

    @classmethod
    def against_disks(
        cls, epsilon: float, *, radius: float, probability: float, sides: tuple[float, float] | None = None
    ) -> "PlateauNoise":
        """The noise that guarantees ε, and that no disk of a radius is guessed with more than a probability.

        Args:
            epsilon: ε per unit of distance.
            radius: of the disks.
            probability: the largest one; if ε alone guarantees as much, the plateau has radius 0.
            sides: of a map that the adversary knows the point to be on: the bound is then that of
                :meth:`largest_chance`, and the plateau wider. By default the plane.

        Raises:
            InvalidProblem: a blind guess on the map already has this probability.

        >>> sides = (16.0, 16.0)
        >>> noise = pg.baselines.PlateauNoise.against_disks(10.0, radius=0.2, probability=0.2642, sides=sides)
        >>> round(noise.plateau, 3), round(noise.expected_distance, 3), round(noise.largest_chance(0.2, sides), 6)
        (0.294, 0.303, 0.2642)
        """
        for name, value in (("radius", radius), ("probability", probability)):
            if not (is_number(value) and 0 < value < np.inf):
                raise InvalidProblem(Field(name), " must be a positive number")
        cls(epsilon, 0.0)
        if sides is not None:
            return cls._on_map(epsilon, radius, probability, sides)
        square = radius**2 / probability - 1 / epsilon**2  # 1/(πc) − 1/ε², with c = probability / (πr²)
        return cls(epsilon, max(0.0, float(np.sqrt(max(square, 0.0))) - 1 / epsilon))

    @classmethod
    def _on_map(cls, epsilon: float, radius: float, probability: float, sides: tuple[float, float]) -> "PlateauNoise":
        """The smallest plateau with which the largest chance on a map is no more than a probability, by bisection."""
        low, high = 0.0, radius
        while cls(epsilon, high).largest_chance(radius, sides) > probability:
            low, high = high, 2 * high
            if high > LARGEST_PLATEAU * max(sides):
                raise InvalidProblem(Field("probability"), " is that of a blind guess on this map, or less")
        if cls(epsilon, 0.0).largest_chance(radius, sides) <= probability:
            return cls(epsilon, 0.0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            exceeds = cls(epsilon, middle).largest_chance(radius, sides) > probability
            low, high = (middle, high) if exceeds else (low, middle)
        return cls(epsilon, high)

    def largest_chance(self, radius: float, sides: tuple[float, float] | None = None) -> float:
        r"""The largest probability with which any attack on one output finds the point within a radius.

        All points are equally likely beforehand. On a map that the adversary knows, of area A and perimeter P, it is

        .. math:: F(r) + \frac{πr^2}{A} + \frac{P}{A} \int_0^\infty F(\sqrt{t^2 + r^2}) - F(t)\,dt

        at most, with F the distribution of the distance: what one output allows in the plane, a blind guess, and the
        edge (docs/theory/weeks.md).

        Args:
            radius: in the unit of distances.
            sides: width and height of the map; by default the plane.

        >>> laplace = pg.baselines.PlateauNoise(5.0, 0.0)
        >>> [round(laplace.largest_chance(0.2, sides), 3) for sides in (None, (16.0, 16.0), (2.0, 1.0))]
        [0.264, 0.283, 0.552]
        """
        if sides is None:
            return self.probability_within(radius)
        width, height = require_sides(sides)
        area, perimeter = width * height, 2 * (width + height)
        blind = np.pi * radius**2 / area
        edge = self._beyond_an_edge(radius) * perimeter / area
        return min(self.probability_within(radius) + blind + edge, 1.0)

    def _beyond_an_edge(self, radius: float) -> float:
        """The integral over distances t from an edge, on its other side, of the largest mass of a disk on this side.

        By Gauss-Legendre quadrature between the points where a distance is the plateau's radius.
        """
        reach = self.plateau
        cuts = {0.0, reach, float(np.sqrt(max(reach**2 - radius**2, 0.0))), radius, reach + FAR / self.epsilon}
        edges = sorted(cuts | {reach + step / self.epsilon for step in range(1, FAR)})
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        starts, lengths = np.array(edges[:-1])[:, None], np.diff(edges)[:, None]
        distances = (starts + lengths * (nodes + 1) / 2).ravel()
        masses = self._within(np.sqrt(distances**2 + radius**2)) - self._within(distances)
        return float(masses @ (lengths * weights / 2).ravel())

    @property
    def largest_density(self) -> float:
        """The density c on the plateau: per square unit of distance."""
        scale = 1 / self.epsilon
        return float(1 / (2 * np.pi * (self.plateau**2 / 2 + self.plateau * scale + scale**2)))

    @property
    def expected_distance(self) -> float:
        """The expected distance of an output from the point."""
        reach, scale = self.plateau, 1 / self.epsilon
        moment = reach**3 / 3 + reach**2 * scale + 2 * reach * scale**2 + 2 * scale**3
        return float(2 * np.pi * self.largest_density * moment)

    def probability_within(self, radius: float) -> float:
        """The probability that an output is within a radius of the point.

        Args:
            radius: in the unit of distances.
        """
        return float(self._within(np.array([radius]))[0])

    def _within(self, radii: FloatArray) -> FloatArray:
        """The probability that an output is within each radius of the point."""
        reach, scale = self.plateau, 1 / self.epsilon
        inner = np.minimum(radii, reach) ** 2 / 2
        beyond = np.maximum(radii - reach, 0.0)
        outer = (reach * scale + scale**2) - np.exp(-self.epsilon * beyond) * ((reach + beyond) * scale + scale**2)
        return np.asarray(2 * np.pi * self.largest_density * (inner + outer))

    def log_density(self, distances: FloatArray) -> FloatArray:
        """The logarithm of the density at distances from the point.

        Args:
            distances: in the unit of distances.
        """
        return np.asarray(np.log(self.largest_density) - self.epsilon * np.maximum(distances - self.plateau, 0.0))

    def sample(self, count: int, generator: np.random.Generator | None = None) -> FloatArray:
        """Noise (east, north), shape (count, 2).

        Args:
            count: number of points.
            generator: a seeded generator for reproducible experiments; by default the operating system's randomness.
        """
        part, first, second, turn = (random_uniforms(count, generator) for _ in range(4))
        scale, reach = 1 / self.epsilon, self.plateau
        inside = np.pi * reach**2 * self.largest_density
        steps = -np.log(first) * scale
        second_step = part > inside + (1 - inside) * reach / (reach + scale)  # the density beyond is (R + t)e^{−εt}
        radius = np.where(
            part < inside, reach * np.sqrt(first), reach + steps - np.where(second_step, np.log(second) * scale, 0)
        )
        angle = 2 * np.pi * turn
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

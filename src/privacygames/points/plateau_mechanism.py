"""A certified mechanism for a town of any size: exact noise with a plateau, moved to the nearest of many outputs."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import frexp, hypot, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, freeze_floats
from privacygames.baselines import PlateauNoise
from privacygames.canonical import digest_of
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import RandomWords, RowSampler
from privacygames.points.lattice_noise import LatticeNoise, RandomBits, Words, random_words
from privacygames.points.mechanism import PointSampleable
from privacygames.problem import Bounds
from privacygames.spaces import Area, Grid, region_digest, space_digest
from privacygames.validation import require_instance

LATTICE_BITS = 30
"""The lattice has fewer steps than two to this power along each axis: 15 µm in a city of 16 km."""

ROUNDING = 0.71
"""Steps by which a point is rounded at most: half a diagonal."""


@dataclass(frozen=True)
class PlateauRowSampler:
    """Draws the outputs of a batch of rows whose secrets are encoded points."""

    mechanism: "PlateauMechanism"

    def tweak(self, secrets: IntArray) -> IntArray:
        """The encoded point: all rows have the same mechanism."""
        return secrets

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row, which takes as many words as its draw needs."""
        columns: list[Any] = []

        def words_of(row: int) -> Words:
            number = -1

            def word() -> int:
                nonlocal number
                number += 1
                if number == len(columns):
                    columns.append(random_words(number))
                return int(columns[number][row])

            return word

        sources = [RandomBits(words_of(row)) for row in range(len(secrets))]
        return self.mechanism.draw_codes(secrets, sources)


class PlateauMechanism(PointSampleable):
    r"""Noise with a plateau, or planar Laplace noise, as a certified mechanism with a grid of outputs.

    The point is rounded to a lattice of less than a millimetre, in a city; whole steps of noise are drawn exactly,
    and the cell of the grid in which the result lies, or the nearest one, is the output. ε holds between any two points
    of the lattice by proof, in exact arithmetic; moving to cells is post-processing. It needs no design and no table,
    whatever the size of the region and ε. What is said about disks,
    :meth:`privacygames.baselines.PlateauNoise.largest_chance`, is about the noise without the lattice, in floating
    point.

    It is for :class:`privacygames.PointReleases` and for sampling. Without a table of its probabilities it cannot be
    evaluated, or kept in a file.

    Args:
        outputs: the grid, over the region of the secrets; outputs are the centres of its cells.
        noise: its ε per km, and its plateau.

    >>> city = pg.Grid(columns=320, rows=320, width=16.0, height=16.0)
    >>> noise = pg.baselines.PlateauNoise.against_disks(10.0, radius=0.2, probability=0.25, sides=(16.0, 16.0))
    >>> mechanism = pg.points.PlateauMechanism(city, noise)
    >>> places = pg.policies.FrequentPlaces(b"0123456789abcdef", [(3.05, 3.01), (12.4, 9.8)], radius=0.2)
    >>> releases = pg.PointReleases(mechanism, policy=places, budget=pg.Budget(20.0, every=24 * 3600))
    >>> [releases.release(point, at=1.7e9).epsilon for point in [(3.06, 3.0), (3.04, 3.02), (12.4, 9.9)]]
    [10.0, 0.0, 10.0]
    """

    def __init__(self, outputs: Grid, noise: PlateauNoise) -> None:
        self._grid = require_instance(outputs, Grid, "the outputs")
        self._noise = require_instance(noise, PlateauNoise, "the noise")
        self._epsilon = float(noise.epsilon)
        self._region = Area(outputs.width, outputs.height) if outputs.box is None else Area.over(outputs.box)
        self._step = 2.0 ** (frexp(max(self._region.lengths))[1] - LATTICE_BITS)
        if not self.noise.slope > 0:
            raise InvalidProblem(Field("epsilon"), " is too small for a region of this size")

    def __getattr__(self, name: str) -> Any:
        if name == "_table":
            raise InvalidProblem("noise has no table of probabilities: it is for sampling and PointReleases")
        raise AttributeError(name)

    @cached_property
    def noise(self) -> LatticeNoise:
        """The noise, in steps of the lattice."""
        return LatticeNoise(Fraction(self._epsilon), Fraction(self._noise.plateau), Fraction(self._step))

    @property
    def secrets(self) -> Area:
        """The region of the secrets."""
        return self._region

    @property
    def observables(self) -> Grid:
        """The grid of outputs."""
        return self._grid

    @cached_property
    def outputs(self) -> FloatArray:
        """The centres of the cells in the region's coordinates, (outputs, 2)."""
        return freeze_floats(self._grid.centres if self._grid.box is None else self._grid.degrees)

    @property
    def bounds(self) -> Bounds:
        """What is guaranteed."""
        return Bounds(epsilon=self._epsilon)

    @cached_property
    def digest(self) -> str:
        """SHA-256 that names the mechanism in ledgers."""
        steps = [self.noise.slope, self.noise.radius, self._step]
        return digest_of("plateau mechanism", *steps, region_digest(self.secrets), space_digest(self.observables))

    @cached_property
    def any_pair(self) -> float:
        """The largest ln p(o|x)/p(o|x') between any two points, at most."""
        return nextafter(self._epsilon * (hypot(*self.secrets.lengths) + 2 * self.resolution), inf)

    @cached_property
    def variation_rate(self) -> float:
        """The total variation of the outputs of two points per km, at most: ε/2, by the guarantee."""
        return self._epsilon / 2

    @property
    def ignores_secret(self) -> bool:
        """False: noise never hides everything."""
        return False

    @property
    def constant(self) -> bool:
        """False: noise never hides everything."""
        return False

    @property
    def resolution(self) -> float:
        """Points are rounded by at most this much, in km."""
        return ROUNDING * self._step

    def keeps_epsilon(self, epsilon: float) -> bool:
        """Whether the proof covers an ε between any two points of the lattice."""
        return self.noise.keeps_epsilon(Fraction(epsilon))

    def encode_places(self, places: FloatArray) -> IntArray:
        """Points of the region in km, (points, 2), as the row sampler takes them: their steps on the lattice."""
        steps = np.rint(places / self._step).astype(np.int64)
        return np.asarray(steps[:, 0] << (LATTICE_BITS + 1) | steps[:, 1])

    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> Any:
        """A random output for a point, or an array of them for several points.

        Args:
            point: as in :meth:`PointSampleable.sample`.
            generator: a seeded generator for experiments; leave it out for anything private.
        """
        given = np.asarray(point, dtype=np.float64)
        drawn = self.outputs[self.draw(np.atleast_2d(given), generator)]
        return (float(drawn[0, 0]), float(drawn[0, 1])) if given.ndim == 1 else drawn

    def draw(self, points: ArrayLike, generator: np.random.Generator | None = None) -> IntArray:
        """The index of a random output for each point."""
        codes = self.encode(points)
        bits = RandomBits(random_words(generator))
        return self.draw_codes(codes, [bits] * len(codes))

    def draw_codes(self, codes: IntArray, bits: list[RandomBits]) -> IntArray:
        """The index of a random output for each encoded point, with random bits of its own."""
        noise = np.array([self.noise.draw(each) for each in bits], dtype=np.int64).reshape(len(codes), 2)
        steps = np.stack([codes >> (LATTICE_BITS + 1), codes & ((1 << (LATTICE_BITS + 1)) - 1)], axis=1)
        counts = np.array([self._grid.columns, self._grid.rows])
        sides = np.divide(self.secrets.lengths, counts)
        columns, rows = np.clip((steps + noise) * self._step // sides, 0, counts - 1).astype(np.int64).T
        return np.asarray(rows * self._grid.columns + columns)

    def row_sampler(self, users: Any = None) -> RowSampler:  # noqa: ARG002 - of the protocol
        """The sampler for the rows of a batch, the same for all users."""
        return PlateauRowSampler(self)

    def __repr__(self) -> str:
        return f"PlateauMechanism({self._noise!r}, {len(self._grid)} outputs)"

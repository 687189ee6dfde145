"""Fleets whose secrets are points: a mechanism for each of many people over one region."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import ROUNDING
from privacygames.fleet.point_record import certified_point_mechanism
from privacygames.fleet.records import require_points
from privacygames.fleet.shared_problem import SharedPoints
from privacygames.fleet.stored_fleet import StoredFleet
from privacygames.mechanism import EpsilonGuarantee, RandomWords
from privacygames.points import PointMechanism, PublicPointMechanism
from privacygames.problem import Scale
from privacygames.spaces import Region, Space

CODE_BITS = 31
"""Bits of a coordinate in the code of a point that all people share: two of them fit 64 bits with a sign. In a region
of 100 km that rounds by less than a tenth of a millimetre."""

LARGEST_CODE = 2**CODE_BITS - 1


class PointFleet(StoredFleet["_PointSampler"]):
    """Certified mechanisms of many people whose secrets are points of one region, in a folder.

    ``fleet["user-7"]`` is a :class:`PointMechanism` on a mesh of its own. Everything else is as in :class:`Fleet`: a
    person's mechanism is verified on the bytes read before it is first used, and a changed folder raises
    :class:`privacygames.StaleFleet`.

    >>> line = pg.Interval(0.0, 4.0, unit="hours")
    >>> visits = {"ann": pg.PointPrior(line, [1.0, 3.0]), "bob": pg.PointPrior(line, [2.0])}
    >>> _ = pg.fleet.design(visits, out="point fleet", observables=[1.0, 2.0, 3.0], epsilon=0.5, jobs=1)
    >>> fleet = pg.fleet.PointFleet("point fleet")
    >>> fleet, fleet.verify(), fleet["ann"].bounds.epsilon, fleet.epsilon_guarantee.per
    (PointFleet(2 people, Interval(0 to 4 hours), 3 outputs), 2, 0.5, 'per hour')
    >>> fleet.sample("ann", 1.2) in (1.0, 2.0, 3.0)
    True

    Args:
        folder: a folder that :func:`design` wrote.
        unknown: as in :class:`Fleet`.
    """

    @property
    def _shared(self) -> SharedPoints:
        return require_points(self._current.shared)

    @property
    def secrets(self) -> Region:
        """The region of secrets."""
        return self._shared.problem.region

    @property
    def observables(self) -> Space:
        """The space of outputs."""
        return self._shared.problem.observables

    @property
    def outputs(self) -> FloatArray:
        """The outputs in the region's coordinates, (outputs, axes)."""
        problem = self._shared.problem
        return problem.region.coordinates(problem.outputs)

    def __getitem__(self, name: str) -> PointMechanism:
        return self._mechanism(self._find(self._current, name))

    def sample(self, name: str, point: ArrayLike) -> Any:
        """One output for a person's point, or an array of outputs for several; as :meth:`PointMechanism.sample`."""
        return self._samplers(self._find(self._current, name)).mechanism.sample(point)

    def export(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write a person's mechanism without prior and cost, for anybody to verify its ε.

        >>> visits = {"ann": pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0])}
        >>> fleet = pg.fleet.design(visits, out="fleet of points", observables=[1.0, 3.0], epsilon=0.5, jobs=1)
        >>> fleet.export("ann", "ann.pgm")
        >>> pg.load_public("ann.pgm", pg.points.PublicPointMechanism).bounds.epsilon
        0.5
        """
        PublicPointMechanism.of(self[name]).save(path)

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """What one output of any mechanism of the fleet guarantees between any two points, with its unit."""
        region, epsilon = self.secrets, self.bounds.epsilon
        scale, farthest = Scale(region.distance_names[0], region.unit), float(np.hypot.reduce(region.lengths))
        any_pair = np.inf if epsilon is None else epsilon * farthest * (1 + ROUNDING)
        return EpsilonGuarantee(epsilon, scale.per(), scale.unit, any_pair)

    @property
    def code_resolution(self) -> float:
        """The farthest that :meth:`encode` moves a point, in the unit of distances, before a mesh rounds it."""
        return float(np.hypot.reduce(self.secrets.lengths) / (2 * LARGEST_CODE))

    def encode(self, points: ArrayLike) -> IntArray:
        """Points in the region's coordinates as the row sampler takes them: one integer each, for any person's mesh.

        Points outside are moved to the nearest point of the region.

        >>> visits = {"ann": pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0])}
        >>> fleet = pg.fleet.design(visits, out="fleet of points", observables=[1.0, 3.0], epsilon=0.5, jobs=1)
        >>> fleet.encode([0.0, 2.0, 9.0]).tolist()
        [0, 1073741824, 2147483647]
        """
        return encode_points(self.secrets, points)

    def to_manifest(self) -> dict[str, Any]:
        """The number of people, the digest of their records, and how points are rounded."""
        return {**super().to_manifest(), "resolution": self.code_resolution}

    def _mechanism(self, number: int) -> PointMechanism:
        """The mechanism of an entry of the index, verified."""
        snapshot = self._current
        return certified_point_mechanism(snapshot.record(number), require_points(snapshot.shared))

    def _sampler(self, number: int) -> "_PointSampler":
        return _PointSampler(self._mechanism(number))

    def _tweak(self, secrets: IntArray, tags: IntArray) -> IntArray:
        return _mixed(secrets) ^ tags

    def __repr__(self) -> str:
        return f"PointFleet({len(self)} people, {self.secrets!r}, {len(self.observables)} outputs)"


@dataclass(frozen=True, eq=False)
class _PointSampler:
    """Draws the outputs of one person's rows, whose secrets are points that :func:`encode_points` encoded."""

    mechanism: PointMechanism

    def tweak(self, secrets: IntArray) -> IntArray:
        """The encoded point: all rows have the same mechanism."""
        return secrets

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        codes = self.mechanism.mesh.encode(decode_points(self.mechanism.secrets, secrets))
        return np.asarray(self.mechanism.row_sampler().draw(codes, random_words))


def encode_points(region: Region, points: ArrayLike) -> IntArray:
    """Points in a region's coordinates as one integer each, whatever the mesh."""
    codes = np.zeros(1, dtype=np.int64)
    for axis, length in zip(region.clamp(points).T, region.lengths, strict=True):
        codes = (codes << CODE_BITS) | np.rint(axis / length * LARGEST_CODE).astype(np.int64)
    return codes


def decode_points(region: Region, codes: IntArray) -> FloatArray:
    """The points that are encoded, (points, axes), in the unit of distances."""
    axes = []
    for length in reversed(region.lengths):
        axes.append((codes & LARGEST_CODE) * (length / LARGEST_CODE))
        codes = codes >> CODE_BITS
    return np.stack(axes[::-1], axis=1).clip(0.0, region.lengths)


def _mixed(codes: IntArray) -> IntArray:
    """A permutation of 64-bit integers that spreads every bit over all others (the finaliser of SplitMix64)."""
    bits = codes.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)

"""A mechanism as a file for a device holds it: exact weights, what secrets and outputs are, and epsilon."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Disclosure, RowSampler, Sampler
from privacygames.points import PublicPointMechanism
from privacygames.spaces import Grid, Label, Space

RandomBytes = Callable[[int], bytes]
"""Returns so many random bytes."""


@dataclass(frozen=True)
class DeviceOutput:
    """One output of a mechanism on a device.

    Attributes:
        index: its number.
        label: its label; None where outputs are places.
        place: its coordinates, (longitude, latitude) in degrees or (x, y) in kilometres; None where it is no place.

    >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30]))))
    >>> pg.device.DeviceOutput(index=1, label=30, place=None).label
    30
    """

    index: int
    label: Label | None
    place: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class DeviceMechanism:
    """A verified mechanism of a file for devices, with the sampler that a device uses.

    >>> mechanism = pg.design(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> on_device = pg.device.decode(pg.device.encode(mechanism))
    >>> on_device.kind, on_device.epsilon, on_device.sample(2) in (1, 2, 3)
    ('numbers', 0.5, True)

    Attributes:
        kind: ``"grid"``, ``"points"``, ``"numbers"``, ``"categories"`` or ``"sets"``.
        digest: SHA-256 of the file's content, in hexadecimal.
        disclosure: what the file says about the data it was made from.
        epsilon: the verified guarantee, per unit of distance.
        unit: the unit of distances; empty where they have none.
        within: the threshold, in the threshold form.
        size: the bytes of the file.
        secrets: the cells or labels; None where the secrets are points.
        points: the mechanism for points; None where the secrets are cells or labels.
        outputs: the outputs in order.
        weights: (secrets, outputs), or (control points, outputs).
        bits: the power of two that every row of weights sums to.
    """

    kind: str
    digest: str
    disclosure: Disclosure
    epsilon: float
    unit: str
    within: float | None
    size: int
    secrets: Space | None
    points: PublicPointMechanism | None
    outputs: tuple[DeviceOutput, ...]
    weights: IntArray
    bits: int

    def sample(self, secret: Any, random_bytes: RandomBytes = os.urandom) -> Any:
        """A random output for a secret: its label, or its coordinates where outputs are places.

        Args:
            secret: a label; for the cells of a grid or the points of an area (longitude, latitude), or (x, y).
            random_bytes: another source than the operating system, for tests.
        """
        output = self.draw(secret, random_bytes)
        return output.label if output.place is None else output.place

    def draw(self, secret: Any, random_bytes: RandomBytes = os.urandom) -> DeviceOutput:
        """The same with the output's number; random bytes are used in the order that the format defines.

        >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30]))))
        >>> even = pg.baselines.exponential(mechanism.problem, epsilon=0.5)
        >>> pg.device.decode(pg.device.encode(even)).draw(20, lambda count: bytes([255] * count)).label
        30
        """
        sampler, code = self._sampler_and_code(secret)
        words = np.frombuffer(random_bytes(8 * self._words), dtype="<u8").astype(np.uint64)
        drawn = sampler.draw(np.array([code]), lambda number: words[number : number + 1])
        return self.outputs[int(drawn[0])]

    def _sampler_and_code(self, secret: Any) -> tuple[RowSampler, int]:
        if self.points is not None:
            points = [secret] if np.ndim(secret) == 0 else [tuple(secret)]
            return self.points.row_sampler(), int(self.points.encode(points)[0])
        if isinstance(self.secrets, Grid):
            return _FiniteRows(self.weights, self.bits), int(self.secrets.locate([secret], outside="nearest")[0])
        if self.secrets is None:
            raise InvalidProblem("a mechanism has secrets that are points, or others")
        return _FiniteRows(self.weights, self.bits), self.secrets.index(secret)

    @property
    def _words(self) -> int:
        """The random words of 64 bits for one output: one, and half of one for each random choice of a control."""
        if self.points is None:
            return 1
        mesh = self.points.mesh
        return 1 + (mesh.axes * mesh.degree + int(mesh.tree.depth > 0) + 1) // 2

    def __repr__(self) -> str:
        per = f"per {self.unit}" if self.unit else "per unit of distance"
        near = "" if self.within is None else f" up to {self.within:g}"
        return f"DeviceMechanism({self.kind}, {len(self.outputs)} outputs, ε {self.epsilon:.6g} {per}{near})"


@dataclass(frozen=True)
class _FiniteRows:
    """The rows of a table of weights, drawn from with given words."""

    weights: IntArray
    bits: int

    def tweak(self, secrets: IntArray) -> IntArray:
        return secrets

    def draw(self, secrets: IntArray, random_words: Any) -> IntArray:
        return Sampler(self.weights, self.bits).draw_with(secrets, random_words(0))

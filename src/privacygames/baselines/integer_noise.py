"""Noise on equally spaced numbers, cut off at the ends of their range: geometric and staircase."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.baselines.certify_baseline import certify_baseline, require_epsilon, require_same_labels
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Problem, Scale
from privacygames.spaces import Numbers
from privacygames.validation import require_instance

SPACING_TOLERANCE = 1e-9


def geometric(problem: Problem, epsilon: float) -> Mechanism:
    """The truncated geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009) on equally spaced numbers.

    Two-sided geometric noise, P(k steps) = (1−α)/(1+α)·α^|k| with α = exp(−ε·spacing); what leaves the range goes
    to its nearest end. Keeps ε per unit, in the metric form of the absolute distance; the certificate states the ε
    realised in the problem's own distinguishability.
    """
    require_instance(problem, Problem, "the problem")
    epsilon = require_epsilon(epsilon)
    rank, spacing = _ranks(problem, "geometric")
    table = _clamped(_Noise(np.ones(1), epsilon * spacing), rank)
    kept = epsilon * spacing * np.abs(rank[:, None] - rank)
    told = Scale("absolute", problem.space.distance_unit("absolute")).epsilon(f"{epsilon:g}")
    return certify_baseline(problem, table, kept, origin=f"truncated geometric, ε = {told}")


def staircase(
    problem: Problem, epsilon: float, *, sensitivity: float | None = None, steps: int | None = None
) -> Mechanism:
    """The discrete staircase mechanism (Geng and Viswanath 2014) on equally spaced numbers, cut off at the ends.

    Noise whose probability is flat for ``steps`` spacings, drops by e^−ε until ``sensitivity``, and repeats, e^−ε
    lower for each further ``sensitivity``. Keeps e^ε between numbers at most ``sensitivity`` apart: that threshold
    form (``within``, measured in the problem's distinguishability) is what the certificate states, as realised.

    Args:
        problem: its secrets and observables are the same equally spaced numbers.
        epsilon: ε between numbers at most ``sensitivity`` apart.
        sensitivity: a multiple of the spacing; by default the spacing itself (the geometric mechanism, then).
        steps: how many spacings the first stair is wide, 1 to sensitivity/spacing; by default the width with the
            least expected absolute noise.
    """
    require_instance(problem, Problem, "the problem")
    epsilon = require_epsilon(epsilon)
    rank, spacing = _ranks(problem, "staircase")
    reach = spacing if sensitivity is None else sensitivity
    stairs = round(reach / spacing)
    if stairs < 1 or abs(stairs * spacing - reach) > SPACING_TOLERANCE * spacing:
        raise InvalidProblem(f"sensitivity is {reach:g}; it must be a multiple of the spacing of the numbers")
    if steps is not None and not 1 <= steps <= stairs:
        raise InvalidProblem(f"steps is {steps}; the first stair is 1 to {stairs} spacings wide here")
    shapes = [_Noise.stairs(stairs, width, epsilon) for width in range(1, stairs + 1)]
    noise = min(shapes, key=_Noise.mean_size) if steps is None else shapes[steps - 1]
    kept = epsilon * np.ceil(np.abs(rank[:, None] - rank) / stairs)
    told = Scale("absolute", problem.space.distance_unit("absolute")).epsilon(f"{epsilon:g}", within=reach)
    origin = f"staircase, ε = {told}"
    return certify_baseline(problem, _clamped(noise, rank), kept, origin=origin, within=reach * (1 + SPACING_TOLERANCE))


@dataclass(frozen=True)
class _Noise:
    """Symmetric noise in whole steps: relative probabilities of one period, repeated at e^−drop each."""

    period: FloatArray
    drop: float

    @classmethod
    def stairs(cls, length: int, width: int, epsilon: float) -> "_Noise":
        """1 for ``width`` steps, then e^−ε up to ``length``, and so on."""
        return cls(np.where(np.arange(length) < width, 1.0, np.exp(-epsilon)), epsilon)

    @property
    def _rest(self) -> float:
        """1 − e^−drop."""
        return float(-np.expm1(-self.drop))

    @property
    def total(self) -> float:
        """The sum over all steps, both ways."""
        return 2 * float(self.period.sum()) / self._rest - float(self.period[0])

    def at(self, size: IntArray) -> FloatArray:
        """The probability of ±size steps."""
        turns, place = np.divmod(size, len(self.period))
        return np.asarray(np.exp(-self.drop * turns) * self.period[place] / self.total)

    def beyond(self, size: IntArray) -> FloatArray:
        """The probability of ``size`` steps or more one way, size ≥ 0."""
        turns, place = np.divmod(size, len(self.period))
        left = np.cumsum(self.period[::-1])[::-1]  # what remains of the period from each place on
        later = np.exp(-self.drop) * self.period.sum() / self._rest
        return np.asarray(np.exp(-self.drop * turns) * (left[place] + later) / self.total)

    def mean_size(self) -> float:
        """The expected number of steps, either way."""
        length, again = len(self.period), float(np.exp(-self.drop))
        own = float(np.arange(length) @ self.period)
        return 2 / self.total * (own / self._rest + length * again / self._rest**2 * float(self.period.sum()))


def _clamped(noise: _Noise, rank: IntArray) -> FloatArray:
    """p(o|s) for numbers of these ranks: the ends get everything beyond them, too."""
    table = noise.at(np.abs(rank[None, :] - rank[:, None]))
    last = len(rank) - 1
    table[:, int(rank.argmin())] = noise.beyond(rank)
    table[:, int(rank.argmax())] = noise.beyond(last - rank)
    if len(rank) == 1:
        table[:] = 1.0
    return table


def _ranks(problem: Problem, name: str) -> tuple[IntArray, float]:
    """The place of each number in order, and how far apart neighbours are."""
    require_same_labels(problem, name)
    if not isinstance(problem.space, Numbers):
        raise InvalidProblem(f"the {name} mechanism needs secrets that are Numbers")
    values = problem.space.values
    rank = np.argsort(np.argsort(values))
    gaps = np.diff(np.sort(values))
    spacing = float(gaps.mean()) if len(gaps) else 1.0
    if (np.abs(gaps - spacing) > SPACING_TOLERANCE * spacing).any():
        raise InvalidProblem(f"the {name} mechanism needs equally spaced numbers")
    return rank, spacing

"""Baselines for equally spaced numbers, truncated at the ends of their range: geometric and staircase noise."""

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

    Two-sided geometric noise, P(k steps) = (1−α)/(1+α)·α^|k| with α = exp(−ε·spacing); the probability beyond the range
    goes to its nearest end. Guarantees ε per unit of the absolute distance, in the metric form; the certificate states
    the ε realised in the problem's own distinguishability.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.from_counts(ages, [1, 2, 1]), cost="absolute")
    >>> pg.baselines.geometric(problem, 0.1).probabilities[1].round(3).tolist()
    [0.269, 0.462, 0.269]
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
    """The discrete staircase mechanism (Geng and Viswanath 2014) on equally spaced numbers, truncated at the ends.

    The noise has constant probability for ``steps`` spacings, drops by the factor e^−ε until ``sensitivity``, and
    repeats with e^−ε times the probability for each further ``sensitivity``. Guarantees e^ε between numbers at most
    ``sensitivity``
    apart: the certificate states that threshold form (``within``, in the problem's distinguishability), as realised.

    Args:
        problem: its secrets and outputs are the same equally spaced numbers.
        epsilon: ε between numbers at most ``sensitivity`` apart.
        sensitivity: a multiple of the spacing; by default the spacing itself, which gives the geometric mechanism.
        steps: width of the first stair in spacings, 1 to sensitivity/spacing; by default the width with the least
            expected absolute noise.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.from_counts(ages, [1, 2, 1]), cost="absolute")
    >>> mechanism = pg.baselines.staircase(problem, 1.0, sensitivity=20)
    >>> mechanism.certificate.bounds.epsilon <= 1.0
    True
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
    """Symmetric noise in whole steps: relative probabilities of one period, which repeat with the factor e^−drop."""

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
    """p(o|s) for numbers of these ranks; the first and the last also get all probability beyond them."""
    table = noise.at(np.abs(rank[None, :] - rank[:, None]))
    last = len(rank) - 1
    table[:, int(rank.argmin())] = noise.beyond(rank)
    table[:, int(rank.argmax())] = noise.beyond(last - rank)
    if len(rank) == 1:
        table[:] = 1.0
    return table


def _ranks(problem: Problem, name: str) -> tuple[IntArray, float]:
    """The rank of each number, and the spacing of neighbours."""
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

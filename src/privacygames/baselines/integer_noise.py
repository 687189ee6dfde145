"""Baselines for equally spaced numbers, truncated at the ends of their range: geometric and staircase noise."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.baselines.certify_baseline import certify_baseline, require_same_labels
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Problem, Scale, require_epsilon
from privacygames.spaces import Numbers
from privacygames.validation import require_instance

SPACING_TOLERANCE = 1e-9
"""Largest relative deviation of a spacing from the mean that counts as rounding."""


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
    table = _truncated_probabilities(_Noise(np.ones(1), epsilon * spacing), rank)
    log_ratio_bounds = epsilon * spacing * np.abs(rank[:, None] - rank)
    description = Scale("absolute", problem.space.distance_unit("absolute")).epsilon(f"{epsilon:g}")
    return certify_baseline(problem, table, log_ratio_bounds, origin=f"truncated geometric, ε = {description}")


def staircase(
    problem: Problem, epsilon: float, *, sensitivity: float | None = None, steps: int | None = None
) -> Mechanism:
    """The discrete staircase mechanism (Geng and Viswanath 2014) on equally spaced numbers, truncated at the ends.

    The noise has constant probability for ``steps`` spacings, drops by the factor e^−ε until ``sensitivity``, and
    repeats with e^−ε times the probability for each further ``sensitivity``. Guarantees e^ε between numbers at most
    ``sensitivity`` apart: the certificate states the realised ε in that threshold form (``within``, in the problem's
    distinguishability).

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
    threshold = spacing if sensitivity is None else sensitivity
    stairs = round(threshold / spacing)
    if stairs < 1 or abs(stairs * spacing - threshold) > SPACING_TOLERANCE * spacing:
        raise InvalidProblem(f"sensitivity is {threshold:g}; it must be a multiple of the spacing of the numbers")
    if steps is not None and not 1 <= steps <= stairs:
        raise InvalidProblem(f"steps is {steps}; the first stair is 1 to {stairs} spacings wide here")
    candidates = [_Noise.stairs(stairs, width, epsilon) for width in range(1, stairs + 1)]
    noise = min(candidates, key=_Noise.expected_steps) if steps is None else candidates[steps - 1]
    log_ratio_bounds = epsilon * np.ceil(np.abs(rank[:, None] - rank) / stairs)
    description = Scale("absolute", problem.space.distance_unit("absolute")).epsilon(f"{epsilon:g}", within=threshold)
    origin = f"staircase, ε = {description}"
    return certify_baseline(
        problem,
        _truncated_probabilities(noise, rank),
        log_ratio_bounds,
        origin=origin,
        within=threshold * (1 + SPACING_TOLERANCE),
    )


@dataclass(frozen=True)
class _Noise:
    """Symmetric noise in whole steps: relative probabilities of one period, which repeat with the factor e^−drop."""

    period: FloatArray
    drop: float

    @classmethod
    def stairs(cls, length: int, width: int, epsilon: float) -> "_Noise":
        """Relative probability 1 for ``width`` steps, then e^−ε up to ``length``, and so on."""
        return cls(np.where(np.arange(length) < width, 1.0, np.exp(-epsilon)), epsilon)

    @property
    def _period_loss(self) -> float:
        """1 − e^−drop, the denominator of geometric series over periods."""
        return float(-np.expm1(-self.drop))

    @property
    def total(self) -> float:
        """The sum of relative probabilities over all steps in both directions."""
        return 2 * float(self.period.sum()) / self._period_loss - float(self.period[0])

    def at(self, size: IntArray) -> FloatArray:
        """The probability of ±size steps."""
        periods, place = np.divmod(size, len(self.period))
        return np.asarray(np.exp(-self.drop * periods) * self.period[place] / self.total)

    def beyond(self, size: IntArray) -> FloatArray:
        """The probability of at least ``size`` steps in one direction, size ≥ 0."""
        periods, place = np.divmod(size, len(self.period))
        remainder = np.cumsum(self.period[::-1])[::-1]  # the sum of the period from each place on
        later = np.exp(-self.drop) * self.period.sum() / self._period_loss
        return np.asarray(np.exp(-self.drop * periods) * (remainder[place] + later) / self.total)

    def expected_steps(self) -> float:
        """The expected absolute number of steps."""
        length, decay = len(self.period), float(np.exp(-self.drop))
        within_period = float(np.arange(length) @ self.period)
        return (
            2
            / self.total
            * (within_period / self._period_loss + length * decay / self._period_loss**2 * float(self.period.sum()))
        )


def _truncated_probabilities(noise: _Noise, rank: IntArray) -> FloatArray:
    """p(o|s) for numbers of these ranks; the smallest and the largest also get the probability beyond them."""
    table = noise.at(np.abs(rank[None, :] - rank[:, None]))
    last = len(rank) - 1
    table[:, int(rank.argmin())] = noise.beyond(rank)
    table[:, int(rank.argmax())] = noise.beyond(last - rank)
    if len(rank) == 1:
        table[:] = 1.0
    return table


def _ranks(problem: Problem, name: str) -> tuple[IntArray, float]:
    """The rank of each number, and their common spacing."""
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

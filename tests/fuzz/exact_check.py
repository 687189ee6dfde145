"""What a mechanism's integers really do, in exact arithmetic: costs, errors of best guesses, and broken promises."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fuzz.case import Case
from fuzz.exact_program import (
    LARGEST_EXPONENT,
    ONE,
    SHIFT,
    Integers,
    enclosed_exponential,
    exponents,
    fixed_array,
    product_array,
)


@dataclass(frozen=True)
class Measured:
    """Exact values of a mechanism.

    Attributes:
        average: its expected cost.
        worst: the cost of its worst secret.
        privacy: what each adversary's best guesses err by.
        broken: promises that it does not keep, in words.
    """

    average: Fraction
    worst: Fraction
    privacy: tuple[Fraction, ...]
    broken: tuple[str, ...]

    def cost(self, case: Case) -> Fraction:
        """The cost that counts."""
        return self.worst if case.bounds.get("worst_case") else self.average


def measure(case: Case, weights: Integers, bits: int) -> Measured:
    """Measure integer weights (secrets, outputs) whose rows sum to 2^bits against everything a case asks."""
    total = Fraction(1 << bits)
    broken = []
    if any(int(row.sum()) != total for row in weights) or weights.min() < 0:
        broken.append("rows are not distributions")
    if (weights[~np.isfinite(case.cost).T] != 0).any():
        broken.append("a forbidden output is given")
    finite = np.where(np.isfinite(case.cost), case.cost, 0.0)
    per_secret = (fixed_array(finite).T * weights).sum(axis=1)
    costs = [Fraction(int(each), ONE) / total for each in per_secret]
    average = sum((Fraction(p) * cost for p, cost in zip(case.prior.tolist(), costs, strict=True)), Fraction(0))
    worst = max(costs)
    privacy = []
    for place, (belief, errors, least) in enumerate(case.opponents()):
        weighted = product_array(errors, np.broadcast_to(belief, errors.shape))  # (guesses, secrets)
        guesses = weighted.dot(weights)
        found = Fraction(int(guesses.min(axis=0).sum()), ONE) / total
        privacy.append(found)
        if least is not None and found < Fraction(least):
            broken.append(f"distortion against adversary {place} is {float(found)!r}, below {least!r}")
    limits = {"cost_at_most": worst if case.bounds.get("worst_case") else average, "worst_cost_at_most": worst}
    for name, cost in limits.items():
        if name in case.bounds and cost > Fraction(case.bounds[name]):
            broken.append(f"{name} is {case.bounds[name]!r} and the cost {float(cost)!r}")
    if not _ratios_hold(case, weights):
        broken.append("a ratio exceeds what epsilon allows")
    return Measured(average, worst, tuple(privacy), tuple(broken))


def _ratios_hold(case: Case, weights: Integers) -> bool:
    for (s, t), exponent in exponents(case).items():
        if exponent > LARGEST_EXPONENT:
            holds = bool(((weights[s] == 0) | (weights[t] > 0)).all())
        else:
            below, _ = enclosed_exponential(exponent)
            holds = bool(((weights[s] << SHIFT) <= below * weights[t]).all())
        if not holds:
            return False
    return True

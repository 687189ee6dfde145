"""The reference for a case: what is possible, what the best is, and how closely that is known; all proved."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from fuzz.case import Case
from fuzz.exact_check import Measured, measure
from fuzz.exact_program import ONE, SHIFT, allowed_outputs, exact_program, fixed_array, product_array
from fuzz.refinement import Refined, refine

PRECISION = 1e-10
"""How closely optima are found, relative to what is at stake."""

FLOOR = Fraction(1, 10**6)
"""At stake is the optimum, or this part of what revealing nothing costs if the optimum is smaller still."""

ROOM = Fraction(2, 10**6)
"""So near to a limit, relatively, either answer to whether it can be kept is accepted."""

EDGE = Fraction(1, 10**9)
"""So near to the largest possible distortion, relatively, either answer is accepted."""

Possible = Literal["yes", "no", "borderline", "unknown"]


@dataclass(frozen=True)
class Reference:
    """Everything the oracle says of one case."""

    case: Case
    notes: dict[str, float] = field(default_factory=dict)

    @cached_property
    def blind_costs(self) -> tuple[Fraction, Fraction]:
        """The least average cost, and the least cost of the worst secret, of a constant output."""
        case = self.case
        allowed = np.isfinite(case.cost).all(axis=1)
        if not allowed.any():
            largest = Fraction(float(np.where(np.isfinite(case.cost), case.cost, 0.0).max()))
            return largest, largest
        cost = case.cost[allowed]
        average = product_array(cost, np.broadcast_to(case.prior, cost.shape)).sum(axis=1).min()
        return Fraction(int(average), ONE), Fraction(int(fixed_array(cost).max(axis=1).min()), ONE)

    @cached_property
    def blind_privacy(self) -> list[Fraction]:
        """The largest possible distortion against each adversary."""
        return [
            Fraction(int(product_array(errors, np.broadcast_to(belief, errors.shape)).sum(axis=1).min()), ONE)
            for belief, errors, _ in self.case.opponents()
        ]

    @property
    def reverse(self) -> bool:
        """Whether privacy is maximised."""
        return "cost_at_most" in self.case.bounds

    @property
    def scale(self) -> Fraction:
        """What revealing nothing costs, or leaves an adversary."""
        if self.reverse:
            return self.blind_privacy[0]
        return self.blind_costs[1 if self.case.bounds.get("worst_case") else 0]

    @cached_property
    def optimum(self) -> Refined | None:
        """The least cost, or the largest privacy, negated; None where no solve succeeded."""
        return refine(exact_program(self.case, "privacy" if self.reverse else "cost"), self.scale, PRECISION)

    def stake(self, optimum: Fraction) -> Fraction:
        """What a gap is relative to."""
        return max(abs(optimum), FLOOR * self.scale)

    @cached_property
    def least_cost(self) -> Refined | None:
        """The least value of the cost that ``cost_at_most`` limits, under all other promises."""
        case = self.case.with_bounds(cost_at_most=None)
        if case.adversaries and self.reverse:  # what is promised of the first adversary is a matter of its own
            first = replace(case.adversaries[0], distortion=None)
            case = replace(case, adversaries=(first, *case.adversaries[1:]))
        scale = self.blind_costs[1 if self.case.bounds.get("worst_case") else 0]
        return refine(exact_program(case, "cost"), scale, PRECISION)

    @cached_property
    def least_worst_cost(self) -> Refined | None:
        """The least value of the cost that ``worst_cost_at_most`` limits, under the ratios and distortions."""
        case = self.case.with_bounds(cost_at_most=None, worst_cost_at_most=None, worst_case=True)
        if case.adversaries and self.reverse:
            first = replace(case.adversaries[0], distortion=None)
            case = replace(case, adversaries=(first, *case.adversaries[1:]))
        return refine(exact_program(case, "cost"), self.blind_costs[1], PRECISION)

    @cached_property
    def possible(self) -> Possible:
        """Whether some mechanism keeps all promises."""
        asked = [least for _, _, least in self.case.opponents()]
        answer: Possible = "yes"
        for least, most in zip(asked, self.blind_privacy, strict=True):
            if least is not None and Fraction(least) > most:
                return "no" if Fraction(least) > most * (1 + EDGE) else "borderline"
            if least is not None and Fraction(least) > most * (1 - EDGE):
                answer = "borderline"
        forbidden = not np.isfinite(self.case.cost).all()
        if forbidden and self.left_without_output():
            return "no"
        if not forbidden and "cost_at_most" not in self.case.bounds and "worst_cost_at_most" not in self.case.bounds:
            return answer
        return self.within_limits(answer)

    def left_without_output(self) -> bool:
        """Whether some secret may give no output at all."""
        return not allowed_outputs(self.case).any(axis=1).all()

    def within_limits(self, otherwise: Possible) -> Possible:
        limits = [self.case.bounds[name] for name in ("cost_at_most", "worst_cost_at_most") if name in self.case.bounds]
        average, worst = self.blind_costs
        least = Fraction(min(limits)) if limits else average
        unit = float(max(least, FLOOR * average)) or float(worst) or 1.0
        weighted = worst if self.case.bounds.get("worst_case") or "worst_cost_at_most" in self.case.bounds else average
        scale = max(Fraction(1), weighted / Fraction(unit))
        found = refine(exact_program(self.case, "excess", excess_unit=unit), scale, 1e-13)
        unknown: Possible = "borderline" if otherwise == "borderline" else "unknown"
        if found is None:
            return unknown
        if found.lower > 1:
            return "no" if found.lower > 1 + ROOM else "borderline"
        if not found.converged:
            return unknown
        return otherwise if found.value < 1 - ROOM else "borderline"

    @cached_property
    def admissible(self) -> Measured | None:
        """A mechanism that keeps every promise exactly and is nearly the best, measured: a proof from above."""
        limits = {
            name: self.case.bounds[name] * (1 - 1e-9)
            for name in ("cost_at_most", "worst_cost_at_most")
            if name in self.case.bounds
        }
        near = Reference(self.case.with_bounds(**limits)) if limits else self
        if near.optimum is None:
            return None
        n, m = self.case.shape
        table = np.maximum(near.optimum.variables[: n * m], 0).reshape(n, m)
        used = (table > 0).any(axis=0)
        for power in (400, 100, 60, 50, 40):
            mixed = table + used.astype(object) * ((ONE >> power) // int(used.sum()))
            weights = (mixed << SHIFT) // mixed.sum(axis=1)[:, None]
            weights[np.arange(n), weights.argmax(axis=1)] += ONE - weights.sum(axis=1)
            found = measure(self.case, weights, SHIFT)
            if not found.broken:
                return found
        return None

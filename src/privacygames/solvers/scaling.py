"""Units that suit a solver: costs and errors divided by powers of two, so that what is at stake is about 1.

Floating-point solvers have absolute tolerances: costs of 10⁹ or distances of 10¹³ make them slow or wrong. Division by
a power of two is exact, so a design in other units is the same design, and its dual values are converted back.

Outputs that no secret may give are left out, so that a cost of ∞ is left only where some secrets may give an output and
others not. Finite costs far above the stake may be lowered to a limit: no mechanism gets dearer by it, so dual values
that prove a bound for the lowered costs prove it for the true ones. Errors far above the stake may be lowered likewise:
the adversary errs by at least that much, so a mechanism that keeps its distortion privacy against lowered errors keeps
it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log2

import numpy as np

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray, IntArray, freeze
from privacygames.certificates import AdversaryDuals, DualSolution, allowed_outputs, loss_scale
from privacygames.problem import Adversary, Bounds, DistortionGuarantee, Problem
from privacygames.progress import Progress
from privacygames.solvers.protocol import Solution, SolveOptions, Solver
from privacygames.spaces import Space

ORDINARY = 10
"""A stake between 2^-10 and 2^10 is left as it is."""


def solve_scaled(
    solver: Solver, problem: Problem, bounds: Bounds, *, options: SolveOptions, most: float = inf
) -> Solution:
    """What a solver returns for a problem in suitable units, converted to the problem's own.

    Args:
        solver: the solver.
        problem: secrets, prior, cost and distances.
        bounds: what is asked.
        options: tolerance, time limit and so on.
        most: finite costs and errors above this multiple of what is at stake are lowered to it.
    """
    scaling = Scaling.of(problem, bounds, most)
    if scaling.trivial:
        return solver.solve(problem, bounds, options=options)
    solution = solver.solve(scaling.scaled_problem, scaling.scaled_bounds, options=scaling.scaled_options(options))
    return replace(
        solution,
        probabilities=scaling.expand(solution.probabilities),
        dual_solution=scaling.dual_solution(solution.dual_solution),
    )


@dataclass(frozen=True)
class Scaling:
    """A problem and bounds in other units, and the way back.

    Attributes:
        problem: the problem.
        bounds: what is asked of a mechanism.
        outputs: positions of the outputs that some secret may give.
        cost_unit: costs are divided by this power of two.
        distance_unit: distances are divided by this one.
        error_units: errors of adversaries who have their own are divided by these; distance_unit for the others.
        most: what scaled costs and errors are at most.
    """

    problem: Problem
    bounds: Bounds
    outputs: IntArray
    cost_unit: float
    distance_unit: float
    error_units: tuple[float, ...]
    most: float

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, most: float = inf) -> "Scaling":
        """The units that suit a problem under bounds."""
        prior, cost = problem.prior.probabilities, problem.cost
        every = bounds.worst_case or bounds.worst_cost_at_most is not None
        allowed = allowed_outputs(cost, problem.distinguishability, bounds)
        outputs = np.flatnonzero(allowed.any(axis=0))
        distance = _unit(problem.distance, prior)
        own = [
            distance if promise.adversary.errors is None else _unit(adversary.errors, adversary.prior)
            for promise, adversary in zip(bounds.against, bounds.adversaries(problem), strict=False)
        ]
        return cls(problem, bounds, outputs, _unit(cost, prior, worst_case=every), distance, tuple(own), most)

    @cached_property
    def trivial(self) -> bool:
        """Whether nothing has to be converted."""
        units = (self.cost_unit, self.distance_unit, *self.error_units)
        return self.whole and all(unit == 1 for unit in units) and not self.lowers

    @property
    def whole(self) -> bool:
        """Whether every output may be given by some secret."""
        return len(self.outputs) == self.problem.shape[1]

    @property
    def lowers(self) -> bool:
        """Whether some cost or error is above what it may be at most."""
        losses = [(self.problem.cost[self.outputs], self.cost_unit), (self.problem.distance, self.distance_unit)]
        for promise, unit in zip(self.bounds.against, self.error_units, strict=True):
            if promise.adversary.errors is not None:
                losses.append((promise.adversary.errors, unit))
        return any(float(values.max(where=values < inf, initial=0.0)) > self.most * unit for values, unit in losses)

    @cached_property
    def scaled_problem(self) -> Problem:
        """The problem in these units."""
        if self.trivial:
            return self.problem
        labels = self.problem.observables.labels
        return self.problem.with_losses(
            cost=self._scaled(self.problem.cost[self.outputs], self.cost_unit),
            distance=self._scaled(self.problem.distance, self.distance_unit),
            observables=self.problem.observables if self.whole else Space([labels[at] for at in self.outputs.tolist()]),
        )

    @cached_property
    def scaled_bounds(self) -> Bounds:
        """The bounds in these units."""
        bounds = self.bounds
        if self.trivial:
            return bounds
        return replace(
            bounds,
            distortion=_divided(bounds.distortion, self.distance_unit),
            cost_at_most=_divided(bounds.cost_at_most, self.cost_unit),
            worst_cost_at_most=_divided(bounds.worst_cost_at_most, self.cost_unit),
            against=tuple(
                DistortionGuarantee(self._scaled_adversary(each.adversary, unit), _divided(each.distortion, unit))
                for each, unit in zip(bounds.against, self.error_units, strict=True)
            ),
        )

    def scaled_options(self, options: SolveOptions) -> SolveOptions:
        """The options in these units; progress is reported in the problem's own."""
        watcher = options.progress

        def report(now: Progress) -> None:
            if watcher is not None:
                watcher(replace(now, value=None if now.value is None else now.value * self._value_unit))

        return replace(
            options,
            enough=_divided(options.enough, self.cost_unit),
            start=None if options.start is None else options.start[:, self.outputs],
            progress=None if watcher is None else report,
        )

    def expand(self, probabilities: FloatArray) -> FloatArray:
        """A mechanism for the whole problem."""
        if self.whole:
            return probabilities
        full = np.zeros(self.problem.shape)
        full[:, self.outputs] = probabilities
        return full

    def dual_solution(self, scaled: DualSolution) -> DualSolution:
        """Dual values for the problem, from those in these units."""
        value, cost = self._value_unit, self.cost_unit
        like = np.zeros(self.problem.shape[1], dtype=np.int64)  # any row will do for an output that is never given
        like[self.outputs] = scaled.like
        return replace(
            scaled,
            cost_dual=scaled.cost_dual * value / cost,
            distortion_dual=scaled.distortion_dual * value / self.distance_unit,
            ratios=replace(scaled.ratios, value=scaled.ratios.value * value),
            like=like,
            against=tuple(
                AdversaryDuals(each.dual * value / unit, each.attack)
                for each, unit in zip(scaled.against, self.error_units, strict=False)
            ),
            limit_weights=None if scaled.limit_weights is None else scaled.limit_weights * value / cost,
        )

    @property
    def _value_unit(self) -> float:
        """The unit of what is optimised: a cost, or with ``cost_at_most`` the first adversary's error."""
        if not self.bounds.maximises_distortion:
            return self.cost_unit
        return self.error_units[0] if self.error_units else self.distance_unit

    def _scaled(self, losses: FloatArray, unit: float) -> FloatArray:
        """Losses in another unit, lowered to the limit; those too small to be computed with become 0."""
        scaled = np.where(np.isinf(losses), losses, np.minimum(losses / unit, self.most))
        return freeze(np.where(scaled < SMALLEST_POSITIVE, 0.0, scaled))

    def _scaled_adversary(self, adversary: Adversary, unit: float) -> Adversary:
        if adversary.errors is None:
            return adversary
        errors = self._scaled(adversary.errors, unit)
        return Adversary(adversary.name, prior=adversary.prior, errors=errors, guesses=adversary.guesses)


def _unit(losses: FloatArray, prior: FloatArray, *, worst_case: bool = False) -> float:
    """The power of two next to what is at stake; 1 where that is an ordinary number."""
    exponent = round(log2(loss_scale(losses, prior, worst_case=worst_case)))
    return 1.0 if abs(exponent) <= ORDINARY else 2.0**exponent


def _divided(value: float | None, unit: float) -> float | None:
    if value is None or value == 0:
        return value
    return min(max(value / unit, SMALLEST_POSITIVE), LARGEST_FINITE)

"""Scaling of a problem to units in which its objective is about 1, as solvers need.

Floating-point solvers have absolute tolerances: costs of 10⁹ or distances of 10¹³ make them slow or wrong. Costs and
errors are divided by powers of two, which is exact, so a design in other units is the same design, and its dual values
are converted back.

Outputs that no secret may release are removed, so that a cost of ∞ remains only where some secrets may release an
output and others may not. Finite costs far above the objective's scale may be lowered to a limit: no mechanism costs
more by it, so dual values that prove a bound for the lowered costs prove it for the true ones. Errors far above that
scale may be lowered likewise: the adversary's true error is at least the lowered one, so a mechanism with enough
distortion privacy for lowered errors has enough for the true ones.
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

ORDINARY_EXPONENT = 10
"""Largest absolute binary exponent of a scale that is not changed: solvers work between 2⁻¹⁰ and 2¹⁰."""


def solve_scaled(solver: Solver, scaling: "Scaling", *, options: SolveOptions) -> Solution:
    """Solve a problem in suitable units, and convert the solution to the problem's own.

    Args:
        solver: the solver.
        scaling: the problem and bounds, and their units.
        options: tolerance, time limit and so on.
    """
    if scaling.trivial:
        return solver.solve(scaling.problem, scaling.bounds, options=options)
    solution = solver.solve(scaling.scaled_problem, scaling.scaled_bounds, options=scaling.scaled_options(options))
    return replace(
        solution,
        probabilities=scaling.expand(solution.probabilities),
        dual_solution=scaling.dual_solution(solution.dual_solution),
    )


@dataclass(frozen=True)
class Scaling:
    """A problem and bounds in other units, and the conversion of solutions back.

    Attributes:
        problem: the problem.
        bounds: the bounds of the design.
        outputs: indices of the outputs that some secret may release.
        cost_unit: costs are divided by this power of two.
        distance_unit: distances are divided by this power of two.
        error_units: errors of adversaries who have their own are divided by these; distance_unit for the others.
        loss_limit: upper limit on scaled costs and errors; larger ones are lowered to it.
    """

    problem: Problem
    bounds: Bounds
    outputs: IntArray
    cost_unit: float
    distance_unit: float
    error_units: tuple[float, ...]
    loss_limit: float

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, loss_limit: float = inf) -> "Scaling":
        """The units that suit a problem under bounds."""
        prior, cost = problem.prior.probabilities, problem.cost
        worst_case_cost = bounds.worst_case or bounds.worst_cost_at_most is not None
        allowed = allowed_outputs(cost, problem.distinguishability, bounds)
        outputs = np.flatnonzero(allowed.any(axis=0))
        uses_distance = any(guarantee.adversary.errors is None for guarantee in bounds.distortion)
        distance_unit = _unit(problem.distance, prior) if uses_distance else 1.0
        error_units = [
            distance_unit if guarantee.adversary.errors is None else _unit(adversary.errors, adversary.prior)
            for guarantee, adversary in zip(bounds.distortion, bounds.adversaries(problem), strict=True)
        ]
        return cls(
            problem,
            bounds,
            outputs,
            _unit(cost, prior, worst_case=worst_case_cost),
            distance_unit,
            tuple(error_units),
            loss_limit,
        )

    @cached_property
    def trivial(self) -> bool:
        """Whether nothing has to be converted."""
        units = (self.cost_unit, self.distance_unit, *self.error_units)
        return self.all_outputs and all(unit == 1 for unit in units) and not self.lowers_losses

    @property
    def all_outputs(self) -> bool:
        """Whether every output may be released for some secret."""
        return len(self.outputs) == self.problem.shape[1]

    @property
    def lowers_losses(self) -> bool:
        """Whether some cost or error is above the limit."""
        if self.loss_limit == inf:
            return False
        losses = [(self.problem.cost[self.outputs], self.cost_unit), (self.problem.distance, self.distance_unit)]
        for guarantee, unit in zip(self.bounds.distortion, self.error_units, strict=True):
            if guarantee.adversary.errors is not None:
                losses.append((guarantee.adversary.errors, unit))
        return any(
            float(values.max(where=values < inf, initial=0.0)) > self.loss_limit * unit for values, unit in losses
        )

    @cached_property
    def scaled_problem(self) -> Problem:
        """The problem in these units."""
        if self.trivial:
            return self.problem
        labels = self.problem.observables.labels
        return self.problem.with_losses(
            cost=self._scale(self.problem.cost[self.outputs], self.cost_unit),
            distance=self._scale(self.problem.distance, self.distance_unit),
            observables=self.problem.observables
            if self.all_outputs
            else Space([labels[index] for index in self.outputs.tolist()]),
        )

    @cached_property
    def scaled_bounds(self) -> Bounds:
        """The bounds in these units."""
        bounds = self.bounds
        if self.trivial:
            return bounds
        return replace(
            bounds,
            cost_at_most=_divide(bounds.cost_at_most, self.cost_unit),
            worst_cost_at_most=_divide(bounds.worst_cost_at_most, self.cost_unit),
            distortion=tuple(
                DistortionGuarantee(
                    self._scale_adversary(guarantee.adversary, unit), _divide(guarantee.distortion, unit)
                )
                for guarantee, unit in zip(bounds.distortion, self.error_units, strict=True)
            ),
        )

    def scaled_options(self, options: SolveOptions) -> SolveOptions:
        """The options in these units; progress is reported in the problem's own."""
        callback = options.progress

        def report(progress: Progress) -> None:
            if callback is not None:
                value = None if progress.value is None else progress.value * self._value_unit
                callback(replace(progress, value=value))

        return replace(
            options,
            enough=_divide(options.enough, self.cost_unit),
            start=None if options.start is None else options.start[:, self.outputs],
            progress=None if callback is None else report,
        )

    def expand(self, probabilities: FloatArray) -> FloatArray:
        """A mechanism for the whole problem."""
        if self.all_outputs:
            return probabilities
        full = np.zeros(self.problem.shape)
        full[:, self.outputs] = probabilities
        return full

    def dual_solution(self, scaled: DualSolution) -> DualSolution:
        """Dual values for the problem, from those in these units."""
        value, cost = self._value_unit, self.cost_unit
        output_rows = np.zeros(self.problem.shape[1], dtype=np.int64)  # arbitrary where an output is never released
        output_rows[self.outputs] = scaled.output_rows
        return replace(
            scaled,
            cost_dual=scaled.cost_dual * value / cost,
            ratios=replace(scaled.ratios, value=scaled.ratios.value * value),
            output_rows=output_rows,
            adversaries=tuple(
                AdversaryDuals(duals.dual * value / unit, duals.attack)
                for duals, unit in zip(scaled.adversaries, self.error_units, strict=True)
            ),
            worst_cost_duals=None if scaled.worst_cost_duals is None else scaled.worst_cost_duals * value / cost,
        )

    @property
    def _value_unit(self) -> float:
        """The unit of the objective: a cost, or with ``cost_at_most`` the first adversary's error."""
        if not self.bounds.maximises_distortion:
            return self.cost_unit
        return self.error_units[0]

    def _scale(self, losses: FloatArray, unit: float) -> FloatArray:
        """Losses in another unit, lowered to the limit; those too small for floating-point arithmetic become 0."""
        scaled = np.where(np.isinf(losses), losses, np.minimum(losses / unit, self.loss_limit))
        return freeze(np.where(scaled < SMALLEST_POSITIVE, 0.0, scaled))

    def _scale_adversary(self, adversary: Adversary, unit: float) -> Adversary:
        if adversary.errors is None:
            return adversary
        errors = self._scale(adversary.errors, unit)
        return Adversary(adversary.name, prior=adversary.prior, errors=errors, guesses=adversary.guesses)


def _unit(losses: FloatArray, prior: FloatArray, *, worst_case: bool = False) -> float:
    """The power of two nearest to the scale of losses; 1 where that is an ordinary number."""
    exponent = round(log2(loss_scale(losses, prior, worst_case=worst_case)))
    return 1.0 if abs(exponent) <= ORDINARY_EXPONENT else 2.0**exponent


def _divide(value: float | None, unit: float) -> float | None:
    if value is None or value == 0:
        return value
    return min(max(value / unit, SMALLEST_POSITIVE), LARGEST_FINITE)

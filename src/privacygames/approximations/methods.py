"""Approximations of the exact design: pruning, a spanner, sampled constraints, early stopping."""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from privacygames.approximations import pair_selection as pairs
from privacygames.approximations.local_constraints import solve_local_constraints
from privacygames.approximations.repair_candidates import Candidate, cheapest_repaired, mixtures
from privacygames.certificates import realised_epsilon
from privacygames.designer import design_bounds
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Bounds, Problem, distinguishability_scale
from privacygames.progress import ProgressCallback
from privacygames.solvers import Interior, SolveOptions, Solver
from privacygames.validation import require_instance

SolverChoice = Literal["auto"] | Solver

MAX_DILATION = 4.0
"""Largest dilation by which a repair divides ε and solves again; with a larger one the mechanism would be poor."""


def prune(
    problem: Problem,
    epsilon: float,
    radius: float,
    *,
    output_radius: float | None = None,
    all_estimates: bool = False,
    distortion: float | None = None,
    worst_case: bool = False,
    repair: bool = True,
    solver: SolverChoice = "auto",
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Leave out the ratios between secrets further apart than a radius (appendix C of the paper), then repair.

    The remaining pairs imply the others with a larger ε: by the *dilation* of their graph (1.082 on a square grid with
    a radius of 2 cells). The repair solves again with ε divided by the dilation, also tries the least mixture with a
    constant mechanism, and returns the cheaper mechanism.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: the target ε, guaranteed if ``repair``.
        radius: keep ratios between secrets with d^ε(s,s') at most this.
        output_radius: keep only the constraints (ratios and estimates) of an output that are about secrets at most this
            far from it, in the problem's distance; needs outputs that are the secrets. Always solved by HiGHS as an
            explicit program; the repair can then only mix.
        all_estimates: with ``output_radius``, leave out ratio constraints only. The constraints of every estimate stay,
            so the distortion bound holds even without repair; ε does not.
        distortion: distortion privacy, as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        repair: restore the guarantee of ε; otherwise the certificate states the realised ε and distortion.
        solver: as in :func:`privacygames.design`.
        tolerance: the tolerance of the relaxed design.
        progress: as in :func:`privacygames.design`.

    >>> grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.approximations.prune(problem, epsilon=1.0, radius=1.0)
    >>> mechanism.certificate.bounds.epsilon, mechanism.certificate.gap < 0.2
    (1.0, True)
    """
    require_instance(problem, Problem, "the problem")
    bounds = Bounds(epsilon=epsilon, distortion=distortion, worst_case=worst_case)
    if not radius > 0:
        raise InvalidProblem(f"radius is {radius!r}; it must be a positive number")
    selected = pairs.nearby_pairs(
        bounds.log_ratio_bounds(problem.distinguishability), problem.distinguishability, radius
    )
    origin = f"pruned beyond {radius:g}"
    if all_estimates and output_radius is None:
        raise InvalidProblem("all_estimates goes with output_radius: without it no estimate is left out")
    if output_radius is None:
        return _PairSubset(problem, bounds, selected, solver, tolerance, progress).mechanism(origin, repair=repair)
    if problem.observables != problem.space or not output_radius >= 0:
        raise InvalidProblem("output_radius must be 0 or more, and needs the observables to be the secrets")
    origin += f", observables beyond {output_radius:g}" + (" (ratios only)" if all_estimates else "")
    solution = solve_local_constraints(
        pairs.restrict_ratios(problem, selected),
        bounds,
        problem.distance <= output_radius,
        progress,
        all_estimates=all_estimates,
    )
    relaxed = np.maximum(solution.probabilities, 0.0)
    relaxed /= relaxed.sum(axis=1, keepdims=True)
    if not repair:
        epsilon_text = distinguishability_scale(problem).epsilon(f"{epsilon:g}")
        origin = f"{solution.solver}; {origin}, not repaired: target ε = {epsilon_text}"
        return Mechanism.from_probabilities(problem, relaxed, origin=origin)
    candidates = mixtures(problem, bounds, relaxed)
    return cheapest_repaired(problem, bounds, relaxed, candidates, dual_solution=solution.dual_solution, origin=origin)


def sample_pairs(
    problem: Problem,
    epsilon: float,
    fraction: float,
    *,
    generator: np.random.Generator | None = None,
    distortion: float | None = None,
    worst_case: bool = False,
    repair: bool = True,
    solver: SolverChoice = "auto",
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Keep a random fraction of the ratios (constraint sampling: de Farias and Van Roy 2004), then repair.

    A sparse spanner is always included: without it, most secrets would not be compared at all.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: the target ε, guaranteed if ``repair``.
        fraction: the fraction of the other pairs to keep, 0 to 1.
        generator: a seeded generator, for a reproducible choice.
        distortion: distortion privacy, as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        repair: as in :func:`privacygames.approximations.prune`.
        solver: as in :func:`privacygames.design`.
        tolerance: the tolerance of the relaxed design.
        progress: as in :func:`privacygames.design`.

    >>> grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.approximations.sample_pairs(problem, 1.0, 0.5, generator=np.random.default_rng(1))
    >>> mechanism.certificate.bounds.epsilon
    1.0
    """
    require_instance(problem, Problem, "the problem")
    bounds = Bounds(epsilon=epsilon, distortion=distortion, worst_case=worst_case)
    if not 0 <= fraction <= 1:
        raise InvalidProblem(f"fraction is {fraction!r}; it must lie between 0 and 1")
    exponents = bounds.log_ratio_bounds(problem.distinguishability)
    selected = pairs.random_pairs(exponents, fraction, np.random.default_rng() if generator is None else generator)
    origin = f"{int(selected.sum())} ratios sampled"
    return _PairSubset(problem, bounds, selected, solver, tolerance, progress).mechanism(origin, repair=repair)


def spanner(
    problem: Problem,
    epsilon: float,
    *,
    dilation: float = 1.1,
    distortion: float | None = None,
    worst_case: bool = False,
    bound: bool = True,
    solver: SolverChoice = "auto",
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Optimal utility with ratio constraints on a spanner only (Bordenabe, Chatzikokolakis and Palamidessi 2014).

    The greedy spanner of the distinguishability joins every pair by a path at most ``dilation`` times its distance. Its
    edges get ε divided by its actual dilation, so ε holds exactly for every pair; that costs a little more than the
    exact optimum, and the certificate bounds how much.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: the ε to guarantee.
        dilation: maximum ratio of a path in the spanner to the distance; 1 keeps every pair that others do not imply.
        distortion: distortion privacy, as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        bound: solve a second time, with the whole ε on the edges: a relaxation, which proves the gap.
        solver: as in :func:`privacygames.design`.
        tolerance: the tolerance of the designs.
        progress: as in :func:`privacygames.design`.

    >>> grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.approximations.spanner(problem, epsilon=1.0)
    >>> pg.metrics.epsilon(mechanism, problem) <= 1.0, mechanism.certificate.gap < 0.2
    (True, True)
    """
    require_instance(problem, Problem, "the problem")
    bounds = Bounds(epsilon=epsilon, distortion=distortion, worst_case=worst_case)
    if not 1 <= dilation < inf:
        raise InvalidProblem(f"dilation is {dilation!r}; it must be 1 or more")
    exponents = bounds.log_ratio_bounds(problem.distinguishability)
    subset = _PairSubset(problem, bounds, pairs.greedy_spanner(exponents, dilation), solver, tolerance, progress)
    origin = f"spanner of {int(subset.selected.sum())} ratios, dilation {subset.dilation:.4g}"
    tight = subset.design(subset.dilation)
    relaxed = subset.design() if bound else None
    return cheapest_repaired(
        problem,
        bounds,
        tight.probabilities,
        [Candidate(tight.probabilities, "")],
        dual_solution=None if relaxed is None else relaxed.dual_solution,
        origin=origin,
    )


def early_stopping(
    problem: Problem,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
    worst_case: bool = False,
    gap: float = 0.01,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Stop the exact method early: within a gap or at a time limit, whichever comes first.

    Every iterate of the interior-point method satisfies every constraint, so nothing is violated or repaired; the
    certificate states the gap reached.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: as in :func:`privacygames.design`.
        distortion: as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        gap: the relative gap to the exact optimum at which to stop.
        time_limit: time limit in seconds.
        progress: as in :func:`privacygames.design`.

    >>> grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.approximations.early_stopping(problem, epsilon=1.0, gap=0.05)
    >>> mechanism.certificate.gap <= 0.05
    True
    """
    require_instance(problem, Problem, "the problem")
    bounds = Bounds(epsilon=epsilon, distortion=distortion, worst_case=worst_case)
    return design_bounds(
        problem,
        bounds,
        solver=Interior() if Interior().can_solve(problem, bounds) else "auto",
        options=SolveOptions(tolerance=gap, time_limit=time_limit, progress=progress),
    )


@dataclass(frozen=True)
class _PairSubset:
    """A problem with ratio constraints between selected pairs only, and the settings to solve it."""

    problem: Problem
    bounds: Bounds
    selected: pairs.Pairs
    solver: SolverChoice
    tolerance: float
    progress: ProgressCallback | None

    @property
    def dilation(self) -> float:
        return pairs.dilation_of(self.bounds.log_ratio_bounds(self.problem.distinguishability), self.selected)

    def design(self, tightening: float = 1.0) -> Mechanism:
        """The exact design for the selected pairs, with ε divided by ``tightening``."""
        epsilon = self.bounds.epsilon or inf
        tight = epsilon if tightening == 1.0 else epsilon / tightening * (1 - pairs.ROUNDING)
        return design_bounds(
            pairs.restrict_ratios(self.problem, self.selected),
            replace(self.bounds, epsilon=tight),
            solver=self.solver,
            options=SolveOptions(tolerance=self.tolerance, progress=self.progress),
        )

    def mechanism(self, origin: str, *, repair: bool) -> Mechanism:
        """Solve with the selected pairs, then repair the mechanism or certify the realised ε."""
        problem, bounds = self.problem, self.bounds
        relaxed = self.design()
        if not repair:
            cost_note = f"whose least cost is {relaxed.certificate.bound:.6g} or more"
            epsilon_text = distinguishability_scale(problem).epsilon(f"{bounds.epsilon:g}")
            note = f"not repaired: target ε = {epsilon_text}, {cost_note}"
            solver = relaxed.certificate.provenance.solver
            return Mechanism.from_weights(problem, relaxed.weights, origin=f"{solver}; {origin}, {note}")
        if realised_epsilon(relaxed.weights, problem.distinguishability) <= (bounds.epsilon or 0.0) * (
            1 + pairs.ROUNDING
        ):
            candidates = [Candidate(relaxed.probabilities, "; no repair needed")]
        else:
            candidates = mixtures(problem, bounds, relaxed.probabilities)
            dilation = self.dilation
            if dilation <= MAX_DILATION:
                tight = self.design(dilation).probabilities
                candidates.append(Candidate(tight, f"; repaired by dividing ε by {dilation:.4g}"))
        return cheapest_repaired(
            problem, bounds, relaxed.probabilities, candidates, dual_solution=relaxed.dual_solution, origin=origin
        )

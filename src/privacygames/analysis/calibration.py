"""Baselines calibrated to the same ε or the same distortion, for a fair comparison."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

import numpy as np

from privacygames import approximations, attacks, baselines, metrics
from privacygames.analysis.root_search import SearchTrial, narrow
from privacygames.baselines import BASELINES, REMAP, RESERVED, Baseline, baseline_names
from privacygames.designer import design_bounds
from privacygames.errors import Infeasible, InvalidProblem, SolveFailed
from privacygames.mechanism import Mechanism
from privacygames.problem import (
    Bounds,
    Problem,
    cheapest_constant,
    distance_scale,
    distinguishability_scale,
    max_distortion,
)
from privacygames.progress import Progress, ProgressCallback, relabel_progress
from privacygames.solvers import SolveOptions
from privacygames.validation import as_list, require_instance

MechanismFactory = Callable[[], Mechanism]
"""A function without arguments that makes a mechanism."""

PRECISION = 1e-3
"""Relative precision of a calibrated parameter."""

NEGLIGIBLE_EXPONENT = 1e-8
"""Exponent below which secrets are indistinguishable in practice, and beyond the accuracy of solvers."""

LARGEST_EXPONENT = 200.0
"""Largest exponent tried: beyond e^200 a baseline hardly changes."""

STEP = 4.0
"""Factor between the parameters that are tried to find a bracket."""


def calibrated_baselines(
    problem: Problem,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
    within: float | None = None,
    names: Iterable[str] | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, MechanismFactory]:
    """Known mechanisms, each with the parameter at which it has the target ``epsilon`` or ``distortion``.

    Calibrated to ε, every mechanism *realises* ε, for which its parameter may differ (an exponential mechanism with
    parameter ε often realises little more than half of it). Calibrated to a distortion, the optimal attack on every
    mechanism has that error. Both hold to a relative 10⁻³ of the parameter, on the private side. Remapped
    mechanisms are calibrated as remapped; their ε or distortion can jump with the parameter, and then they stay on the
    private side of the jump. Some have no parameter: the spanner guarantees ε and realises at most that; uniform and
    constant outputs reveal nothing.

    Args:
        problem: the problem for which they are calibrated.
        epsilon: the ε to realise.
        distortion: the distortion privacy to have, against the optimal attack.
        within: calibrate ε in the threshold form, between secrets at most this far apart; the staircase mechanism needs
            it.
        names: the mechanisms, in this order: ``"optimal"``, ``"spanner"``, ``"planar-laplace"``, ``"exponential"``,
            ``"geometric"``, ``"staircase"``, ``"randomised-response"``, each of these five also with ``"+remap"``,
            ``"uniform"``, ``"constant"``, and those that :func:`privacygames.baselines.register` added. By default all
            that suit the problem.
        progress: called with a :class:`privacygames.Progress` while a mechanism is calibrated or designed; raise
            ``Cancelled`` in it to stop.

    Returns:
        For each name a function that makes the mechanism, which :func:`privacygames.compare` calls and times.

    Raises:
        InvalidProblem: a named mechanism does not suit the problem, or an argument is invalid.
        Infeasible: a named mechanism cannot be calibrated.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.calibrated_baselines(problem, epsilon=1.0, names=["exponential"])["exponential"]()
    >>> bool(0.999 < pg.metrics.epsilon(mechanism, problem) <= 1)
    True
    """
    require_instance(problem, Problem, "the problem")
    if (epsilon is None) == (distortion is None):
        raise InvalidProblem("mechanisms are calibrated to one target: give epsilon or distortion")
    target = Bounds(epsilon=epsilon, within=within, distortion=distortion)
    if names is not None:
        selected = as_list(names, "names")
        return {
            name: calibrated_factory(problem, name, named_baseline(name), target, progress=progress)
            for name in selected
        }
    require_possible(problem, target)
    factories = {}
    for name in (*RESERVED, *baseline_names()):
        try:
            factories[name] = calibrated_factory(problem, name, named_baseline(name), target, progress=progress)
        except (InvalidProblem, Infeasible, SolveFailed):  # unsuitable for the problem, or cannot be calibrated
            continue
    return factories


def require_possible(problem: Problem, target: Bounds) -> None:
    """Raise where no mechanism has the distortion of the target."""
    distortion = target.problem_distortion
    if distortion is not None and distortion > (maximum := max_distortion(problem)):
        raise Infeasible(
            f"no mechanism has distortion privacy {distortion:.9g}; the most is {maximum!r}", limit=maximum
        )


def named_baseline(name: str) -> Baseline | None:
    """The baseline of a name, with or without ``"+remap"``; None for mechanisms that are designed.

    Raises:
        InvalidProblem: there is no mechanism of that name.
    """
    names = (*RESERVED, *baseline_names())
    if not isinstance(name, str) or name not in names:
        raise InvalidProblem(f"there is no mechanism {name!r}; choose from {', '.join(names)}")
    return None if name in RESERVED else BASELINES[name.removesuffix(REMAP)]


def target_text(kind: str, value: float, problem: Problem, within: float | None = None) -> str:
    """The target of a calibration with its unit: ``"epsilon 0.6 per km"`` or ``"distortion 1.2 km"``."""
    if kind == "epsilon":
        return f"{kind} {distinguishability_scale(problem).epsilon(f'{value:g}', within=within)}"
    return f"{kind} {distance_scale(problem).amount(f'{value:g}')}"


def calibrated_factory(
    problem: Problem, name: str, baseline: Baseline | None, target: Bounds, *, progress: ProgressCallback | None
) -> MechanismFactory:
    """A function that makes the mechanism of that name, calibrated to the target.

    Args:
        problem: as in :func:`calibrated_baselines`.
        name: the mechanism.
        baseline: what :func:`named_baseline` says that it is.
        target: the ε or distortion to calibrate to.
        progress: as in :func:`calibrated_baselines`.
    """
    require_possible(problem, target)
    watch = relabel_progress("compare", progress, name)
    if baseline is None and name == "optimal":
        return partial(_optimal, problem, target, watch)
    if baseline is None:
        if target.epsilon is None or target.within is not None:
            raise InvalidProblem("the spanner can be calibrated to an epsilon in the metric form only")
        return partial(approximations.spanner, problem, target.epsilon, bound=False, progress=watch)
    if name == "uniform" and not np.isfinite(problem.cost).all():
        raise InvalidProblem("a uniform mechanism gives every output, but some outputs are forbidden for some secrets")
    if name == "constant":
        cheapest_constant(problem)  # raises where there is none
    base = name.removesuffix(REMAP)
    if not baseline.parametrised:
        return partial(baseline.make, problem)
    make = partial(_with_parameter, problem, _family(base, baseline, target), base != name)
    return partial(make, _calibrated_parameter(problem, make, target, watch))


def _family(name: str, baseline: Baseline, target: Bounds) -> Callable[[Problem, float], Mechanism]:
    """The baseline as a function of the problem and its parameter."""
    if not baseline.needs_sensitivity:
        return baseline.make
    if target.within is None:
        raise InvalidProblem(f"the {name} mechanism needs within, its sensitivity")
    return partial(baseline.make, sensitivity=target.within)


def _with_parameter(
    problem: Problem, family: Callable[[Problem, float], Mechanism], remapped: bool, parameter: float
) -> Mechanism:
    mechanism = family(problem, parameter)
    return baselines.remap(mechanism, problem) if remapped else mechanism


def _optimal(problem: Problem, target: Bounds, watch: ProgressCallback | None) -> Mechanism:
    """The optimal mechanism; where ε is so small that all secrets are indistinguishable, the best constant output.

    Any mechanism costs at least exp(−ε·L) times the best constant one, where L is the largest distance: with ε·L below
    10⁻⁸ a design saves less than that fraction, and such ratios exceed the accuracy of solvers.
    """
    exponents = target.log_ratio_bounds(problem.distinguishability)
    np.fill_diagonal(exponents, 0.0)
    if target.epsilon is not None and exponents.max() < NEGLIGIBLE_EXPONENT:
        return baselines.constant(problem)
    return design_bounds(problem, target, options=SolveOptions(progress=watch))


def _calibrated_parameter(
    problem: Problem, make: Callable[[float], Mechanism], target: Bounds, watch: ProgressCallback | None
) -> float:
    """The largest parameter, to a relative 10⁻³, at which a mechanism meets the target."""
    trials = count()

    def trial(parameter: float) -> SearchTrial:
        if watch is not None:
            watch(Progress(job="compare", done=next(trials)))
        mechanism = make(parameter)
        if target.epsilon is not None:
            return SearchTrial(parameter, metrics.epsilon(mechanism, problem, within=target.within) - target.epsilon)
        distortion = metrics.distortion(mechanism, problem, attacks.optimal(mechanism, problem))
        return SearchTrial(parameter, (target.problem_distortion or 0.0) - distortion)

    finite = problem.distinguishability[np.isfinite(problem.distinguishability) & (problem.distinguishability > 0)]
    smallest, largest = float(finite.min(initial=1.0)), float(finite.max(initial=1.0))
    parameter = target.epsilon or 1 / float(finite.mean() if finite.size else 1.0)
    first = trial(parameter)
    holding = failing = first
    while not _holds(holding):
        parameter /= STEP
        if parameter * largest < NEGLIGIBLE_EXPONENT:
            raise Infeasible("this mechanism cannot be calibrated: it reveals too much for every parameter", limit=0)
        failing, holding = holding, trial(parameter)
    parameter = failing.argument
    while _holds(failing):
        parameter *= STEP
        if parameter * smallest > LARGEST_EXPONENT:
            return failing.argument
        holding, failing = failing, trial(parameter)
    return narrow(trial, failing, holding, PRECISION)[1].argument


def _holds(trial: SearchTrial) -> bool:
    return trial.excess is not None and trial.excess <= 0

"""``InteriorSettings``: every numerical choice of the block interior-point method, with its unit and its reason."""

from dataclasses import dataclass, field, fields
from math import inf, isfinite
from typing import Any

from privacygames.errors import Field, InvalidProblem
from privacygames.solvers.predictor_corrector import (
    BOUNDARY_FRACTION,
    CENTRAL_NEIGHBOURHOOD,
    MIN_CENTRING,
    MIN_STEP_GAIN,
    TRIAL_STEP_FACTOR,
    TRIAL_STEP_INCREMENT,
)
from privacygames.validation import is_integer, is_number


def _number(default: float, least: float, most: float) -> Any:
    """A field that holds a finite number between two limits, the first of which it may not reach where that is 0."""
    return field(default=default, metadata={"least": least, "most": most, "whole": False})


def _fraction(default: float) -> Any:
    return _number(default, 0.0, 1.0)


def _positive(default: float) -> Any:
    return _number(default, 0.0, inf)


def _factor(default: float) -> Any:
    """A field that holds a number of at least 1."""
    return _number(default, 1.0, inf)


def _count(default: int, least: int = 0) -> Any:
    """A field that holds a whole number."""
    return field(default=default, metadata={"least": least, "most": inf, "whole": True})


@dataclass(frozen=True, kw_only=True, repr=False)
class InteriorSettings:
    """Numerical choices of the block interior-point method (:class:`Interior`).

    No setting changes what a certificate proves: every mechanism is repaired and verified whatever the settings, and a
    poor choice costs iterations, time or the gap. The defaults were chosen on 61 kinds of problem; what other values
    gave is in docs/theory/solver-log.md. ``privacygames.solvers.interior`` explains *product*, *complementarity* and
    *target*.

    Raises:
        InvalidProblem: a value is not of its kind; the message names the setting.

    >>> pg.InteriorSettings().boundary_fraction
    0.995
    >>> solver = pg.Interior(settings=pg.InteriorSettings(max_correctors=4, join_at=0.7))
    >>> solver.settings  # those that differ from the defaults
    InteriorSettings(max_correctors=4, join_at=0.7)
    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(4))), cost="absolute")
    >>> pg.design(problem, epsilon=1.0, solver=solver).certificate.gap < 1e-6
    True
    """

    # When a run ends.

    max_iterations: int = _count(300, 1)
    """Iterations after which a run ends with the best mechanism so far. Problems of every kind tried take below 60."""

    gap_target: float = _fraction(0.3)
    """Relative gap to stop at, as a fraction of the tolerance. The rest is left for the repair's loss."""

    gap_accepted: float = _fraction(0.6)
    """Relative gap, as a fraction of the tolerance, with which a run that cannot get further counts as solved. Another
    run for the last digit takes as long again."""

    final_complementarity_fraction: float = _fraction(0.1)
    """Complementarity (the sum of all products) to end at, as a fraction of the absolute gap aimed for. Smaller
    products only lose digits."""

    converged_factor: float = _factor(2.0)
    """Multiple of the final complementarity below which products count as converged."""

    patience: int = _count(40, 1)
    """Iterations without progress after which rounding errors are taken to dominate."""

    final_patience: int = _count(5, 1)
    """Iterations without progress after which a run ends once products have converged: then the dual values settle
    within a few iterations, or never."""

    progress_factor: float = _fraction(0.9)
    """Factor by which the gap, proved or estimated, has to fall for an iteration to count as progress."""

    enough_gain: float = _fraction(0.3)
    """Where a mechanism only has to cost less than a limit: room below the limit at which to stop, as a fraction of
    what could still be saved. A start from there is more central than from the minimum."""

    enough_cost: float = _fraction(1e-3)
    """Where a mechanism only has to cost less than a limit: minimum room below the limit at which to stop, as a
    fraction of the limit."""

    linear_only_below: int = _count(300_000)
    """Entries of all blocks (observables · secrets²) below which blocking constraints are not treated specially,
    because refactorising is as cheap as computing longer steps."""

    # The direction of a step.

    boundary_fraction: float = _fraction(BOUNDARY_FRACTION)
    """Fraction of the way to the boundary that a step goes. Going closer makes the products uneven."""

    min_centring: float = _fraction(MIN_CENTRING)
    """Least centring parameter: a step reduces the complementarity by no more than this factor."""

    max_correctors: int = _count(2)
    """Gondzio's centrality correctors of a step. Each saves fewer iterations than the one before, and takes a solution
    with every block."""

    neighbourhood: float = _factor(CENTRAL_NEIGHBOURHOOD)
    """Factor of the target within which products count as central; Gondzio's correctors treat those outside."""

    trial_step_factor: float = _factor(TRIAL_STEP_FACTOR)
    """Step length that a centrality corrector looks ahead to, as a multiple of the present one."""

    trial_step_increment: float = _fraction(TRIAL_STEP_INCREMENT)
    """Increment added to that multiple of the step length that a centrality corrector looks ahead to."""

    min_step_gain: float = _fraction(MIN_STEP_GAIN)
    """Gain in the primal and dual step lengths, added up, below which another corrector is not worth its time."""

    second_order_limit: float = _positive(100.0)
    """Limit on Mehrotra's second-order term of a product, in targets. Where the affine direction is hundreds of times
    as long as any step, its second-order term says nothing about the step."""

    ignored_one_in: int = _count(10_000, 1)
    """One inequality in this many, the most limiting ones, is ignored when the centring parameter is chosen: they are
    treated as blocking constraints."""

    residual_fraction: float = _fraction(0.1)
    """Least complementarity to aim for while zero-prior secrets may join, as a fraction of the dual residual's
    contribution to the gap: those that join add to the residual, and no step is long where products are small beside
    it."""

    residual_reduction: float = _fraction(0.5)
    """Factor by which the complementarity may fall nevertheless: the residual of ratios that join is proportional to
    the target, and would otherwise never fall."""

    refine_below: float = _fraction(1e-3)
    """Complementarity, as a fraction of the objective, below which directions get a step of iterative refinement (two
    once products have converged)."""

    # The length of a step.

    max_backtracks: int = _count(40, 1)
    """Reductions of a step length after which the step is given up."""

    min_step: float = _fraction(1e-8)
    """Primal and dual step length below which a step leads nowhere."""

    positivity_backtrack: float = _fraction(0.5)
    """Factor on the step length where a probability would not stay positive."""

    margin_backtrack: float = _fraction(0.7)
    """Factor on the step length where a zero-prior secret that is left out would lose too much of its margin."""

    ratio_backtrack: float = _fraction(0.9)
    """Fraction of the step length at which the first ratio outside the working set would be violated."""

    # Blocking constraints: the inequalities that limit a direction, solved for without linearisation.

    blocking_per_round: int = _count(80, 1)
    """Maximum number of blocking constraints added per round."""

    blocking_rounds: int = _count(3)
    """Number of rounds for every direction. On a device there are no more: the host's part takes longer there."""

    max_blocking_rounds: int = _count(10)
    """Maximum number of rounds where steps remain short; 0 for none, so that directions stay linear."""

    secrets_per_blocking_round: int = _count(30, 1)
    """Number of secrets for each round allowed, up to the maximum: beyond that, a round costs as much as factorising
    the blocks."""

    sufficient_step: float = _fraction(0.5)
    """Step length from which no more than the first rounds are made."""

    nonblocking_step: float = _fraction(0.9)
    """Inequalities that allow a step of this length block nothing."""

    step_sum_weight: float = _fraction(0.1)
    """Directions are compared by the shorter of their two step lengths, plus this weight times both."""

    smoothing_iterations: int = _count(30, 1)
    """Newton iterations for the blocking constraints' complementarity, after which the direction stays linear."""

    smoothing_accuracy: float = _fraction(1e-2)
    """Relative accuracy of the blocking constraints' products. Higher accuracy saves no iterations of the method."""

    smoothing_halvings: int = _count(8, 1)
    """Halvings of a Newton step for them after which it has failed."""

    smoothing_decrease: float = _fraction(1e-4)
    """Sufficient decrease of their residual, as a fraction of the step length (Armijo's rule)."""

    smoothing_reduction: float = _fraction(0.01)
    """Factor by which the smoothing parameter falls to the target each time its products are reached."""

    smoothing_reuses: int = _count(3)
    """Further Newton steps with the same factorisation."""

    smoothing_reuse_reduction: float = _fraction(0.5)
    """Factor by which each reuse of a factorisation has to reduce the residual for another one to follow."""

    # The working set: the ratios that the Newton matrix contains.

    join_at: float = _fraction(0.8)
    """A ratio joins when ln p(o|s) − ln p(o|s') reaches this fraction of its exponent. Larger working sets bend the
    central path, smaller ones shorten steps."""

    leave_at: float = _fraction(0.5)
    """A ratio leaves when ln p(o|s) − ln p(o|s') falls below this fraction of its exponent. The gap to ``join_at``
    keeps ratios from coming and going."""

    spanner_stretch: float = _factor(1.25)
    """The ratios that are always in the set form a spanner: paths over them are at most this many times as
    long as the exponent of the pair they stand for. What keeps these ratios with a fifth to spare keeps nearly all."""

    spanner_degree: int = _count(5, 1)
    """Ratios of each secret in the spanner, at most: about as many as on a grid."""

    thin_exponent: float = _positive(0.03)
    """Median exponent of the fourth nearest secrets up to which the cone of ratios counts as thin: every far ratio
    binds there as soon as anything moves."""

    thin_neighbours: int = _count(12)
    """Nearest secrets whose ratios are always in the set in a thin cone. With only four, step lengths drop to about
    0.01."""

    always_exponent: float = _positive(1e-5)
    """Ratios with exponents up to this are always in the set: any step uses them up, so they would come and go."""

    always_degree: int = _count(20)
    """Maximum average number of ratios per secret with exponents up to ``always_exponent``; where there are more, they
    join and leave like others."""

    no_removal_factor: float = _factor(100.0)
    """Multiple of the final complementarity below which no ratio leaves the set: in vanishing columns they would come
    and go."""

    thorough_bound_factor: float = _factor(1e4)
    """Multiple of the final complementarity below which opposite dual values are cancelled for a better bound."""

    # Secrets without prior: left out of the program until they constrain it.

    initial_margin: float = _fraction(0.05)
    """Margin of a zero-prior secret in a constant mechanism up to which it is in the program from the start."""

    admit_below: float = _fraction(0.1)
    """Zero-prior secrets join once one has less than this fraction of the margin that a constant mechanism gives it."""

    admit_with: float = _fraction(0.2)
    """When a zero-prior secret joins, all those with less than this fraction of that margin join with it, on the
    host."""

    admit_with_on_device: float = _fraction(0.4)
    """The fraction on a device in place of ``admit_with``: larger blocks cost less there than another round of
    joining."""

    keep_margin: float = _fraction(0.1)
    """A step leaves every secret that is left out at least this fraction of its margin."""

    # The starting point.

    start_complementarity: float = _positive(0.25)
    """Complementarity at the start, as a fraction of the cost of the cheapest constant mechanism."""

    start_complementarity_exponential: float = _positive(0.1)
    """Complementarity at the start, as a fraction of the cost, where an exponential mechanism is the start: it is
    closer to the optimum."""

    start_complementarity_distortion: float = _positive(0.03)
    """Complementarity at the start, as a fraction of the first mechanism's distortion, where distortion is
    maximised."""

    start_min_product: float = _positive(2e-3)
    """Least product at the start, as a fraction of the largest product of dual residual and unknown: dual values much
    smaller than what they have to balance keep the first steps short."""

    start_min_limit: float = _fraction(1e-3)
    """Least product of a limit on the cost at the start, as a fraction of all products."""

    start_limit_room: float = _fraction(0.5)
    """Fraction of the room below limits on the cost that the start uses up on its way to the uniform mechanism."""

    exponential_rate: float = _fraction(0.4)
    """Rate of the exponential starting mechanism, in exponents; with a metric it uses up twice this of each."""

    exponential_max_use: float = _fraction(0.9)
    """Fraction of every exponent that the exponential start may use up, metric or not."""

    exponential_max_cost: float = _fraction(0.99)
    """Fraction of a constant mechanism's cost that the exponential start has to cost less than."""

    exponential_max_exponent: float = _positive(1000.0)
    """Cap on the exponents of the exponential start: beyond it, the exponential is 0 anyway."""

    exponential_min_suited: float = _fraction(0.9)
    """Fraction of the observables that have to suit a secret of their own. With costs unrelated to the exponents the
    exponential start takes twice the iterations."""

    distortion_mixtures: int = _count(4)
    """Times that half of the exponential start is replaced by a constant mechanism to reach the distortion."""

    start_search_iterations: int = _count(20, 1)
    """Iterations for the distortion's dual value at the start."""

    start_search_accuracy: float = _fraction(1e-2)
    """Relative accuracy of the distortion's dual value at the start. A start need not be exactly central."""

    start_newton_iterations: int = _count(20, 1)
    """Newton iterations for each x at the start."""

    start_newton_accuracy: float = _fraction(1e-3)
    """Relative accuracy of each x at the start."""

    # Presolve.

    min_exponent: float = _positive(1e-8)
    """Least exponent between secrets that are not merged: below, constant mechanisms are barely strictly feasible,
    and HiGHS takes over."""

    tie_tolerance: float = _positive(1e-6)
    """Relative difference of two blind guesses' errors up to which they count as tied: then the cone of the largest
    distortion has no interior."""

    max_distortion_tolerance: float = _positive(1e-9)
    """A distortion within this relative distance of the largest possible one counts as the largest."""

    two_way_exponent: float = _positive(1e-6)
    """Exponents up to this carry dual values in both directions when merged secrets are separated: the loss is at most
    this fraction."""

    min_ratio_dual: float = _positive(1e-13)
    """Dual values of ratios below this, in units of the largest entry of the cost, are left out: rounding noise."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name), **each.metadata)

    def __repr__(self) -> str:
        changed = (each for each in fields(self) if getattr(self, each.name) != each.default)
        return f"InteriorSettings({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in changed)})"


def _check(name: str, value: object, *, least: float, most: float, whole: bool) -> None:
    """Raise if a setting's value is not of its kind."""
    if whole:
        if not is_integer(value, minimum=int(least)):
            raise InvalidProblem(Field(name), f" is {value!r}; it must be a whole number of at least {least:g}")
    elif not (is_number(value) and _within(value, least, most)):
        allowed = f"above 0 and at most {most:g}" if most < inf else f"of at least {least:g}" if least else "above 0"
        raise InvalidProblem(Field(name), f" is {value!r}; it must be a number {allowed}")


def _within(value: Any, least: float, most: float) -> bool:
    number = float(value)
    return isfinite(number) and least <= number <= most and number > 0


DEFAULTS = InteriorSettings()
"""The settings where none are given."""

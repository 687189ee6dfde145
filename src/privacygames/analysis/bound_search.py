"""The tightest bound: smallest ε, largest distortion privacy or lowest cost under the other bounds, with a proof."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, log
from typing import Literal, Unpack, get_args

import numpy as np

from privacygames import baselines
from privacygames.analysis.evaluation import Report, evaluate
from privacygames.analysis.root_search import SearchTrial, narrow
from privacygames.arrays import loss_matmul
from privacygames.certificates import BITS
from privacygames.cost_limits import is_within_limit, require_affordable, undecided_error
from privacygames.designer import design_bounds
from privacygames.display import Displayed, ShownTable
from privacygames.errors import Field, GuaranteeViolated, Infeasible, InvalidProblem, PrivacyGamesError, SolveFailed
from privacygames.mechanism import Mechanism, RealisedBounds, certify
from privacygames.problem import (
    PROBLEM_ADVERSARY,
    Adversary,
    Bounds,
    BoundsArguments,
    Distortion,
    Problem,
    cheapest_constant,
    cost_scale,
    distance_scale,
    distinguishability_scale,
)
from privacygames.progress import Progress, ProgressCallback, relabel_progress
from privacygames.solvers import SolveOptions
from privacygames.validation import require_choice, require_instance

Quantity = Literal["epsilon", "distortion", "cost"]

LARGEST_EXPONENT = 45.0
"""Largest exponent tried: ratios of e^45 exceed what weights can represent, so a larger ε guarantees nothing."""

SMALLEST_EXPONENT = 1e-4
"""Smallest exponent tried: below it, the probabilities of the farthest secrets differ by less than 0.01 %."""

STEP = 3.0
"""Factor between the values of ε that are tried to find a bracket."""

ROUNDING = 1e-9
"""Relative margin for the rounding of closed forms."""


@dataclass(frozen=True)
class TightestBound(Displayed):
    """The best value of one quantity, a mechanism that has it, and a proved bound on what is possible.

    Attributes:
        quantity: ``"epsilon"`` (minimised), ``"distortion"`` (maximised) or ``"cost"`` (minimised).
        value: the certified value of the mechanism.
        bound: the proved bound: no mechanism that satisfies the other bounds has an ε of this or less; or more
            distortion privacy, or a lower cost, than this.
        mechanism: a mechanism that satisfies the other bounds and has ``value``.
        refutation: for ε, the design at ``bound``, whose certified lower bound on the cost is above the cost allowed.
            None where a closed form proves the bound, or the bound is 0.
        report: the cost and privacy of the mechanism.
        solves: number of designs.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.from_counts(ages, [1, 2, 1]), cost="absolute")
    >>> best = pg.tightest_bound(problem, "cost", epsilon=0.1)
    >>> best.bound <= best.value
    True
    """

    quantity: Quantity
    value: float
    bound: float
    mechanism: Mechanism = field(repr=False)
    refutation: Mechanism | None = field(repr=False)
    report: Report = field(repr=False)
    solves: int

    def rows(self) -> list[tuple[str, str]]:
        """Pairs of name and value: the value, the proved bound, and the mechanism's cost and privacy."""
        certificate = self.mechanism.certificate
        kind = "worst secret" if certificate.bounds.worst_case else "average"
        best = {"epsilon": "smallest epsilon", "distortion": "largest distortion", "cost": "lowest cost"}[self.quantity]
        proved = {
            "epsilon": "impossible: {} or less",
            "distortion": "impossible: above {}",
            "cost": "impossible: below {}",
        }
        problem = self.report.problem
        cost, distance = cost_scale(problem).amount, distance_scale(problem).amount
        rate = partial(distinguishability_scale(problem).epsilon, within=certificate.bounds.within)
        by_kind: dict[Quantity, Callable[[str], str]] = {"epsilon": rate, "distortion": distance, "cost": cost}
        format_value = by_kind[self.quantity]
        value = f"{self.value:.8g}"
        value_text = rate(value, certificate.any_pair) if self.quantity == "epsilon" else format_value(value)
        rows = [(best, value_text), ("proved", proved[self.quantity].format(format_value(f"{self.bound:.8g}")))]
        if self.refutation is not None:
            rows.append(("lower bound on the cost there", cost(f"{self.refutation.certificate.bound:.9g}")))
        rows += [] if self.quantity == "cost" else [(f"cost, {kind}", cost(f"{certificate.cost:.6g}"))]
        distortion = distance(f"{self.report.distortion:.6g}")
        rows += [] if self.quantity == "distortion" else [("distortion, optimal attack", distortion)]
        rows += [] if self.quantity == "epsilon" else [("realised epsilon", self.report.format_epsilon())]
        for result in self.report.adversary_results:
            guaranteed = "as much as possible" if result.guaranteed is None else f"{result.guaranteed:.6g} guaranteed"
            rows.append(
                (f"against {result.adversary}", f"{result.realised:.6g} ({guaranteed}, {result.maximum:.6g} at most)")
            )
        return rows

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "what": self.quantity,
            "value": self.value,
            "limit": self.bound,
            "solves": self.solves,
            "certificate": self.mechanism.certificate.to_dict(),
            "refutation": None if self.refutation is None else self.refutation.certificate.to_dict(),
            "report": self.report.to_dict(),
        }

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("The tightest bound", ("", ""), self.rows(), texts=(1,))

    def __str__(self) -> str:
        rows = self.rows()
        width = max(33, *(len(name) + 2 for name, _ in rows))
        return "\n".join(f"{name:<{width}}{value}" for name, value in rows)


def tightest_bound(
    problem: Problem,
    quantity: Quantity,
    *,
    adversary: Adversary | None = None,
    precision: float = 1e-3,
    progress: ProgressCallback | None = None,
    **bounds: Unpack[BoundsArguments],
) -> TightestBound:
    """The best value of ε, distortion privacy or cost under bounds on the others, with a proof of optimality.

    The largest distortion and the lowest cost take one design each. The smallest ε takes a search: the lowest cost
    decreases in ε, so a design within the cost limit shows that its ε suffices, and a design whose certified *lower
    bound* is above the limit shows that neither its ε nor a smaller one does. About a dozen designs close the bracket.
    At the largest ε tried, the nearest secrets may differ by a factor of e^45, which weights of 62 bits cannot
    represent; if even that costs too much, :class:`Infeasible` states the lowest cost with that ε.

    Args:
        problem: secrets, prior, cost and distances.
        quantity: ``"epsilon"``: the smallest, for ``cost_at_most`` (and ``distortion``); ``"distortion"``: the largest,
            for ``cost_at_most`` (and ``epsilon``); ``"cost"``: the lowest, for ``epsilon`` or ``distortion`` or both.
        adversary: for ``"distortion"``, the adversary against whom it is maximised; by default one who knows the
            problem's prior and guesses the secret. Guarantees against others, in ``distortion``, hold; a number for
            this adversary must be reached, or :class:`Infeasible` states the maximum.
        precision: maximum relative distance between the ε of the mechanism and the ε proved impossible.
        progress: called with a :class:`privacygames.Progress` before and during each design; its message states the ε
            proved impossible and the ε proved sufficient. Raise ``Cancelled`` in it to stop.
        **bounds: ``cost_at_most``, ``epsilon``, ``distortion`` and the others, as in :func:`privacygames.design`: the
            limits on the other values. ``worst_cost_at_most`` goes with ``"distortion"`` and ``"cost"`` only.

    Raises:
        InvalidProblem: an argument is invalid.
        Infeasible: no mechanism satisfies the other bounds for any value; the error states the limit.
        SolveFailed: designs were not accurate enough for the precision.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> best = pg.tightest_bound(problem, "epsilon", cost_at_most=0.3)
    >>> best.bound < best.value <= best.bound * 1.001
    True
    """
    require_instance(problem, Problem, "the problem")
    require_choice(quantity, get_args(Quantity), "quantity")
    argument = "cost_at_most" if quantity == "cost" else quantity
    current = bounds.get(argument)
    if current is not None and not (quantity == "distortion" and isinstance(current, Mapping)):
        raise InvalidProblem(Field(argument), " is the quantity to optimise; leave it out")
    if quantity != "cost" and bounds.get("cost_at_most") is None:
        raise InvalidProblem("give ", Field("cost_at_most"), f": the {quantity} is optimised under a limit on the cost")
    if not (isinstance(precision, int | float) and 1e-6 <= precision < 1):
        raise InvalidProblem(Field("precision"), f" is {precision!r}; it must be at least 1e-6 and below 1")
    if adversary is not None and quantity != "distortion":
        raise InvalidProblem(Field("adversary"), ' names whose distortion is maximised; it goes with "distortion" only')
    if quantity == "epsilon":
        if bounds.get("worst_cost_at_most") is not None:
            raise InvalidProblem(
                "the smallest epsilon is found under a limit on one cost: leave out ", Field("worst_cost_at_most")
            )
        cost = _validated_cost(bounds.pop("cost_at_most"))
        bounds["epsilon"] = 1.0  # a placeholder, replaced by the values that are tried
        return _EpsilonSearch(problem, Bounds(**bounds), cost, precision, progress).run()
    if quantity == "distortion":
        bounds["distortion"] = _maximise_distortion(bounds.get("distortion"), adversary)
    limits = Bounds(**bounds)
    watch = relabel_progress("find", progress, f"looking for the best {quantity}")
    mechanism = design_bounds(problem, limits, options=SolveOptions(progress=watch))
    certificate = mechanism.certificate
    value = certificate.achieved if quantity == "distortion" else certificate.cost
    limit = value if certificate.bound is None else certificate.bound
    report = evaluate(mechanism, problem, within=limits.within)
    return TightestBound(quantity, value, limit, mechanism, None, report, solves=1)


def _maximise_distortion(guarantees: Distortion, adversary: Adversary | None) -> Distortion:
    """The guarantees, with the adversary first whose distortion is maximised; their number must be reached."""
    if not isinstance(guarantees, Mapping):
        return guarantees if adversary is None else {adversary: None}
    if adversary is None and None in guarantees.values():
        return guarantees  # None already marks the adversary whose distortion is maximised
    first = PROBLEM_ADVERSARY if adversary is None else require_instance(adversary, Adversary, "the adversary")
    others = {other: distortion for other, distortion in guarantees.items() if other != first}
    return {first: guarantees.get(first), **others}


class _EpsilonSearch:
    """The search for the smallest ε: the bracket so far and the designs that narrow it."""

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        cost_limit: float,
        precision: float,
        progress: ProgressCallback | None,
    ) -> None:
        self.problem, self.bounds, self.cost_limit = problem, bounds, cost_limit
        self.precision, self.progress = precision, progress
        self.sufficient: Mechanism | None = None
        self.refutation: Mechanism | None = None
        self.last: Mechanism | None = None
        self.solves = 0
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        distinct = ~np.eye(len(exponents), dtype=bool)
        self.must_coincide = bool((exponents[distinct] == 0).any() or np.isinf(problem.cost).any())
        self.finite_exponents = exponents[np.isfinite(exponents) & (exponents > 0)]
        self.smallest_exponent = float(self.finite_exponents.min()) if self.finite_exponents.size else 1.0
        self.largest_exponent = float(self.finite_exponents.max()) if self.finite_exponents.size else 1.0
        self.all_compared = bool(np.isfinite(exponents[distinct]).all())

    def run(self) -> TightestBound:
        """The smallest ε, to the required precision."""
        constant = self._constant()
        if constant is not None and self._is_affordable(constant):
            return self._result(constant, 0.0, None)
        self._require_feasible()
        failing, holding = self._bracket()
        if failing is not None:
            failing, holding = narrow(self._trial, failing, holding, self.precision)
        if self.sufficient is None:
            raise SolveFailed("no design was within the cost limit")  # every bracket contains one
        return self._result(self.sufficient, 0.0 if failing is None else failing.argument, self.refutation)

    def _result(self, mechanism: Mechanism, limit: float, refutation: Mechanism | None) -> TightestBound:
        value = mechanism.certificate.bounds.epsilon or 0.0
        report = evaluate(mechanism, self.problem, within=self.bounds.within)
        return TightestBound("epsilon", value, limit, mechanism, refutation, report, self.solves)

    def _is_affordable(self, mechanism: Mechanism) -> bool:
        """Whether the cost of a mechanism is within the limit, decided exactly: the limit may equal the cost of one."""
        return is_within_limit(self.problem, mechanism, self.cost_limit, worst_case=self.bounds.worst_case)

    def _constant(self) -> Mechanism | None:
        """The cheapest constant output, certified with the guarantees against adversaries; None if there is none.

        There is none where every output has an infinite cost for some secret, or where a guarantee exceeds the
        distortion of revealing nothing.
        """
        if not np.isfinite(self.problem.cost).all(axis=1).any():
            return None
        row = np.zeros(self.problem.shape[1])
        row[cheapest_constant(self.problem, worst_case=self.bounds.worst_case)] = 1.0
        table = np.tile(row, (self.problem.shape[0], 1))
        constant = certify(self.problem, RealisedBounds(self.bounds.within), table, origin="constant")
        if not self.bounds.distortion:
            return constant
        realised = constant.certificate.bounds
        try:
            bounds = replace(self.bounds, epsilon=realised.epsilon, within=realised.within)
            certified = certify(self.problem, bounds, constant.weights, origin="constant")
        except GuaranteeViolated:
            return None
        return certified if self.bounds.named_adversaries else constant  # which guarantees the maximum distortion

    def _require_feasible(self) -> None:
        """Raise if no ε satisfies the cost limit."""
        unconstrained = not self.bounds.distortion
        if self.must_coincide:  # for every ε, some secrets must have equal rows
            epsilon = LARGEST_EXPONENT / self.smallest_exponent
            weakest = self._design(epsilon, "the largest epsilon")
            if not self._is_affordable(weakest):
                raise self._infeasible_error(weakest, epsilon)
            return
        if unconstrained:
            cheapest = baselines.cheapest(self.problem)
        else:
            cheapest = design_bounds(self.problem, replace(self.bounds, epsilon=None, within=None))
            self.solves += 1
        require_affordable(
            self.problem, cheapest, self.cost_limit, worst_case=self.bounds.worst_case, exact=unconstrained
        )

    def _infeasible_error(self, last: Mechanism, epsilon: float) -> PrivacyGamesError:
        """The error where not even an ε that bounds no ratio of weights satisfies the cost limit."""
        certificate = last.certificate
        lower_bound = max(certificate.bound or 0.0, self._cost_bound(epsilon))
        if lower_bound <= self.cost_limit:
            requirement = f"with an epsilon of {self._format_epsilon(epsilon)} costs at most {self.cost_limit!r}"
            return undecided_error(requirement, certificate, certificate.cost)
        return Infeasible(
            f"no mechanism with a finite epsilon costs at most {self.cost_limit:.9g}: "
            f"with {self._format_epsilon(epsilon)} the least possible cost is {lower_bound!r}, "
            f"and a larger epsilon limits no ratio of {BITS}-bit weights; allow {certificate.cost:.9g}",
            limit=certificate.cost,
            bound="cost_at_most",
        )

    def _trial(self, epsilon: float) -> SearchTrial:
        """One design, which proves that ε suffices or that it does not; neither where the limit is within its gap."""
        known = f"{self._format_bound(self.refutation)} is insufficient, {self._format_bound(self.sufficient)} suffices"
        if self.progress is not None:
            self.progress(Progress(job="find", done=self.solves, message=known))
        mechanism = self.last = self._design(epsilon, known)
        certificate = mechanism.certificate
        if certificate.cost <= self.cost_limit:
            self.sufficient = mechanism
            return SearchTrial(epsilon, certificate.cost - self.cost_limit)
        if certificate.bound is not None and certificate.bound > self.cost_limit:
            self.refutation = mechanism
            return SearchTrial(epsilon, certificate.bound - self.cost_limit)
        return SearchTrial(epsilon, None)

    def _design(self, epsilon: float, known: str) -> Mechanism:
        bounds = replace(self.bounds, epsilon=epsilon)
        options = SolveOptions(progress=relabel_progress("find", self.progress, known, done=self.solves))
        self.solves += 1
        # A wide gap still decides where the cost limit is not within it.
        return design_bounds(self.problem, bounds, options=options, best_effort=True)

    def _bracket(self) -> tuple[SearchTrial | None, SearchTrial]:
        """A failing ε (None if none was found) and a sufficient one, about a factor of three apart."""
        largest = LARGEST_EXPONENT / self.smallest_exponent
        failing = self._closed_form_failing()
        epsilon = 1 / float(self.finite_exponents.mean()) if self.finite_exponents.size else 1.0
        epsilon = epsilon if failing is None else max(epsilon, 2 * failing.argument)
        while (trial := self._trial(epsilon)).excess is None or trial.excess > 0:
            failing = failing if trial.excess is None else trial
            if epsilon >= largest and self.last is not None:
                raise self._infeasible_error(self.last, epsilon)
            epsilon = max(epsilon, min(epsilon * STEP, largest))
        holding = trial
        while failing is None:
            epsilon /= STEP
            if epsilon * self.largest_exponent < SMALLEST_EXPONENT:
                break
            trial = self._trial(epsilon)
            if trial.excess is not None and trial.excess > 0:
                failing = trial
            elif trial.excess is not None:
                holding = trial
        return failing, holding

    def _cost_bound(self, epsilon: float) -> float:
        """Lower bound on the cost of every mechanism with an ε, by a closed form; 0 where there is none.

        p(o|s) ≥ exp(−ε·L) p(o|s₀) for all s, where L is the largest distance, so no mechanism costs less than exp(−ε·L)
        times the cost of the cheapest constant output; the worst secret's cost is at least the average.
        """
        if not (self.all_compared and self.finite_exponents.size):
            return 0.0
        constant = float(loss_matmul(self.problem.cost, self.problem.prior.probabilities).min())
        return constant * (1 - ROUNDING) * exp(-epsilon * self.largest_exponent)

    def _closed_form_failing(self) -> SearchTrial | None:
        """The ε at which :meth:`_cost_bound` equals the cost limit: smaller ones fail without a design."""
        constant = self._cost_bound(0.0)
        if not 0 < self.cost_limit < constant:
            return None
        epsilon = log(constant / self.cost_limit) / self.largest_exponent * (1 - ROUNDING) - ROUNDING
        return SearchTrial(epsilon, constant - self.cost_limit) if epsilon > 0 else None

    def _format_epsilon(self, epsilon: float) -> str:
        """An ε with its unit."""
        return distinguishability_scale(self.problem).epsilon(f"{epsilon:.4g}", within=self.bounds.within)

    def _format_bound(self, mechanism: Mechanism | None) -> str:
        return "none yet" if mechanism is None else self._format_epsilon(mechanism.certificate.bounds.epsilon or 0.0)


def _validated_cost(value: float | None) -> float:
    """A cost as a float, or an error that states the valid values."""
    plain = Bounds(cost_at_most=value).cost_at_most
    if plain is None:
        raise InvalidProblem("give ", Field("cost_at_most"))
    return plain

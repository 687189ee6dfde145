"""The tightest bound: the least ε, the most distortion privacy or the least cost, given the rest, with a proof."""

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
"""e^45 is more than weights can tell from ∞: a larger ε promises nothing."""

SMALLEST_EXPONENT = 1e-4
"""An ε at which even the farthest secrets differ by 0.01 %: a smaller one is not looked for."""

STEP = 3.0
ROUNDING = 1e-9


@dataclass(frozen=True)
class TightestBound:
    """The best value of one quantity, a mechanism that has it, and a proved bound on what is possible.

    Attributes:
        quantity: ``"epsilon"`` (minimised), ``"distortion"`` (maximised) or ``"cost"`` (minimised).
        value: the certified value of the mechanism.
        bound: proved: no mechanism that satisfies the rest has an ε of this or less; or more distortion privacy, or a
            lower cost, than this.
        mechanism: it satisfies the rest and has ``value``.
        refutation: for ε, the design at ``bound``, whose certified lower bound on the cost is above the cost allowed.
            None where a closed form proves the bound, or the bound is 0.
        report: the mechanism, measured.
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
        best = {"epsilon": "smallest epsilon", "distortion": "most distortion", "cost": "least cost"}[self.quantity]
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
            rows.append(("since there the least cost is", cost(f"{self.refutation.certificate.bound:.9g}")))
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
    """The best value of ε, distortion privacy or cost, given limits on the others, proved to be the best.

    The largest distortion and the least cost take one design each. The smallest ε is searched for: the least cost
    decreases in ε, so a design at some ε whose cost is allowed shows that this ε suffices, and a design whose certified
    *lower bound* is above the cost allowed shows that neither this ε nor a smaller one does. About a dozen designs
    close the bracket. The largest ε tried is the one at which the nearest secrets may differ by a factor of e^45, which
    weights of 62 bits cannot tell from ∞; if even that costs too much, :class:`Infeasible` names the least cost with
    that ε.

    Args:
        problem: secrets, prior, cost and distances.
        quantity: ``"epsilon"``: the smallest, for ``cost_at_most`` (and ``distortion``); ``"distortion"``: the largest,
            for ``cost_at_most`` (and ``epsilon``); ``"cost"``: the least, for ``epsilon`` or ``distortion`` or both.
        adversary: for ``"distortion"``, the adversary against whom it is maximised; by default one who knows the
            problem's prior and guesses the secret. Guarantees against others, in ``distortion``, hold; a number for
            this adversary has to be reached, or :class:`Infeasible` says what is possible.
        precision: maximum relative distance between the ε of the mechanism and the ε proved impossible.
        progress: called with a :class:`privacygames.Progress` before each design and during it; its message names the ε
            known to be impossible and the ε known to suffice. Raise ``Cancelled`` in it to stop.
        **bounds: ``cost_at_most``, ``epsilon``, ``distortion`` and the others, as in :func:`privacygames.design`: the
            limits on the other values. ``worst_cost_at_most`` goes with ``"distortion"`` and ``"cost"`` only.

    Raises:
        InvalidProblem: an argument does not fit.
        Infeasible: no mechanism satisfies the rest, whatever the value; the error carries the limit.
        SolveFailed: designs were not accurate enough for the precision.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> best = pg.tightest_bound(problem, "epsilon", cost_at_most=0.3)
    >>> best.bound < best.value <= best.bound * 1.001
    True
    """
    require_instance(problem, Problem, "the problem")
    require_choice(quantity, get_args(Quantity), "quantity")
    sought = "cost_at_most" if quantity == "cost" else quantity
    own = bounds.get(sought)
    if own is not None and not (quantity == "distortion" and isinstance(own, Mapping)):
        raise InvalidProblem(Field(sought), " is what is to be found; leave it out")
    if quantity != "cost" and bounds.get("cost_at_most") is None:
        raise InvalidProblem("give ", Field("cost_at_most"), f": the {quantity} is found for a cost one can bear")
    if not (isinstance(precision, int | float) and 1e-6 <= precision < 1):
        raise InvalidProblem(Field("precision"), f" is {precision!r}; it must be at least 1e-6 and below 1")
    if adversary is not None and quantity != "distortion":
        raise InvalidProblem(
            Field("adversary"), ' says against whom the most distortion is sought; it goes with "distortion" only'
        )
    if quantity == "epsilon":
        if bounds.get("worst_cost_at_most") is not None:
            raise InvalidProblem(
                "the smallest epsilon is found for a cost one can bear: leave out ", Field("worst_cost_at_most")
            )
        cost = _cost(bounds.pop("cost_at_most"))
        bounds["epsilon"] = 1.0  # any: it is replaced by the values that are tried
        return _Search(problem, Bounds(**bounds), cost, precision, progress).run()
    if quantity == "distortion":
        bounds["distortion"] = _maximised(bounds.get("distortion"), adversary)
    limits = Bounds(**bounds)
    watch = relabel_progress("find", progress, f"looking for the best {quantity}")
    mechanism = design_bounds(problem, limits, options=SolveOptions(progress=watch))
    certificate = mechanism.certificate
    value = certificate.achieved if quantity == "distortion" else certificate.cost
    limit = value if certificate.bound is None else certificate.bound
    report = evaluate(mechanism, problem, within=limits.within)
    return TightestBound(quantity, value, limit, mechanism, None, report, solves=1)


def _maximised(guarantees: Distortion, adversary: Adversary | None) -> Distortion:
    """The guarantees with the adversary first whose distortion is maximised; their number has to be reached."""
    if not isinstance(guarantees, Mapping):
        return guarantees if adversary is None else {adversary: None}
    if adversary is None and None in guarantees.values():
        return guarantees  # an open number says itself whose is maximised
    first = PROBLEM_ADVERSARY if adversary is None else require_instance(adversary, Adversary, "the adversary")
    others = {other: distortion for other, distortion in guarantees.items() if other != first}
    return {first: guarantees.get(first), **others}


class _Search:
    """The search for the smallest ε: what is known so far, and how to learn more."""

    def __init__(
        self,
        problem: Problem,
        asked: Bounds,
        most: float,
        precision: float,
        progress: ProgressCallback | None,
    ) -> None:
        self.problem, self.asked, self.most = problem, asked, most
        self.precision, self.progress = precision, progress
        self.met: Mechanism | None = None
        self.refuted: Mechanism | None = None
        self.last: Mechanism | None = None
        self.solves = 0
        exponents = asked.log_ratio_bounds(problem.distinguishability)
        apart = ~np.eye(len(exponents), dtype=bool)
        self.tied = bool((exponents[apart] == 0).any() or np.isinf(problem.cost).any())
        self.compared = exponents[np.isfinite(exponents) & (exponents > 0)]
        self.nearest = float(self.compared.min()) if self.compared.size else 1.0
        self.farthest = float(self.compared.max()) if self.compared.size else 1.0
        self.connected = bool(np.isfinite(exponents[apart]).all())

    def run(self) -> TightestBound:
        """The smallest ε, to the precision asked for."""
        kept = self._constant()
        if kept is not None and self._affordable(kept):
            return self._result(kept, 0.0, None)
        self._require_possible()
        refused, met = self._bracket()
        if refused is not None:
            refused, met = narrow(self._trial, refused, met, self.precision)
        if self.met is None:
            raise SolveFailed("no design met the cost allowed")  # a bracket has one that does
        return self._result(self.met, 0.0 if refused is None else refused.at, self.refuted)

    def _result(self, mechanism: Mechanism, limit: float, refutation: Mechanism | None) -> TightestBound:
        value = mechanism.certificate.bounds.epsilon or 0.0
        report = evaluate(mechanism, self.problem, within=self.asked.within)
        return TightestBound("epsilon", value, limit, mechanism, refutation, report, self.solves)

    def _affordable(self, mechanism: Mechanism) -> bool:
        """Whether a mechanism costs no more than is allowed, decided exactly: a limit may be the very cost of one."""
        return is_within_limit(self.problem, mechanism, self.most, worst_case=self.asked.worst_case)

    def _constant(self) -> Mechanism | None:
        """The cheapest constant output, certified with the promises against adversaries; None if there is none.

        There is none where every output has an infinite cost for some secret, and none that keeps the promises where
        they ask for more than revealing nothing leaves an adversary.
        """
        if not np.isfinite(self.problem.cost).all(axis=1).any():
            return None
        row = np.zeros(self.problem.shape[1])
        row[cheapest_constant(self.problem, worst_case=self.asked.worst_case)] = 1.0
        table = np.tile(row, (self.problem.shape[0], 1))
        constant = certify(self.problem, RealisedBounds(self.asked.within), table, origin="constant")
        if not self.asked.distortion:
            return constant
        realised = constant.certificate.bounds
        try:
            bounds = replace(self.asked, epsilon=realised.epsilon, within=realised.within)
            kept = certify(self.problem, bounds, constant.weights, origin="constant")
        except GuaranteeViolated:
            return None
        return kept if self.asked.named_adversaries else constant  # as it is, it promises all the distortion there is

    def _require_possible(self) -> None:
        """Raise if the cost cannot be met with any ε at all, or none."""
        free = not self.asked.distortion
        if self.tied:  # whatever ε is, some secrets must look the same
            at = LARGEST_EXPONENT / self.nearest
            dearest = self._design(at, "an epsilon as large as any")
            if not self._affordable(dearest):
                raise self._too_little(dearest, at)
            return
        if free:
            cheapest = baselines.cheapest(self.problem)
        else:
            cheapest = design_bounds(self.problem, replace(self.asked, epsilon=None, within=None))
            self.solves += 1
        require_affordable(self.problem, cheapest, self.most, worst_case=self.asked.worst_case, exact=free)

    def _too_little(self, last: Mechanism, at: float) -> PrivacyGamesError:
        """The error where not even an ε so large that it limits no ratio of weights will do."""
        certificate = last.certificate
        least = max(certificate.bound or 0.0, self._least_by_formula(at))
        if least <= self.most:
            what = f"with an epsilon of {self._told(at)} costs at most {self.most!r}"
            return undecided_error(what, certificate, certificate.cost)
        return Infeasible(
            f"no mechanism with a finite epsilon costs at most {self.most:.9g}: with {self._told(at)} the least "
            f"possible cost is {least!r}, and a larger epsilon limits no ratio of {BITS}-bit weights; allow "
            f"{certificate.cost:.9g}",
            limit=certificate.cost,
            bound="cost_at_most",
        )

    def _trial(self, epsilon: float) -> SearchTrial:
        """One design: it shows that ε will do, or that no smaller ε will, or (too near to call) neither."""
        known = f"{self._shown(self.refuted)} is too little, {self._shown(self.met)} will do"
        if self.progress is not None:
            self.progress(Progress(job="find", done=self.solves, message=known))
        mechanism = self.last = self._design(epsilon, known)
        certificate = mechanism.certificate
        if certificate.cost <= self.most:
            self.met = mechanism
            return SearchTrial(epsilon, certificate.cost - self.most)
        if certificate.bound is not None and certificate.bound > self.most:
            self.refuted = mechanism
            return SearchTrial(epsilon, certificate.bound - self.most)
        return SearchTrial(epsilon, None)

    def _design(self, epsilon: float, known: str) -> Mechanism:
        bounds = replace(self.asked, epsilon=epsilon)
        options = SolveOptions(progress=relabel_progress("find", self.progress, known, done=self.solves))
        self.solves += 1
        # A wide gap still decides wherever the cost allowed is not within it.
        return design_bounds(self.problem, bounds, options=options, best_effort=True)

    def _bracket(self) -> tuple[SearchTrial | None, SearchTrial]:
        """An ε that will not do (None if all seem to) and one that will, a factor of three or so apart."""
        largest = LARGEST_EXPONENT / self.nearest
        refused = self._refused_by_formula()
        at = 1 / float(self.compared.mean()) if self.compared.size else 1.0
        at = at if refused is None else max(at, 2 * refused.at)
        while (trial := self._trial(at)).excess is None or trial.excess > 0:
            refused = refused if trial.excess is None else trial
            if at >= largest and self.last is not None:
                raise self._too_little(self.last, at)
            at = max(at, min(at * STEP, largest))
        met = trial
        while refused is None:
            at /= STEP
            if at * self.farthest < SMALLEST_EXPONENT:
                break
            trial = self._trial(at)
            if trial.excess is not None and trial.excess > 0:
                refused = trial
            elif trial.excess is not None:
                met = trial
        return refused, met

    def _least_by_formula(self, epsilon: float) -> float:
        """What every mechanism with an ε costs at least, by a closed form; 0 where that says nothing.

        p(o|s) ≥ exp(−ε·L) p(o|s₀) for all s, where L is the largest distance, so no mechanism costs less than exp(−ε·L)
        times what the cheapest constant output does; the worst secret's cost is at least the average.
        """
        if not (self.connected and self.compared.size):
            return 0.0
        constant = float(loss_matmul(self.problem.cost, self.problem.prior.probabilities).min())
        return constant * (1 - ROUNDING) * exp(-epsilon * self.farthest)

    def _refused_by_formula(self) -> SearchTrial | None:
        """An ε below which no design is needed to see that the cost is too high.

        It is where :meth:`_least_by_formula` is the cost allowed.
        """
        constant = self._least_by_formula(0.0)
        if not 0 < self.most < constant:
            return None
        at = log(constant / self.most) / self.farthest * (1 - ROUNDING) - ROUNDING
        return SearchTrial(at, constant - self.most) if at > 0 else None

    def _told(self, epsilon: float) -> str:
        """An ε with what it is counted for."""
        return distinguishability_scale(self.problem).epsilon(f"{epsilon:.4g}", within=self.asked.within)

    def _shown(self, mechanism: Mechanism | None) -> str:
        return "nothing yet" if mechanism is None else self._told(mechanism.certificate.bounds.epsilon or 0.0)


def _cost(given: float | None) -> float:
    """A cost as a plain float, or an error that says what it may be."""
    plain = Bounds(cost_at_most=given).cost_at_most
    if plain is None:
        raise InvalidProblem("give ", Field("cost_at_most"))
    return plain

"""Asks the library what a case asks, and decides by the reference whether the answer is right."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from time import perf_counter, process_time
from typing import Any

import numpy as np

import privacygames as pg
from fuzz.case import SOLVERS, Case
from fuzz.exact_check import measure
from fuzz.reference import EDGE, Reference
from privacygames.certificates import moderate_loss
from privacygames.mechanism_files import load_bytes

FINE = ("agree", "infeasible", "edge", "refused")
"""Outcomes that are no findings. Edge: so near to a limit that either answer is accepted."""

WRONG = ("broken promise", "wrong optimum", "wrong bound", "wrong infeasible", "wrong limit", "wrong elsewhere")
OUTCOMES = (*FINE, "undecided", *WRONG, "raw error", "warning", "late", "solve failed")

SLACK = 1e-8
"""What bounds may be off by, relative to what is at stake: the reference's own precision, with room to spare."""

LIMIT_SLACK = Fraction(1, 10**5)
"""How closely an Infeasible must name the limit, relative to what is at stake."""

LARGEST_EXPONENT = 45.0
"""The library looks for no ε at which the nearest secrets differ by more than e^45."""

SMALLEST_EXPONENT = 4e-4
"""Nor, to a factor of 4, for one at which the farthest differ by less than 0.01 %."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        name: one of ``OUTCOMES``.
        detail: what was expected and what was given, in words.
        seconds: how long the library took.
    """

    name: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def finding(self) -> bool:
        """Whether somebody should look at it."""
        return self.name not in FINE


class Disagreement(Exception):
    """The library and the reference disagree: carries the outcome."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name


def judge(case: Case, *, time_limit: float, answered: Callable[[], None] = lambda: None) -> Outcome:
    """Ask the library, then decide.

    Args:
        case: what to ask.
        time_limit: seconds the library is given.
        answered: called as soon as the library has answered: what takes time from there on is the reference.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started, worked = perf_counter(), process_time()
        given: Any
        try:
            problem = case.problem()
        except pg.InvalidProblem as error:
            return Outcome("refused", str(error))
        try:
            given = _ask(case, problem, time_limit)
        except Exception as error:
            given = error
        # On a busy machine the time on the clock is not the library's.
        seconds = min(perf_counter() - started, process_time() - worked)
        extra = _followed_up(case, problem, given) if isinstance(given, pg.Mechanism) else None
    answered()
    try:
        name = _judged(case, given)
        if extra is not None:
            raise Disagreement(*extra)
        others = [each for each in caught if not issubclass(each.category, pg.UselessMechanism)]
        if others:
            raise Disagreement("warning", f"{others[0].category.__name__}: {others[0].message}")
        designed = case.task == "design"
        if designed and seconds > 1.2 * time_limit + 1:
            raise Disagreement("late", f"took {seconds:.1f} s of {time_limit:g}")
    except Disagreement as wrong:
        return Outcome(wrong.name, str(wrong), seconds)
    return Outcome(name, "", seconds)


def _ask(case: Case, problem: pg.Problem, time_limit: float) -> Any:
    arguments = case.arguments(problem)
    if case.task == "design":
        options = {"solver": SOLVERS[case.solver](), "tolerance": case.tolerance}
        started, worked = perf_counter(), process_time()
        try:
            made = pg.design(problem, **arguments, **options, time_limit=time_limit)
            stopped = made.certificate.gap is not None and made.certificate.gap > case.tolerance
        except pg.SolveFailed as error:
            if error.status is not pg.Status.TIME_LIMIT:
                raise
            made, stopped = None, True
        share = (process_time() - worked) / max(perf_counter() - started, 1e-9)
        if not stopped or share > 0.8:
            if made is None:
                raise pg.SolveFailed("", status=pg.Status.TIME_LIMIT)
            return made
        return pg.design(problem, **arguments, **options, time_limit=time_limit / max(share, 0.1))  # others were busy
    if case.task == "compare":
        return pg.compare(problem, pg.calibrated_baselines(problem, **arguments))
    return pg.tightest_bound(problem, case.task.split()[1], **arguments)  # type: ignore[arg-type]


def _judged(case: Case, given: Any) -> str:
    if isinstance(given, pg.Infeasible):
        return _infeasible(case, given)
    if isinstance(given, pg.SolveFailed):
        possible = _possible(case)
        if possible == "borderline":
            return "edge"  # neither reached nor shown to be impossible
        late = given.status is pg.Status.TIME_LIMIT
        raise Disagreement("late" if late else "solve failed", f"{given.status.name}: {given} (possible: {possible})")
    if isinstance(given, pg.InvalidProblem) and case.solver == "Interior()":
        return "refused"  # it says what it does not take
    if isinstance(given, pg.PrivacyGamesError):
        raise Disagreement("wrong elsewhere", f"{type(given).__name__}: {given}")
    if isinstance(given, Exception):
        raise Disagreement("raw error", f"{type(given).__name__}: {given} at {_place(given)}")
    if case.task == "design":
        return _mechanism(case, given, case.tolerance)
    if case.task == "compare":
        return _comparison(case, given)
    if case.task == "find epsilon":
        return _smallest_epsilon(case, given)
    return _mechanism(case, given.mechanism, 1e-6)


def _possible(case: Case) -> str:
    """Whether some mechanism keeps all promises; for the smallest ε, with an ε so large that it hardly matters."""
    if case.task != "find epsilon":
        return Reference(case).possible
    return Reference(case.with_bounds(epsilon=_widest(case))).possible


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _storage(case: Case, mechanism: pg.Mechanism) -> Fraction:
    """What 10⁸ units of weight lose on moderate entries: gaps are relative to no less (guarantee.md)."""
    reference = Reference(case)
    belief, errors, _ = case.opponents()[0] if reference.reverse else (case.prior, case.cost, None)
    moderate = moderate_loss(errors, belief, worst_case=bool(case.bounds.get("worst_case")) and not reference.reverse)
    return Fraction(moderate) * Fraction(10**8, 2**mechanism.bits) if isfinite(moderate) else Fraction(0)


def _mechanism(case: Case, mechanism: pg.Mechanism, tolerance: float) -> str:
    """A mechanism must keep all promises, cost no more than it may, and its certificate must claim what is true."""
    found = measure(case, mechanism.weights.astype(object), mechanism.bits)
    if found.broken:
        raise Disagreement("broken promise", "; ".join(found.broken))
    certificate = mechanism.certificate
    if certificate.gap is None or certificate.bound is None:
        raise Disagreement("wrong bound", "the certificate has no bound")
    reference = Reference(case)
    best = reference.optimum
    sign = -1 if reference.reverse else 1
    achieved = -found.privacy[0] if reference.reverse else found.cost(case)
    claimed = Fraction(sign * certificate.bound)
    if best is not None:
        stake = max(reference.stake(best.value if best.converged else achieved), _storage(case, mechanism))
        excess = (achieved - best.lower) / stake if stake else Fraction(0)
        above = reference.admissible if best.converged and stake else None
        value = achieved if above is None else -above.privacy[0] if reference.reverse else above.cost(case)
        if above is not None and claimed > value and (claimed - best.value) / stake > SLACK:
            raise Disagreement("wrong bound", f"bound {float(claimed)!r}, but {float(value)!r} is possible, exactly")
        if stake and (achieved - value) / stake > tolerance + SLACK and certificate.gap <= tolerance:
            at = f"{'privacy' if reference.reverse else 'cost'} {sign * float(achieved)!r}"
            raise Disagreement(
                "wrong optimum",
                f"{at}, but {sign * float(value)!r} is possible, exactly, off by {float(excess):.2g} of what is at "
                f"stake; certified gap {certificate.gap:.2g}, bound {certificate.bound!r}",
            )
        if excess <= tolerance + SLACK:
            return "agree"
    if certificate.gap > tolerance:
        raise Disagreement("late", f"stopped at a gap of {certificate.gap:.2g}: {certificate.provenance.solver}")
    if reference.possible == "borderline":
        return "edge"
    raise Disagreement("undecided", "the reference did not come near enough to the optimum")


def _infeasible(case: Case, error: pg.Infeasible) -> str:
    if case.task == "find epsilon":
        return _no_epsilon(case, error)
    reference = Reference(case)
    possible = reference.possible
    if possible == "yes":
        raise Disagreement("wrong infeasible", f"{error} (limit {error.limit!r}); the reference has a mechanism")
    if possible == "unknown":
        raise Disagreement("undecided", f"the reference could not decide: {error}")
    if possible == "borderline":
        return "edge"
    if not np.isfinite(case.cost).all():
        return "infeasible"  # what the limit is then depends on what is left to give
    near = [*reference.blind_privacy]
    for least in (reference.least_cost, reference.least_worst_cost) if _limited(case) else ():
        if least is None or not least.converged:
            return "infeasible"  # that much is proved; the limit is not known
        near += [least.value, least.lower]
    if reference.reverse and case.adversaries and case.adversaries[0].distortion is not None:
        floor = Reference(case).optimum
        near += [] if floor is None else [-floor.value]
    _require_named(error, near, reference)
    return "infeasible"


def _limited(case: Case) -> bool:
    return "cost_at_most" in case.bounds or "worst_cost_at_most" in case.bounds


def _require_named(error: pg.Infeasible, near: Iterable[Fraction], reference: Reference) -> None:
    """The limit that an error names must be a true one."""
    limit = Fraction(error.limit) if isfinite(error.limit) else Fraction(-1)
    scale = max(*reference.blind_costs, Fraction(1, 10**60))
    true = list(near)
    if not any(abs(limit - each) <= LIMIT_SLACK * max(abs(each), scale / 10**6) for each in true):
        shown = ", ".join(f"{float(each)!r}" for each in true)
        raise Disagreement("wrong limit", f"{error} (limit {error.limit!r}); true ones are among {shown}")


def _no_epsilon(case: Case, error: pg.Infeasible) -> str:
    """Find said that no ε will do."""
    limit = Fraction(case.bounds["cost_at_most"])
    reference = Reference(case.with_bounds(epsilon=_widest(case), cost_at_most=None))
    if reference.possible == "no":
        if np.isfinite(case.cost).all():  # else the limit depends on what is left to give
            _require_named(error, reference.blind_privacy, reference)
        return "infeasible"
    best = reference.optimum
    if best is None or not best.converged or reference.possible == "borderline":
        return "edge"
    stake = reference.stake(best.value)
    if best.value < limit - LIMIT_SLACK * stake:
        raise Disagreement(
            "wrong infeasible", f"{error}; at ε = {_widest(case):g} a cost of {float(best.value)!r} is possible"
        )
    # The limit named is that of the largest ε searched: see the docstring of find.
    largest = Reference(case.with_bounds(epsilon=_widest(case, LARGEST_EXPONENT), cost_at_most=None)).optimum
    _require_named(error, [best.value, *([] if largest is None else [largest.value, largest.lower])], reference)
    return "infeasible"


def _widest(case: Case, exponent: float = 3 * LARGEST_EXPONENT) -> float:
    """An ε at which even the nearest secrets may be told apart, by so large an exponent."""
    apart = case.distinguishability
    positive = apart[np.isfinite(apart) & (apart > 0)]
    smallest = float(positive.min()) if positive.size and "within" not in case.bounds else 1.0
    return min(max(exponent / smallest, 1e-50), 1e50)


def _smallest_epsilon(case: Case, found: pg.TightestBound) -> str:
    kept = measure(case.with_bounds(epsilon=found.value), found.mechanism.weights.astype(object), found.mechanism.bits)
    if kept.broken:
        raise Disagreement("broken promise", f"at ε = {found.value!r}: {'; '.join(kept.broken)}")
    if not found.bound <= found.value:
        raise Disagreement("wrong bound", f"ε = {found.value!r} found, {found.bound!r} said to be impossible")
    if found.bound > 0:
        reference = Reference(case.with_bounds(epsilon=found.bound, cost_at_most=None))
        best = reference.optimum
        limit = Fraction(case.bounds["cost_at_most"])
        if best is not None and best.converged and best.value < limit - Fraction(SLACK) * reference.stake(best.value):
            raise Disagreement(
                "wrong bound",
                f"ε = {found.bound!r} said to be impossible for {float(limit)!r}; {float(best.value)!r} is possible",
            )
        if found.value > found.bound * 1.01:
            raise Disagreement("wrong optimum", f"ε = {found.value!r}, but only {found.bound!r} said to be impossible")
    elif found.value > max(SMALLEST_EXPONENT / _farthest(case), 1e-12):
        reference = Reference(case.with_bounds(epsilon=found.value / 2, cost_at_most=None))
        best = reference.optimum
        limit = Fraction(case.bounds["cost_at_most"])
        near = limit > reference.scale * (1 - EDGE)  # only rounding keeps the constant output from being affordable
        if best is not None and best.converged and not near and best.value < limit - LIMIT_SLACK * reference.scale:
            raise Disagreement("wrong optimum", f"ε = {found.value!r}; half of it will do, {found.bound!r} proved")
    return "agree"


def _farthest(case: Case) -> float:
    """The largest distance that counts; 1 in the threshold form, or where there is none."""
    apart = case.distinguishability[np.isfinite(case.distinguishability)]
    return float(apart.max()) if "within" not in case.bounds and apart.max() > 0 else 1.0


def _comparison(case: Case, comparison: pg.Comparison) -> str:
    """No mechanism compared that keeps the promise costs less than the optimum, and the optimal one is that."""
    for row in comparison.rows:
        bounded = measure(case, row.mechanism.weights.astype(object), row.mechanism.bits)
        bound = row.mechanism.certificate.bound
        if row.mechanism_name == "optimal" and bound is not None:  # else ε allows only constant outputs
            return _mechanism(case, row.mechanism, 1e-6)
        best = None if bounded.broken else Reference(case).optimum
        if best is not None and bounded.cost(case) < best.lower:
            raise Disagreement("wrong elsewhere", f"{row.mechanism} costs less than any mechanism can")
    return "agree"


def _followed_up(case: Case, problem: pg.Problem, mechanism: pg.Mechanism) -> tuple[str, str] | None:
    """Files and attacks, on some cases: an outcome and words where something is wrong, else None."""
    if case.seed % 4:
        return None
    try:
        loaded = load_bytes(mechanism.to_bytes())
        if loaded.certificate != mechanism.certificate:
            return "wrong elsewhere", "the file's certificate is another one than the mechanism's"
        pg.evaluate(mechanism, problem)
        most = pg.max_distortion(problem)
        blind = float((case.distance @ case.prior).min())
        if not abs(most - blind) <= 1e-10 * blind:
            return "wrong elsewhere", f"max_distortion is {most!r}, not {blind!r}"
        best = pg.attacks.optimal(mechanism, problem)
        plain = Case(0, (), case.prior, case.cost, case.distance, case.distinguishability, bounds={"distortion": 0.0})
        exact = float(measure(plain, mechanism.weights.astype(object), mechanism.bits).privacy[0])
        if not abs(best.error - exact) <= 1e-9 * max(exact, 1e-6 * blind):
            return "wrong elsewhere", f"the optimal attack errs by {best.error!r}, exactly by {exact!r}"
        bayesian = pg.attacks.bayesian(mechanism, problem)
        if bayesian.error < best.error - 1e-9 * blind:
            return "wrong elsewhere", f"Bayes' rule errs by {bayesian.error!r}, the optimal attack by {best.error!r}"
        pg.attacks.uniform(mechanism, problem)
        for attack in (pg.attacks.minmax(mechanism, problem), pg.attacks.minmax_pairs(mechanism, problem)):
            if attack.bound is not None and attack.bound > attack.error * (1 + 1e-9):
                return "wrong elsewhere", f"{attack.name}: bound {attack.bound!r} above error {attack.error!r}"
            stake = float(case.distance.max(axis=1).min())  # what the best guess errs by without an output, at worst
            if attack.bound is None or attack.error - attack.bound > 1.1e-6 * max(attack.error, 1e-6 * stake):
                return "wrong elsewhere", f"{attack.name}: error {attack.error!r} proved only to {attack.bound!r}"
    except pg.SolveFailed as error:
        return "solve failed", f"after the design: {error}"
    except Exception as error:
        return "raw error", f"after the design: {type(error).__name__}: {error} at {_place(error)}"
    return None

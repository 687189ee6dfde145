"""Budgets of ε or of (ε, δ), in all or per window of time, and what each mechanism is charged to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray, content_hash
from privacygames.canonical import digest_of
from privacygames.certificates import realised_epsilon
from privacygames.composition import DominatingPair, dominating_pair, randomised_response_pair
from privacygames.errors import Field, GuaranteeViolated, InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.points import PointSampleable
from privacygames.problem import Bounds, Measure, Problem, Scale, distance_matrix, measure_scale
from privacygames.releases.approximate import ApproximateGuarantee
from privacygames.releases.decimal_epsilon import NOTHING, decimal_rounded_up, exact_amount, float_rounded_down, minus
from privacygames.spaces import Region, Space, region_digest, space_digest
from privacygames.validation import as_list, is_number

ROUNDING = 1 - 1e-6
"""A mechanism whose realised ε is below this share of the requested one is charged the realised ε."""

TOTAL = "total"
"""The name of the account for all time in the problem's own distinguishability."""

WEIGHT_BITS = 62
"""Weights are scaled to sum to 2 to this power before they are certified in another distinguishability."""

MAX_NAME_LENGTH = 100


@dataclass(frozen=True, eq=False)
class Budget:
    """The largest ε that may be spent, in all or in every window of time; with ``delta``, of all releases together.

    Without ``delta`` the epsilons of releases are added up, per unit of distance. With it, all releases (of a window)
    together are (ε, δ)-private between any two sequences of secrets that differ by at most ``within`` at every release.
    That admits more releases: their Rényi divergences are added up (docs/how-to/budgets.md).

    Attributes:
        epsilon: how much, per unit of the distinguishability; with ``delta``, of the whole distance.
        delta: the probability that it may fail, such as 1e-6; None: it never does.
        within: with ``delta``, the largest distance of two secrets at every release, in the distinguishability; None:
            any two secrets.
        every: the length of a sliding window, in seconds (in steps, if times are counted in steps); None: all time.
        distinguishability: the distance that ε counts in: a name the space knows, a matrix or a function of two labels;
            by default the problem's. Every release is charged to every budget, in the budget's own distance.
        name: by default from its window and distance.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> budgets = [pg.Budget(20.0), pg.Budget(4.0, every=24 * 3600)]
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> releases = pg.Releases(problem, pg.Mobility.still(city), epsilon=0.5, budget=budgets)
    >>> [(balance.name, balance.left) for balance in releases.release("cell-1", at=1.7e9).balances]
    [('total', 19.5), ('every 24 h', 3.5)]
    >>> day = pg.Budget(4.0, delta=1e-6, within=1.0, every=24 * 3600)
    >>> noise = pg.baselines.exponential(problem, epsilon=0.2)
    >>> releases = pg.Releases(problem, pg.Mobility.still(city), mechanism=noise, budget=day)
    >>> releases.release("cell-1", at=1.7e9).balances[1].releases_left
    55
    """

    epsilon: float
    every: float | None = None
    distinguishability: Measure | None = None
    name: str | None = None
    delta: float | None = field(default=None, kw_only=True)
    within: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        exact_amount(self.epsilon, "a budget's epsilon")
        self._check_delta()
        if self.every is not None:
            if not (is_number(self.every) and 0 < self.every < np.inf):
                allowed = "it must be a positive number of seconds, or None"
                raise InvalidProblem(f"every is {repr(self.every)[:40]}; {allowed}")
            object.__setattr__(self, "every", float(self.every))  # whatever kind of number: a ledger holds floats
        if self.name is not None and not (isinstance(self.name, str) and 0 < len(self.name) <= MAX_NAME_LENGTH):
            raise InvalidProblem(f"a budget's name must be a text of 1 to {MAX_NAME_LENGTH} characters")

    def _check_delta(self) -> None:
        if self.delta is None:
            if self.within is not None:
                raise InvalidProblem(
                    Field("within"), " is the distance that a budget with ", Field("delta"), " holds for: give both"
                )
            return
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise InvalidProblem(
                Field("delta"), f" is {repr(self.delta)[:40]}; it must lie between 0 and 1, such as 1e-6"
            )
        object.__setattr__(self, "delta", float(self.delta))
        if self.within is not None:
            if not (is_number(self.within) and 0 <= self.within < np.inf):
                allowed = "it must be a distance, 0 or more; leave it out for any two secrets"
                raise InvalidProblem(Field("within"), f" is {repr(self.within)[:40]}; {allowed}")
            object.__setattr__(self, "within", float(self.within))


@dataclass(frozen=True, eq=False)
class Account:
    """A sum of ε in one distinguishability, with or without a limit; or of Rényi divergences, with one.

    Attributes:
        name: unique in a ledger.
        limit: None: charged without a limit.
        every: the length of its window; None: all time.
        distinguishability_digest: the digest of the distinguishability and of its secrets.
        max_distance: the largest distinguishability between any two secrets.
        all_distances_one: whether any two secrets are 1 apart.
        in_problem_distance: whether it adds up ε in the problem's distinguishability.
        scale: the name and unit of the distinguishability.
        approximate: what the limit of an account of Rényi divergences guarantees; None where ε is added up.
        added_distance: how much further apart than two secrets those may be that outputs are drawn for.
    """

    name: str
    limit: Decimal | None
    every: float | None
    distinguishability_digest: str
    max_distance: float
    all_distances_one: bool
    in_problem_distance: bool
    scale: Scale
    approximate: ApproximateGuarantee | None = field(default=None, kw_only=True)
    added_distance: float = field(default=0.0, kw_only=True)

    @property
    def statement(self) -> str | None:
        """What an account of Rényi divergences guarantees, whatever is released; None where ε is added up."""
        if self.approximate is None:
            return None
        window = "" if self.every is None else f", and only within {duration_text(self.every)},"
        return f"{self.approximate.describe(self.scale)}{window} for any correlation and any adversary"

    def format_left(self, spent: "Spent") -> str:
        """What is left of the limit, in words."""
        if self.limit is None:
            return "no limit"
        left = minus(self.limit, spent.amount)
        if self.approximate is not None:
            return f"{share_text(left, self.limit)} left of {self.approximate.describe(self.scale)}"
        return f"{left} of {self.scale.epsilon(str(self.limit), float(self.limit) * self.max_distance)} left"


@dataclass(frozen=True, eq=False)
class FiniteAccount(Account):
    """An account about finitely many secrets.

    Attributes:
        distinguishability: the distances that ε counts in.
    """

    distinguishability: FloatArray


@dataclass(frozen=True)
class Spent:
    """The charges that count against an account, and the number of releases they are for."""

    amount: Decimal = NOTHING
    releases: int = 0


Budgets = float | Budget | Sequence[Budget] | None
"""A limit on the total, one budget, several, or none."""

AnyAccount = TypeVar("AnyAccount", bound=Account)


def share_text(part: Decimal | float, whole: Decimal | float) -> str:
    """What part of a whole something is, in percent, rounded down."""
    return f"{max(int(1000 * float(part) / float(whole)), 0) / 10:g} %"


Planned = Mechanism | PointSampleable | Decimal | None
"""What a ledger is planned for: a fixed mechanism, or designs for an ε; None where neither is known."""


def accounts_for(problem: Problem, budget: Budgets, planned: Planned = None) -> tuple[FiniteAccount, ...]:
    """The accounts of budgets; the first is for all time in the problem's own distinguishability, limited or not.

    Args:
        problem: secrets and distances.
        budget: the budgets.
        planned: what a new ledger's budgets with a delta are to buy as much of as possible.
    """
    own = _account(problem, TOTAL, None, None)
    return _with_total(own, [_limited_account(problem, each, planned) for each in _listed(budget)])


def point_accounts(
    region: Region, budget: Budgets, place_side: float | None = None, planned: Planned = None
) -> tuple[Account, ...]:
    """The accounts of budgets for secrets that are points; ε counts in the distance between two of them.

    Args:
        region: the region of the secrets.
        budget: the budgets.
        place_side: where points are moved to the centre of a cell first, the side of these cells: ε then counts in the
            distance between centres, which is another distinguishability. Points within a distance have centres that
            are up to a diagonal further apart, and budgets with a delta cover them.
        planned: as in :func:`accounts_for`.
    """
    name = region.distance_names[0]
    digest = digest_of("account", region_digest(region), name, place_side)
    max_distance, scale = float(np.hypot.reduce(region.lengths)), Scale(name, region.unit)
    added = 0.0 if place_side is None else float(np.sqrt(region.dimension)) * place_side
    own = Account(
        *(TOTAL, None, None, digest, max_distance),
        all_distances_one=False,
        in_problem_distance=True,
        scale=scale,
        added_distance=added,
    )
    budgets = _listed(budget)
    if any(each.distinguishability is not None for each in budgets):
        raise InvalidProblem(
            "a budget of releases of points counts in the distance between points: leave its distinguishability out"
        )
    return _with_total(own, [_limited(own, each, each.name or _default_name(each, scale), planned) for each in budgets])


def _with_total(own: AnyAccount, limited: list[AnyAccount]) -> tuple[AnyAccount, ...]:
    """The accounts with limits, after the one for all time in the problem's distinguishability: ``own`` by default."""
    totals = [each for each in limited if each.in_problem_distance and each.every is None]
    if len(totals) > 1:
        raise InvalidProblem("there are two budgets for all time in the problem's distinguishability: give one")
    accounts = (*(totals or [own]), *(each for each in limited if each not in totals))
    names = [each.name for each in accounts]
    if len(set(names)) < len(names):
        raise InvalidProblem(f"two budgets are called {max(names, key=names.count)!r}: give each its own name")
    return accounts


def remaining(account: Account, spent: Spent) -> Decimal | None:
    """What an account has left; None without a limit."""
    return None if account.limit is None else minus(account.limit, spent.amount)


def releases_left(left: Decimal | float | None, charge: Decimal, source: object) -> int | None:
    """How many more releases of a charge there is room for; None without a limit, or where it says nothing about them.

    Args:
        left: of the limit.
        charge: of one release.
        source: of its output; a prediction that was kept was charged its test only.
    """
    if left is None or not charge or source == "kept":
        return None
    return max(int(Fraction(repr(left) if isinstance(left, float) else left) // Fraction(charge)), 0)


def more_releases(count: int) -> str:
    """How many more releases there is room for, in words."""
    if count == 0:
        return "no room for another release of this mechanism"
    return f"about {count} more release{'' if count == 1 else 's'} of this mechanism"


class MechanismCharges:
    """The charge for one draw from a mechanism, in each account; computed once per mechanism."""

    def __init__(self, problem: Problem, accounts: tuple[FiniteAccount, ...]) -> None:
        self._problem, self._accounts = problem, accounts
        self._charges: dict[tuple[str, Decimal | None], tuple[Decimal, ...]] = {}

    def of(self, mechanism: Mechanism, epsilon: Decimal | None) -> tuple[Decimal, ...]:
        """The charge to every account.

        Args:
            mechanism: any; the verifier computes its ε.
            epsilon: what it was designed for, in the problem's own distinguishability; None if that is not known.
        """
        key = mechanism.digest, epsilon
        if key not in self._charges:
            by_account: dict[object, Decimal] = {}  # accounts that differ in limit and window only have equal charges
            for account in self._accounts:
                if _charged_alike(account) not in by_account:
                    by_account[_charged_alike(account)] = self._charge(mechanism, account, epsilon)
            self._charges[key] = tuple(by_account[_charged_alike(account)] for account in self._accounts)
        return self._charges[key]

    def _charge(self, mechanism: Mechanism, account: FiniteAccount, epsilon: Decimal | None) -> Decimal:
        weights = mechanism.weights
        if (weights == weights[0]).all():
            return NOTHING
        if account.approximate is not None:
            return account.approximate.charge(_finite_pair(mechanism, account, account.approximate.within))
        realised, certified = (
            _verified_epsilon(mechanism, account, self._problem),
            _certified_epsilon(mechanism, account),
        )
        if epsilon is None or not account.in_problem_distance or certified is None or Decimal(certified) > epsilon:
            return realised  # the requested ε counts only if the certificate covers it
        return epsilon if float(realised) >= ROUNDING * float(epsilon) else realised


def _charged_alike(account: FiniteAccount) -> tuple[object, ...]:
    """What the charges of an account depend on, besides the mechanism."""
    return account.distinguishability_digest, account.in_problem_distance, account.approximate


def point_charges(
    mechanism: PointSampleable, epsilon: Decimal | None, accounts: tuple[Account, ...]
) -> tuple[Decimal, ...]:
    """The charge for one draw from a mechanism for points, in each account; nothing where outputs are constant.

    Args:
        mechanism: its ε is verified again, on its weights.
        epsilon: what it was designed for; None if that is not known.
        accounts: the accounts.
    """
    own = _point_epsilon(mechanism, epsilon)

    def charge(account: Account) -> Decimal:
        if account.approximate is None or own == NOTHING:
            return own
        return account.approximate.charge(_point_pair(mechanism, account, account.approximate.within))

    return tuple(map(charge, accounts))


def _point_pair(mechanism: PointSampleable, account: Account, within: float | None) -> DominatingPair:
    return dominating_pair(mechanism, np.inf if within is None else within + account.added_distance)


def _finite_pair(mechanism: Mechanism, account: FiniteAccount, within: float | None) -> DominatingPair:
    return dominating_pair(mechanism, np.inf if within is None else within, distance=account.distinguishability)


def _planned_pair(account: Account, within: float | None, planned: Planned) -> DominatingPair | None:
    """The pair of the mechanism that a ledger is planned for; of designs for an ε, one that dominates them all."""
    if isinstance(planned, Decimal):
        distance = (
            account.max_distance if within is None else min(within + account.added_distance, account.max_distance)
        )
        exponent = float(planned) * distance
        return randomised_response_pair(exponent) if account.in_problem_distance and exponent < np.inf else None
    if isinstance(planned, Mechanism) and isinstance(account, FiniteAccount):
        return _finite_pair(planned, account, within)
    return _point_pair(planned, account, within) if isinstance(planned, PointSampleable) else None


def _point_epsilon(mechanism: PointSampleable, epsilon: Decimal | None) -> Decimal:
    """The certified ε, or what it was designed for."""
    certified = mechanism.bounds.epsilon
    if mechanism.ignores_secret:
        return NOTHING
    if certified is None or not mechanism.keeps_epsilon(certified):
        raise InvalidProblem("the mechanism keeps no epsilon between points, and no budget covers that")
    if epsilon is not None and Decimal(certified) <= epsilon:
        return epsilon
    rounded = exact_amount(certified, "the mechanism's epsilon")
    return rounded if mechanism.keeps_epsilon(float_rounded_down(rounded)) else decimal_rounded_up(certified)


def _certified_epsilon(mechanism: Mechanism, account: FiniteAccount) -> float | None:
    """The certified ε in an account's distinguishability; None if the certificate is about another one."""
    bounds = mechanism.bounds
    same = np.array_equal(mechanism.distinguishability, account.distinguishability)
    return bounds.epsilon if same and bounds.within is None else None


def _verified_epsilon(mechanism: Mechanism, account: FiniteAccount, problem: Problem) -> Decimal:
    """The least ε in an account's distinguishability that the verifier confirms, rounded up."""
    observables = mechanism.observables
    cost = np.zeros((len(observables), len(problem.space)))
    statement = Problem(problem.prior, cost, problem.distance, account.distinguishability, observables)
    weights = mechanism.weights << (WEIGHT_BITS - mechanism.bits)
    certified = _certified_epsilon(mechanism, account)
    if certified is not None and realised_epsilon(weights, account.distinguishability) >= ROUNDING * certified:
        rounded = exact_amount(certified, "the mechanism's epsilon")
        try:  # the decimal 0.1 is a little less than the float nearest to it
            certify(statement, Bounds(epsilon=float_rounded_down(rounded)), weights, origin="re-checked")
        except GuaranteeViolated:
            return decimal_rounded_up(certified)
        return rounded
    least_epsilon = Mechanism.from_weights(statement, weights).certificate.bounds.epsilon
    if least_epsilon is None:
        raise InvalidProblem(
            f"the mechanism keeps no finite epsilon in the distinguishability of the budget {account.name!r}: an "
            "output may separate two secrets with certainty, and no budget covers that"
        )
    return decimal_rounded_up(least_epsilon)


def _listed(budget: object) -> list[Budget]:
    if budget is None:
        return []
    if is_number(budget):
        return [Budget(budget)]  # type: ignore[arg-type]
    budgets = [budget] if isinstance(budget, Budget) else as_list(budget, "budget")
    if not all(isinstance(each, Budget) for each in budgets):
        raise InvalidProblem("budget must be a number, a Budget or a list of them")
    return budgets


def _limited_account(problem: Problem, budget: Budget, planned: Planned) -> FiniteAccount:
    distances = None
    if budget.distinguishability is not None:
        distances = distance_matrix(budget.distinguishability, "a budget's distinguishability", problem.space)
    account = _account(problem, TOTAL, None, None, distances)
    default = _default_name(budget, account.scale)
    in_other_distance = f"{default}, distinguishability {account.distinguishability_digest[:8]}"
    return _limited(
        account, budget, budget.name or (default if account.in_problem_distance else in_other_distance), planned
    )


def _limited(account: AnyAccount, budget: Budget, name: str, planned: Planned) -> AnyAccount:
    """An account with the limit and window of a budget."""
    epsilon = exact_amount(budget.epsilon, "epsilon")
    limited = replace(account, name=name, limit=epsilon, every=budget.every)
    if budget.delta is None:
        return limited
    pair = _planned_pair(account, budget.within, planned)
    approximate = ApproximateGuarantee.planned(epsilon, budget.delta, budget.within, pair)
    return replace(limited, limit=approximate.limit, approximate=approximate, in_problem_distance=False)


def _account(
    problem: Problem,
    name: str,
    limit: Decimal | None,
    every: float | None,
    distinguishability: FloatArray | None = None,
) -> FiniteAccount:
    """An account in a distinguishability, by default the problem's."""
    distances = problem.distinguishability if distinguishability is None else distinguishability
    return FiniteAccount(
        name=name,
        limit=limit,
        every=every,
        distinguishability_digest=_distinguishability_digest(problem.space, distances),
        max_distance=float(distances.max(initial=0.0)),
        all_distances_one=bool((distances[~np.eye(len(distances), dtype=bool)] == 1).all()),
        in_problem_distance=np.array_equal(distances, problem.distinguishability),
        scale=measure_scale(distances, problem.space),
        distinguishability=distances,
    )


def _default_name(budget: Budget, scale: Scale) -> str:
    window = TOTAL if budget.every is None else f"every {duration_text(budget.every)}"
    if budget.delta is None:
        return window
    within = "" if budget.within is None else f" within {scale.amount(f'{budget.within:g}')}"
    return f"{window}{within}, delta {budget.delta:g}"


def duration_text(seconds: float) -> str:
    """A length of time in the largest unit that it is a multiple of."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def _distinguishability_digest(space: Space, distinguishability: FloatArray) -> str:
    return digest_of("account", space_digest(space), content_hash(distinguishability))

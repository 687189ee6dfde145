"""Budgets of ε, in all or per window of time, and what each mechanism is charged to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray, content_hash
from privacygames.canonical import digest_of
from privacygames.certificates import realised_epsilon
from privacygames.errors import GuaranteeViolated, InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.points import PointSampleable
from privacygames.problem import Bounds, Measure, Problem, Scale, distance_matrix, measure_scale
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
    """The largest ε that may be spent, in all or in every window of time.

    Attributes:
        epsilon: how much, per unit of the distinguishability.
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
    """

    epsilon: float
    every: float | None = None
    distinguishability: Measure | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        exact_amount(self.epsilon, "a budget's epsilon")
        if self.every is not None:
            if not (is_number(self.every) and 0 < self.every < np.inf):
                allowed = "it must be a positive number of seconds, or None"
                raise InvalidProblem(f"every is {repr(self.every)[:40]}; {allowed}")
            object.__setattr__(self, "every", float(self.every))  # whatever kind of number: a ledger holds floats
        if self.name is not None and not (isinstance(self.name, str) and 0 < len(self.name) <= MAX_NAME_LENGTH):
            raise InvalidProblem(f"a budget's name must be a text of 1 to {MAX_NAME_LENGTH} characters")


@dataclass(frozen=True, eq=False)
class Account:
    """A sum of ε in one distinguishability, with or without a limit.

    Attributes:
        name: unique in a ledger.
        limit: None: charged without a limit.
        every: the length of its window; None: all time.
        distinguishability_digest: the digest of the distinguishability and of its secrets.
        max_distance: the largest distinguishability between any two secrets.
        all_distances_one: whether any two secrets are 1 apart.
        in_problem_distance: whether ε counts in the problem's distinguishability.
        scale: the name and unit of the distinguishability.
    """

    name: str
    limit: Decimal | None
    every: float | None
    distinguishability_digest: str
    max_distance: float
    all_distances_one: bool
    in_problem_distance: bool
    scale: Scale

    def format_epsilon(self, epsilon: Decimal) -> str:
        """ε with its unit, and the bound it implies between any two secrets."""
        return self.scale.epsilon(str(epsilon), float(epsilon) * self.max_distance)


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


def accounts_for(problem: Problem, budget: Budgets) -> tuple[FiniteAccount, ...]:
    """The accounts of budgets; the first is for all time in the problem's own distinguishability, limited or not."""
    return _with_total(
        _account(problem, TOTAL, None, None), [_limited_account(problem, each) for each in _listed(budget)]
    )


def point_accounts(region: Region, budget: Budgets, place_side: float | None = None) -> tuple[Account, ...]:
    """The accounts of budgets for secrets that are points; ε counts in the distance between two of them.

    Args:
        region: the region of the secrets.
        budget: the budgets.
        place_side: where points are moved to the centre of a cell first, the side of these cells: ε then counts in the
            distance between centres, which is another distinguishability.
    """
    name = region.distance_names[0]
    digest = digest_of("account", region_digest(region), name, place_side)
    max_distance, scale = float(np.hypot.reduce(region.lengths)), Scale(name, region.unit)

    def account(name: str, limit: Decimal | None, every: float | None) -> Account:
        return Account(
            name, limit, every, digest, max_distance, all_distances_one=False, in_problem_distance=True, scale=scale
        )

    budgets = _listed(budget)
    if any(each.distinguishability is not None for each in budgets):
        raise InvalidProblem(
            "a budget of releases of points counts in the distance between points: leave its distinguishability out"
        )
    limited = [
        account(each.name or _default_name(each), exact_amount(each.epsilon, "epsilon"), each.every) for each in budgets
    ]
    return _with_total(account(TOTAL, None, None), limited)


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
            self._charges[key] = tuple(self._charge(mechanism, account, epsilon) for account in self._accounts)
        return self._charges[key]

    def _charge(self, mechanism: Mechanism, account: FiniteAccount, epsilon: Decimal | None) -> Decimal:
        weights = mechanism.weights
        if (weights == weights[0]).all():
            return NOTHING
        realised, certified = (
            _verified_epsilon(mechanism, account, self._problem),
            _certified_epsilon(mechanism, account),
        )
        if epsilon is None or not account.in_problem_distance or certified is None or Decimal(certified) > epsilon:
            return realised  # the requested ε counts only if the certificate covers it
        return epsilon if float(realised) >= ROUNDING * float(epsilon) else realised


def point_charge(mechanism: PointSampleable, epsilon: Decimal | None) -> Decimal:
    """The charge for one draw from a mechanism for points: the certified ε; nothing where outputs are constant.

    Args:
        mechanism: its ε is verified again, on its weights.
        epsilon: what it was designed for; None if that is not known.
    """
    certified = mechanism.bounds.epsilon
    if (mechanism.weights == mechanism.weights[0]).all():
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


def _limited_account(problem: Problem, budget: Budget) -> FiniteAccount:
    distances, default = None, _default_name(budget)
    if budget.distinguishability is not None:
        distances = distance_matrix(budget.distinguishability, "a budget's distinguishability", problem.space)
    account = _account(problem, default, exact_amount(budget.epsilon, "epsilon"), budget.every, distances)
    in_other_distance = f"{default}, distinguishability {account.distinguishability_digest[:8]}"
    return replace(account, name=budget.name or (default if account.in_problem_distance else in_other_distance))


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


def _default_name(budget: Budget) -> str:
    return TOTAL if budget.every is None else f"every {_duration(budget.every)}"


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def _distinguishability_digest(space: Space, distinguishability: FloatArray) -> str:
    return digest_of("account", space_digest(space), content_hash(distinguishability))

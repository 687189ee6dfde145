"""Budgets of ε, in all or per window of time, and what each mechanism is charged to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from privacygames.arrays import FloatArray, content_hash
from privacygames.canonical import digest_of
from privacygames.certificates import realised_epsilon
from privacygames.errors import GuaranteeViolated, InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import (
    Bounds,
    Measure,
    Problem,
    Scale,
    distance_matrix,
    distinguishability_scale,
    measure_scale,
)
from privacygames.releases.decimal_epsilon import NOTHING, decimal_rounded_up, exact_amount, float_rounded_down, minus
from privacygames.spaces import Space, space_digest
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
        distinguishability: the distance that ε counts in.
        in_problem_distance: whether that is the problem's distinguishability.
        scale: the name and unit of the distinguishability.
    """

    name: str
    limit: Decimal | None
    every: float | None
    distinguishability_digest: str
    distinguishability: FloatArray
    in_problem_distance: bool
    scale: Scale

    def format_epsilon(self, epsilon: Decimal) -> str:
        """ε with its unit, and the bound it implies between any two secrets."""
        return self.scale.epsilon(str(epsilon), float(epsilon) * float(self.distinguishability.max(initial=0.0)))


@dataclass(frozen=True)
class Spent:
    """The charges that count against an account, and the number of releases they are for."""

    amount: Decimal = NOTHING
    releases: int = 0


def accounts_for(problem: Problem, budget: float | Budget | Sequence[Budget] | None) -> tuple[Account, ...]:
    """The accounts of budgets; the first is for all time in the problem's own distinguishability, limited or not."""
    budgets = [] if budget is None else _listed(budget)
    limited = [_account(problem, each) for each in budgets]
    totals = [each for each in limited if each.in_problem_distance and each.every is None]
    if len(totals) > 1:
        raise InvalidProblem("there are two budgets for all time in the problem's distinguishability: give one")
    distances, own_scale = problem.distinguishability, distinguishability_scale(problem)
    digest = _distinguishability_digest(problem.space, distances)
    first = totals or [Account(TOTAL, None, None, digest, distances, in_problem_distance=True, scale=own_scale)]
    accounts = (*first, *(each for each in limited if each not in totals))
    names = [each.name for each in accounts]
    if len(set(names)) < len(names):
        raise InvalidProblem(f"two budgets are called {max(names, key=names.count)!r}: give each its own name")
    return accounts


def remaining(account: Account, spent: Spent) -> Decimal | None:
    """What an account has left; None without a limit."""
    return None if account.limit is None else minus(account.limit, spent.amount)


class MechanismCharges:
    """The charge for one draw from a mechanism, in each account; computed once per mechanism."""

    def __init__(self, problem: Problem, accounts: tuple[Account, ...]) -> None:
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

    def _charge(self, mechanism: Mechanism, account: Account, epsilon: Decimal | None) -> Decimal:
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


def _certified_epsilon(mechanism: Mechanism, account: Account) -> float | None:
    """The certified ε in an account's distinguishability; None if the certificate is about another one."""
    bounds = mechanism.bounds
    same = np.array_equal(mechanism.distinguishability, account.distinguishability)
    return bounds.epsilon if same and bounds.within is None else None


def _verified_epsilon(mechanism: Mechanism, account: Account, problem: Problem) -> Decimal:
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
    if is_number(budget):
        return [Budget(budget)]  # type: ignore[arg-type]
    budgets = [budget] if isinstance(budget, Budget) else as_list(budget, "budget")
    if not all(isinstance(each, Budget) for each in budgets):
        raise InvalidProblem("budget must be a number, a Budget or a list of them")
    return budgets


def _account(problem: Problem, budget: Budget) -> Account:
    measure, distances = budget.distinguishability, problem.distinguishability
    if measure is not None:
        distances = distance_matrix(measure, "a budget's distinguishability", problem.space)
    in_problem_distance = np.array_equal(distances, problem.distinguishability)
    digest = _distinguishability_digest(problem.space, distances)
    default = TOTAL if budget.every is None else f"every {_duration(budget.every)}"
    name = budget.name or (default if in_problem_distance else f"{default}, distinguishability {digest[:8]}")
    limit, scale = exact_amount(budget.epsilon, "epsilon"), measure_scale(distances, problem.space)
    return Account(name, limit, budget.every, digest, distances, in_problem_distance, scale)


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def _distinguishability_digest(space: Space, distinguishability: FloatArray) -> str:
    return digest_of("account", space_digest(space), content_hash(distinguishability))

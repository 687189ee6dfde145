"""Budgets: how much ε may be spent, in all or in every window of time, in which distinguishability."""

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
from privacygames.releases.decimal_epsilon import NOTHING, amount, at_least, at_most, minus
from privacygames.spaces import Space, space_digest
from privacygames.validation import as_list, is_number

LESS = 1 - 1e-6
"""A mechanism that keeps an ε smaller by more than this is charged what it keeps."""

OWN_TOTAL = "total"
BITS = 62


@dataclass(frozen=True, eq=False)
class Budget:
    """The most ε that may be spent.

    Attributes:
        epsilon: how much, per unit of the distinguishability.
        every: in every sliding window of so many seconds (of steps, where times are counted in steps); None: in all.
        distinguishability: in which it is counted (a name the space knows, a matrix or a function of two labels); by
            default the problem's. Releases are charged in every budget's own.
        name: what to call it.
    """

    epsilon: float
    every: float | None = None
    distinguishability: Measure | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        amount(self.epsilon, "a budget's epsilon")
        if self.every is not None:
            if not (is_number(self.every) and 0 < self.every < np.inf):
                allowed = "it must be a positive number of seconds, or None"
                raise InvalidProblem(f"every is {repr(self.every)[:40]}; {allowed}")
            object.__setattr__(self, "every", float(self.every))  # whatever kind of number: a ledger holds floats
        if self.name is not None and not (isinstance(self.name, str) and 0 < len(self.name) <= 100):
            raise InvalidProblem("a budget's name must be a text of 1 to 100 characters")


@dataclass(frozen=True, eq=False)
class Account:
    """What is counted in one distinguishability, and what limits it.

    Attributes:
        name: unique in a ledger.
        limit: None: counted only.
        every: the length of its window; None: all time.
        subject: the hash of the distinguishability and of the secrets it is between.
        apart: the distinguishability.
        own: whether it is the problem's.
        scale: of the distinguishability, in units of which ε is counted.
    """

    name: str
    limit: Decimal | None
    every: float | None
    subject: str
    apart: FloatArray
    own: bool
    scale: Scale

    def told(self, epsilon: Decimal) -> str:
        """ε with what it is counted for, and what it allows between any two secrets."""
        return self.scale.epsilon(str(epsilon), float(epsilon) * float(self.apart.max(initial=0.0)))


@dataclass(frozen=True)
class Spent:
    """What was charged to an account within its window (or in all), in how many releases."""

    amount: Decimal = NOTHING
    releases: int = 0


def accounts_for(problem: Problem, budget: float | Budget | Sequence[Budget] | None) -> tuple[Account, ...]:
    """The accounts of budgets; the first counts all ε in the problem's own distinguishability, limited or not."""
    given = [] if budget is None else _listed(budget)
    made = [_account(problem, each) for each in given]
    totals = [each for each in made if each.own and each.every is None]
    if len(totals) > 1:
        raise InvalidProblem("there are two budgets for all time in the problem's distinguishability: give one")
    apart, own_scale = problem.distinguishability, distinguishability_scale(problem)
    subject = _subject(problem.space, apart)
    first = totals or [Account(OWN_TOTAL, None, None, subject, apart, own=True, scale=own_scale)]
    found = (*first, *(each for each in made if each not in totals))
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise InvalidProblem(f"two budgets are called {max(names, key=names.count)!r}: give them a name each")
    return found


def left_in(account: Account, spent: Spent) -> Decimal | None:
    """What an account has left; None where nothing limits it."""
    return None if account.limit is None else minus(account.limit, spent.amount)


class Charges:
    """What each mechanism costs in each account: worked out once."""

    def __init__(self, problem: Problem, accounts: tuple[Account, ...]) -> None:
        self._problem, self._accounts = problem, accounts
        self._known: dict[tuple[str, Decimal | None], tuple[Decimal, ...]] = {}

    def of(self, mechanism: Mechanism, asked: Decimal | None) -> tuple[Decimal, ...]:
        """A charge for every account; ``asked`` is what the mechanism was designed for, in the problem's own."""
        key = mechanism.digest, asked
        if key not in self._known:
            self._known[key] = tuple(self._one(mechanism, account, asked) for account in self._accounts)
        return self._known[key]

    def _one(self, mechanism: Mechanism, account: Account, asked: Decimal | None) -> Decimal:
        weights = mechanism.weights
        if (weights == weights[0]).all():
            return NOTHING
        kept, certified = _kept_epsilon(mechanism, account, self._problem), _certified_epsilon(mechanism, account)
        if asked is None or not account.own or certified is None or Decimal(certified) > asked:
            return kept  # what was asked for counts only where it is certified
        return asked if float(kept) >= LESS * float(asked) else kept


def _certified_epsilon(mechanism: Mechanism, account: Account) -> float | None:
    """What the mechanism's certificate promises in an account's distinguishability; None if it is about another."""
    promised = mechanism.bounds
    same = np.array_equal(mechanism.distinguishability, account.apart)
    return promised.epsilon if same and promised.within is None else None


def _kept_epsilon(mechanism: Mechanism, account: Account, problem: Problem) -> Decimal:
    """The least ε in an account's distinguishability that the verifier finds kept, rounded up."""
    observables = mechanism.observables
    cost = np.zeros((len(observables), len(problem.space)))
    about = Problem(problem.prior, cost, problem.distance, account.apart, observables)
    weights = mechanism.weights << (BITS - mechanism.bits)
    certified = _certified_epsilon(mechanism, account)
    if certified is not None and realised_epsilon(weights, account.apart) >= LESS * certified:
        rounded = amount(certified, "the mechanism's epsilon")
        try:  # a tenth as people write it is a little less than the float nearest to it
            certify(about, Bounds(epsilon=at_most(rounded)), weights, origin="re-checked")
        except GuaranteeViolated:
            return at_least(certified)
        return rounded
    found = Mechanism.from_weights(about, weights).certificate.bounds.epsilon
    if found is None:
        raise InvalidProblem(
            f"the mechanism keeps no finite epsilon in the distinguishability of the budget {account.name!r}: an "
            "answer may tell two secrets apart with certainty, and no budget covers that"
        )
    return at_least(found)


def _listed(budget: object) -> list[Budget]:
    if is_number(budget):
        return [Budget(budget)]  # type: ignore[arg-type]
    given = [budget] if isinstance(budget, Budget) else as_list(budget, "budget")
    if not all(isinstance(each, Budget) for each in given):
        raise InvalidProblem("budget must be a number, a Budget or a list of them")
    return given


def _account(problem: Problem, budget: Budget) -> Account:
    told = budget.distinguishability
    apart = problem.distinguishability
    if told is not None:
        apart = distance_matrix(told, "a budget's distinguishability", problem.space)
    own = np.array_equal(apart, problem.distinguishability)
    subject = _subject(problem.space, apart)
    usual = OWN_TOTAL if budget.every is None else f"every {_duration(budget.every)}"
    name = budget.name or (usual if own else f"{usual}, distinguishability {subject[:8]}")
    return Account(
        name, amount(budget.epsilon, "epsilon"), budget.every, subject, apart, own, measure_scale(apart, problem.space)
    )


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def _subject(space: Space, apart: FloatArray) -> str:
    return digest_of("account", space_digest(space), content_hash(apart))

"""Policies: how each release is chosen and what it is charged, from what is public alone.

What each one is charged, and why that suffices, is proved in docs/theory/sharing.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from typing import ClassVar, Literal, get_args

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem
from privacygames.releases.budgets import Account, Spent, left_in
from privacygames.releases.decimal_epsilon import NOTHING, amount, at_most, total
from privacygames.spaces import Categories
from privacygames.validation import is_integer, is_number, require_choice

__all__ = ["EvenSpread", "Fixed", "Memoised", "Policy", "Predictive"]

Prediction = Literal["last", "belief"]
KEEP, RENEW = 0, 1
SHORT = Context(prec=12, rounding=ROUND_FLOOR)
"""Shares of a budget are rounded down to so many digits: equal shares stay equal, and are designed for once."""

LEAST_KEY = 16


@dataclass(frozen=True, eq=False)
class PublicState:
    """What is public before a release.

    Attributes:
        problem: with the belief at this moment as its prior.
        last: the position of the last answer; None before the first.
        accounts: what is counted, and
        spent: what was spent, in the same order.
        mechanism: gives the mechanism for an ε: the fixed one, or one designed against the belief.
        start: the same, designed against the belief before the first release.
    """

    problem: Problem
    last: int | None
    accounts: tuple[Account, ...]
    spent: tuple[Spent, ...]
    mechanism: Callable[[Decimal | None], Mechanism]
    start: Callable[[Decimal | None], Mechanism]


@dataclass(frozen=True, eq=False)
class Choice:
    """What will be done with a secret nobody has looked at yet.

    Attributes:
        mechanism: what answers.
        epsilon: what it was designed for; None: whatever it has.
        test: with answers keep and renew, asked first; on keep the answer is ``kept``. None: no test.
        test_epsilon: what it was designed for.
        kept: the position of the answer to keep.
        memo: the key with which answers are drawn once for each secret; None: drawn afresh.
    """

    mechanism: Mechanism
    epsilon: Decimal | None
    test: Mechanism | None = None
    test_epsilon: Decimal = NOTHING
    kept: int | None = None
    memo: bytes | None = field(default=None, repr=False)  # messages and logs are no place for a key

    @property
    def channel(self) -> FloatArray:
        """All that can come out, (secrets, outcomes): what is kept first where there is a test, then each answer."""
        if self.test is None:
            return self.mechanism.probabilities
        keep, renew = self.test.probabilities[:, [KEEP]], self.test.probabilities[:, [RENEW]]
        return np.hstack([keep, renew * self.mechanism.probabilities])


class Policy(ABC):
    """How releases are chosen; :meth:`choose` sees only what is public."""

    counts: ClassVar[Literal["releases", "places"]] = "releases"
    """What a ledger of this policy counts: ε for each release, or for each distinct place once."""

    asks_for: Decimal | None = None
    """The ε of a release's mechanism, where that is always the same."""

    promises: ClassVar[bool] = True
    """Whether all that an observer sees of a release comes from the one mechanism that is designed for it."""

    shares: ClassVar[bool] = False
    """Whether a release's ε is worked out anew each time."""

    @abstractmethod
    def choose(self, now: PublicState) -> Choice | None:
        """What to do; None where the budget is spent."""


class Fixed(Policy):
    """Every release with the same ε.

    Args:
        epsilon: how much; None where a fixed mechanism has it.
    """

    def __init__(self, epsilon: float | None = None) -> None:
        self.asks_for = None if epsilon is None else amount(epsilon, "epsilon")

    def choose(self, now: PublicState) -> Choice | None:
        """One mechanism."""
        if self.asks_for is not None and not affordable(now, self.asks_for):
            return None
        return Choice(now.mechanism(self.asks_for), self.asks_for)


class EvenSpread(Policy):
    """The budget spread evenly over the releases expected.

    Each release gets what is left divided by the releases still to come, in the whole or in the budget's window.

    Args:
        releases: how many are expected, in all or in every window.
    """

    shares = True

    def __init__(self, releases: int) -> None:
        if not is_integer(releases):
            raise InvalidProblem(f"releases is {repr(releases)[:40]}; it must be a whole number, 1 or more")
        self.releases = int(releases)

    def choose(self, now: PublicState) -> Choice | None:
        """One mechanism, with its share."""
        shares = []
        for account, spent in zip(now.accounts, now.spent, strict=True):
            left = left_in(account, spent)
            if account.own and left is not None:
                to_come = self.releases - spent.releases
                shares.append(SHORT.divide(left, Decimal(to_come)) if to_come > 0 else NOTHING)
        if not shares:
            raise InvalidProblem("an even spread needs a budget in the problem's distinguishability to spread")
        share = min(shares)
        return Choice(now.mechanism(share), share) if share > 0 else None


class Predictive(Policy):
    """Predict, test the prediction privately, and draw a new answer only where it failed.

    The scheme of Chatzikokolakis, Palamidessi and Stronati (2014). The test is a certified mechanism with two answers.

    Args:
        epsilon: of a new answer; None where a fixed mechanism has it.
        test: the test's ε, charged whether or not it passes.
        within: how far off a prediction may be: in the distinguishability where answers are secrets, else its cost.
        prediction: the ``"last"`` answer, or what costs least under the ``"belief"``.
    """

    promises = False

    def __init__(
        self, epsilon: float | None = None, *, test: float, within: float, prediction: Prediction = "last"
    ) -> None:
        self.asks_for = None if epsilon is None else amount(epsilon, "epsilon")
        self.test_epsilon = amount(test, "test")
        if not (is_number(within) and 0 <= within < np.inf):
            raise InvalidProblem(Field("within"), f" is {repr(within)[:40]}; it must be a number, 0 or more")
        require_choice(prediction, get_args(Prediction), "prediction")
        self.within, self.prediction = float(within), prediction
        self._tests: dict[int, tuple[Problem, Mechanism]] = {}

    def choose(self, now: PublicState) -> Choice | None:
        """A test and a mechanism; where there is nothing to predict from, the mechanism alone."""
        kept = now.last if self.prediction == "last" else blind_answer(now.problem)
        tested = NOTHING if kept is None else self.test_epsilon
        if not affordable(now, total([self.asks_for or NOTHING, tested])):
            return None
        mechanism = now.mechanism(self.asks_for)
        if kept is None:
            return Choice(mechanism, self.asks_for)
        return Choice(mechanism, self.asks_for, self._test(now.problem, kept), self.test_epsilon, kept)

    def _test(self, problem: Problem, kept: int) -> Mechanism:
        """Certified once for each prediction: its ratios depend on what separates secrets, not on the belief."""
        known = self._tests.get(kept)
        if known is None or not _separates_alike(known[0], problem):
            known = problem, keep_or_renew(problem, kept, at_most(self.test_epsilon), self.within)
            self._tests[kept] = known
        return known[1]


class Memoised(Policy):
    """The same answer whenever the secret is the same: what comes back to one place cannot be averaged.

    An observer sees *that* somebody came back: the ledger then counts places, not releases. Epsilon is charged for each
    distinct place, once in all and once in every window, and says nothing about returns (docs/theory/sharing.md: what
    that protects and what not).

    Args:
        key: at least 16 random bytes that only the user has; whoever has them and the answers can look up the places.
        epsilon: how much; None where a fixed mechanism has it.
    """

    counts = "places"
    promises = False

    def __init__(self, key: bytes, epsilon: float | None = None) -> None:
        if not isinstance(key, bytes) or len(key) < LEAST_KEY:
            raise InvalidProblem(f"a memoised policy's key must be at least {LEAST_KEY} random bytes")
        self.asks_for = None if epsilon is None else amount(epsilon, "epsilon")
        self._key = key

    def choose(self, now: PublicState) -> Choice | None:
        """Always the mechanism designed for the start: another one would be another function."""
        return Choice(now.start(self.asks_for), self.asks_for, memo=self._key)

    def __repr__(self) -> str:
        return f"Memoised(epsilon={self.asks_for})"


def keep_or_renew(problem: Problem, kept: int, epsilon: float, within: float) -> Mechanism:
    """The test of a prediction: P(keep|x) = P(Laplace(1/ε) ≥ g(x) − within), as certified integers.

    Args:
        problem: secrets and what separates them.
        kept: the position of the predicted answer.
        epsilon: what the test promises.
        within: the threshold on g, how far off the prediction is.
    """
    answers_are_secrets = problem.observables == problem.space
    off = problem.distinguishability[:, kept] if answers_are_secrets else problem.cost[kept]
    beyond = epsilon * (off - within)
    with np.errstate(over="ignore"):
        keep = np.where(beyond > 0, np.exp(-np.abs(beyond)) / 2, 1 - np.exp(-np.abs(beyond)) / 2)
    wrong = np.stack([off > within, off <= within]).astype(np.float64)
    asked = Problem(problem.prior, wrong, problem.distance, problem.distinguishability, Categories(["keep", "renew"]))
    table = np.stack([keep, 1 - keep], axis=1)
    return certify(asked, Bounds(epsilon=epsilon), table, origin="noisy threshold")


def _separates_alike(one: Problem, other: Problem) -> bool:
    """Whether two problems, whatever is believed in them, have the same tests of predictions."""
    return (
        (one.space, one.observables) == (other.space, other.observables)
        and np.array_equal(one.distinguishability, other.distinguishability)
        and np.array_equal(one.cost, other.cost)
    )


def blind_answer(problem: Problem) -> int:
    """The answer that costs least on average under the belief: it looks at no secret."""
    return int((problem.cost @ problem.prior.probabilities).argmin())


def affordable(now: PublicState, epsilon: Decimal) -> bool:
    """Whether every account in the problem's own distinguishability has so much left."""
    left = [left_in(account, spent) for account, spent in zip(now.accounts, now.spent, strict=True) if account.own]
    return all(each is None or epsilon <= each for each in left)

"""Policies: how each release is chosen, and what it is charged, from public information alone.

Why these charges suffice is proved in docs/theory/sharing.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, freeze
from privacygames.beliefs import PointPrior
from privacygames.certificates import Provenance
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.points import Mesh, PointMechanism, PointProblem, certify_points
from privacygames.problem import Bounds, Problem
from privacygames.releases.budgets import Account, Spent, remaining
from privacygames.releases.decimal_epsilon import NOTHING, exact_amount, float_rounded_down, total
from privacygames.spaces import Categories, Interval
from privacygames.validation import is_integer, is_number, require_choice
from privacygames.version import VERSION

__all__ = ["BudgetPolicy", "EvenSpread", "Fixed", "FrequentPlaces", "Memoised", "Policy", "Predictive"]

Prediction = Literal["last", "belief"]
Elsewhere = Literal["repeat", "draw"]
"""What is released away from all frequent places: the last output again, or an independent draw that is charged."""

KEEP, RENEW = 0, 1
"""The indices of the two outputs of a prediction test."""

TEST_STEP = 0.02
"""Distance of the control points of a test between points, in units of 1/ε: it costs one per cent of ε."""

TEST_REACH = 20.0
"""Where a test between points is constant, in units of 1/ε from its threshold: one outcome in 10⁹ is then the other."""

TEST_BITS, TEST_SLACK = 62, 1e-6
"""Weights of a test between points sum to 2^62; the share of ε that rounding to them, and the verifier's, may use."""

ROUND_DOWN = Context(prec=12, rounding=ROUND_FLOOR)
"""Shares of a budget are rounded down to 12 digits, so that equal shares stay equal and need only one design."""

MIN_KEY_BYTES = 16
"""Length of a memoisation key: 128 bits cannot be guessed."""


@dataclass(frozen=True, eq=False)
class PublicState:
    """The public information before a release.

    Attributes:
        problem: the problem, with the belief at this time as its prior.
        last_output: the index of the last output; None before the first.
        accounts: the accounts that releases are charged to.
        spent: what counts against each of them, in the same order.
        mechanism_for: the mechanism for an ε: the fixed one, or one designed against the present belief.
        initial_mechanism_for: the same, designed against the belief before the first release.

    >>> [field for field in pg.policies.PublicState.__dataclass_fields__][:3]
    ['problem', 'last_output', 'accounts']
    """

    problem: Problem
    last_output: int | None
    accounts: tuple[Account, ...]
    spent: tuple[Spent, ...]
    mechanism_for: Callable[[Decimal | None], Mechanism]
    initial_mechanism_for: Callable[[Decimal | None], Mechanism]


@dataclass(frozen=True, eq=False)
class Choice:
    """How the next output will be drawn, decided before the secret is read.

    Attributes:
        mechanism: the mechanism that the output is drawn from.
        epsilon: the ε it was designed for; None: whatever its certificate says.
        test: a mechanism with the outputs keep and renew, run first; on keep the output is ``prediction``. None: no
            test.
        test_epsilon: the ε of the test.
        prediction: the index of the output to keep.
        memo_key: the key with which outputs are drawn once for each secret; None: each output is drawn independently.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold"])))
    >>> pg.policies.Choice(pg.baselines.randomised_response(problem, 1.0), epsilon=None).channel.shape
    (2, 2)
    """

    mechanism: Mechanism
    epsilon: Decimal | None
    test: Mechanism | None = None
    test_epsilon: Decimal = NOTHING
    prediction: int | None = None
    memo_key: bytes | None = field(default=None, repr=False)  # a key must not appear in messages or logs

    @property
    def channel(self) -> FloatArray:
        """The probability of each outcome for each secret; the first outcome is a passed test, if there is one."""
        if self.test is None:
            return self.mechanism.probabilities
        keep, renew = self.test.probabilities[:, [KEEP]], self.test.probabilities[:, [RENEW]]
        return np.hstack([keep, renew * self.mechanism.probabilities])


class Policy(ABC):
    """How releases are chosen. A subclass defines :meth:`choose`, which sees public information only.

    >>> class HalfTheRest(pg.policies.Policy):
    ...     varies_epsilon = True
    ...     def choose(self, public_state):
    ...         epsilon = (public_state.accounts[0].limit - public_state.spent[0].amount) / 2
    ...         return pg.policies.Choice(public_state.mechanism_for(epsilon), epsilon)
    >>> ages = pg.Numbers([20, 30, 40])
    >>> problem = pg.Problem(pg.Prior.uniform(ages))
    >>> unrelated = pg.Mobility(ages, np.full((3, 3), 1 / 3))  # each secret is independent of the last
    >>> releases = pg.Releases(problem, unrelated, policy=HalfTheRest(), budget=0.4)
    >>> [releases.release(30).epsilon for _ in range(3)]
    [0.2, 0.1, 0.05]
    """

    charging: ClassVar[Literal["releases", "places"]] = "releases"
    """Whether every release is charged (``"releases"``), or every distinct secret once (``"places"``)."""

    epsilon: Decimal | None = None
    """The ε of every release's mechanism; None if it varies, or a fixed mechanism determines it."""

    guarantees_distortion: ClassVar[bool] = True
    """Whether everything an observer sees of a release comes from the one mechanism that is designed for it."""

    varies_epsilon: ClassVar[bool] = False
    """Whether ε is computed anew for each release."""

    @abstractmethod
    def choose(self, public_state: PublicState) -> Choice | None:
        """How to draw the next output; None if the budget is spent."""


class BudgetPolicy(Policy):
    """Policies that choose ε from the balances alone. They need no belief, so they work for secrets that are points.

    A subclass defines :meth:`next_epsilon`.

    >>> class HalfTheRest(pg.policies.BudgetPolicy):
    ...     varies_epsilon = True
    ...     def next_epsilon(self, accounts, spent):
    ...         return (accounts[0].limit - spent[0].amount) / 2
    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> releases = pg.PointReleases(problem, policy=HalfTheRest(), budget=2.0)
    >>> [releases.release(1.2).epsilon for _ in range(2)]
    [1.0, 0.5]
    """

    @abstractmethod
    def next_epsilon(self, accounts: tuple[Account, ...], spent: tuple[Spent, ...]) -> Decimal | None:
        """ε of the next release; 0 if the budget is spent, None if a fixed mechanism determines it.

        Args:
            accounts: the accounts that releases are charged to.
            spent: what counts against each of them, in the same order.
        """

    def choose(self, public_state: PublicState) -> Choice | None:
        """One mechanism with this ε."""
        epsilon = self.next_epsilon(public_state.accounts, public_state.spent)
        return None if epsilon == 0 else Choice(public_state.mechanism_for(epsilon), epsilon)


class Fixed(BudgetPolicy):
    """The same ε for every release.

    Args:
        epsilon: how much; None if a fixed mechanism determines it.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> problem, still = pg.Problem(pg.Prior.uniform(ages)), pg.Mobility.still(ages)
    >>> releases = pg.Releases(problem, still, policy=pg.policies.Fixed(0.1), budget=1.0)
    >>> releases.release(30).left
    0.9
    """

    def __init__(self, epsilon: float | None = None) -> None:
        self.epsilon = None if epsilon is None else exact_amount(epsilon, "epsilon")

    def next_epsilon(self, accounts: tuple[Account, ...], spent: tuple[Spent, ...]) -> Decimal | None:
        """The same ε, while the budgets have room for it."""
        if self.epsilon is not None and not affordable(accounts, spent, self.epsilon):
            return NOTHING
        return self.epsilon


class EvenSpread(BudgetPolicy):
    """The budget spread evenly over an expected number of releases.

    Each release gets what is left, divided by the number of releases still expected, in all or in the budget's window.

    Args:
        releases: how many are expected, in all or in every window.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> problem = pg.Problem(pg.Prior.uniform(ages))
    >>> unrelated = pg.Mobility(ages, np.full((3, 3), 1 / 3))  # each secret is independent of the last
    >>> releases = pg.Releases(problem, unrelated, policy=pg.policies.EvenSpread(4), budget=1.0)
    >>> [releases.release(30).epsilon for _ in range(4)]
    [0.25, 0.25, 0.25, 0.25]
    """

    varies_epsilon = True

    def __init__(self, releases: int) -> None:
        if not is_integer(releases):
            raise InvalidProblem(f"releases is {repr(releases)[:40]}; it must be a whole number, 1 or more")
        self.releases = int(releases)

    def next_epsilon(self, accounts: tuple[Account, ...], spent: tuple[Spent, ...]) -> Decimal | None:
        """An even share of what is left."""
        shares = []
        for account, charged in zip(accounts, spent, strict=True):
            left = remaining(account, charged)
            if account.in_problem_distance and left is not None:
                expected = self.releases - charged.releases
                shares.append(ROUND_DOWN.divide(left, Decimal(expected)) if expected > 0 else NOTHING)
        if not shares:
            raise InvalidProblem(
                "an even spread needs a budget of epsilon in the problem's distinguishability to spread"
            )
        return max(min(shares), NOTHING)


class Predictive(Policy):
    """A prediction that is tested privately, and a new output only if the test fails.

    The predictive mechanism of Chatzikokolakis, Palamidessi and Stronati (2014). The test is a certified mechanism with
    two outputs. Between points, too, where the prediction is the last output: the test sees the point's distance from
    it only.

    Args:
        epsilon: of a new output; None if a fixed mechanism determines it.
        test: the ε of the test, charged whether or not it passes.
        within: threshold on the error of the prediction: its distinguishability from the secret if outputs are secrets,
            else its cost.
        prediction: the ``"last"`` output, or the one of least expected cost under the ``"belief"``.

    >>> city = pg.Grid(5, 1, 5.0, 1.0)
    >>> problem, still = pg.Problem(pg.Prior.uniform(city)), pg.Mobility.still(city)
    >>> policy = pg.policies.Predictive(3.0, test=4.0, within=1.5)
    >>> releases = pg.Releases(problem, still, policy=policy, generator=np.random.default_rng(1))
    >>> [releases.release("cell-2").source for _ in range(3)]
    ['drawn', 'kept', 'kept']
    """

    guarantees_distortion = False

    def __init__(
        self, epsilon: float | None = None, *, test: float, within: float, prediction: Prediction = "last"
    ) -> None:
        self.epsilon = None if epsilon is None else exact_amount(epsilon, "epsilon")
        self.test_epsilon = exact_amount(test, "test")
        if not (is_number(within) and 0 <= within < np.inf):
            raise InvalidProblem(Field("within"), f" is {repr(within)[:40]}; it must be a number, 0 or more")
        require_choice(prediction, get_args(Prediction), "prediction")
        self.within, self.prediction = float(within), prediction
        self._tests: dict[int, tuple[Problem, Mechanism]] = {}
        self._distance_test: PointMechanism | None = None

    def choose(self, public_state: PublicState) -> Choice | None:
        """A test and a mechanism; without anything to predict from, the mechanism alone."""
        prediction = public_state.last_output if self.prediction == "last" else best_blind_output(public_state.problem)
        tested = NOTHING if prediction is None else self.test_epsilon
        if not affordable(public_state.accounts, public_state.spent, total([self.epsilon or NOTHING, tested])):
            return None
        mechanism = public_state.mechanism_for(self.epsilon)
        if prediction is None:
            return Choice(mechanism, self.epsilon)
        test = self._test(public_state.problem, prediction)
        return Choice(mechanism, self.epsilon, test, self.test_epsilon, prediction)

    @property
    def distance_test(self) -> PointMechanism:
        """The test between points, a function of the distance from the prediction; certified once."""
        if self._distance_test is None:
            self._distance_test = distance_test(float_rounded_down(self.test_epsilon), self.within)
        return self._distance_test

    def _test(self, problem: Problem, prediction: int) -> Mechanism:
        """The test of a prediction, certified once: it depends on distances and costs, not on the belief."""
        known = self._tests.get(prediction)
        if known is None or not _same_measures(known[0], problem):
            known = problem, prediction_test(problem, prediction, float_rounded_down(self.test_epsilon), self.within)
            self._tests[prediction] = known
        return known[1]


class Memoised(Policy):
    """The same output whenever the secret is the same, so that repeated outputs cannot be averaged.

    An observer sees *that* the user returned. Distinct secrets are therefore charged instead of releases: ε is charged
    once for each, in all and in every window, and says nothing about returns (docs/theory/sharing.md).

    Two fixes of one place never have the same coordinates. Between points, ``place`` therefore says how large a place
    is: each point is moved to the centre of its cell first. What is guaranteed is then about these centres: distances
    between two points count up to one diagonal of a cell more than they are.

    Args:
        key: at least 16 random bytes that only the user has; whoever has it can look up the secrets of outputs.
        epsilon: how much; None if a fixed mechanism determines it.
        place: for points: the side of the square cells that count as one place, in the unit of distances.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> problem, still = pg.Problem(pg.Prior.uniform(ages)), pg.Mobility.still(ages)
    >>> releases = pg.Releases(problem, still, policy=pg.policies.Memoised(b"0123456789abcdef", 0.1))
    >>> first, second = releases.release(30), releases.release(30)
    >>> first.observable == second.observable, second.epsilon
    (True, 0.0)
    """

    charging = "places"
    guarantees_distortion = False

    def __init__(self, key: bytes, epsilon: float | None = None, *, place: float | None = None) -> None:
        _require_memo_key(key)
        if place is not None and not (is_number(place) and 0 < place < np.inf):
            raise InvalidProblem(Field("place"), " must be a positive number, in the unit of distances")
        self.epsilon = None if epsilon is None else exact_amount(epsilon, "epsilon")
        self.place = None if place is None else float(place)
        self._key = key

    @property
    def memo_key(self) -> bytes:
        """The key, which must not appear in messages or logs."""
        return self._key

    def choose(self, public_state: PublicState) -> Choice | None:
        """Always the mechanism designed for the initial belief: another one would be another function."""
        return Choice(public_state.initial_mechanism_for(self.epsilon), self.epsilon, memo_key=self._key)

    def __repr__(self) -> str:
        return f"Memoised(epsilon={self.epsilon}{'' if self.place is None else f', place={self.place:g}'})"


class FrequentPlaces(Policy):
    """One output for home, one for work, and one for every other place that the user returns to; for points only.

    Wherever the user is within ``radius`` of a place, the place's output is released. It is drawn once, at the place's
    own coordinates, so that fixes a few metres apart are no fresh draws, no border of a cell divides a place, and any
    number of releases reveals one draw for each place, the pattern of visits, and nothing else (docs/theory/weeks.md).
    Away from all places the last output is repeated: nobody sees the user leave, only arrive at another place.

    Outputs follow from the key and a place's coordinates: more places can be added, and no output changes.

    Args:
        key: at least 16 random bytes that only the user has; whoever has it can look up the places of outputs.
        places: the places in the region's coordinates: pairs, or numbers on an interval.
        radius: how far from a place the user counts as being at it, in the unit of distances.
        epsilon: of the one draw for each place; None if a fixed mechanism determines it.
        elsewhere: ``"repeat"`` the last output, or ``"draw"`` an independent one, which is charged ε every time.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> policy = pg.policies.FrequentPlaces(b"0123456789abcdef", [(0.5, 0.5), (1.5, 1.2)], radius=0.1, epsilon=0.5)
    >>> releases = pg.PointReleases(problem, policy=policy)
    >>> night, morning = releases.release((0.51, 0.48)), releases.release((0.49, 0.52))
    >>> on_the_way, work = releases.release((0.9, 0.9)), releases.release((1.5, 1.2))
    >>> [each.epsilon for each in (night, morning, on_the_way, work)]
    [0.5, 0.0, 0.0, 0.5]
    """

    charging = "places"
    guarantees_distortion = False

    def __init__(
        self,
        key: bytes,
        places: ArrayLike,
        *,
        radius: float,
        epsilon: float | None = None,
        elsewhere: Elsewhere = "repeat",
    ) -> None:
        _require_memo_key(key)
        if not (is_number(radius) and 0 < radius < np.inf):
            raise InvalidProblem(Field("radius"), " must be a positive number, in the unit of distances")
        require_choice(elsewhere, get_args(Elsewhere), "elsewhere")
        points = as_floats(places, "the places")
        if points.ndim not in (1, 2) or len(points) == 0:
            raise InvalidProblem("give at least one place, each as a pair of coordinates, or a number on an interval")
        self.epsilon = None if epsilon is None else exact_amount(epsilon, "epsilon")
        self.radius, self.elsewhere = float(radius), elsewhere
        self._key, self._places = key, freeze(points)

    @property
    def memo_key(self) -> bytes:
        """The key, which must not appear in messages or logs."""
        return self._key

    @property
    def places(self) -> FloatArray:
        """The places, which must not appear in messages or logs."""
        return self._places

    def choose(self, public_state: PublicState) -> Choice | None:  # noqa: ARG002 - of the base class
        """Refused: places are points, and finitely many secrets are all memoised by :class:`Memoised`."""
        raise InvalidProblem("frequent places are for points: use PointReleases; or Memoised for cells and labels")

    def __repr__(self) -> str:
        return f"FrequentPlaces({len(self._places)} places, radius={self.radius:g}, epsilon={self.epsilon})"


def prediction_test(problem: Problem, prediction: int, epsilon: float, within: float) -> Mechanism:
    """The test of a prediction: P(keep|x) = P(Laplace(1/ε) ≥ g(x) − within), as certified integers.

    Args:
        problem: secrets and their distances.
        prediction: the index of the predicted output.
        epsilon: of the test.
        within: the threshold on g, the error of the prediction.
    """
    outputs_are_secrets = problem.observables == problem.space
    error = problem.distinguishability[:, prediction] if outputs_are_secrets else problem.cost[prediction]
    beyond = epsilon * (error - within)
    with np.errstate(over="ignore"):
        keep = np.where(beyond > 0, np.exp(-np.abs(beyond)) / 2, 1 - np.exp(-np.abs(beyond)) / 2)
    wrong = np.stack([error > within, error <= within]).astype(np.float64)
    statement = Problem(
        problem.prior, wrong, problem.distance, problem.distinguishability, Categories(["keep", "renew"])
    )
    probabilities = np.stack([keep, 1 - keep], axis=1)
    return certify(statement, Bounds(epsilon=epsilon), probabilities, origin="noisy threshold")


def distance_test(epsilon: float, within: float) -> PointMechanism:
    """The test of a prediction between points, as a mechanism for the distance from it; output 0 keeps it.

    A distance from a given point changes by at most as much as the point, so what is certified between any two
    distances holds between any two points. Distances are moved into the interval where the test is not constant.

    Args:
        epsilon: of the test, per unit of distance.
        within: the threshold on the distance.
    """
    slower = np.log1p(TEST_STEP) / TEST_STEP * (1 - TEST_SLACK) * epsilon  # straight lines are steeper than it
    low, high = max(0.0, within - TEST_REACH / slower), within + TEST_REACH / slower
    interval = Interval(low, high)
    cells = int(np.ceil((high - low) * epsilon / TEST_STEP))
    beyond = slower * (np.linspace(low, high, cells + 1) - within)
    rare = np.ldexp(np.exp(-np.abs(beyond)), TEST_BITS - 1).astype(np.int64)  # of the less probable output
    keep = np.where(beyond > 0, rare, 2**TEST_BITS - rare)
    weights = np.stack([keep, 2**TEST_BITS - keep], axis=1)
    problem = PointProblem(PointPrior(interval, [low, high]), [low, high])
    return certify_points(
        problem,
        Bounds(epsilon=epsilon),
        Mesh(interval, cells, degree=1),
        weights,
        TEST_BITS,
        provenance=Provenance("noisy threshold", VERSION),
    )


def _require_memo_key(key: bytes) -> None:
    """Refuse a memoisation key that could be guessed."""
    if not isinstance(key, bytes) or len(key) < MIN_KEY_BYTES:
        raise InvalidProblem(f"a memoised policy's key must be at least {MIN_KEY_BYTES} random bytes")


def _same_measures(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same tests of predictions, whatever their beliefs."""
    return (
        (one.space, one.observables) == (other.space, other.observables)
        and np.array_equal(one.distinguishability, other.distinguishability)
        and np.array_equal(one.cost, other.cost)
    )


def best_blind_output(problem: Problem) -> int:
    """The index of the output of least expected cost under the belief, which does not depend on the secret."""
    return int((problem.cost @ problem.prior.probabilities).argmin())


def affordable(accounts: tuple[Account, ...], spent: tuple[Spent, ...], epsilon: Decimal) -> bool:
    """Whether every account in the problem's own distinguishability has this much left."""
    pairs = zip(accounts, spent, strict=True)
    left = [remaining(account, charged) for account, charged in pairs if account.in_problem_distance]
    return all(each is None or epsilon <= each for each in left)

"""What each policy shows of a trace of points, what it charges, and the likelihoods of what it shows.

All policies are replayed with noise of the same kind on the coordinates themselves, which without a plateau is planar
Laplace noise: drawn exactly, as the certified :class:`privacygames.points.PlateauMechanism` draws it. Its likelihoods,
and the tests of predictions, are computed in floating point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.baselines import PlateauNoise
from privacygames.points import LatticeNoise
from privacygames.policy_comparison.day_budget import DAY, DayAccount, DayBudget

Mask = NDArray[np.bool_]

TEST_SHARE, RENEW_SHARES = 0.5, 3.0
"""The test of a prediction gets half of an even share, a new output three: even spending if one test in six fails."""

LATTICE_STEP = Fraction(1, 2**20)
"""Step of the lattice of noise in km: a millimetre."""

PLACE_SIDE = 0.1
"""Side of the square cells that are one place to a memoised policy, in km: larger than the errors of fixes."""

PLACE_RADIUS = 0.2
"""How far from a frequent place a fix counts as being at it, in km: larger than the errors of fixes indoors."""

CLUSTER_RADIUS = 0.15
"""How near other fixes must be to count for one place, in km."""

SPOT = 0.01
"""Fixes are counted in spots of this size, in km: smaller than their errors."""

CLUSTER_FIXES = 4
"""Fixes that make a place."""

MOST_PLACES = 8
"""Most frequent places that have an output of their own: home, work, and a few others."""

HOME_RADIUS = 0.2
"""A home is found if a guess is as near, in km; the plateau of home's noise is made against it."""

NOTHING = -1
"""Of a moment without an output of a place of its own."""


@dataclass(frozen=True, eq=False)
class Fixes:
    """Fixes of one person, in the order of time.

    Attributes:
        xy: in km, (fixes, 2).
        cells: the index of the cell of each.
        times: unix seconds.
        local: seconds since a local midnight.
    """

    xy: FloatArray
    cells: IntArray
    times: FloatArray
    local: FloatArray

    @property
    def days(self) -> IntArray:
        """The local date of each fix, in days."""
        return np.asarray(self.local // DAY).astype(np.int64)

    def at(self, mask: Mask) -> "Fixes":
        """Some of the fixes."""
        return Fixes(self.xy[mask], self.cells[mask], self.times[mask], self.local[mask])


@dataclass(frozen=True)
class HomeTarget:
    """How well home is to be hidden.

    Attributes:
        chance: the largest chance of finding it within 200 m.
        sides: width and height in km of the map that the adversary knows it to be on.
    """

    chance: float
    sides: tuple[float, float]


@dataclass(eq=False)
class Shown:
    """What a policy showed at each moment of a trace.

    Attributes:
        xy: the position on show in km; nan before the first output.
        place: the memoised output on show, by number; −1: of no place.
        drawn: whether the position is a new draw of the noise, or the memoised one of a place.
        refused: whether the budget had no room.
        epsilon: ε per km that the release was charged, a memoised one at its first time only.
        charged: the charge to the day's budget.
        predicted: the prediction that was tested; nan without a test.
        passed: whether the prediction passed its test.
        noise: of the outputs.
        test: ε per km of the test, and its threshold in km.
    """

    xy: FloatArray
    place: IntArray
    drawn: Mask
    refused: Mask
    epsilon: FloatArray
    charged: FloatArray
    predicted: FloatArray
    passed: Mask
    noise: PlateauNoise
    test: tuple[float, float] = (0.0, 0.0)

    @property
    def memoised(self) -> bool:
        """Whether outputs belong to places, so that returns are seen."""
        return bool((self.place != NOTHING).any())

    @classmethod
    def nothing(cls, count: int, noise: PlateauNoise) -> "Shown":
        """Nothing yet."""
        false = np.zeros(count, dtype=bool)
        nowhere = np.full((count, 2), np.nan)
        return cls(
            nowhere,
            np.full(count, NOTHING),
            false,
            false.copy(),
            np.zeros(count),
            np.zeros(count),
            nowhere.copy(),
            false.copy(),
            noise,
        )

    def log_likelihoods(self, points: FloatArray, moments: IntArray) -> FloatArray:
        """The logarithms of the likelihood of what was shown, for the user at each point, (moments, points)."""
        logs = np.zeros((len(moments), len(points)))
        for row, at in enumerate(moments.tolist()):
            if self.drawn[at]:
                logs[row] += self.noise.log_density(np.linalg.norm(points - self.xy[at], axis=1))
            if not np.isnan(self.predicted[at, 0]):
                keep = keep_probability(np.linalg.norm(points - self.predicted[at], axis=1), *self.test)
                logs[row] += np.log(np.maximum(keep if self.passed[at] else 1 - keep, np.finfo(float).tiny))
        return logs


@dataclass(frozen=True)
class ReplayedPolicy:
    """A policy that is replayed.

    Attributes:
        name: by which rows are found.
        delta: whether its budget has a δ.
        memoised: whether an output belongs to a place, so that returns are seen.
        show: what it shows of fixes, given the earlier ones, a budget, and how well home is to be hidden.
        guarantee: what it promises, in words.
    """

    name: str
    delta: bool
    memoised: bool
    show: Callable[[Fixes, Fixes, DayBudget, HomeTarget, np.random.Generator], Shown]
    guarantee: str


def exact_draws(noise: PlateauNoise, count: int, generator: np.random.Generator) -> FloatArray:
    """Noise in km as :class:`privacygames.points.PlateauMechanism` draws it, before it is moved to outputs."""
    exact = LatticeNoise(Fraction(noise.epsilon), Fraction(noise.plateau), LATTICE_STEP)
    return np.asarray(exact.sample(count, generator) * float(LATTICE_STEP))


def keep_probability(distances: FloatArray, epsilon: float, within: float) -> FloatArray:
    """The probability that a prediction at these distances passes the test: P(Laplace(1/ε) ≥ distance − within)."""
    beyond = epsilon * (distances - within)
    half = np.exp(-np.abs(beyond)) / 2
    return np.asarray(np.where(beyond > 0, half, 1 - half))


def fresh(earlier: Fixes, fixes: Fixes, budget: DayBudget, _home: HomeTarget, generator: np.random.Generator) -> Shown:
    """Independent planar Laplace noise at every release."""
    epsilon, order = budget.even_share(_releases_a_day(earlier))
    shown = Shown.nothing(len(fixes.times), PlateauNoise(epsilon, 0.0))
    noise, charge = exact_draws(shown.noise, len(fixes.times), generator), budget.charge(epsilon, order)
    account = DayAccount(budget.limit(order))
    for at, time in enumerate(fixes.times.tolist()):
        if account.has_room(charge, time):
            account.add(charge, time)
            shown.xy[at], shown.drawn[at] = fixes.xy[at] + noise[at], True
            shown.epsilon[at], shown.charged[at] = epsilon, charge / account.limit
        else:
            _repeat(shown, at)
    return shown


def predictive(
    earlier: Fixes, fixes: Fixes, budget: DayBudget, _home: HomeTarget, generator: np.random.Generator
) -> Shown:
    """The last output while it passes a private test; otherwise a new one."""
    releases = _releases_a_day(earlier)
    share, order = budget.even_share(releases)
    test = TEST_SHARE * share
    epsilon = min(RENEW_SHARES, releases - TEST_SHARE) * share  # one test and one new output fit into any day
    shown = Shown.nothing(len(fixes.times), PlateauNoise(epsilon, 0.0))
    shown.test = test, 1 / share
    noise, passes = exact_draws(shown.noise, len(fixes.times), generator), generator.random(len(fixes.times))
    new, tested = budget.charge(epsilon, order), budget.charge(test, order)
    account = DayAccount(budget.limit(order))
    for at, time in enumerate(fixes.times.tolist()):
        last = shown.xy[at - 1] if at else np.full(2, np.nan)
        testing = not np.isnan(last[0])
        if not account.has_room(new + tested * testing, time):
            _repeat(shown, at)
            continue
        charge, spent = 0.0, 0.0
        if testing:
            shown.predicted[at], charge, spent = last, tested, test
            distance = np.linalg.norm(fixes.xy[[at]] - last, axis=1)
            shown.passed[at] = bool(passes[at] < keep_probability(distance, *shown.test)[0])
        if shown.passed[at]:
            shown.xy[at] = last
        else:
            shown.xy[at], shown.drawn[at] = fixes.xy[at] + noise[at], True
            charge, spent = charge + new, spent + epsilon
        account.add(charge, time)
        shown.epsilon[at], shown.charged[at] = spent, charge / account.limit
    return shown


def memoised(
    earlier: Fixes, fixes: Fixes, budget: DayBudget, _home: HomeTarget, generator: np.random.Generator
) -> Shown:
    """One draw for every cell of 100 m, at its centre."""
    epsilon = budget.epsilon / _mean_distinct(
        earlier.days, np.unique(_place_cells(earlier.xy), axis=0, return_inverse=True)[1].ravel()
    )
    cells = _place_cells(fixes.xy)
    centres, places = np.unique(cells, axis=0, return_inverse=True)
    noise = PlateauNoise(epsilon, 0.0)
    outputs = (centres + 0.5) * PLACE_SIDE + exact_draws(noise, len(centres), generator)
    return _one_draw_each(fixes, places.ravel(), np.asarray(outputs), noise, budget)


def frequent_places(
    earlier: Fixes, fixes: Fixes, budget: DayBudget, home: HomeTarget, generator: np.random.Generator
) -> Shown:
    """One draw for home, for work and for every other frequent place; away from them the last output again."""
    places = frequent_centres(earlier)
    epsilon = budget.epsilon / _mean_distinct(earlier.days, nearest_place(earlier.xy, places))
    noise = PlateauNoise.against_disks(epsilon, radius=HOME_RADIUS, probability=home.chance, sides=home.sides)
    outputs = places + exact_draws(noise, len(places), generator)
    return _one_draw_each(fixes, nearest_place(fixes.xy, places), outputs, noise, budget)


POLICIES: dict[str, ReplayedPolicy] = {
    each.name: each
    for each in (
        ReplayedPolicy(
            "fresh", delta=False, memoised=False, show=fresh, guarantee="any two days, by the day's ε per km"
        ),
        ReplayedPolicy(
            "fresh, with δ",
            delta=True,
            memoised=False,
            show=fresh,
            guarantee="days that differ by a stated distance at every release, except with probability δ",
        ),
        ReplayedPolicy(
            "predictive", delta=False, memoised=False, show=predictive, guarantee="any two days, by the day's ε per km"
        ),
        ReplayedPolicy(
            "predictive, with δ",
            delta=True,
            memoised=False,
            show=predictive,
            guarantee="days that differ by a stated distance at every release, except with probability δ",
        ),
        ReplayedPolicy(
            "memoised",
            delta=False,
            memoised=True,
            show=memoised,
            guarantee="where each cell of 100 m lies, by its share of the day's ε; returns are seen",
        ),
        ReplayedPolicy(
            "frequent places",
            delta=False,
            memoised=True,
            show=frequent_places,
            guarantee="where home lies, by one draw however many weeks; the pattern of visits is seen",
        ),
    )
}
"""All policies, by name. Memoised ones draw a few times a day, where a δ buys nothing."""


def frequent_centres(earlier: Fixes) -> FloatArray:
    """The places that a person returned to on another day, the most frequent first; at least one."""
    centres = dense_places(earlier.xy)
    visits = nearest_place(earlier.xy, centres) if len(centres) else np.zeros(0, dtype=np.int64)
    returned = [place for place in range(len(centres)) if len(np.unique(earlier.days[visits == place])) > 1]
    if returned:
        return np.asarray(centres[returned[:MOST_PLACES]])
    _, which, counts = np.unique(_place_cells(earlier.xy), axis=0, return_inverse=True, return_counts=True)
    return np.asarray(earlier.xy[which.ravel() == counts.argmax()].mean(axis=0))[None]


def dense_places(xy: FloatArray) -> FloatArray:
    """The centres of the places with most fixes, the largest first.

    The fix with most others near it, and these, are a place; then the rest is searched. Clusters of fixes in a chain
    (DBSCAN) would join home and work by the road that is taken every day.
    """
    from scipy.sparse import csr_array
    from scipy.spatial import cKDTree

    spots, counts = np.unique(np.round(xy / SPOT), axis=0, return_counts=True)
    spots, left = spots * SPOT, counts.astype(np.float64)
    centres: list[FloatArray] = []
    if len(spots) == 0:
        return np.zeros((0, 2))
    near = csr_array(cKDTree(spots).sparse_distance_matrix(cKDTree(spots), CLUSTER_RADIUS, output_type="coo_matrix"))
    near.data[:] = 1.0  # a spot is near itself, at distance 0
    while True:
        sizes = near @ left
        densest = int(sizes.argmax())
        if sizes[densest] < CLUSTER_FIXES:
            return np.array(centres) if centres else np.zeros((0, 2))
        weights = left * (np.linalg.norm(spots - spots[densest], axis=1) <= CLUSTER_RADIUS)
        centre = weights @ spots / weights.sum()
        centres.append(centre)
        left[(np.linalg.norm(spots - centre, axis=1) <= PLACE_RADIUS) | (weights > 0)] = 0.0


def nearest_place(xy: FloatArray, places: FloatArray) -> IntArray:
    """The number of the frequent place that each fix is at; −1: at none."""
    distances = np.linalg.norm(xy[:, None] - places, axis=2)
    return np.asarray(np.where(distances.min(axis=1) <= PLACE_RADIUS, distances.argmin(axis=1), NOTHING))


def _one_draw_each(
    fixes: Fixes, visits: IntArray, outputs: FloatArray, noise: PlateauNoise, budget: DayBudget
) -> Shown:
    """One draw for each place, charged when it is first shown, and in a window again once it left the window."""
    shown = Shown.nothing(len(visits), noise)
    charged_at = np.full(len(outputs), -inf)
    account = DayAccount(budget.epsilon)
    for at, (place, time) in enumerate(zip(visits.tolist(), fixes.times.tolist(), strict=True)):
        if place == NOTHING:
            _repeat(shown, at)
            shown.refused[at] = bool(np.isnan(shown.xy[at, 0]))  # nothing to repeat yet
            continue
        charge = 0.0 if charged_at[place] > time - DAY else noise.epsilon
        if not account.has_room(charge, time):
            _repeat(shown, at)
            continue
        if charge:
            account.add(charge, time)
            shown.epsilon[at] = noise.epsilon if charged_at[place] == -inf else 0.0
            shown.charged[at] = charge / account.limit
            charged_at[place] = time
        shown.xy[at], shown.place[at] = outputs[place], place
    shown.drawn = shown.place != NOTHING  # nobody sees whether an output is repeated
    return shown


def _repeat(shown: Shown, at: int) -> None:
    """The last output again."""
    shown.refused[at] = True
    if at:
        shown.xy[at], shown.place[at] = shown.xy[at - 1], shown.place[at - 1]


def _place_cells(xy: FloatArray) -> IntArray:
    return np.asarray(np.floor(xy / PLACE_SIDE)).astype(np.int64)


def _releases_a_day(earlier: Fixes) -> int:
    return ceil(len(earlier.times) / len(np.unique(earlier.days)))


def _mean_distinct(days: IntArray, places: IntArray) -> int:
    """The mean number of distinct places of a day, rounded up and at least one; −1 is no place."""
    numbers = [len(set(places[days == day].tolist()) - {NOTHING}) for day in np.unique(days)]
    return max(ceil(float(np.mean(numbers))), 1)

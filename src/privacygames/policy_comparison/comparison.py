"""``compare_policies``: what each policy costs and leaves on people's days, and which one to choose."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from math import exp, inf, sqrt
from time import monotonic
from typing import Any, Literal, get_args

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.display import Displayed, ShownTable
from privacygames.errors import Field, InvalidProblem
from privacygames.place_attacks import disk_bound
from privacygames.policy_comparison.day_budget import DayBudget
from privacygames.policy_comparison.people import MIN_DAYS, PersonDays, learn_days
from privacygames.policy_comparison.policy_attacks import PresentAttack, at_night, home_attacks, present_attacks
from privacygames.policy_comparison.replayed_policies import (
    HOME_RADIUS,
    PLACE_SIDE,
    POLICIES,
    Fixes,
    HomeTarget,
    ReplayedPolicy,
    Shown,
    dense_places,
)
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Area, Grid
from privacygames.time_zones import time_zone
from privacygames.traces import Visits
from privacygames.validation import as_list, is_integer, is_number, require_choice, require_instance

Matters = Literal["trips", "presence", "home"]
"""What is to be kept: where somebody went on a day; where they are now; or where they live."""

MATTERS: dict[str, str] = {
    "trips": "every release is charged to a day's budget, so that any two days are hard to tell apart",
    "presence": "the best attack names the present cell at most 10 percentage points more often than habits alone do, "
    "with a confidence of 99 %",
    "home": "no attack finds home within 200 m with more than the stated chance, however many weeks are shared",
}
"""What may matter, and when a policy keeps it."""

REPLAYED_NOISE = (
    "Noise was drawn exactly, as certified mechanisms for frequent places draw it, and not moved to outputs on the "
    "map; tests of predictions were drawn in floating point."
)
"""What was replayed, for every report of a comparison (docs/how-to/weeks.md)."""

PRESENCE_MARGIN = 0.1
"""How much more often than habits alone the best attack may name the present cell."""

CONFIDENCE = 0.99
"""One-sided confidence of a verdict that rests on replays: what lies in between is undecided."""

HOME_CHANCE = 0.25
"""The largest chance of finding home within 200 m, by default: planar Laplace noise of 0.005/m leaves 26 %."""

NEAR_STAY = 0.25
"""A stay is recalled if a published one is as near, in km."""

AT_HOME = 0.15
"""How far from home a fix counts as being there, in km."""

HEADINGS = (
    *("policy", "metres off", "refused", "off now", "≤ 100 m", "≤ 200 m", "at most", "stays", "named"),
    *("budget left", "keeps"),
)
"""Of a table: homes found within 100 and 200 m, and at most; stays recalled; how often the present cell is named."""


@dataclass(frozen=True)
class PolicyRow:
    """What one policy costs and leaves: means over people and repetitions.

    Attributes:
        policy: its name.
        guarantee: what it promises, in words.
        cost: metres between the true position and the one on show.
        refused: share of moments for which the budget had no room; the last output stayed on show.
        error_now: metres by which the best attack on the present place errs.
        now_attack: that attack.
        presence_known: share of moments at which the best attack names the true cell.
        presence_low: a lower bound on it, if there were infinitely many repetitions, with a confidence of 99 %.
        presence_high: an upper bound likewise; without repetitions nothing is known but 0 and 1.
        home_100_m: share of homes found within 100 m by the best attack on home.
        home_200_m: likewise within 200 m.
        home_attack: that attack.
        home_bound: the largest chance of finding a home within 200 m that its guarantee allows, however many weeks are
            shared, for who knows the map and nothing else: a mean over homes everywhere on it; of the person with the
            largest.
        stays_recalled: share of the true stays with a published one within 250 m.
        budget_left: share of a day's budget that was left.
        keeps: what it keeps, of trips, presence and home.
        undecided: what the repetitions are too few to tell.

    >>> visits = pg.traces.synthetic(users=1, days=6)
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
    >>> comparison = pg.compare_policies(visits, city, 1, budget=20.0, repeats=1, generator=np.random.default_rng(0))
    >>> fresh = comparison.rows[0]
    >>> fresh.policy, "trips" in fresh.keeps, "home" in fresh.keeps
    ('fresh', True, False)
    """

    policy: str
    guarantee: str
    cost: float
    refused: float
    error_now: float
    now_attack: str
    presence_known: float
    presence_low: float
    presence_high: float
    home_100_m: float | None
    home_200_m: float | None
    home_attack: str
    home_bound: float
    stays_recalled: float | None
    budget_left: float
    keeps: tuple[str, ...]
    undecided: tuple[str, ...]

    @property
    def verdicts(self) -> str:
        """What it keeps and what is undecided, in words.

        >>> visits = pg.traces.synthetic(users=1, days=6)
        >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
        >>> comparison = pg.compare_policies(visits, city, 1, budget=20.0, repeats=1)
        >>> comparison.row("fresh").verdicts  # one repetition tells nothing about another one
        'trips; presence undecided'
        """
        kept = ", ".join(self.keeps) or "nothing"
        return f"{kept}; {' and '.join(self.undecided)} undecided" if self.undecided else kept


@dataclass(frozen=True)
class PolicyComparison(Displayed):
    """All policies on the same days at the same budget; no positions and no names of people.

    Attributes:
        rows: one for each policy.
        matters: what the recommendation is to keep.
        people: number of people.
        days: number of days that were shared, of all people together.
        requests: number of moments that were shared, of all together.
        repeats: number of repetitions with other random draws.
        budget: ε per km in every 24 hours.
        delta: of the budgets with a δ.
        within: their distance in km.
        home_chance: the largest chance of finding home that counts as keeping it.
        habits_error: metres by which the best guess without any output errs.
        habits_known: share of moments at which it names the true cell.

    >>> visits = pg.traces.synthetic(users=1, days=6)
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
    >>> comparison = pg.compare_policies(visits, city, 1, budget=20.0, repeats=1, generator=np.random.default_rng(0))
    >>> comparison.recommended, [row.policy for row in comparison.rows][-2:]
    ('frequent places', ['memoised', 'frequent places'])
    """

    rows: tuple[PolicyRow, ...]
    matters: Matters
    people: int
    days: int
    requests: int
    repeats: int
    budget: float
    delta: float
    within: float
    home_chance: float
    habits_error: float
    habits_known: float

    @property
    def recommended(self) -> str | None:
        """The name of the cheapest policy that keeps what matters; None if none does."""
        keeping = [row for row in self.rows if self.matters in row.keeps]
        return min(keeping, key=lambda row: row.cost).policy if keeping else None

    @property
    def reason(self) -> str:
        """The rule, and what follows from it, in a sentence or two."""
        rule = MATTERS[self.matters].replace("the stated chance", f"a chance of {self.home_chance:.0%}")
        rule = f"The cheapest policy that keeps {self.matters}: {rule}."
        doubt = self._doubt
        if self.recommended is None:
            none = "None of these is known to" if doubt else "None of these does"
            return f"{rule} {none}: lower the budget, or share less often.{doubt}"
        row = self.row(self.recommended)
        given_up = [other for other in MATTERS if other not in (*row.keeps, *row.undecided)]
        rest = f" It does not keep {' or '.join(given_up)}." if given_up else ""
        return f"{rule} Here it is {row.policy!r}, {row.cost:.0f} m off on average.{rest}{doubt}"

    @property
    def _doubt(self) -> str:
        """A sentence on cheaper policies of which the repetitions do not tell whether they keep what matters."""
        least = inf if self.recommended is None else self.row(self.recommended).cost
        names = [row.policy for row in self.rows if self.matters in row.undecided and row.cost < least]
        if not names:
            return ""
        listed = " and ".join(map(repr, names))
        many = "one repetition" if self.repeats == 1 else f"{self.repeats} repetitions"
        return f" Undecided after {many}, and cheaper if it is kept: {listed}."

    def row(self, policy: str) -> PolicyRow:
        """The row of a policy.

        Args:
            policy: its name.
        """
        require_choice(policy, tuple(row.policy for row in self.rows), "a policy")
        return next(row for row in self.rows if row.policy == policy)

    def when(self, matters: Matters) -> "PolicyComparison":
        """The same rows, with the recommendation for something else that matters.

        Args:
            matters: ``"trips"``, ``"presence"`` or ``"home"``.
        """
        require_choice(matters, get_args(Matters), "matters")
        return replace(self, matters=matters)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: without positions, times and names."""
        return {**asdict(self), "recommended": self.recommended, "reason": self.reason, "replayed": REPLAYED_NOISE}

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of :meth:`cells`."""
        return HEADINGS

    def cells(self) -> list[tuple[str, ...]]:
        """The rows as texts, in the order of :attr:`headings`."""
        return [
            (
                *(row.policy, f"{row.cost:.0f} m", _percent(row.refused), f"{row.error_now:.0f} m"),
                *(_percent(row.home_100_m), _percent(row.home_200_m), _percent(row.home_bound)),
                *(_percent(row.stays_recalled), _presence_text(row), _percent(row.budget_left)),
                row.verdicts,
            )
            for row in self.rows
        ]

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("What policies for weeks of sharing cost and leave", self.headings, self.cells(), texts=(10,))

    def _records(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        table = [self.headings, *self.cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        habits = f"Without any output: {self.habits_error:.0f} m off, place now {_percent(self.habits_known)}."
        return "\n".join([*lines, habits, REPLAYED_NOISE, self.reason])


@dataclass(frozen=True, eq=False)
class _Person:
    """A person's model, their fixes before and during the days that are shared, and the truth that attacks aim at."""

    model: PersonDays
    earlier: Fixes
    fixes: Fixes
    home: FloatArray | None
    stays: FloatArray


def compare_policies(
    visits: Visits,
    grid: Grid,
    users: int | Sequence[str] = 1,
    *,
    budget: float,
    matters: Matters = "home",
    delta: float = 1e-6,
    within: float = 1.0,
    home_chance: float = HOME_CHANCE,
    learn: float = 0.5,
    timezone: str = "UTC",
    repeats: int = 5,
    generator: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> PolicyComparison:
    """Which policy to share weeks with: each one replayed on people's days at one daily budget, attacked, and compared.

    Each person's later days are shared; the earlier ones say how many releases and places a day has, and are what the
    adversary of the present place knows. The recommendation is the cheapest policy that keeps what matters
    (docs/how-to/weeks.md). Policies are replayed with the noise of :class:`privacygames.points.PlateauMechanism` on the
    coordinates.

    Args:
        visits: in time slots; each visit is a moment to share.
        grid: the cells in which the adversary of the present place thinks; it lies over degrees.
        users: how many of those with most visits, or which by name.
        budget: ε per km in every 24 hours.
        matters: what the recommendation is to keep: ``"trips"``, ``"presence"`` or ``"home"``.
        delta: of the budgets with a δ; their ε between days that differ by at most ``within`` is budget · within.
        within: in km.
        home_chance: the largest chance of finding home within 200 m that counts as keeping it.
        learn: the share of a person's days that come first.
        timezone: of days and hours.
        repeats: number of repetitions with other random draws.
        generator: makes the comparison reproducible; by default the operating system's randomness.
        progress: called with a :class:`privacygames.Progress` after each replay; an exception from it ends them.

    >>> visits = pg.traces.synthetic(users=1, days=6)
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
    >>> comparison = pg.compare_policies(visits, city, 1, budget=20.0, repeats=1, generator=np.random.default_rng(0))
    >>> comparison.recommended, round(comparison.row("frequent places").home_bound, 6)
    ('frequent places', 0.25)
    """
    _check(budget=budget, delta=delta, within=within, home_chance=home_chance, repeats=repeats)
    require_choice(matters, get_args(Matters), "matters")
    if isinstance(users, str):
        raise InvalidProblem("users are a number of people, or a list of names")
    require_instance(visits, Visits, "visits")
    require_instance(grid, Grid, "the grid")
    names = visits.busiest(users, grid) if isinstance(users, int) else as_list(users, "users")
    people = _people(visits, grid, names, learn=learn, timezone=timezone)
    random = np.random.default_rng() if generator is None else generator
    area = _area(grid)
    centres = _centres(grid, area)
    home = HomeTarget(float(home_chance), (area.lengths[0], area.lengths[1]))
    if home.chance <= np.pi * HOME_RADIUS**2 / np.prod(home.sides):
        raise InvalidProblem(
            Field("home_chance"), " is no more than that of a blind guess on this map: take a larger map"
        )
    seeds = random.integers(2**63, size=(len(people), repeats)).tolist()  # the same draws for all policies
    jobs = [
        (person, policy, seed)
        for person, of_person in zip(people, seeds, strict=True)
        for policy in POLICIES.values()
        for seed in of_person
    ]
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in POLICIES}
    started, habits = monotonic(), [_habits(person, centres) for person in people]
    for done, (person, policy, seed) in enumerate(jobs, start=1):
        day = DayBudget(float(budget), float(delta) if policy.delta else None, float(within))
        shown = policy.show(person.earlier, person.fixes, day, home, np.random.default_rng(seed))
        measured[policy.name].append(_measured(person, policy, shown, home.sides, centres))
        if progress is not None:
            seconds, message = monotonic() - started, f"{done} of {len(jobs)} replays"
            progress(Progress(job="policies", done=done, total=len(jobs), seconds=seconds, message=message))
    habits_error, habits_known = (float(np.mean(each)) for each in zip(*habits, strict=True))
    return PolicyComparison(
        rows=tuple(
            _row(POLICIES[name], values, repeats=repeats, habits_known=habits_known, home_chance=float(home_chance))
            for name, values in measured.items()
        ),
        matters=matters,
        people=len(people),
        days=sum(len(np.unique(person.fixes.days)) for person in people),
        requests=sum(len(person.fixes.times) for person in people),
        repeats=repeats,
        budget=float(budget),
        delta=float(delta),
        within=float(within),
        home_chance=float(home_chance),
        habits_error=habits_error,
        habits_known=habits_known,
    )


def _check(**values: float) -> None:
    for name, value in values.items():
        if name == "repeats":
            if not is_integer(value):
                raise InvalidProblem(Field(name), " must be a whole number, 1 or more")
        elif not (is_number(value) and 0 < value < (1 if name in ("delta", "home_chance") else np.inf)):
            allowed = "lie between 0 and 1" if name in ("delta", "home_chance") else "be a positive number"
            raise InvalidProblem(Field(name), f" is {repr(value)[:40]}; it must {allowed}")


def _people(visits: Visits, grid: Grid, names: Sequence[str], *, learn: float, timezone: str) -> list[_Person]:
    """The people with days to learn from and to share, with the truth about each."""
    every = {name: _fixes(visits, grid, name, timezone) for name in names}
    lived = [name for name, fixes in every.items() if len(np.unique(fixes.days)) >= MIN_DAYS]
    people = []
    for name, model in zip(lived, learn_days(visits, grid, lived, learn=learn, timezone=timezone), strict=True):
        fixes = every[name]
        shared = fixes.times >= model.times[0]
        people.append(_Person(model, fixes.at(~shared), fixes.at(shared), _home(fixes), _stays(fixes.at(shared).xy)))
    return people


def _area(grid: Grid) -> Area:
    """The area that a grid over degrees divides."""
    if grid.box is None:
        raise InvalidProblem("visits are in degrees: build the grid with Grid.over((west, south, east, north), …)")
    return Area.over(grid.box)


def _fixes(visits: Visits, grid: Grid, name: str, timezone: str) -> Fixes:
    """All fixes of a person inside the grid."""
    if name not in visits.users:
        visits.counts(grid, name)  # raises as it does everywhere
    mask = visits.user == visits.users.index(name)
    points = np.stack([visits.longitude[mask], visits.latitude[mask]], axis=1)
    cells = grid.locate(points, outside="drop")
    inside = cells >= 0
    times = visits.time[mask][inside]
    xy = _area(grid).project(points[inside])
    zone = time_zone(timezone)
    offsets = [datetime.fromtimestamp(int(time), zone).utcoffset() or timedelta() for time in times]
    local = times + np.array([offset.total_seconds() for offset in offsets])
    return Fixes(xy, cells[inside], times.astype(np.float64), local)


def _home(fixes: Fixes) -> FloatArray | None:
    """The true home: the place with most fixes at night, or their median; None without any."""
    night = fixes.xy[at_night(fixes.local)]
    if len(night) == 0:
        return None
    places = dense_places(night)
    return np.asarray(places[0] if len(places) else np.median(night, axis=0))


def _stays(xy: FloatArray) -> FloatArray:
    """The places stayed at."""
    return dense_places(xy[~np.isnan(xy[:, 0])])


def _centres(grid: Grid, area: Area) -> FloatArray:
    """The centres of the cells in km, row by row from the south-west."""
    sides = np.divide(area.lengths, (grid.columns, grid.rows))
    columns, rows = np.meshgrid(np.arange(grid.columns), np.arange(grid.rows))
    return np.asarray((np.stack([columns.ravel(), rows.ravel()], axis=1) + 0.5) * sides, dtype=np.float64)


def _habits(person: _Person, centres: FloatArray) -> tuple[float, float]:
    """The error, and the share of cells named, of the best guess without any output."""
    attacks = present_attacks(person.model, person.earlier, person.fixes, None, centres)
    errors, known = zip(*_present(person, attacks, centres).values(), strict=True)
    return min(errors), max(known)


def _present(person: _Person, attacks: list[PresentAttack], centres: FloatArray) -> dict[str, tuple[float, float]]:
    """The mean error in metres, and the share of cells named, of each attack."""
    fixes = person.fixes
    return {
        each.name: (
            1000 * float(np.linalg.norm(centres[each.guesses] - fixes.xy, axis=1).mean()),
            float((each.cells == fixes.cells).mean()),
        )
        for each in attacks
    }


def _measured(
    person: _Person, policy: ReplayedPolicy, shown: Shown, sides: tuple[float, float], centres: FloatArray
) -> dict[str, Any]:
    """One replay of one person."""
    fixes = person.fixes
    off = np.linalg.norm(shown.xy - fixes.xy, axis=1)
    present = _present(person, present_attacks(person.model, person.earlier, fixes, shown, centres), centres)
    guesses = home_attacks(fixes, shown, sides)
    published = _stays(shown.xy)
    nearest = np.linalg.norm(person.stays[:, None] - published, axis=2).min(axis=1, initial=np.inf)
    spent = [shown.charged[fixes.days == day].sum() for day in np.unique(fixes.days)]
    return {
        "cost": 1000 * float(np.nanmean(off)) if not np.isnan(off).all() else np.nan,
        "refused": float(shown.refused.mean()),
        "present": present,
        "misses": None
        if person.home is None
        else {
            name: np.inf if guess is None else float(np.linalg.norm(guess - person.home))
            for name, guess in guesses.items()
        },
        "home_bound": 1.0 if person.home is None else _home_bound(policy, shown, fixes, person.home, sides),
        "stays": float((nearest <= NEAR_STAY).mean()) if len(nearest) else None,
        "left": float(np.mean([max(1 - each, 0.0) for each in spent])),
    }


def _home_bound(
    policy: ReplayedPolicy, shown: Shown, fixes: Fixes, home: FloatArray, sides: tuple[float, float]
) -> float:
    """The largest chance of finding home within 200 m, however many weeks are shared, for who knows the map only.

    It is a mean over homes everywhere on the map (docs/theory/weeks.md).

    Independent draws for home add up from night to night: there is no bound below 1. Memoised cells add their diagonal
    to every distance, which multiplies the chance.
    """
    if not policy.memoised:
        return 1.0
    there = np.linalg.norm(fixes.xy - home, axis=1) <= AT_HOME
    epsilon = max(float(shown.epsilon[there].sum()), shown.noise.epsilon)  # of one draw that is yet to come, at least
    if policy.name == "frequent places" and epsilon <= shown.noise.epsilon:
        return shown.noise.largest_chance(HOME_RADIUS, sides)
    chance = disk_bound(epsilon, HOME_RADIUS, sides=sides)
    if policy.name == "memoised":
        chance = min(exp(min(epsilon * PLACE_SIDE * sqrt(2), 700.0)) * chance, 1.0)
    return chance


def _row(
    policy: ReplayedPolicy, measured: list[dict[str, Any]], *, repeats: int, habits_known: float, home_chance: float
) -> PolicyRow:
    """The means over people and repetitions of one policy."""
    names = measured[0]["present"]
    errors = {name: float(np.mean([each["present"][name][0] for each in measured])) for name in names}
    shares = np.array([[each["present"][name][1] for name in names] for each in measured])
    low, known, high = best_share(shares.reshape(-1, repeats, len(names)))
    threshold = habits_known + PRESENCE_MARGIN
    misses = [each["misses"] for each in measured if each["misses"] is not None]
    home_shares = {
        name: [float(np.mean([each.get(name, np.inf) <= radius for each in misses])) for radius in (0.1, HOME_RADIUS)]
        for name in dict.fromkeys(name for each in misses for name in each)
    }
    best = max(home_shares, key=lambda name: home_shares[name][1], default=None)
    bound = max(each["home_bound"] for each in measured)
    keeps = {
        "trips": not policy.memoised,
        "presence": high <= threshold,
        "home": bool(misses) and bound <= home_chance * (1 + 1e-9),
    }
    now = min(errors, key=lambda name: errors[name])
    return PolicyRow(
        policy=policy.name,
        guarantee=policy.guarantee,
        cost=float(np.nanmean([each["cost"] for each in measured])),
        refused=float(np.mean([each["refused"] for each in measured])),
        error_now=errors[now],
        now_attack=now,
        presence_known=known,
        presence_low=low,
        presence_high=high,
        home_100_m=None if best is None else max(each[0] for each in home_shares.values()),
        home_200_m=None if best is None else home_shares[best][1],
        home_attack=best or "",
        home_bound=bound,
        stays_recalled=_mean(each["stays"] for each in measured),
        budget_left=float(np.mean([each["left"] for each in measured])),
        keeps=tuple(name for name, holds in keeps.items() if holds),
        undecided=("presence",) if low <= threshold < high else (),
    )


def best_share(shares: FloatArray) -> tuple[float, float, float]:
    """A lower bound, the estimate and an upper bound of the largest of several expected shares, by Student's t.

    People are given and repetitions are random, so that only the spread within people counts. The upper bound holds for
    each attack, and so for the best one; the lower bounds are shared among them by Bonferroni's inequality.

    Args:
        shares: of moments at which each attack names the true cell, (people, repetitions, attacks).
    """
    from scipy.special import stdtrit

    people, repeats, attacks = shares.shape
    means = shares.mean(axis=(0, 1))
    freedom = people * (repeats - 1)
    if freedom == 0:
        return 0.0, float(means.max()), 1.0
    errors = np.sqrt(shares.var(axis=1, ddof=1).sum(axis=0) / repeats) / people
    upper = means + stdtrit(freedom, CONFIDENCE) * errors
    lower = means - stdtrit(freedom, 1 - (1 - CONFIDENCE) / attacks) * errors
    return max(float(lower.max()), 0.0), float(means.max()), min(float(upper.max()), 1.0)


def _mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _presence_text(row: PolicyRow) -> str:
    low, high = _percent(row.presence_low), _percent(row.presence_high)
    return _percent(row.presence_known) if low == high else f"{_percent(row.presence_known)} ({low[:-1]}–{high})"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"

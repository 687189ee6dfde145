"""Synthetic traces: people who live, work and go out in a synthetic city, for use without data."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces import Box, Grid
from privacygames.traces.timestamps import DAY, HOUR
from privacygames.traces.visits import Visits

SYNTHETIC_WINDOW: Box = (5.0105, 52.0541, 5.2301, 52.126)
"""The synthetic city in degrees: 15 × 8 km, the size of the paper's window."""

WIDTH, HEIGHT = 15.0, 8.0
"""Size of the city in km."""

MARGIN = 0.2
"""Distance in km from the city's border within which there are no venues or homes."""

SUBURBS, VENUES = 4, 120
"""Numbers of suburbs beside the centre, and of venues."""

SCATTERED_SHARE = 0.2
"""Share of venues that are anywhere, rather than near the centre or a suburb."""

START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
"""Unix time of the first midnight, a Monday."""

SLOT = 600
"""Seconds between fixes."""

GPS_ERROR = 0.015
"""Standard deviation of the location error along each axis, in km."""

NIGHT_STARTS, NIGHT_ENDS = 23, 7
"""Hours between which fixes indoors are a third as frequent."""

GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Its multiples modulo 1 spread evenly, however many people there are."""

MAX_FIXES = 50_000_000
"""Largest number of fixes, before sampling, of all people together."""


@dataclass(frozen=True)
class City:
    """A synthetic city.

    Attributes:
        centres: the centre and the suburbs, as (x, y) rows in km.
        venues: where people go, likewise.
    """

    centres: FloatArray
    venues: FloatArray


@dataclass(frozen=True)
class Resident:
    """The habits of a person.

    Attributes:
        home: where nights are spent.
        work: where weekdays are spent; home for some.
        errands: regular places, the favourite first.
        outings: mean number of places visited after work; twice as many at weekends.
        curiosity: share of outings to a new place.
        speed: km an hour on the way.
        indoors: share of fixes recorded indoors, where phones lose the sky; a third of it at night.
    """

    home: FloatArray
    work: FloatArray
    errands: FloatArray
    outings: float
    curiosity: float
    speed: float
    indoors: float


class Diary:
    """A person's path: points in time, between which they stay or move in straight lines."""

    def __init__(self, home: FloatArray, centre: FloatArray) -> None:
        self.times, self.places = [0.0], [home]
        self.departures: list[float] = []
        self.arrivals: list[float] = []
        self._centre = centre

    def go(self, place: FloatArray, leave: float, speed: float) -> float:
        """Go to a place by a road that bends towards the city's centre; returns the time of arrival."""
        origin = self.places[-1]
        bend = (origin + place) / 2 + 0.25 * (self._centre - (origin + place) / 2)
        leave = max(leave, self.times[-1] + 60.0)
        first, second = (float(np.hypot(*leg)) / speed * HOUR for leg in (bend - origin, place - bend))
        arrive = leave + max(first + second, 60.0)
        self.times += [leave, leave + first, arrive]
        self.places += [origin, bend, place]
        self.departures.append(leave)
        self.arrivals.append(arrive)
        return arrive

    def positions(self, times: IntArray) -> FloatArray:
        """Where the person is at these times."""
        places = np.array(self.places)
        return np.stack([np.interp(times, self.times, places[:, axis]) for axis in (0, 1)], axis=1)

    def is_moving(self, times: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether the person is on the way at these times."""
        departed, arrived = (np.searchsorted(when, times, side="right") for when in (self.departures, self.arrivals))
        return np.asarray(departed > arrived)


def synthetic(users: int = 10, *, days: int = 60, seed: int = 0, window: Box = SYNTHETIC_WINDOW) -> Visits:
    """Visits of synthetic people: nights at home, weekdays at work, errands, outings, and the ways in between.

    They share one city, and differ in how much they go out, how curious they are and how much of their time indoors is
    recorded. There is a fix every ten minutes from Monday 2024-01-01 on, in UTC. The same seed gives the same people;
    more people, or more days, do not change the first ones.

    Args:
        users: number of people.
        days: days of each.
        seed: which city and people.
        window: (west, south, east, north) in degrees, over which the city is stretched.

    >>> pg.traces.synthetic(users=2, days=7)
    Visits(159 visits of 2 users, 159 rows)
    """
    for name, value in (("users", users), ("days", days)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidProblem(f"{name} is {value}; it must be a whole number, at least 1")
    if users * days * DAY // SLOT > MAX_FIXES:
        raise InvalidProblem(f"{users} users over {days} days are more than {MAX_FIXES} fixes; ask for fewer")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidProblem(f"seed is {seed}; it must be a whole number, 0 or more")
    west, south, east, north = Grid.over(window, columns=1, rows=1).box or window
    city = build_city(np.random.default_rng([seed, 0]))
    traces = [_trace(city, number, days, np.random.default_rng([seed, 1 + number])) for number in range(users)]
    points = np.concatenate([points for _, points in traces]) / (WIDTH, HEIGHT)
    times = np.concatenate([when for when, _ in traces])
    digits = len(str(users - 1))
    return Visits(
        user=np.repeat(np.arange(users), [len(when) for when, _ in traces]),
        time=START + times,
        latitude=south + points[:, 1] * (north - south),
        longitude=west + points[:, 0] * (east - west),
        users=tuple(f"person-{number:0{digits}}" for number in range(users)),
        slot=SLOT,
    )


def build_city(rng: np.random.Generator) -> City:
    """A centre near the middle, suburbs around it, and venues, most of them near one of these."""
    centre = np.array([[WIDTH, HEIGHT]]) * rng.uniform(0.4, 0.6, size=(1, 2))
    suburbs = _anywhere(rng, SUBURBS)
    centres = np.concatenate([centre, suburbs])
    weights = np.array([2.0] + [1.0] * SUBURBS)
    clustered = _around(rng, centres[rng.choice(len(centres), size=VENUES, p=weights / weights.sum())], 0.7)
    is_scattered = rng.random((VENUES, 1)) < SCATTERED_SHARE
    return City(centres, np.where(is_scattered, _anywhere(rng, VENUES), clustered))


def _anywhere(rng: np.random.Generator, count: int) -> FloatArray:
    """Points spread uniformly over the city."""
    return MARGIN + rng.random((count, 2)) * (WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)


def _around(rng: np.random.Generator, points: FloatArray, spread: float) -> FloatArray:
    """Points scattered around others with a standard deviation in km, within the city."""
    moved = points + rng.normal(0.0, spread, size=points.shape)
    return np.clip(moved, MARGIN, (WIDTH - MARGIN, HEIGHT - MARGIN))


def _trace(city: City, number: int, days: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The times and positions of one person's fixes."""
    person = _resident(city, (number + 1) * GOLDEN_RATIO % 1.0, rng)
    diary = Diary(person.home, city.centres[0])
    for day in range(days):
        _add_day(diary, person, day, rng)
    times = np.arange(0, days * DAY, SLOT)
    is_night = (times % DAY < NIGHT_ENDS * HOUR) | (times % DAY >= NIGHT_STARTS * HOUR)
    recorded_share = np.where(is_night, person.indoors / 3, person.indoors)
    is_recorded = diary.is_moving(times) | (rng.random(len(times)) < recorded_share)
    times = times[is_recorded]
    points = diary.positions(times) + rng.normal(0.0, GPS_ERROR, size=(len(times), 2))
    return times, np.clip(points, 0.0, (WIDTH, HEIGHT))


def _resident(city: City, roaming: float, rng: np.random.Generator) -> Resident:
    """Somebody who goes out little (roaming near 0) or a lot (near 1)."""
    home = _around(rng, city.centres[rng.integers(len(city.centres))], 1.0)
    office_area = city.centres[rng.choice(len(city.centres), p=_nearness(city.centres, home, 2 + 6 * roaming))]
    office = _around(rng, office_area, 0.4)
    work = home if rng.random() < 0.1 else office
    near_home = _nearness(city.venues, home, 1.0 + 3 * roaming)
    errands = rng.choice(len(city.venues), size=2 + rng.integers(3) + round(8 * roaming), replace=False, p=near_home)
    return Resident(
        home=home,
        work=work,
        errands=city.venues[errands],
        outings=0.4 + 1.2 * roaming,
        curiosity=0.02 + 0.4 * roaming**2,
        speed=rng.uniform(12.0, 25.0),
        indoors=10 ** rng.uniform(-1.9, -0.6),
    )


def _add_day(diary: Diary, person: Resident, day: int, rng: np.random.Generator) -> None:
    """One day: to work and back on weekdays, outings after it or around noon, and the night at home."""
    weekend = day % 7 >= 5
    now = day * DAY + rng.normal(11.0 if weekend else 8.2, 1.2 if weekend else 0.5) * HOUR
    if not weekend and person.work is not person.home and rng.random() < 0.92:
        now = diary.go(person.work, now, person.speed)
        if rng.random() < 0.3:
            lunch = diary.go(_around(rng, person.work, 0.3), now + rng.uniform(3.0, 4.5) * HOUR, 5.0)
            now = diary.go(person.work, lunch + 0.6 * HOUR, 5.0)
        now = max(now, day * DAY + rng.normal(17.3, 0.8) * HOUR)
    for _ in range(min(rng.poisson(person.outings * (2 if weekend else 1)), 6)):
        place = _outing(person, rng)
        now = diary.go(place, now, person.speed) + rng.exponential(1.0) * HOUR
        if now > (day + 0.95) * DAY:
            break
    if diary.places[-1] is not person.home:
        diary.go(person.home, now, person.speed)


def _outing(person: Resident, rng: np.random.Generator) -> FloatArray:
    if rng.random() < person.curiosity:
        return np.asarray(_anywhere(rng, 1)[0])
    weights = 1.0 / np.arange(1, len(person.errands) + 1)
    return np.asarray(rng.choice(person.errands, p=weights / weights.sum()))


def _nearness(places: FloatArray, home: FloatArray, reach: float) -> FloatArray:
    """Probabilities that decay exponentially with the distance from home, over a reach in km."""
    weights = np.exp(-np.hypot(*(places - home).T) / reach)
    return np.asarray(weights / weights.sum())

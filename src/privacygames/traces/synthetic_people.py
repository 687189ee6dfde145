"""``synthetic``: invented people who live in an invented city, so that everything runs with no data."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces import Box, Grid
from privacygames.traces.city import HEIGHT, WIDTH, City, anywhere, around, build_city
from privacygames.traces.clock import DAY, HOUR
from privacygames.traces.visits import Visits

SYNTHETIC_WINDOW: Box = (5.0105, 52.0541, 5.2301, 52.126)
"""15 × 8 kilometres of flat country."""

START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())  # a Monday
SLOT = 600
GPS_ERROR = 0.015
NIGHT_STARTS, NIGHT_ENDS = 23, 7
GOLDEN = (5**0.5 - 1) / 2
MOST_FIXES = 50_000_000


@dataclass(frozen=True)
class Resident:
    """Where somebody lives, works and goes.

    Attributes:
        home: where the nights are spent.
        work: where weekdays are spent; home for some.
        errands: regular places, the favourite first.
        outings: how many places are visited after work; twice as many at weekends.
        curiosity: the share of outings that go somewhere new.
        speed: kilometres an hour on the way.
        indoors: the share of time inside that is recorded: phones lose the sky there; a third of it at night.
    """

    home: FloatArray
    work: FloatArray
    errands: FloatArray
    outings: float
    curiosity: float
    speed: float
    indoors: float


class Diary:
    """A person's path: points in time, between which they move in straight lines or stay."""

    def __init__(self, home: FloatArray, hub: FloatArray) -> None:
        self.times, self.places = [0.0], [home]
        self.departures: list[float] = []
        self.arrivals: list[float] = []
        self._hub = hub

    def go(self, place: FloatArray, leave: float, speed: float) -> float:
        """Go somewhere by the usual road, which bends towards the city's centre; says when one arrives."""
        here = self.places[-1]
        bend = (here + place) / 2 + 0.25 * (self._hub - (here + place) / 2)
        leave = max(leave, self.times[-1] + 60.0)
        first, second = (float(np.hypot(*leg)) / speed * HOUR for leg in (bend - here, place - bend))
        arrive = leave + max(first + second, 60.0)
        self.times += [leave, leave + first, arrive]
        self.places += [here, bend, place]
        self.departures.append(leave)
        self.arrivals.append(arrive)
        return arrive

    def at(self, times: IntArray) -> FloatArray:
        """Where they are at these times."""
        places = np.array(self.places)
        return np.stack([np.interp(times, self.times, places[:, axis]) for axis in (0, 1)], axis=1)

    def moving(self, times: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether they are on their way at these times."""
        left, arrived = (np.searchsorted(when, times, side="right") for when in (self.departures, self.arrivals))
        return np.asarray(left > arrived)


def synthetic(users: int = 10, *, days: int = 60, seed: int = 0, window: Box = SYNTHETIC_WINDOW) -> Visits:
    """Visits of invented people: nights at home, weekdays at work, errands, outings, and the ways in between.

    They share one city, and differ in how much they go about, how curious they are and how much of their time
    indoors is recorded. A fix every ten minutes from Monday 2024-01-01 on, in UTC. The same seed gives the same
    people, and asking for more of them, or for more days, does not change the first ones.

    Args:
        users: how many people.
        days: how many days each is followed.
        seed: which city and people.
        window: (west, south, east, north) in degrees; the city is stretched over it.
    """
    for name, given in (("users", users), ("days", days)):
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise InvalidProblem(f"{name} is {given}; it must be a whole number, at least 1")
    if users * days * DAY // SLOT > MOST_FIXES:
        raise InvalidProblem(f"{users} users over {days} days are more than {MOST_FIXES} fixes; ask for fewer")
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


def _trace(city: City, number: int, days: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The times and places of one person's fixes."""
    person = _person(city, (number + 1) * GOLDEN % 1.0, rng)
    diary = Diary(person.home, city.centres[0])
    for day in range(days):
        _live(diary, person, day, rng)
    times = np.arange(0, days * DAY, SLOT)
    night = (times % DAY < NIGHT_ENDS * HOUR) | (times % DAY >= NIGHT_STARTS * HOUR)
    inside = np.where(night, person.indoors / 3, person.indoors)
    recorded = diary.moving(times) | (rng.random(len(times)) < inside)
    times = times[recorded]
    points = diary.at(times) + rng.normal(0.0, GPS_ERROR, size=(len(times), 2))
    return times, np.clip(points, 0.0, (WIDTH, HEIGHT))


def _person(city: City, roaming: float, rng: np.random.Generator) -> Resident:
    """Somebody who goes about little (roaming near 0) or a lot (near 1)."""
    home = around(rng, city.centres[rng.integers(len(city.centres))], 1.0)
    office = around(
        rng, city.centres[rng.choice(len(city.centres), p=_weights(city.centres, home, 2 + 6 * roaming))], 0.4
    )
    work = home if rng.random() < 0.1 else office
    nearby = _weights(city.venues, home, 1.0 + 3 * roaming)
    regular = rng.choice(len(city.venues), size=2 + rng.integers(3) + round(8 * roaming), replace=False, p=nearby)
    return Resident(
        home=home,
        work=work,
        errands=city.venues[regular],
        outings=0.4 + 1.2 * roaming,
        curiosity=0.02 + 0.4 * roaming**2,
        speed=rng.uniform(12.0, 25.0),
        indoors=10 ** rng.uniform(-1.9, -0.6),
    )


def _live(diary: Diary, person: Resident, day: int, rng: np.random.Generator) -> None:
    """One day: to work and back on weekdays, outings after it or around noon, and the night at home."""
    weekend = day % 7 >= 5
    now = day * DAY + rng.normal(11.0 if weekend else 8.2, 1.2 if weekend else 0.5) * HOUR
    if not weekend and person.work is not person.home and rng.random() < 0.92:
        now = diary.go(person.work, now, person.speed)
        if rng.random() < 0.3:
            lunch = diary.go(around(rng, person.work, 0.3), now + rng.uniform(3.0, 4.5) * HOUR, 5.0)
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
        return np.asarray(anywhere(rng, 1)[0])
    favour = 1.0 / np.arange(1, len(person.errands) + 1)
    return np.asarray(rng.choice(person.errands, p=favour / favour.sum()))


def _weights(places: FloatArray, home: FloatArray, reach: float) -> FloatArray:
    """Likelier the nearer, over some kilometres' reach."""
    nearness = np.exp(-np.hypot(*(places - home).T) / reach)
    return np.asarray(nearness / nearness.sum())

"""Visits of users to places: their counts, priors and transitions between the cells of a grid."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.beliefs import Moves, Prior
from privacygames.errors import InvalidProblem, UnknownLabel
from privacygames.spaces import Area, Box, Grid, Outside
from privacygames.time_zones import time_zone
from privacygames.traces import timestamps
from privacygames.traces.public_lattice import public_box
from privacygames.validation import as_list, is_integer

MAX_SLOTS_APART = 1.5
"""Largest number of slots between the visits of a transition: between adjacent slots and one missing slot."""

THURSDAY = 3
"""Weekday of 1970-01-01, where Monday is 0."""

Days = Literal["weekdays", "weekends"] | Iterable[int]
MAX_TRANSITIONS = 100_000_000
"""Largest number of entries of a matrix of transitions: 800 MB."""


class VisitData(ABC):
    """Data from which visits to the cells of a grid are counted, for each of its users.

    >>> issubclass(pg.traces.Visits, pg.traces.VisitData), issubclass(pg.traces.VisitCounts, pg.traces.VisitData)
    (True, True)
    """

    users: tuple[str, ...]

    @abstractmethod
    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:
        """The user's visits to each cell, in the order of the grid's labels."""

    def prior(
        self,
        grid: Grid,
        user: str,
        *,
        smoothing: float = 0.0,
        pooling: float = 0.0,
        outside: Outside = "drop",
    ) -> Prior:
        """The user's prior over the cells: normalised counts, as in the paper.

        Args:
            grid: the cells.
            user: the user's name.
            smoothing: added to every count first.
            pooling: number of visits to add for users with little data, distributed as those of all other users.
            outside: how to treat visits outside the grid: ``"drop"``, ``"nearest"`` or an ``"error"``.

        >>> visits = pg.traces.synthetic(users=1, days=7)
        >>> visits.prior(pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3), "person-0")
        Prior(3 of 12 secrets possible, 0.414 bits)
        """
        if not 0 <= pooling < np.inf:
            raise InvalidProblem(f"pooling is {pooling}; it must be 0 or more")
        counts = self.counts(grid, user, outside=outside).astype(np.float64)
        if pooling:
            counts = counts + pooling * self.pooled_prior(grid, without=user, outside=outside).probabilities
        return Prior.from_counts(grid, counts, smoothing=smoothing)

    def bootstrap_priors(
        self,
        grid: Grid,
        user: str,
        times: int,
        *,
        smoothing: float = 0.0,
        outside: Outside = "drop",
        generator: np.random.Generator | None = None,
    ) -> list[Prior]:
        """Priors from bootstrap resamples of the user's visits: :meth:`privacygames.Prior.bootstrap`.

        Args:
            grid: the cells.
            user: the user's name.
            times: number of priors.
            smoothing: as in :meth:`prior`.
            outside: as in :meth:`prior`.
            generator: makes the resamples reproducible.
        """
        counts = self.counts(grid, user, outside=outside)
        by_label = dict(zip(grid.labels, counts.tolist(), strict=True))
        return Prior.bootstrap(grid, by_label, times, smoothing=smoothing, generator=generator)

    def pooled_prior(self, grid: Grid, *, without: str | None = None, outside: Outside = "drop") -> Prior:
        """The mean of all users' priors, for a user without data.

        Args:
            grid: the cells.
            without: a user to leave out.
            outside: as in :meth:`prior`.
        """
        distributions = []
        for user in self.users:
            counts = self.counts(grid, user, outside=outside)
            if user != without and counts.any():
                distributions.append(counts / counts.sum())
        if not distributions:
            raise InvalidProblem("no other user has visits in the grid to pool")
        return Prior.from_counts(grid, np.mean(distributions, axis=0))

    def busiest(self, k: int, grid: Grid, *, cells: int = 1) -> list[str]:
        """The users with most visits inside the grid, at most ``k``, the busiest first.

        Args:
            k: number of users; fewer are returned if fewer qualify.
            grid: the cells.
            cells: minimum number of distinct cells that a user visited.
        """
        if k < 1:
            raise InvalidProblem(f"k is {k}; it must be 1 or more")
        by_user = [(user, self.counts(grid, user)) for user in self.users]
        totals = [(user, int(counts.sum())) for user, counts in by_user if np.count_nonzero(counts) >= max(cells, 1)]
        return [user for user, _ in sorted(totals, key=lambda pair: -pair[1])[:k]]

    def _code(self, user: str) -> int:
        try:
            return self._codes[user]
        except (KeyError, TypeError):
            raise UnknownLabel(
                f"the user is none of the {len(self.users)} users; they are texts, listed in .users"
            ) from None

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {user: code for code, user in enumerate(self.users)}


@dataclass(frozen=True, eq=False, repr=False)
class Visits(VisitData):
    """Visits of many users, sorted by user and then by time.

    Attributes:
        user: index of each visit's user in ``users``.
        time: unix time in whole seconds; where there are no times, the visits' positions in the file.
        latitude: degrees.
        longitude: degrees.
        users: the users' names.
        slot: length in seconds of the slots of which each visit is the first fix; None: every row is a visit.
        format: the format they were read in: ``"table"``, ``"gpx"``, …; empty if they were not read.
        rows: number of rows read.
        skipped: number of rows that are not visits, by reason: rows = visits + all skipped.
        skipped_lines: the numbers of the first rows that are not visits, by reason; those of a folder in their files.
        has_times: whether the visits have times; what needs them raises an error where they have none.

    >>> visits = pg.traces.synthetic(users=2, days=7)
    >>> visits.busiest(1, pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3))
    ['person-1']
    """

    user: IntArray
    time: IntArray
    latitude: FloatArray
    longitude: FloatArray
    users: tuple[str, ...]
    slot: int | None = None
    format: str = ""
    rows: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_times: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("user", np.int64), ("time", np.int64), ("latitude", np.float64), ("longitude", np.float64)):
            array = np.array(getattr(self, name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if len({array.shape for array in (self.user, self.time, self.latitude, self.longitude)}) > 1:
            raise InvalidProblem("user, time, latitude and longitude must be arrays of the same length")
        if self.user.size and not 0 <= self.user.min() <= self.user.max() < len(self.users):
            raise InvalidProblem("user must hold positions in users")
        step = np.diff(self.user)
        if (step < 0).any() or (np.diff(self.time)[step == 0] < 0).any():
            raise InvalidProblem("visits must be sorted by user, and each user's by time")
        object.__setattr__(self, "users", tuple(self.users))
        object.__setattr__(self, "rows", max(self.rows, len(self)))
        object.__setattr__(self, "skipped", MappingProxyType(dict(self.skipped)))
        object.__setattr__(self, "skipped_lines", MappingProxyType(dict(self.skipped_lines)))

    def __len__(self) -> int:
        return len(self.user)

    def __repr__(self) -> str:
        skipped = "".join(f", {count} {reason}" for reason, count in self.skipped.items() if count)
        read = f"{self.rows} rows read as {self.format}" if self.format else f"{self.rows} rows"
        return f"Visits({len(self)} visits of {len(self.users)} users, {read}{skipped})"

    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:
        """The user's visits to each cell, in the order of the grid's labels.

        Visits outside the grid are not counted, unless ``outside`` is ``"nearest"``; with ``"error"`` they raise.
        """
        cells = self._cells(grid, self._slice(user), outside)
        return np.bincount(cells[cells >= 0], minlength=len(grid)).astype(np.int64)

    def points(self, user: str, area: Area) -> FloatArray:
        """The user's visits inside an area over degrees, as (longitude, latitude), (visits, 2), in the order of time.

        >>> visits = pg.traces.synthetic(users=1, days=7)
        >>> visits.points("person-0", pg.Area.over(pg.traces.SYNTHETIC_WINDOW)).shape[1]
        2
        """
        if not isinstance(area, Area) or area.box is None:
            raise InvalidProblem(
                "visits are in degrees: give an area over degrees, Area.over((west, south, east, north))"
            )
        selection = self._slice(user)
        points = np.stack([self.longitude[selection], self.latitude[selection]], axis=1)
        west, south, east, north = area.box
        return np.asarray(points[((points >= (west, south)) & (points <= (east, north))).all(axis=1)])

    def public_box(self, user: str | None = None) -> Box:
        """The box for a grid: (west, south, east, north) in degrees, on a lattice that is the same for all data.

        Edges are multiples of 0.02°, or of 0.04°, 0.08°, … where the places are farther apart, so that a box has at
        most eight strips along each axis. It depends on visits only through the strips of 0.02° that they are in: it
        reveals that the outermost strips contain a visit. From 20 visits on, the outermost hundredth beyond each edge
        (one visit at least) may be outside, so that no edge rests on a single visit.

        >>> import privacygames as pg
        >>> visits = pg.traces.synthetic(users=1, days=7, seed=0)
        >>> visits.public_box()
        (5.12, 52.1, 5.2, 52.14)

        Args:
            user: the user's name; by default all users.
        """
        selection = slice(None) if user is None else self._slice(user)
        if not len(self.longitude[selection]):
            raise InvalidProblem("there are no visits to enclose in a box")
        return public_box(self.longitude[selection], self.latitude[selection])

    def during(self, *, days: Days | None = None, hours: tuple[int, int] | None = None, zone: str = "UTC") -> "Visits":
        """The visits on some days of the week, or at some hours of the day.

        Args:
            days: ``"weekdays"``, ``"weekends"``, or whole numbers from 0 for Monday to 6 for Sunday.
            hours: from the first to before the second, 0 to 24, by the local clock; (22, 6) is over midnight.
            zone: the clock's time zone, such as ``"Europe/Zurich"``.
        """
        self._require_times()
        local = timestamps.local_seconds(self.time, time_zone(zone))
        mask = np.ones(len(self), dtype=bool)
        if days is not None:
            mask &= np.isin((local // timestamps.DAY + THURSDAY) % 7, _days(days))
        if hours is not None:
            first, last = _hours(hours)
            hour = local % timestamps.DAY // timestamps.HOUR
            mask &= (first <= hour) & (hour < last) if first < last else (first <= hour) | (hour < last)
        return replace(
            self,
            user=self.user[mask],
            time=self.time[mask],
            latitude=self.latitude[mask],
            longitude=self.longitude[mask],
        )

    def transitions(self, grid: Grid, user: str, *, within: float | None = None) -> IntArray:
        """Counts of the user's transitions from each cell (row) to each cell (column) between successive visits.

        Args:
            grid: the cells; transitions from or to the outside are not counted.
            user: the user's name.
            within: maximum number of seconds between the visits of a transition. By default one and a half slots:
                more than between regular fixes, and less than with a slot missing in between.
        """
        if len(grid) ** 2 > MAX_TRANSITIONS:
            raise InvalidProblem(f"moves between {len(grid)} cells do not fit in memory; use a coarser grid")
        moves = self.moves(grid, user, within=within)
        transitions = np.zeros((len(grid), len(grid)), dtype=np.int64)
        np.add.at(transitions, (moves.before, moves.after), 1)
        return transitions

    def moves(self, grid: Grid, user: str, *, within: float | None = None) -> Moves:
        """The user's moves between one visit and the next, as :meth:`transitions` counts them, with their times."""
        self._require_times()
        limit = self._within(within)
        selection = self._slice(user)
        cells, times = self._cells(grid, selection), self.time[selection]
        before, after = cells[:-1], cells[1:]
        valid = (before >= 0) & (after >= 0) & (np.diff(times) <= limit)
        return Moves(before[valid], after[valid], times[:-1][valid], cells[cells >= 0], self.slot)

    def trace(self, grid: Grid, user: str) -> tuple[IntArray, IntArray]:
        """The cells of the user's visits in the order of time, and the unix times; visits outside are left out."""
        self._require_times()
        selection = self._slice(user)
        cells, times = self._cells(grid, selection), self.time[selection]
        return cells[cells >= 0], times[cells >= 0]

    def before(self, time: int) -> "Visits":
        """The visits before a unix time, of the same users."""
        self._require_times()
        mask = self.time < time
        return Visits(
            user=self.user[mask],
            time=self.time[mask],
            latitude=self.latitude[mask],
            longitude=self.longitude[mask],
            users=self.users,
            slot=self.slot,
            format=self.format,
        )

    def together(self, name: str = "everyone") -> "Visits":
        """The visits of all users as those of one, whose prior is everyone's; they are no sequence, so without times.

        Args:
            name: what to call the one user.

        >>> pg.traces.synthetic(users=2, days=7).together().users
        ('everyone',)
        """
        return replace(
            self,
            user=np.zeros(len(self), dtype=np.int64),
            time=np.arange(len(self)),
            users=(name,),
            slot=None,
            has_times=False,
        )

    def _require_times(self) -> None:
        if not self.has_times:
            raise InvalidProblem("these visits have no times: they can be counted, and that is all")

    def _within(self, within: float | None) -> float:
        if within is None and self.slot is None:
            raise InvalidProblem(
                "these visits have no slots: give within, the maximum number of seconds of a transition"
            )
        limit = MAX_SLOTS_APART * (self.slot or 0) if within is None else within
        if not limit > 0:
            raise InvalidProblem(f"within is {within}; it must be a positive number of seconds")
        return limit

    def _slice(self, user: str) -> slice:
        code = self._code(user)
        first, last = np.searchsorted(self.user, [code, code + 1])
        return slice(int(first), int(last))

    def _cells(self, grid: Grid, selection: slice, outside: Outside = "drop") -> IntArray:
        if not isinstance(grid, Grid) or grid.box is None:
            raise InvalidProblem("visits are in degrees: build the grid with Grid.over((west, south, east, north), …)")
        return grid.locate(np.stack([self.longitude[selection], self.latitude[selection]], axis=1), outside=outside)


def _days(days: Days) -> list[int]:
    if isinstance(days, str):
        by_name = {"weekdays": [0, 1, 2, 3, 4], "weekends": [5, 6]}
        if days not in by_name:
            raise InvalidProblem(
                f"days is {days[:40]!r}; choose 'weekdays', 'weekends' or numbers from 0 (Monday) to 6"
            )
        return by_name[days]
    numbers = as_list(days, "days")
    if not numbers or not all(is_integer(day, minimum=0) and day <= 6 for day in numbers):
        raise InvalidProblem("days must be whole numbers from 0 (Monday) to 6 (Sunday), one at least")
    return [int(day) for day in numbers]


def _hours(hours: tuple[int, int]) -> tuple[int, int]:
    pair = as_list(hours, "hours")
    if len(pair) != 2 or not all(is_integer(hour, minimum=0) and hour <= 24 for hour in pair) or pair[0] == pair[1]:
        raise InvalidProblem(
            "hours must be two different whole numbers from 0 to 24: from the first to before the second"
        )
    return int(pair[0]), int(pair[1])

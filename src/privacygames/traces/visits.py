"""Visits: who was where when, and what follows from it: counts, priors and moves between cells."""

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
from privacygames.spaces import Box, Grid, Outside
from privacygames.time_zones import time_zone
from privacygames.traces import clock
from privacygames.traces.public_lattice import public_box
from privacygames.validation import as_list, is_integer

SLOTS_APART = 1.5
THURSDAY = 3
"""The first day of unix time, counted from Monday."""

Days = Literal["weekdays", "weekends"] | Iterable[int]
MOST_TRANSITIONS = 100_000_000


class VisitData(ABC):
    """Anything that knows how often each of its ``users`` was in each cell of a grid."""

    users: tuple[str, ...]

    @abstractmethod
    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:
        """How often the user was in each cell, in the order of the grid's labels."""

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
            user: whose.
            smoothing: added to every count first.
            pooling: for people with little data: as many visits more, spread as the visits of all others are.
            outside: what becomes of visits outside the grid: ``"drop"``, ``"nearest"`` or an ``"error"``.
        """
        if not 0 <= pooling < np.inf:
            raise InvalidProblem(f"pooling is {pooling}; it must be 0 or more")
        counts = self.counts(grid, user, outside=outside).astype(np.float64)
        if pooling:
            counts = counts + pooling * self.pooled_prior(grid, without=user, outside=outside).probabilities
        return Prior.from_counts(grid, counts, smoothing=smoothing)

    def resampled_priors(
        self,
        grid: Grid,
        user: str,
        times: int,
        *,
        smoothing: float = 0.0,
        outside: Outside = "drop",
        generator: np.random.Generator | None = None,
    ) -> list[Prior]:
        """Priors from bootstrap resamples of the user's visits: :meth:`privacygames.Prior.resampled`.

        Args:
            grid: the cells.
            user: whose.
            times: how many priors.
            smoothing: as in :meth:`prior`.
            outside: as in :meth:`prior`.
            generator: for a reproducible draw.
        """
        counts = self.counts(grid, user, outside=outside)
        seen = dict(zip(grid.labels, counts.tolist(), strict=True))
        return Prior.resampled(grid, seen, times, smoothing=smoothing, generator=generator)

    def pooled_prior(self, grid: Grid, *, without: str | None = None, outside: Outside = "drop") -> Prior:
        """What is known of somebody of whom nothing is known: everyone's prior, each person counting the same.

        Args:
            grid: the cells.
            without: somebody to leave out.
            outside: as in :meth:`prior`.
        """
        shares = []
        for user in self.users:
            counts = self.counts(grid, user, outside=outside)
            if user != without and counts.any():
                shares.append(counts / counts.sum())
        if not shares:
            raise InvalidProblem("nobody else was seen in the grid: there is nobody to pool")
        return Prior.from_counts(grid, np.mean(shares, axis=0))

    def busiest(self, k: int, grid: Grid, *, cells: int = 1) -> list[str]:
        """The users with most visits inside the grid, at most ``k``, the busiest first.

        Args:
            k: how many are wanted; fewer come back where fewer qualify.
            grid: where visits count.
            cells: leave out users seen in fewer distinct cells than this.
        """
        if k < 1:
            raise InvalidProblem(f"{k} users are asked for; it must be 1 or more")
        seen = [(user, self.counts(grid, user)) for user in self.users]
        fitting = [(user, int(counts.sum())) for user, counts in seen if np.count_nonzero(counts) >= max(cells, 1)]
        return [user for user, _ in sorted(fitting, key=lambda each: -each[1])[:k]]

    def _code(self, user: str) -> int:
        try:
            return self._codes[user]
        except (KeyError, TypeError):
            raise UnknownLabel(
                f"the user given is none of the {len(self.users)} users; they are texts, listed in .users"
            ) from None

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {user: code for code, user in enumerate(self.users)}


@dataclass(frozen=True, eq=False, repr=False)
class Visits(VisitData):
    """Visits of many users, sorted by user and then by time.

    Attributes:
        user: whose visit it is, as a position in ``users``.
        time: unix time in whole seconds.
        latitude: degrees.
        longitude: degrees.
        users: the users' names.
        slot: the length in seconds of the slots of which each visit is the first fix; None: every row is a visit.
        format: how they were read: ``"table"``, ``"gpx"``, …; empty where they were not.
        rows: how many rows were read.
        skipped: how many of them are not visits, by reason. RowBatch = visits + everything skipped.
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

    def __len__(self) -> int:
        return len(self.user)

    def __repr__(self) -> str:
        left_out = "".join(f", {count} {reason}" for reason, count in self.skipped.items() if count)
        read = f"{self.rows} rows read as {self.format}" if self.format else f"{self.rows} rows"
        return f"Visits({len(self)} visits of {len(self.users)} users, {read}{left_out})"

    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:
        """How often the user was in each cell, in the order of the grid's labels.

        Visits elsewhere do not count, unless ``outside`` is ``"nearest"``, or ``"error"`` which refuses them.
        """
        cells = self._cells(grid, self._slice(user), outside)
        return np.bincount(cells[cells >= 0], minlength=len(grid)).astype(np.int64)

    def public_box(self, user: str | None = None) -> Box:
        """The box to lay a grid over: (west, south, east, north) in degrees, on a lattice that is the same for all.

        Edges are multiples of 0.02°, or of 0.04°, 0.08°, … where the places are farther apart, so that a box has at
        most eight strips along each axis. It depends on visits only through the strips of 0.02° that they are in: what
        it says is that the outermost strips hold a visit. From 20 visits on, the outermost hundredth beyond each edge
        (one visit at least) may be outside, so that no edge rests on a single visit.

        >>> import privacygames as pg
        >>> visits = pg.traces.synthetic(users=1, days=7, seed=0)
        >>> visits.public_box()
        (5.12, 52.1, 5.2, 52.14)

        Args:
            user: whose places; by default everybody's.
        """
        which = slice(None) if user is None else self._slice(user)
        if not len(self.longitude[which]):
            raise InvalidProblem("there are no visits to draw a box around")
        return public_box(self.longitude[which], self.latitude[which])

    def during(self, *, days: Days | None = None, hours: tuple[int, int] | None = None, zone: str = "UTC") -> "Visits":
        """Only the visits of some days of the week or hours of the day: what somebody knows who sees no others.

        Args:
            days: ``"weekdays"``, ``"weekends"``, or whole numbers from 0 for Monday to 6 for Sunday.
            hours: from the first to before the second, 0 to 24, by the local clock; (22, 6) is over midnight.
            zone: the clock's time zone, such as ``"Europe/Zurich"``.
        """
        shown = clock.local(self.time, time_zone(zone))
        kept = np.ones(len(self), dtype=bool)
        if days is not None:
            kept &= np.isin((shown // clock.DAY + THURSDAY) % 7, _days(days))
        if hours is not None:
            first, last = _hours(hours)
            hour = shown % clock.DAY // clock.HOUR
            kept &= (first <= hour) & (hour < last) if first < last else (first <= hour) | (hour < last)
        return replace(
            self,
            user=self.user[kept],
            time=self.time[kept],
            latitude=self.latitude[kept],
            longitude=self.longitude[kept],
        )

    def transitions(self, grid: Grid, user: str, *, within: float | None = None) -> IntArray:
        """How often the user went from each cell (row) to each cell (column) between one visit and the next.

        Args:
            grid: the cells; a move from or to somewhere outside is not counted.
            user: whose moves.
            within: visits further apart in seconds are not taken for one move. By default one and a half slots:
                fixes at regular times are one slot apart, and two where one is missing, and this lies in between.
        """
        if len(grid) ** 2 > MOST_TRANSITIONS:
            raise InvalidProblem(f"moves between {len(grid)} cells are too many to hold; use a coarser grid")
        moves = self.moves(grid, user, within=within)
        counted = np.zeros((len(grid), len(grid)), dtype=np.int64)
        np.add.at(counted, (moves.before, moves.after), 1)
        return counted

    def moves(self, grid: Grid, user: str, *, within: float | None = None) -> Moves:
        """The user's moves between one visit and the next, as :meth:`transitions` counts them, with their times."""
        limit = self._within(within)
        mine = self._slice(user)
        cells, times = self._cells(grid, mine), self.time[mine]
        before, after = cells[:-1], cells[1:]
        one = (before >= 0) & (after >= 0) & (np.diff(times) <= limit)
        return Moves(before[one], after[one], times[:-1][one], cells[cells >= 0], self.slot)

    def trace(self, grid: Grid, user: str) -> tuple[IntArray, IntArray]:
        """The cells the user was in, one after the other, and when, in unix seconds; visits elsewhere are left out."""
        mine = self._slice(user)
        cells, times = self._cells(grid, mine), self.time[mine]
        return cells[cells >= 0], times[cells >= 0]

    def before(self, time: int) -> "Visits":
        """The visits before a time, of the same users."""
        kept = self.time < time
        return Visits(
            user=self.user[kept],
            time=self.time[kept],
            latitude=self.latitude[kept],
            longitude=self.longitude[kept],
            users=self.users,
            slot=self.slot,
            format=self.format,
        )

    def _within(self, within: float | None) -> float:
        if within is None and self.slot is None:
            raise InvalidProblem("these visits have no slots: say within how many seconds two of them are one move")
        limit = SLOTS_APART * (self.slot or 0) if within is None else within
        if not limit > 0:
            raise InvalidProblem(f"within is {within}; it must be a positive number of seconds")
        return limit

    def _slice(self, user: str) -> slice:
        code = self._code(user)
        first, last = np.searchsorted(self.user, [code, code + 1])
        return slice(int(first), int(last))

    def _cells(self, grid: Grid, which: slice, outside: Outside = "drop") -> IntArray:
        if not isinstance(grid, Grid) or grid.box is None:
            raise InvalidProblem("visits are in degrees: build the grid with Grid.over((west, south, east, north), …)")
        return grid.locate(np.stack([self.longitude[which], self.latitude[which]], axis=1), outside=outside)


def _days(days: Days) -> list[int]:
    if isinstance(days, str):
        named = {"weekdays": [0, 1, 2, 3, 4], "weekends": [5, 6]}
        if days not in named:
            raise InvalidProblem(
                f"days is {days[:40]!r}; choose 'weekdays', 'weekends' or numbers from 0 (Monday) to 6"
            )
        return named[days]
    chosen = as_list(days, "days")
    if not chosen or not all(is_integer(day, minimum=0) and day <= 6 for day in chosen):
        raise InvalidProblem("days must be whole numbers from 0 (Monday) to 6 (Sunday), one at least")
    return [int(day) for day in chosen]


def _hours(hours: tuple[int, int]) -> tuple[int, int]:
    given = as_list(hours, "hours")
    if len(given) != 2 or not all(is_integer(hour, minimum=0) and hour <= 24 for hour in given) or given[0] == given[1]:
        raise InvalidProblem(
            "hours must be two different whole numbers from 0 to 24: from the first to before the second"
        )
    return int(given[0]), int(given[1])

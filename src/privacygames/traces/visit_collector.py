"""Collects visits from rows: the first fix of each user in each slot, and the number of rows skipped by reason."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import count

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.spaces import Box
from privacygames.traces import timestamps
from privacygames.traces.readers import RowBatch
from privacygames.traces.visits import Visits

BROKEN, BAD_TIME, BAD_PLACE = "broken line", "bad time", "bad coordinates"
OTHER_USER, OUTSIDE, SAME_SLOT = "other user", "outside the window", "same slot"
REASONS = (BROKEN, BAD_TIME, BAD_PLACE, OTHER_USER, OUTSIDE, SAME_SLOT)
"""Why a row is not a visit, in the order of the checks: each row is counted once."""

MOST_LINES = 5
"""Lines kept of those skipped for one reason: enough to see what is wrong with them."""

PENDING = 1 << 18
"""Fixes held before they are merged with those collected so far."""

FIX = np.dtype([("user", "i8"), ("slot", "i8"), ("time", "i8"), ("latitude", "f8"), ("longitude", "f8")])
Fixes = NDArray[np.void]


class VisitCollector:
    """Collects visits as rows are read; memory grows with the visits only.

    Args:
        window: (west, south, east, north) in degrees; rows elsewhere are skipped. None: everywhere.
        slot: seconds in a slot; None makes every row a visit.
        zone: the time zone in which slots start at midnight.
        users: the users wanted; None: all.
    """

    def __init__(self, *, window: Box | None, slot: int | None, zone: tzinfo, users: Iterable[str] | None) -> None:
        self._window, self._slot, self._zone = window, slot, zone
        self._codes: dict[str, int] = defaultdict(count().__next__)
        self._wanted = None if users is None else np.array([self._codes[user] for user in users], dtype=np.int64)
        self._fixes = np.zeros(0, dtype=FIX)
        self._pending: list[Fixes] = []
        self._pending_count = 0
        self._timeless: list[tuple[Fixes, str]] = []  # fixes without a time and their file, until one has a time
        self._has_times = False
        self.rows = 0
        self.swapped = 0  # rows outside the window that would lie inside with latitude and longitude swapped
        self.skipped = dict.fromkeys(REASONS, 0)
        self.skipped_lines: dict[str, list[int]] = {}
        self.first_skipped: dict[str, str] = {}

    def add(self, batch: RowBatch, file: str) -> None:
        """Add some rows of a file."""
        self.rows += len(batch.users) + len(batch.broken)
        self._skip(BROKEN, batch.broken, file)
        users = np.fromiter(map(self._codes.__getitem__, batch.users), dtype=np.int64, count=len(batch.users))
        left, lines = np.arange(len(users)), np.asarray(batch.lines)
        for reason, passes in self._checks(batch, users):
            self._skip(reason, lines[left[~passes[left]]], file)
            left = left[passes[left]]
        fixes = np.empty(len(left), dtype=FIX)
        fixes["user"], fixes["time"] = users[left], batch.times[left]
        fixes["latitude"], fixes["longitude"] = batch.latitude[left], batch.longitude[left]
        fixes["slot"] = lines[left]
        fixes = self._with_times(fixes, file)
        fixes["slot"] = 0 if self._slot is None else timestamps.slot_numbers(fixes["time"], self._slot, self._zone)
        self._pending.append(self._first_in_slots(fixes))
        self._pending_count += len(self._pending[-1])
        if self._pending_count > max(PENDING, len(self._fixes)):
            self._merge()

    def _with_times(self, fixes: Fixes, file: str) -> Fixes:
        """The fixes that have a time; the others are held, or skipped once any fix has one. ``slot`` is the line."""
        is_timeless = fixes["time"] == timestamps.NO_TIME
        if is_timeless.any():
            self._timeless.append((fixes[is_timeless], file))
        self._has_times = self._has_times or not is_timeless.all()
        if self._has_times:
            for held, source in self._timeless:
                self._skip(BAD_TIME, held["slot"], source)
            self._timeless.clear()
        timed: Fixes = fixes[~is_timeless]
        return timed

    def _take_timeless(self) -> None:
        """Take fixes without times as visits, in the order of the file, where no fix has one."""
        fixes = np.concatenate([held for held, _ in self._timeless])
        fixes["time"] = np.arange(len(fixes))
        self._timeless.clear()
        self._slot, self._fixes = None, fixes

    def visits(self) -> Visits:
        """All visits, by user (in the order of their names) and time."""
        self._merge()
        has_times = not self._timeless
        if not has_times:
            self._take_timeless()
        names = list(self._codes)
        users = sorted(names[code] for code in np.unique(self._fixes["user"]))
        index = np.zeros(len(names), dtype=np.int64)
        index[[self._codes[user] for user in users]] = np.arange(len(users))
        codes = index[self._fixes["user"]]
        order = np.lexsort((self._fixes["time"], codes))
        fixes = self._fixes[order]
        return Visits(
            user=codes[order],
            time=fixes["time"],
            latitude=fixes["latitude"],
            longitude=fixes["longitude"],
            users=tuple(users),
            slot=self._slot,
            rows=self.rows,
            skipped=self.skipped,
            skipped_lines={reason: tuple(lines) for reason, lines in self.skipped_lines.items()},
            has_times=has_times,
        )

    def summary(self) -> str:
        """How many rows were skipped for which reason, and the first line of each; never what a line holds."""
        hint = ""
        if self.swapped:
            hint = f"; {self.swapped} would lie inside with latitude and longitude swapped"
        counts = [f"{self.skipped[reason]} {reason} (first: {line})" for reason, line in self.first_skipped.items()]
        return (", ".join(counts) or "none skipped") + hint

    def _checks(self, batch: RowBatch, users: IntArray) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Each reason, and the rows it does not apply to."""
        latitude, longitude = batch.latitude, batch.longitude
        yield BAD_TIME, batch.times != timestamps.UNREADABLE
        yield BAD_PLACE, (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)  # false for NaN
        if self._wanted is not None:
            yield OTHER_USER, np.isin(users, self._wanted)
        if self._window is not None:
            west, south, east, north = self._window
            inside = (west <= longitude) & (longitude <= east) & (south <= latitude) & (latitude <= north)
            swapped = (west <= latitude) & (latitude <= east) & (south <= longitude) & (longitude <= north)
            self.swapped += int((swapped & ~inside).sum())
            yield OUTSIDE, inside

    def _skip(self, reason: str, lines: Sequence[int] | IntArray, file: str) -> None:
        if len(lines):
            self.skipped[reason] += len(lines)
            self.first_skipped.setdefault(reason, f"{file}, line {lines[0]}")
            told = self.skipped_lines.setdefault(reason, [])
            told += [int(line) for line in lines[: MOST_LINES - len(told)]]

    def _merge(self) -> None:
        self._fixes = self._first_in_slots(np.concatenate([self._fixes, *self._pending]))
        self._pending, self._pending_count = [], 0

    def _first_in_slots(self, fixes: Fixes) -> Fixes:
        """The earliest fix of each user and slot; of two at the same second, the one read first."""
        if self._slot is None:
            return fixes
        ordered = fixes[np.lexsort((fixes["time"], fixes["slot"], fixes["user"]))]
        is_first = np.ones(len(ordered), dtype=bool)
        is_first[1:] = (np.diff(ordered["user"]) != 0) | (np.diff(ordered["slot"]) != 0)
        self.skipped[SAME_SLOT] += len(ordered) - int(is_first.sum())
        return ordered[is_first]

"""From rows to visits: what is skipped and why, and the first fix of each user in each slot."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from itertools import count

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.spaces import Box
from privacygames.traces import clock
from privacygames.traces.readers import RowBatch
from privacygames.traces.visits import Visits

BROKEN, BAD_TIME, BAD_PLACE = "broken line", "bad time", "bad coordinates"
OTHER_USER, OUTSIDE, SAME_SLOT = "other user", "outside the window", "same slot"
REASONS = (BROKEN, BAD_TIME, BAD_PLACE, OTHER_USER, OUTSIDE, SAME_SLOT)
"""Why a row is no visit, in the order they are asked: each row is counted once."""

PENDING = 1 << 18
"""RowBatch held before they are merged with what is kept already."""

FIX = np.dtype([("user", "i8"), ("slot", "i8"), ("time", "i8"), ("latitude", "f8"), ("longitude", "f8")])
Fixes = NDArray[np.void]


class Collector:
    """Takes rows as they are read and keeps those that are visits; memory grows with these only."""

    def __init__(self, *, window: Box | None, slot: int | None, zone: tzinfo, users: Iterable[str] | None) -> None:
        self._window, self._slot, self._zone = window, slot, zone
        self._codes: dict[str, int] = defaultdict(count().__next__)
        self._chosen = None if users is None else np.array([self._codes[user] for user in users], dtype=np.int64)
        self._kept = np.zeros(0, dtype=FIX)
        self._pending: list[Fixes] = []
        self._waiting = 0
        self.rows = 0
        self.swapped = 0  # rows outside that would lie inside with latitude and longitude swapped
        self.skipped = dict.fromkeys(REASONS, 0)
        self.first: dict[str, str] = {}

    def add(self, rows: RowBatch, file: str) -> None:
        """Take some rows of a file."""
        self.rows += len(rows.users) + len(rows.broken)
        self._skip(BROKEN, rows.broken, file)
        users = np.fromiter(map(self._codes.__getitem__, rows.users), dtype=np.int64, count=len(rows.users))
        left, lines = np.arange(len(users)), np.asarray(rows.lines)
        for reason, fits in self._tests(rows, users):
            self._skip(reason, lines[left[~fits[left]]], file)
            left = left[fits[left]]
        fixes = np.empty(len(left), dtype=FIX)
        fixes["user"], fixes["time"] = users[left], rows.times[left]
        fixes["latitude"], fixes["longitude"] = rows.latitude[left], rows.longitude[left]
        fixes["slot"] = 0 if self._slot is None else clock.slots(fixes["time"], self._slot, self._zone)
        self._pending.append(self._first_in_slots(fixes))
        self._waiting += len(self._pending[-1])
        if self._waiting > max(PENDING, len(self._kept)):
            self._merge()

    def visits(self) -> Visits:
        """Everything kept, by user (in the order of their names) and time."""
        self._merge()
        names = list(self._codes)
        users = sorted(names[code] for code in np.unique(self._kept["user"]))
        position = np.zeros(len(names), dtype=np.int64)
        position[[self._codes[user] for user in users]] = np.arange(len(users))
        codes = position[self._kept["user"]]
        order = np.lexsort((self._kept["time"], codes))
        fixes = self._kept[order]
        return Visits(
            user=codes[order],
            time=fixes["time"],
            latitude=fixes["latitude"],
            longitude=fixes["longitude"],
            users=tuple(users),
            slot=self._slot,
            rows=self.rows,
            skipped=self.skipped,
        )

    def summary(self) -> str:
        """What was skipped, and where each reason was met first; never what stood there."""
        hint = ""
        if self.swapped:
            hint = f"; {self.swapped} would lie inside with latitude and longitude swapped"
        met = [f"{self.skipped[reason]} {reason} (first: {self.first[reason]})" for reason in self.first]
        return (", ".join(met) or "none skipped") + hint

    def _tests(self, rows: RowBatch, users: IntArray) -> Iterable[tuple[str, NDArray[np.bool_]]]:
        latitude, longitude = rows.latitude, rows.longitude
        yield BAD_TIME, rows.times != clock.BAD
        yield BAD_PLACE, (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)  # NaN is neither
        if self._chosen is not None:
            yield OTHER_USER, np.isin(users, self._chosen)
        if self._window is not None:
            west, south, east, north = self._window
            inside = (west <= longitude) & (longitude <= east) & (south <= latitude) & (latitude <= north)
            turned = (west <= latitude) & (latitude <= east) & (south <= longitude) & (longitude <= north)
            self.swapped += int((turned & ~inside).sum())
            yield OUTSIDE, inside

    def _skip(self, reason: str, lines: Sequence[int] | IntArray, file: str) -> None:
        if len(lines):
            self.skipped[reason] += len(lines)
            self.first.setdefault(reason, f"{file}, line {lines[0]}")

    def _merge(self) -> None:
        self._kept = self._first_in_slots(np.concatenate([self._kept, *self._pending]))
        self._pending, self._waiting = [], 0

    def _first_in_slots(self, fixes: Fixes) -> Fixes:
        """The earliest fix of each user and slot; of two at the same second, the one read first."""
        if self._slot is None:
            return fixes
        ordered = fixes[np.lexsort((fixes["time"], fixes["slot"], fixes["user"]))]
        new = np.ones(len(ordered), dtype=bool)
        new[1:] = (np.diff(ordered["user"]) != 0) | (np.diff(ordered["slot"]) != 0)
        self.skipped[SAME_SLOT] += len(ordered) - int(new.sum())
        return ordered[new]

"""Times and time zones: texts and local times to unix seconds, and unix seconds to slots of the local clock."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem

BAD = int(np.iinfo(np.int64).min)
"""Stands for a time that cannot be read."""

EPOCH, LOCAL_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
SECOND = timedelta(seconds=1)
DAY, HOUR = 86_400, 3_600
EARLIEST, LATEST = ((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND for year in (1900, 2200))
"""Times outside are taken for unreadable ones, such as milliseconds where seconds are meant."""


def time_zone(name: str) -> tzinfo:
    """The time zone of that name in the IANA database."""
    if name == "UTC":  # known even where there is no database
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        raise InvalidProblem(
            f"there is no time zone {name!r}; give a name such as 'UTC', 'Europe/Zurich' or 'Asia/Kolkata' "
            "(where no zone is found at all, install the tzdata package)"
        ) from None


def from_text(texts: Iterable[str], zone: tzinfo) -> IntArray:
    """Unix seconds of ISO 8601 texts and of texts that are numbers; ISO times with no offset are in ``zone``."""
    seconds, naive = [], []
    for text in texts:
        second, local = _read(text)
        seconds.append(second)
        naive.append(local)
    times, local_times = np.array(seconds, dtype=np.int64), np.array(naive, dtype=bool)
    if local_times.any():
        times[local_times] = from_local(times[local_times], zone)
    return times


def from_numbers(values: FloatArray) -> IntArray:
    """Whole unix seconds, rounded down; ``BAD`` where they are not finite or far from our times."""
    fits = (values >= EARLIEST) & (values < LATEST)
    return np.where(fits, np.floor(np.where(fits, values, 0.0)).astype(np.int64), BAD)


def from_local(seconds: IntArray, zone: tzinfo) -> IntArray:
    """Unix seconds of local times (given as the seconds a clock in ``zone`` shows since its 1970).

    An hour that comes twice, when clocks go back, is taken to be the first; one that is left out, when they
    go forward, is read as if they had not.
    """
    known = (seconds >= EARLIEST + DAY) & (seconds < LATEST - DAY)
    shift = _offsets(np.where(known, seconds, 0), lambda second: _offset(zone, LOCAL_EPOCH + second * SECOND))
    return np.where(known, seconds - shift, BAD)


def slots(times: IntArray, length: int, zone: tzinfo) -> IntArray:
    """The number of the slot each time is in; slots of ``length`` seconds start at midnight in ``zone``.

    Up to an hour, only the offset's remainder moves the slots: the hour that comes twice a year then has its
    slots twice. Longer slots, such as days, follow the clock, so that a day with 25 hours is one slot.
    """
    if zone is UTC:
        return np.asarray(times // length)
    shift = _offsets(times, lambda second: _offset(zone, EPOCH + second * SECOND))
    return np.asarray((times + (shift % length if length <= HOUR else shift)) // length)


def _read(text: str) -> tuple[int, bool]:
    """The second a text says, and whether it is a local one."""
    if text.isdecimal():
        return _in_range(int(text[:20])), False
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return _read_number(text), False
    if moment.tzinfo is None:
        return _in_range((moment - LOCAL_EPOCH) // SECOND), True
    return _in_range((moment - EPOCH) // SECOND), False


def _read_number(text: str) -> int:
    try:
        return int(from_numbers(np.array(float(text))))
    except ValueError:
        return BAD


def _in_range(second: int) -> int:
    return second if EARLIEST <= second < LATEST else BAD


def _offsets(seconds: IntArray, offset: Callable[[int], int]) -> IntArray:
    """What ``offset`` says of every second, asked once a day where the day's two ends agree."""
    days, day = np.unique(seconds // DAY, return_inverse=True)
    ends = {int(end): offset(int(end) * DAY) for end in np.union1d(days, days + 1)}
    first = np.array([ends[int(each)] for each in days], dtype=np.int64)
    last = np.array([ends[int(each) + 1] for each in days], dtype=np.int64)
    found = first[day]
    for place in np.flatnonzero((first != last)[day]):
        found[place] = offset(int(seconds[place]))
    return found


def _offset(zone: tzinfo, moment: datetime) -> int:
    """Seconds east of UTC in ``zone`` at a moment: one with UTC's mark, or one as a clock there shows it."""
    there = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    return (there.utcoffset() or timedelta()) // SECOND

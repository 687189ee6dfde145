"""Times and time zones: texts and local times to unix seconds, and unix seconds to slots of the local clock."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem

BAD = int(np.iinfo(np.int64).min)
"""Stands for a time that cannot be read."""

EPOCH, LOCAL_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
SECOND = timedelta(seconds=1)
DAY, HOUR = 86_400, 3_600
EARLIEST, LATEST = ((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND for year in (1900, 2200))
"""Times outside are taken for unreadable ones."""

RECENT = (datetime(1980, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
"""From here on milliseconds, and finer, are told from seconds by their size."""

Dates = Literal["day-first", "month-first"]

PLAIN_DATE = re.compile(r"(19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""20240301 is a day, not the second of that number."""

WRITTEN_DATE = re.compile(
    r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T,]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
)
"""31/12/2024, 31.12.2024 23:59, 12-31-2024 11:59:59 PM."""


def from_text(texts: Iterable[str], zone: tzinfo, dates: Dates | None = None) -> IntArray:
    """Unix seconds of texts: ISO 8601, numbers (unix time), and dates such as 31/12/2024 where their order is known.

    What has no offset is in ``zone``.
    """
    seconds, naive = [], []
    for text in texts:
        second, local = _read(text, dates)
        seconds.append(second)
        naive.append(local)
    times, local_times = np.array(seconds, dtype=np.int64), np.array(naive, dtype=bool)
    if local_times.any():
        times[local_times] = from_local(times[local_times], zone)
    return times


def from_numbers(values: FloatArray) -> IntArray:
    """Whole unix seconds, rounded down, of unix time in seconds, milli-, micro- or nanoseconds, as the size tells.

    ``BAD`` where they are not finite or far from our times.
    """
    found = np.full(values.shape, BAD)
    for unit in (1.0, 1e3, 1e6, 1e9):
        scaled = values / unit
        fits = (found == BAD) & (scaled >= EARLIEST) & (scaled < LATEST) & ((unit == 1.0) | (scaled >= RECENT))
        found[fits] = np.floor(scaled[fits]).astype(np.int64)
    return found


def date_order(texts: Iterable[str], where: str) -> Dates | None:
    """In which order dates such as 31/12/2024 have day and month, as their numbers tell; None where there are none.

    Raises:
        InvalidProblem: both orders are possible for all of them, or neither is.
    """
    pairs = [(int(found[1]), int(found[2])) for found in map(WRITTEN_DATE.fullmatch, texts) if found]
    if not pairs:
        return None
    day_first, month_first = (all(pair[place] <= 12 for pair in pairs) for place in (1, 0))
    if day_first == month_first:
        raise InvalidProblem(
            f"{where} has dates such as 03/04/2024, which may have the day or the month first: say dates='day-first' "
            "or dates='month-first' (on the command line: --dates)"
        )
    return "day-first" if day_first else "month-first"


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
    shift = local(times, zone) - times
    return np.asarray((times + (shift % length if length <= HOUR else shift)) // length)


def local(times: IntArray, zone: tzinfo) -> IntArray:
    """The seconds that a clock in ``zone`` shows since its 1970, at each unix time."""
    if zone is UTC:
        return times
    return np.asarray(times + _offsets(times, lambda second: _offset(zone, EPOCH + second * SECOND)))


def _read(text: str, dates: Dates | None) -> tuple[int, bool]:
    """The second a text says, and whether it is a local one."""
    text = text.strip()
    if text.isdecimal() and not PLAIN_DATE.fullmatch(text):
        return _read_number(text), False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        written = WRITTEN_DATE.fullmatch(text) if dates is not None else None
        if written is None:
            return _read_number(text), False
        return _read_written(written, dates == "day-first"), True
    if moment.tzinfo is None:
        return _in_range((moment - LOCAL_EPOCH) // SECOND), True
    return _in_range((moment - EPOCH) // SECOND), False


def _read_written(found: re.Match[str], day_first: bool) -> int:
    """The local second of a date such as 31/12/2024, with the time of day if there is one."""
    first, second, year, hour, minute, seconds, half = found.groups()
    day, month = (first, second) if day_first else (second, first)
    try:
        hours = int(hour or 0)
        if half is not None:
            if not 1 <= hours <= 12:
                return BAD
            hours = hours % 12 + (12 if half.lower() == "p" else 0)
        moment = datetime(int(year), int(month), int(day), hours, int(minute or 0), int(seconds or 0))
    except ValueError:
        return BAD
    return _in_range((moment - LOCAL_EPOCH) // SECOND)


def _read_number(text: str) -> int:
    try:
        return int(from_numbers(np.array([float(text)]))[0])
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

"""Timestamps: texts, numbers and local times as unix seconds, and unix seconds as slots of the local clock."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem

UNREADABLE = int(np.iinfo(np.int64).min)
"""Stands for a time that cannot be read."""

NO_TIME = UNREADABLE + 1
"""Stands for a time that a position was recorded without."""

EPOCH, LOCAL_EPOCH = datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)
SECOND = timedelta(seconds=1)
DAY, HOUR = 86_400, 3_600

EARLIEST, LATEST = ((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // SECOND for year in (1900, 2200))
"""Unix seconds between which a time counts as readable."""

EARLIEST_SUBSECOND = (datetime(1980, 1, 1, tzinfo=UTC) - EPOCH) // SECOND
"""Unix second from which milli-, micro- and nanoseconds are told from seconds by their size."""

DateOrder = Literal["day-first", "month-first"]
"""The order of day and month in dates such as 31/12/2024."""

COMPACT_DATE = re.compile(r"(19|20|21)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""20240301 is a day, not the second of that number."""

WRITTEN_DATE = re.compile(
    r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T,]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?([AaPp])\.?[Mm]\.?)?)?"
)
"""31/12/2024, 31.12.2024 23:59, 12-31-2024 11:59:59 PM."""


def seconds_from_texts(texts: Iterable[str], zone: tzinfo, dates: DateOrder | None = None) -> IntArray:
    """Unix seconds of texts: ISO 8601, unix time, and dates such as 31/12/2024 if their order is given.

    Times without an offset are in ``zone``.
    """
    seconds, without_offset = [], []
    for text in texts:
        second, is_local = _parse(text, dates)
        seconds.append(second)
        without_offset.append(is_local)
    times, local_times = np.array(seconds, dtype=np.int64), np.array(without_offset, dtype=bool)
    if local_times.any():
        times[local_times] = seconds_from_local(times[local_times], zone)
    return times


def seconds_if_given(texts: Sequence[str], zone: tzinfo) -> IntArray:
    """Unix seconds of texts, as by :func:`seconds_from_texts`; ``NO_TIME`` for empty ones."""
    times = seconds_from_texts(texts, zone)
    times[[not text.strip() for text in texts]] = NO_TIME
    return times


def seconds_from_numbers(values: FloatArray) -> IntArray:
    """Unix seconds, rounded down, of unix time in seconds, milli-, micro- or nanoseconds, as the size tells.

    ``UNREADABLE`` where a number is not finite, or a time before 1900 or after 2199.
    """
    seconds = np.full(values.shape, UNREADABLE)
    for unit in (1.0, 1e3, 1e6, 1e9):
        scaled = values / unit
        earliest = EARLIEST if unit == 1.0 else EARLIEST_SUBSECOND
        fits = (seconds == UNREADABLE) & (scaled >= earliest) & (scaled < LATEST)
        seconds[fits] = np.floor(scaled[fits]).astype(np.int64)
    return seconds


def detect_date_order(texts: Iterable[str], source: str) -> DateOrder | None:
    """The order of day and month in dates such as 31/12/2024; None if there are no such dates.

    Args:
        texts: the times of the first rows.
        source: what messages call the file.

    Raises:
        InvalidProblem: both orders are possible for all of them, or neither is.
    """
    pairs = [(int(match[1]), int(match[2])) for match in map(WRITTEN_DATE.fullmatch, texts) if match]
    if not pairs:
        return None
    day_first, month_first = (all(pair[month] <= 12 for pair in pairs) for month in (1, 0))
    if day_first == month_first:
        raise InvalidProblem(
            f"{source} has dates such as 03/04/2024, which may have the day or the month first: say dates='day-first' "
            "or dates='month-first' (on the command line: --dates)"
        )
    return "day-first" if day_first else "month-first"


def seconds_from_local(seconds: IntArray, zone: tzinfo) -> IntArray:
    """Unix seconds of local times, given as the seconds since 1970 that a clock in ``zone`` shows.

    An hour that occurs twice, when clocks go back, is read as the first one; an hour that is skipped, when they go
    forward, is read as if they had not.
    """
    readable = (seconds >= EARLIEST + DAY) & (seconds < LATEST - DAY)
    offsets = _offsets(np.where(readable, seconds, 0), lambda second: _offset(zone, LOCAL_EPOCH + second * SECOND))
    return np.where(readable, seconds - offsets, UNREADABLE)


def slot_numbers(times: IntArray, length: int, zone: tzinfo) -> IntArray:
    """The number of the slot of each time; slots of ``length`` seconds start at midnight in ``zone``.

    For slots of up to an hour only the remainder of the offset matters, so that the hour that occurs twice a year has
    its slots twice. Longer slots, such as days, follow the clock, so that a day of 25 hours is one slot.
    """
    if zone is UTC:
        return np.asarray(times // length)
    offsets = local_seconds(times, zone) - times
    return np.asarray((times + (offsets % length if length <= HOUR else offsets)) // length)


def local_seconds(times: IntArray, zone: tzinfo) -> IntArray:
    """The seconds since 1970 that a clock in ``zone`` shows at each unix time."""
    if zone is UTC:
        return times
    return np.asarray(times + _offsets(times, lambda second: _offset(zone, EPOCH + second * SECOND)))


def _parse(text: str, dates: DateOrder | None) -> tuple[int, bool]:
    """The second that a text denotes, and whether it is a local one."""
    text = text.strip()
    if text.isdecimal() and not COMPACT_DATE.fullmatch(text):
        return _parse_number(text), False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        written = WRITTEN_DATE.fullmatch(text) if dates is not None else None
        if written is None:
            return _parse_number(text), False
        return _parse_written(written, day_first=dates == "day-first"), True
    if moment.tzinfo is None:
        return _in_range((moment - LOCAL_EPOCH) // SECOND), True
    return _in_range((moment - EPOCH) // SECOND), False


def _parse_written(date: re.Match[str], *, day_first: bool) -> int:
    """The local second of a date such as 31/12/2024, with or without a time of day."""
    first, second, year, hour, minute, seconds, half = date.groups()
    day, month = (first, second) if day_first else (second, first)
    try:
        hours = int(hour or 0)
        if half is not None:
            if not 1 <= hours <= 12:
                return UNREADABLE
            hours = hours % 12 + (12 if half.lower() == "p" else 0)
        moment = datetime(int(year), int(month), int(day), hours, int(minute or 0), int(seconds or 0))
    except ValueError:
        return UNREADABLE
    return _in_range((moment - LOCAL_EPOCH) // SECOND)


def _parse_number(text: str) -> int:
    try:
        return int(seconds_from_numbers(np.array([float(text)]))[0])
    except ValueError:
        return UNREADABLE


def _in_range(second: int) -> int:
    return second if EARLIEST <= second < LATEST else UNREADABLE


def _offsets(seconds: IntArray, offset: Callable[[int], int]) -> IntArray:
    """The offset at every second, evaluated once a day where those at the day's two ends agree."""
    days, day_of = np.unique(seconds // DAY, return_inverse=True)
    at_midnight = {int(day): offset(int(day) * DAY) for day in np.union1d(days, days + 1)}
    first = np.array([at_midnight[int(day)] for day in days], dtype=np.int64)
    last = np.array([at_midnight[int(day) + 1] for day in days], dtype=np.int64)
    offsets = first[day_of]
    for index in np.flatnonzero((first != last)[day_of]):
        offsets[index] = offset(int(seconds[index]))
    return offsets


def _offset(zone: tzinfo, moment: datetime) -> int:
    """Seconds east of UTC in ``zone``, at a moment in UTC or, without a time zone, at a local one."""
    local = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    return (local.utcoffset() or timedelta()) // SECOND

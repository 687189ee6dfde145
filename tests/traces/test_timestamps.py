"""Times against the standard library, one by one."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames.time_zones import time_zone
from privacygames.traces import timestamps as times

ZONES = ["UTC", "Europe/Zurich", "Asia/Kolkata", "America/St_Johns", "Atlantic/Azores", "Australia/Lord_Howe"]
moments = st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(microsecond=0))


def seconds_of(text: str, zone: str = "UTC") -> int:
    return int(times.seconds_from_texts([text], time_zone(zone))[0])


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("1970-01-02", 86_400),
        ("2008-10-23T02:53:04Z", 1_224_730_384),
        ("2008-10-23 02:53:04", 1_224_730_384),
        (" 2008-10-23 02:53:04.9+00:00 ", 1_224_730_384),
        ("2008-10-23T08:23:04+0530", 1_224_730_384),
        ("2008-10-22T23:23:04-03:30", 1_224_730_384),
        ("1224730384", 1_224_730_384),
        ("1224730384.75", 1_224_730_384),
        ("-0.5", -1),
    ],
)
def test_texts_that_are_times(text: str, second: int) -> None:
    assert seconds_of(text) == second


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "nan",
        "inf",
        "2008-13-01",
        "2008-10-23T25:00:00",
        "9" * 400,
        "0001-01-01",
        "3000-01-01",
    ],
)
def test_texts_that_are_not(text: str) -> None:
    assert seconds_of(text) == times.UNREADABLE


@given(st.lists(moments, min_size=1, max_size=20), st.sampled_from(ZONES))
def test_local_times_are_what_the_standard_library_says(local: list[datetime], zone: str) -> None:
    found = times.seconds_from_texts([moment.isoformat() for moment in local], time_zone(zone))
    expected = [int(moment.replace(tzinfo=ZoneInfo(zone)).timestamp()) for moment in local]
    assert found.tolist() == expected


@given(st.lists(moments, min_size=1, max_size=20), st.sampled_from(ZONES), st.sampled_from([600, 1800, 86_400]))
def test_slots_start_at_local_midnight(instants: list[datetime], zone: str, length: int) -> None:
    """Two times are in one slot exactly when the local clock's date, and slot of the day, and offset agree."""
    aware = [instant.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for instant in instants]
    seconds = np.array([int(each.timestamp()) for each in aware])
    found = times.slot_numbers(seconds, length, time_zone(zone)).tolist()

    def key(local: datetime) -> tuple[object, ...]:
        of_day = (local.hour * 3600 + local.minute * 60 + local.second) // length
        twice = local.fold if length <= 3600 else 0
        return local.date(), of_day, twice

    for a, b in zip(aware, found, strict=True):
        for c, d in zip(aware, found, strict=True):
            assert (key(a) == key(c)) == (b == d)


@pytest.mark.parametrize("name", ["Europe/Zurich", "Atlantic/Azores"])  # the latter from UTC to west of it
def test_the_hour_that_comes_twice_has_its_slots_twice_and_its_day_once(name: str) -> None:
    zone = time_zone(name)
    start = int(datetime(2024, 10, 27, tzinfo=ZoneInfo(name)).timestamp())  # midnight of a day with 25 hours
    day = np.arange(start, start + 25 * 3600)
    assert len(np.unique(times.slot_numbers(day, 600, zone))) == 150
    assert len(np.unique(times.slot_numbers(day, 86_400, zone))) == 1
    assert len(np.unique(times.slot_numbers(np.append(day, [start - 1, start + 25 * 3600]), 86_400, zone))) == 3


def test_half_hour_zones_move_hourly_slots() -> None:
    half_past = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)
    around = np.array([int((half_past + timedelta(seconds=step)).timestamp()) for step in (-1, 0, 1)])
    utc, kolkata = (times.slot_numbers(around, 3600, time_zone(zone)) for zone in ("UTC", "Asia/Kolkata"))
    assert len(set(utc.tolist())) == 1
    assert kolkata[0] != kolkata[1] == kolkata[2]


@pytest.mark.parametrize("name", ["Mars/Base", "", "../etc/passwd", "America", None])
def test_unknown_zones(name: str) -> None:
    with pytest.raises(pg.InvalidProblem, match="there is no time zone"):
        time_zone(name)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1709251200000", "2024-03-01T00:00:00+00:00"),
        ("1709251200000000", "2024-03-01T00:00:00+00:00"),
        ("1709251200000000000", "2024-03-01T00:00:00+00:00"),
        ("1709251200.75", "2024-03-01T00:00:00+00:00"),
        ("20240301", "2024-03-01T00:00:00+00:00"),
        ("19991231", "1999-12-31T00:00:00+00:00"),
        ("20241399", "1970-08-23T06:36:39+00:00"),
    ],
)
def test_unix_times_of_every_unit_and_plain_dates(text: str, moment: str) -> None:
    """20240301 was read as a second of 1970; milliseconds were no time at all."""
    assert times.seconds_from_texts([text], UTC)[0] == int(datetime.fromisoformat(moment).timestamp())
    assert times.seconds_from_numbers(np.array([float(text)]))[0] in (
        int(datetime.fromisoformat(moment).timestamp()),
        int(float(text)),
    )


@pytest.mark.parametrize(
    ("text", "dates", "moment"),
    [
        ("31/12/2024", "day-first", "2024-12-31T00:00:00"),
        ("31.12.2024 23:59", "day-first", "2024-12-31T23:59:00"),
        ("3/4/2024 08:05:09", "day-first", "2024-04-03T08:05:09"),
        ("3/4/2024 08:05:09", "month-first", "2024-03-04T08:05:09"),
        ("12-31-2024, 11:59:59 PM", "month-first", "2024-12-31T23:59:59"),
        ("12/31/2024 12:00 am", "month-first", "2024-12-31T00:00:00"),
        ("31/12/2024 10:00:00.250", "day-first", "2024-12-31T10:00:00"),
    ],
)
def test_dates_as_people_write_them(text: str, dates: times.DateOrder, moment: str) -> None:
    expected = int(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())
    assert times.seconds_from_texts([text], UTC, dates)[0] == expected


@pytest.mark.parametrize("text", ["31/12/2024", "32/12/2024", "12/31/2024 13:00 PM", "31/31/2024"])
def test_written_dates_that_are_none(text: str) -> None:
    assert times.seconds_from_texts([text], UTC)[0] == times.UNREADABLE  # nobody said in which order
    assert times.seconds_from_texts([text], UTC, "month-first")[0] == times.UNREADABLE


def test_the_order_of_dates_is_told_by_their_numbers_or_asked_for() -> None:
    assert times.detect_date_order(["2024-03-01", "soon", ""], "a.csv") is None
    assert times.detect_date_order(["03/04/2024", "13/04/2024 10:00"], "a.csv") == "day-first"
    assert times.detect_date_order(["03/04/2024", "03/14/2024"], "a.csv") == "month-first"
    for texts in (["03/04/2024", "05/06/2024"], ["13/04/2024", "04/13/2024"]):
        with pytest.raises(pg.InvalidProblem, match=r"a.csv has dates such as 03/04/2024") as caught:
            times.detect_date_order(texts, "a.csv")
        assert texts[1] not in str(caught.value)

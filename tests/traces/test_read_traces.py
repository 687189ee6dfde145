"""``read``: what it asks, what it refuses, what it counts, and that it streams."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
import support  # noqa: F401 - registers the hypothesis profile

WINDOW = (6.0, 46.0, 7.0, 47.0)
GOOD = "uid,datetime,lat,lng\nanna,2024-01-01 00:00:01,46.5,6.5\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "fixes.csv"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "shp"}, "no format 'shp'; choose from geolife, checkins, gpx, geojson, kml, timeline, table"),
        ({"format": "counts"}, "read_counts"),
        ({"format": "gpx", "columns": {"user": "uid"}}, "columns goes with the format 'table'"),
        ({"timezone": "Mars/Base"}, "no time zone 'Mars/Base'"),
        ({"window": (7.0, 46.0, 6.0, 47.0)}, "west < east"),
        ({"window": (6.0, 47.0, 7.0, 46.0)}, "south < north"),
        ({"window": (6.0, 46.0, 7.0, 97.0)}, "south < north"),
        ({"window": (6.0, 46.0, 7.0)}, "four numbers"),
        ({"slot": 0}, "slot is 0"),
        ({"slot": 2.5}, "slot is 2.5"),
        ({"slot": 86_401}, "slot is 86401"),
        ({"users": "anna"}, "a list of names"),
        ({"users": []}, "users is empty"),
        ({"users": ["ben"]}, "holds no visits: 1 rows read, 1 other user \\(first: fixes.csv, line 2\\)"),
        ({"window": (0.0, 0.0, 1.0, 1.0)}, "1 outside the window \\(first: fixes.csv, line 2\\)"),
    ],
)
def test_what_cannot_be_asked(table: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.traces.read(table, **{"format": "table", **options})


@pytest.mark.parametrize("form", ["geolife", "checkins", "gpx", "geojson", "kml", "timeline", "table"])
def test_nothing_to_read(tmp_path: Path, form: str) -> None:
    with pytest.raises(pg.InvalidProblem, match="nowhere cannot be read: there is no such file or folder"):
        pg.traces.read(tmp_path / "nowhere", format=form)
    with pytest.raises(pg.InvalidProblem, match="holds no files ending in"):
        pg.traces.read(tmp_path, format=form)
    (tmp_path / "empty").write_text("")
    with pytest.raises(pg.InvalidProblem, match=r"empty (holds no visits|is not a whole JSON document)"):
        pg.traces.read(tmp_path / "empty", format=form)


@pytest.mark.parametrize("block", [40, 1 << 20])
def test_nothing_but_broken_lines_says_how_many_and_where_but_not_what(
    table: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacygames.csv_reader.BLOCK", block)
    table.write_text("uid,datetime,lat,lng\nanna\nanna,soon,46.512,6.5\nanna,soon,46.512,6.5\nanna,1704067200,91,6.5\n")
    with pytest.raises(pg.InvalidProblem) as caught:
        pg.traces.read(table, format="table")
    assert str(caught.value) == (
        "fixes.csv holds no visits: 4 rows read, 1 broken line (first: fixes.csv, line 2), "
        "2 bad time (first: fixes.csv, line 3), 1 bad coordinates (first: fixes.csv, line 5)"
    )


def test_visits_do_not_show_places(table: Path) -> None:
    visits = pg.traces.read(table, format="table")
    assert repr(visits) == "Visits(1 visits of 1 users, 1 rows read as table)"


def test_of_two_fixes_in_one_second_the_first_read_counts(table: Path) -> None:
    table.write_text(GOOD + "anna,2024-01-01 00:00:01,46.9,6.9\n")
    assert pg.traces.read(table, format="table").latitude.tolist() == [46.5]
    assert pg.traces.read(table, format="table", slot=None).latitude.tolist() == [46.5, 46.9]


lines = st.one_of(
    st.sampled_from(["", "anna", "anna,1704067200,46.5,6.5,more", ",1704067200,46.5,6.5", "anna,soon,46.5,6.5"]),
    st.builds(
        "{},{},{},{}".format,
        st.sampled_from(["anna", "ben", "cleo"]),
        st.integers(1_704_067_200, 1_704_067_200 + 5000),
        st.sampled_from(["46", "46.5", "47", "47.1", "-91", "nan", "north"]),
        st.sampled_from(["6", "6.25", "7", "5.9", "181", "inf"]),
    ),
)


@given(st.lists(lines, max_size=60), st.sampled_from([None, 1, 600, 1700]), st.sampled_from([1, 7, 1 << 18]))
def test_every_row_is_a_visit_or_counted_once(body: list[str], slot: int | None, pending: int) -> None:
    """Against a plain loop over the lines; merging early or late makes no difference."""
    first: dict[tuple[str, int], tuple[int, float, float]] = {}
    why: Counter[str] = Counter()
    for number, line in enumerate(body):
        fields = line.split(",")
        if not line:
            continue
        if len(fields) != 4 or not fields[0]:
            why["broken line"] += 1
        elif fields[1] == "soon":
            why["bad time"] += 1
        elif fields[2] in ("-91", "nan", "north") or fields[3] in ("181", "inf"):
            why["bad coordinates"] += 1
        elif not (6 <= float(fields[3]) <= 7 and 46 <= float(fields[2]) <= 47):
            why["outside the window"] += 1
        else:
            second = int(fields[1])
            key = fields[0], number if slot is None else second // slot
            why["same slot"] += key in first
            fix = second, float(fields[2]), float(fields[3])
            first[key] = fix if key not in first or second < first[key][0] else first[key]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("privacygames.traces.visit_collector.PENDING", pending)
        patch.setattr("privacygames.csv_reader.BLOCK", 64)
        path = Path(folder) / "fixes.csv"
        path.write_text("uid,datetime,lat,lng\n" + "\n".join(body))
        if not first:
            with pytest.raises(pg.InvalidProblem, match="holds no visits"):
                pg.traces.read(path, format="table", window=WINDOW, slot=slot)
            return
        visits = pg.traces.read(path, format="table", window=WINDOW, slot=slot)
    expected = sorted((user, *fix) for (user, _), fix in first.items())
    users = [visits.users[code] for code in visits.user]
    found = list(zip(users, visits.time.tolist(), visits.latitude.tolist(), visits.longitude.tolist(), strict=True))
    assert sorted(found) == expected
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    assert {reason: many for reason, many in visits.skipped.items() if many} == dict(+why)
    assert visits.rows == len(visits) + sum(visits.skipped.values())


def write_million(path: Path) -> None:
    minutes = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(60)]
    with path.open("w") as file:
        file.write("uid,datetime,lat,lng\n")
        for user in range(50):
            for day in range(1, 15):
                file.write("".join(f"{user},2024-01-{day:02} {when}:00,46.5,6.5\n" for when in minutes[:1430]))
        file.writelines("broken\n" for _ in range(10))


@pytest.mark.slow
def test_a_million_rows_are_read_as_a_stream(tmp_path: Path) -> None:
    """In far less memory than the rows would take (a gigabyte as Python objects)."""
    write_million(tmp_path / "fixes.csv")
    code = (
        "import re, sys, privacygames as pg\n"
        "from pathlib import Path\n"
        "def peak():\n"
        "    status = Path('/proc/self/status')\n"
        "    return int(re.search(r'VmHWM:\\s*(\\d+)', status.read_text())[1]) // 1024 if status.exists() else 0\n"
        "shares = []\n"
        "read, before = pg.traces.read, peak()\n"
        "visits = read(sys.argv[1], format='table', progress=lambda now: shares.append(now.share))\n"
        "assert shares[0] < 0.05 and shares == sorted(shares) and shares[-1] == 1.0\n"
        "print(len(visits), visits.rows, peak() - before)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "fixes.csv"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    visits, rows, megabytes = map(int, done.stdout.split())
    assert (visits, rows) == (50 * 14 * 143, 1_001_010)
    assert megabytes < 120


def test_more_users_and_files_change_nothing_for_the_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{rng.integers(5)},{1_704_067_200 + rng.integers(10**5)},46.5,6.{rng.integers(10)}" for _ in range(500)]
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "one.csv").write_text("\n".join(["uid,t,lat,lon", *rows]))
    (tmp_path / "parts").mkdir()
    for part in range(3):
        (tmp_path / "parts" / f"{part}.csv").write_text("\n".join(["uid,t,lat,lon", *rows[part::3]]))
    whole, parts = (pg.traces.read(tmp_path / name, format="table") for name in ("all", "parts"))
    assert whole.time.tolist() == parts.time.tolist()
    assert dict(whole.skipped) == dict(parts.skipped)
    alone = pg.traces.read(tmp_path / "all", format="table", users=["3"])
    assert alone.time.tolist() == whole.time[whole.user == whole.users.index("3")].tolist()


FIXES = "user,time,lat,lng\nann,2024-03-01T08:00:00,46.52,6.6\nann,2024-03-01T09:00:00,46.53,6.61\n"


def test_the_format_is_told_by_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FIXES)
    (tmp_path / "a.txt").write_text("ann\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n")
    (tmp_path / "b.txt").write_text(FIXES.replace(",", "\t"))
    (tmp_path / "c.tsv").write_text("\n" + FIXES.replace(",", ";"))
    (tmp_path / "d.csv").write_text("user,cell,visits\nann,3,4\n")
    (tmp_path / "e.txt").write_text("hello\n")
    (tmp_path / "f.gpx").write_text("<gpx/>")
    told = {
        name: pg.traces.detect_format(tmp_path / name)
        for name in ("a.csv", "a.txt", "b.txt", "c.tsv", "d.csv", "f.gpx")
    }
    assert list(told.values()) == ["table", "checkins", "table", "table", "counts", "gpx"]
    assert pg.traces.read(tmp_path / "a.csv").format == "table"
    assert pg.traces.read(tmp_path / "a.txt").format == "checkins"
    assert len(pg.traces.read(tmp_path / "b.txt")) == len(pg.traces.read(tmp_path / "c.tsv")) == 2
    with pytest.raises(pg.InvalidProblem, match="cannot be told"):
        pg.traces.read(tmp_path / "e.txt")
    with pytest.raises(pg.InvalidProblem, match="read_counts"):
        pg.traces.read(tmp_path / "d.csv")
    with pytest.raises(pg.InvalidProblem, match="several formats"):
        pg.traces.read(tmp_path)
    with pytest.raises(pg.UnreadableFile, match="nowhere"):
        pg.traces.read(tmp_path / "nowhere")


def test_what_people_have_is_read(tmp_path: Path) -> None:
    """Unix milliseconds, decimal commas, dates with the day first."""
    (tmp_path / "a.csv").write_text("user;time;lat;lng\nann;1709280000000;46,52;6,6\nann;1709283600000;46,53;6,61\n")
    (tmp_path / "b.csv").write_text(
        "user,time,lat,lng\nann,01/03/2024 08:00,46.52,6.6\nann,31/03/2024 09:00,46.53,6.61\n"
    )
    milli = pg.traces.read(tmp_path / "a.csv")
    assert milli.latitude.tolist() == [46.52, 46.53]
    assert milli.time.tolist() == [1709280000, 1709283600]
    assert pg.traces.read(tmp_path / "b.csv").time[0] == 1709280000
    (tmp_path / "b.csv").write_text("user,time,lat,lng\nann,01/03/2024 08:00,46.52,6.6\n")
    with pytest.raises(pg.InvalidProblem, match="the day or the month first"):
        pg.traces.read(tmp_path / "b.csv")
    assert pg.traces.read(tmp_path / "b.csv", dates="day-first").time[0] == 1709280000
    assert pg.traces.read(tmp_path / "b.csv", dates="month-first").time[0] == 1704268800
    with pytest.raises(pg.InvalidProblem, match="dates is 'iso'"):
        pg.traces.read(tmp_path / "b.csv", dates="iso")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_in_memory_are_read(kind: str, tmp_path: Path) -> None:
    library = pytest.importorskip(kind)
    (tmp_path / "a.csv").write_text(FIXES)
    columns = {
        "user": ["ann", "ann"],
        "time": ["2024-03-01T08:00:00", "2024-03-01T09:00:00"],
        "lat": [46.52, 46.53],
        "lng": [6.6, 6.61],
    }
    frame = library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)
    read, expected = pg.traces.read(frame), pg.traces.read(tmp_path / "a.csv")
    assert (read.time == expected.time).all()
    assert (read.latitude == expected.latitude).all()
    assert read.format == "table"
    with pytest.raises(pg.InvalidProblem, match="has the format 'table'"):
        pg.traces.read(frame, format="gpx")
    with pytest.raises(pg.InvalidProblem, match="from a path, or from a table"):
        pg.traces.read(5)


def test_coordinates_the_wrong_way_round_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FIXES.replace("lat,lng", "lng,lat"))
    with pytest.raises(pg.InvalidProblem, match="2 would lie inside with latitude and longitude swapped"):
        pg.traces.read(tmp_path / "a.csv", window=(6.5, 46.5, 6.7, 46.6))

"""Tables: CSV and Parquet, whatever the columns are called and the times look like."""

import builtins
import gzip
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import privacygames as pg

MIDNIGHT = 1_704_067_200  # 2024-01-01 UTC


@pytest.mark.parametrize(
    "text",
    [
        "uid,datetime,lat,lng\nanna,2024-01-01 00:00:01,46.5,6.5\n",  # scikit-mobility
        ",t,traj_id,x,y\n0,2024-01-01 00:00:01,anna,6.5,46.5\n",  # MovingPandas
        "trajectory_id;t;lon;lat\nanna;2024-01-01T00:00:01;6.5;46.5\n",
        "\ufeffUser\tTime\tLatitude\tLongitude\r\nanna\t2024-01-01T00:00:01Z\t46.5\t6.5\r\n",
        '"user","note","timestamp","lat","lon"\n"anna","a, ""b""",1704067201,46.5,6.5\n',
        "uid, datetime, lat, lng\n anna , 2024-01-01 00:00:01, 46.5, 6.5\n  , 2024-01-01 00:00:01, 46.5, 6.5\n",
        "uid,tid,datetime,lat,lng\nanna,trip-1,2024-01-01 01:00:01+01:00,46.5,6.5",  # no end of line
    ],
)
def test_column_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "fixes.csv").write_text(text, encoding="utf-8", newline="")
    visits = pg.traces.read(tmp_path / "fixes.csv", format="table")
    assert (visits.users, visits.time.tolist()) == (("anna",), [MIDNIGHT + 1])
    assert (visits.latitude.tolist(), visits.longitude.tolist()) == ([46.5], [6.5])


def test_columns_by_option(tmp_path: Path) -> None:
    (tmp_path / "fixes.csv").write_text("who,uid,when,lat,lng\nanna,7,2024-01-01 00:00:01,46.5,6.5\n")
    visits = pg.traces.read(tmp_path, format="table", columns={"user": "who", "time": "when"})
    assert visits.users == ("anna",)
    with pytest.raises(pg.InvalidProblem, match="no key 'person'; it may have user, time, latitude, longitude"):
        pg.traces.read(tmp_path, format="table", columns={"person": "who"})
    with pytest.raises(
        pg.InvalidProblem, match="no column for the user \\('nobody'\\); it has who, uid, when, lat, lng"
    ):
        pg.traces.read(tmp_path, format="table", columns={"user": "nobody"})
    with pytest.raises(pg.InvalidProblem, match=r"no column for the time .*datetime.*; it has who, uid, when"):
        pg.traces.read(tmp_path, format="table")


def test_a_table_with_no_header_is_not_shown_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "fixes.csv").write_text("anna,2024-01-01 00:00:01,46.512345,6.5\n")
    with pytest.raises(pg.InvalidProblem, match=r"fixes.csv starts with data") as caught:
        pg.traces.read(tmp_path, format="table")
    assert "46.5" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '<gpx><trkpt lat="46.512345" lon="6.5"/></gpx>\n',
        "anna;46\u00b0.46.512345;east\n",
        "uid,datetime,lat,lng\n46.512345".encode("utf-16").decode("latin-1"),
        "46.512345" * 20 + "x\n",
    ],
)
def test_a_file_that_is_no_table_is_not_shown_in_the_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "fixes.csv").write_text(text, encoding="latin-1")
    message = r"fixes.csv has no column for the user .*; it has what does not look like names"
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        pg.traces.read(tmp_path, format="table")
    assert "46.5" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_broken_lines_spoil_nothing_else(tmp_path: Path) -> None:
    good = "anna,2024-01-01 00:{:02}:01,46.5,6.5\n"
    body = good.format(0) + 'an"na,2024-01-01 00:10:01,46.5,6.5\n"anna,2024,46.5,6.5\n' + good.format(20)
    body += (
        "anna,2024-01-01 00:30:01,46.5\n,2024-01-01 00:30:01,46.5,6.5\n"
        + "x" * 3_000_000
        + good.format(30)
        + good.format(40)
    )
    (tmp_path / "fixes.csv").write_bytes(b"uid,datetime,lat,lng\n" + body.encode() + b"\xff\xfe\n" + b"y" * 2_000_000)
    visits = pg.traces.read(tmp_path, format="table", users=["anna"])
    assert (visits.time - MIDNIGHT).tolist() == [1, 1201, 2401]
    assert visits.skipped["broken line"] == 6
    assert visits.skipped["other user"] == 1  # a quote in the middle of a name is part of it
    assert visits.rows == 10


def fixes(**changed: Any) -> pa.Table:
    columns = {
        "uid": ["b", " a", None, "a"],
        "datetime": pa.array([MIDNIGHT, MIDNIGHT + 700, MIDNIGHT, None], pa.timestamp("s", tz="UTC")),
        "lat": [46.5, 46.6, 46.7, 46.8],
        "lng": [6.5, 6.6, 6.7, 6.8],
    }
    return pa.table(columns | changed)


TIMES = {
    "aware": (pa.array([MIDNIGHT, MIDNIGHT + 700, MIDNIGHT, None], pa.timestamp("s", tz="Europe/Zurich")), 0),
    "nanoseconds": (pa.array([MIDNIGHT * 10**9 + 5, (MIDNIGHT + 700) * 10**9, 0, None], pa.timestamp("ns")), 19_800),
    "unix": (pa.array([MIDNIGHT, MIDNIGHT + 700, MIDNIGHT, None]), 0),
    "unix with fractions": (pa.array([MIDNIGHT + 0.25, MIDNIGHT + 700, MIDNIGHT, None]), 0),
    "text": (pa.array(["2024-01-01T00:00:00", "2024-01-01T00:11:40", "", "soon"]), 19_800),
    "categories": (pa.array(["2024-01-01T00:00Z", "2024-01-01T00:11:40Z", "", None]).dictionary_encode(), 0),
    "large text": (pa.array(["2024-01-01T00:00Z", "2024-01-01T00:11:40Z", "", None], pa.large_string()), 0),
}


@pytest.mark.parametrize("kind", TIMES)
def test_parquet_times(tmp_path: Path, kind: str) -> None:
    column, east = TIMES[kind]
    parquet.write_table(fixes(datetime=column), tmp_path / "fixes.parquet")
    visits = pg.traces.read(tmp_path / "fixes.parquet", format="table", timezone="Asia/Kolkata")
    assert visits.users == ("a", "b")
    assert (visits.time + east).tolist() == [MIDNIGHT + 700, MIDNIGHT]
    assert visits.longitude.tolist() == [6.6, 6.5]
    assert (visits.rows, visits.skipped["broken line"], visits.skipped["bad time"]) == (4, 1, 1)


def test_users_that_are_no_number_are_nobody(tmp_path: Path) -> None:
    users = pa.array([7.0, float("nan"), float("nan"), None])
    parquet.write_table(fixes(uid=users), tmp_path / "fixes.parquet")
    visits = pg.traces.read(tmp_path / "fixes.parquet", format="table")
    assert visits.users == ("7",)
    assert visits.skipped["broken line"] == 3


def test_parquet_dates_numbers_and_texts(tmp_path: Path) -> None:
    table = fixes(
        uid=[7, 8, 9, 7],
        datetime=pa.array([datetime(2024, 1, day).date() for day in (1, 2, 3, 4)]),
        lat=pa.array(["46.5", "north", None, "46.8"]).dictionary_encode(),
        lng=pa.array([6, 7, 8, 9], pa.int32()),
    )
    parquet.write_table(table, tmp_path / "fixes.parquet")
    visits = pg.traces.read(tmp_path, format="table")
    assert visits.users == ("7",)
    assert visits.time.tolist() == [MIDNIGHT, MIDNIGHT + 3 * 86_400]
    assert visits.skipped["bad coordinates"] == 2


def test_parquet_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "fixes.parquet").write_text("uid,lat")
    with pytest.raises(pg.InvalidProblem, match=r"fixes.parquet cannot be read as Parquet"):
        pg.traces.read(tmp_path, format="table")
    parquet.write_table(pa.table({"uid": ["a"], "lat": [1.0]}), tmp_path / "fixes.parquet")
    with pytest.raises(pg.InvalidProblem, match=r"no column for the time .*; it has uid, lat"):
        pg.traces.read(tmp_path, format="table")


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet.write_table(fixes(), tmp_path / "fixes.parquet")
    real = builtins.__import__

    def absent(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(pg.InvalidProblem, match=r"install privacygames\[traces\]"):
        pg.traces.read(tmp_path, format="table")


def test_folders_of_both_kinds_are_one_table(tmp_path: Path) -> None:
    parquet.write_table(fixes(), tmp_path / "part-0.parquet")
    (tmp_path / "more").mkdir()
    body = "user,time,lat,lon\na,2024-01-01 00:10:00,1,1\nc,2024-01-01,2,2\n"
    (tmp_path / "more" / "part-1.csv.gz").write_bytes(gzip.compress(body.encode()))
    (tmp_path / "notes.txt").write_text("not read")
    visits = pg.traces.read(tmp_path, format="table")
    assert visits.users == ("a", "b", "c")
    assert visits.latitude.tolist() == [1.0, 46.5, 2.0]


PEAK = """
import resource, sys
import privacygames as pg
import pyarrow.parquet
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
try:
    print(len(pg.traces.read(sys.argv[1])), end=" ")
except pg.InvalidProblem as error:
    print("refused:", error, end=" ")
print("MiB", peak() - before)
"""


def read_in_a_process(path: Path) -> tuple[str, int]:
    """What came of reading a file, and by how many MiB that took the memory of a fresh process."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    said, _, grown = done.stdout.strip().rpartition(" MiB ")
    return said, int(grown)


def small_parquet(path: Path, rows: int, users: Any, **options: Any) -> None:
    places = {"lat": np.full(rows, 46.5), "lng": np.full(rows, 6.5)}
    times = np.arange(rows) * 600 + MIDNIGHT
    parquet.write_table(pa.table({"uid": users, "time": times, **places}), path, compression="zstd", **options)
    assert path.stat().st_size < 300_000


@pytest.mark.slow
def test_a_small_file_of_one_long_name_takes_little_memory(tmp_path: Path) -> None:
    """A name of 50 kB that every row repeats was written out for each of them: 3 GB."""
    packed = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000, dtype=np.int32)), pa.array(["x" * 50_000]))
    small_parquet(tmp_path / "name.parquet", 60_000, packed)
    said, grown = read_in_a_process(tmp_path / "name.parquet")
    assert said == "60000"
    assert grown < 300


@pytest.mark.slow
def test_a_small_file_that_unfolds_to_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    small_parquet(tmp_path / "plain.parquet", 20_000, pa.array(["x" * 20_000] * 20_000), use_dictionary=False)
    said, grown = read_in_a_process(tmp_path / "plain.parquet")
    assert said.startswith("refused: plain.parquet unfolds to over 200 times its size")
    assert grown < 300


def test_so_many_rows_as_no_file_of_that_size_has_are_refused(tmp_path: Path) -> None:
    """Times that differ by the same, and places that never change, take hardly a byte a row."""
    rows = 2_000_000
    alike = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["ann"]))
    encoded = {"use_dictionary": ["uid", "lat", "lng"], "column_encoding": {"time": "DELTA_BINARY_PACKED"}}
    small_parquet(tmp_path / "rows.parquet", rows, alike, **encoded)
    with pytest.raises(pg.TooLarge, match="unfolds to over 200 times"):
        pg.traces.read(tmp_path / "rows.parquet")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_every_kind_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    users = pa.array(["ann", None, " ben", "ann", ""]).cast(kind)
    times = pa.array(["2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z", "2024-01-01", None, "2024-01-01"])
    places = pa.array(["46.5", "46.5", "46,5", "46.5", "46.5"])
    table = pa.table({"uid": users, "time": times, "lat": places, "lng": places.dictionary_encode()})
    parquet.write_table(table, tmp_path / "t.parquet")
    from_file, from_memory = pg.traces.read(tmp_path / "t.parquet"), pg.traces.read(table)
    for visits in (from_file, from_memory):
        assert visits.users == ("ann", "ben")
        assert visits.latitude.tolist() == [46.5, 46.5]
        assert (visits.skipped["broken line"], visits.skipped["bad time"]) == (2, 1)


@pytest.mark.parametrize("form", ["csv", "parquet", "frame"])
def test_a_table_without_users_or_times_is_read_where_the_caller_says_so(tmp_path: Path, form: str) -> None:
    table = pa.table({"lat": [46.5, 46.6, 446.0], "lng": [6.5, 6.6, 6.5]})
    path: Any = tmp_path / f"places.{form}"
    if form == "csv":
        path.write_text("lat,lng\n46.5,6.5\n46.6,6.6\n446.0,6.5\n")
    elif form == "parquet":
        parquet.write_table(table, path)
    with pytest.raises(pg.InvalidProblem, match="no column for the user"):
        pg.traces.read(table if form == "frame" else path)
    visits = pg.traces.read(table if form == "frame" else path, columns={"user": None, "time": None})
    assert (visits.users, visits.has_times, visits.latitude.tolist()) == (("all rows",), False, [46.5, 46.6])
    assert visits.skipped_lines == {"bad coordinates": (4 if form == "csv" else 3,)}
    with pytest.raises(pg.InvalidProblem, match="a position needs its latitude"):
        pg.traces.read(table if form == "frame" else path, columns={"latitude": None})

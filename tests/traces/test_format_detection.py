"""Every format on small files written here, broken lines and all."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import privacygames as pg

WINDOW = (6.0, 46.0, 7.0, 47.0)
HEADER = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
MIDNIGHT = 1_704_067_200  # 2024-01-01 UTC


def nothing_but(**reasons: int) -> dict[str, int]:
    names = ("broken line", "bad time", "bad coordinates", "other user", "outside the window", "same slot")
    return {name: reasons.get(name.replace(" ", "_"), 0) for name in names}


def write_plt(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + body)


def test_geolife(tmp_path: Path) -> None:
    first = (
        "46.5,6.5,0,492,45292.0,2024-01-01,00:20:05\r\n"  # the order of lines does not matter
        "46.1,6.1,0,492,45292.0,2024-01-01,00:00:03\r\n"
        "46.2,6.2,0,492,45292.0,2024-01-01,00:09:59\r\n"  # same slot
        "46.3,6.3,0,492,45292.0,2024-01-01,00:10:00\r\n"
        "400.16,6.3,0,492,45292.0,2024-01-01,00:30:00\r\n"
        "46.3,west,0,492,45292.0,2024-01-01,00:30:00\r\n"
        "46.3,6.3,0,492,45292.0,2024-01-41,00:30:00\r\n"
        "46.3,6.3,0\r\n"
        "\r\n"
        "48.0,6.3,0,492,45292.0,2024-01-01,00:30:00\r\n"
    )
    write_plt(tmp_path / "Data/007/Trajectory/20240101.plt", first)
    write_plt(tmp_path / "Data/007/Trajectory/20240102.plt", "46.6,6.6,0,492,45292.0,2024-01-01,00:00:01\n")
    write_plt(tmp_path / "Data/012/Trajectory/20240101.plt", "46.7,6.7,0,492,45292.0,2024-01-01,00:00:01\n")
    visits = pg.traces.read(tmp_path, format="geolife", window=WINDOW, timezone="Asia/Shanghai")
    assert visits.users == ("007", "012")
    assert visits.user.tolist() == [0, 0, 0, 1]
    assert visits.time.tolist() == [MIDNIGHT + 1, MIDNIGHT + 600, MIDNIGHT + 1205, MIDNIGHT + 1]
    assert visits.latitude.tolist() == [46.6, 46.3, 46.5, 46.7]
    assert visits.longitude.tolist() == [6.6, 6.3, 6.5, 6.7]
    assert visits.rows == 11
    assert visits.skipped == nothing_but(
        broken_line=1, bad_time=1, bad_coordinates=2, outside_the_window=1, same_slot=2
    )


def test_geolife_reads_only_the_users_asked_for(tmp_path: Path) -> None:
    for user in ("000", "001"):
        write_plt(tmp_path / user / "Trajectory" / "a.plt", "46.7,6.7,0,492,45292.0,2024-01-01,00:00:01\n")
    visits = pg.traces.read(tmp_path, format="geolife", users=["001"])
    assert (visits.users, visits.rows) == (("001",), 1)
    with pytest.raises(pg.InvalidProblem, match="no files of the users asked for"):
        pg.traces.read(tmp_path, format="geolife", users=["1"])


@pytest.mark.parametrize("zipped", [False, True])
def test_checkins(tmp_path: Path, zipped: bool) -> None:
    text = (
        "22\t2024-01-01T00:00:01Z\t46.5\t6.5\t8471\n"
        "22\t2024-01-01T00:00:02Z\t46.5\t6.5\t8471\n"
        "9\t2024-01-01T01:00:00Z\t46.6\t6.6\tee81ef22a22411ddb5e97f082c799f59\n"
        "9\t2024-01-01T02:00:00Z\t0.0\t0.0\t00000000000000000000000000000000\n"
        "13\t\t\t\t\n"
        "9 2024-01-01T01:00:00Z 46.6 6.6 spaces\n"
    )
    path = tmp_path / ("checkins.txt.gz" if zipped else "checkins.txt")
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    visits = pg.traces.read(path, format="checkins", window=WINDOW)
    assert visits.users == ("22", "9")
    assert visits.latitude.tolist() == [46.5, 46.6]
    assert visits.skipped == nothing_but(broken_line=1, bad_time=1, outside_the_window=1, same_slot=1)
    everything = pg.traces.read(path, format="checkins", slot=None, users=["9"])
    assert everything.time.tolist() == [MIDNIGHT + 3600, MIDNIGHT + 7200]
    assert everything.skipped == nothing_but(broken_line=1, bad_time=1, other_user=2)


def test_a_gzip_file_cut_short_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "checkins.txt.gz"
    path.write_bytes(gzip.compress(b"22\t2024-01-01T00:00:01Z\t46.5\t6.5\t8471\n" * 50)[:-12])
    with pytest.raises(pg.InvalidProblem, match="not a whole gzip file"):
        pg.traces.read(path, format="checkins")
    path.write_bytes(b"22\t2024-01-01T00:00:01Z\t46.5\t6.5\t8471\n")
    with pytest.raises(pg.InvalidProblem, match="not a whole gzip file"):
        pg.traces.read(path, format="checkins")


GPX = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">
 <metadata><time>2001-01-01T00:00:00Z</time></metadata>
 <wpt lat="46.9" lon="6.9"><time>2024-01-01T05:00:00Z</time></wpt>
 <trk><name>tour</name><trkseg>
  <trkpt lat="46.1" lon="6.1"><ele>400</ele><time>2024-01-01T00:00:01Z</time></trkpt>
  <trkpt lat="46.2" lon="6.2"><time>2024-01-01T05:40:00+05:30</time><extensions><time>no</time></extensions></trkpt>
  <trkpt lat="46.3" lon="6.3"></trkpt>
  <trkpt lon="6.3"><time>2024-01-01T00:30:00Z</time></trkpt>
  <trkpt lat="46.3" lon="6.3"><time>2024-01-01T00:40:00</time></trkpt>
 </trkseg></trk>
</gpx>
"""


def test_gpx(tmp_path: Path) -> None:
    (tmp_path / "anna.gpx").write_text(GPX)
    visits = pg.traces.read(tmp_path / "anna.gpx", format="gpx", timezone="Asia/Kolkata")
    assert visits.users == ("anna",)
    assert visits.time.tolist() == [MIDNIGHT + 2400 - 19_800, MIDNIGHT + 1, MIDNIGHT + 600]
    assert visits.latitude.tolist() == [46.3, 46.1, 46.2]
    assert visits.skipped == nothing_but(bad_time=1, bad_coordinates=1)


def test_gpx_folders_name_their_users(tmp_path: Path) -> None:
    (tmp_path / "ben").mkdir()
    (tmp_path / "ben" / "monday.gpx").write_text(GPX)
    (tmp_path / "ben" / "TUESDAY.GPX").write_text(GPX.replace("2024-01-01", "2024-01-02"))
    (tmp_path / "anna.GPX.gz").write_bytes(gzip.compress(GPX.encode()))
    visits = pg.traces.read(tmp_path, format="gpx")
    assert visits.users == ("anna", "ben")
    assert np.bincount(visits.user).tolist() == [3, 6]


def test_gpx_that_breaks_off_counts_up_to_there(tmp_path: Path) -> None:
    (tmp_path / "anna.gpx").write_text(GPX[: GPX.index('<trkpt lat="46.3"')])
    visits = pg.traces.read(tmp_path / "anna.gpx", format="gpx")
    assert (len(visits), visits.rows, visits.skipped["broken line"]) == (2, 3, 1)


@pytest.mark.parametrize("encoding", ["klingon", "gb2312"])
def test_gpx_in_an_encoding_that_cannot_be_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "anna.gpx").write_text(GPX.replace("UTF-8", encoding))
    with pytest.raises(pg.InvalidProblem, match=r"anna.gpx has an encoding that cannot be read; save it as UTF-8"):
        pg.traces.read(tmp_path, format="gpx")


BOMB = """<?xml version="1.0"?>
<!DOCTYPE gpx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<gpx><trk><trkseg><trkpt lat="46.1" lon="6.1"><time>&c;</time></trkpt></trkseg></trk></gpx>
"""
OUTSIDER = """<?xml version="1.0"?>
<!DOCTYPE gpx SYSTEM "file:///etc/passwd">
<gpx><trk><trkseg><trkpt lat="46.1" lon="6.1"><time>2024-01-01T00:00:01Z</time></trkpt></trkseg></trk></gpx>
"""


@pytest.mark.parametrize("text", [BOMB, OUTSIDER])
def test_gpx_with_declarations_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "anna.gpx").write_text(text)
    with pytest.raises(pg.InvalidProblem, match=r"anna.gpx, line 2: declares a document type or entities"):
        pg.traces.read(tmp_path, format="gpx")


def test_files_that_unfold_without_end_are_refused(tmp_path: Path) -> None:
    """0.4 MB that unfold to one attribute of 400 MiB once took 151 s and 3.4 GiB."""
    packed = tmp_path / "bomb.gpx.gz"
    with gzip.open(packed, "wb", compresslevel=9) as file:
        file.write(b'<gpx><trk name="')
        for _ in range(100):
            file.write(b"a" * 2**20)
        file.write(b'"/></gpx>')
    tracemalloc.start()
    with pytest.raises(pg.InvalidProblem, match="a tag of over 1048576 bytes"):
        pg.traces.read(packed)
    assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    tracemalloc.stop()
    table = tmp_path / "bomb.csv.gz"
    with gzip.open(table, "wb", compresslevel=9) as file:
        file.write(b"user,time,lat,lng\n")
        for _ in range(100):
            file.write(b"\n" * 2**20)
    with pytest.raises(pg.InvalidProblem, match="unfolds to over 200 times its size"):
        pg.traces.read(table)


def test_long_files_of_short_pieces_are_read(tmp_path: Path) -> None:
    point = b'<trkpt lat="46.5" lon="6.6"><time>2024-03-01T08:00:00Z</time></trkpt>\n<!-- a comment -->\n'
    (tmp_path / "long.gpx").write_bytes(b"<gpx><trk><trkseg>" + point * 60_000 + b"</trkseg></trk></gpx>")
    assert pg.traces.read(tmp_path / "long.gpx", slot=None).rows == 60_000

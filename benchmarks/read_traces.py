"""Time and peak memory of reading a million rows in every format: ``python benchmarks/read_traces.py [ROWS]``.

Writing and reading run in processes of their own; memory is the reader's peak above that after its imports.
"""

import gzip
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import privacygames as pg
from peak import peak_mebibytes

WINDOW = (5.0, 52.0, 5.4, 52.2)
USERS = 50


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{rows} rows, {USERS} users, a fix every five seconds; 600-second slots", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for form in WRITERS:
            path = Path(folder) / form
            for job in ("--write", "--read"):
                subprocess.run([sys.executable, __file__, job, form, str(path), str(rows)], check=True)


def measure(form: str, path: Path) -> None:
    assert pg.traces is not None  # loaded before the clock starts, as is pyarrow below
    if next(iter(path.glob("*.parquet")), None):
        import pyarrow.parquet  # noqa: F401
    before = peak_mebibytes()
    start, processor_start = perf_counter(), process_time()
    visits = pg.traces.read(path, format=form.split(maxsplit=1)[0], window=WINDOW)
    seconds, busy = perf_counter() - start, process_time() - processor_start
    print(f"{form:16} {seconds:5.1f} s ({busy:.1f} s processor) {peak_mebibytes() - before:4.0f} MB  {visits}")


def _fixes(rows: int) -> tuple[list[int], list[int], list[str], list[str]]:
    """Users, unix times, latitudes and longitudes, each user's fixes one after the other."""
    rng = np.random.default_rng(0)
    rows_per_user = -(-rows // USERS)
    users = np.repeat(np.arange(USERS), rows_per_user)[:rows]
    times = 1_700_000_000 + 5 * np.tile(np.arange(rows_per_user), USERS)[:rows]
    latitude = [f"{value:.6f}" for value in rng.uniform(51.98, 52.22, rows)]
    longitude = [f"{value:.6f}" for value in rng.uniform(4.95, 5.45, rows)]
    return users.tolist(), times.tolist(), latitude, longitude


def _iso(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_csv(path: Path, rows: int) -> None:
    path.mkdir()
    with (path / "fixes.csv").open("w") as file:
        file.write("uid,datetime,lat,lng\n")
        for user, second, latitude, longitude in zip(*_fixes(rows), strict=True):
            file.write(f"{user},{_iso(second)[:-1]},{latitude},{longitude}\n")


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path.mkdir()
    users, times, latitude, longitude = _fixes(rows)
    columns = {
        "uid": users,
        "datetime": pa.array(times, pa.timestamp("s")),
        "lat": np.array(latitude, dtype=float),
        "lng": np.array(longitude, dtype=float),
    }
    parquet.write_table(pa.table(columns), path / "fixes.parquet")


def write_checkins(path: Path, rows: int) -> None:
    path.mkdir()
    with gzip.open(path / "checkins.txt.gz", "wt") as file:
        for place, (user, second, latitude, longitude) in enumerate(zip(*_fixes(rows), strict=True)):
            file.write(f"{user}\t{_iso(second)}\t{latitude}\t{longitude}\t{place}\n")


def write_geolife(path: Path, rows: int) -> None:
    """Files of about a thousand fixes, as the data set has."""
    fixes = list(zip(*_fixes(rows), strict=True))
    for number, start in enumerate(range(0, rows, 1000)):
        folder = path / f"{fixes[start][0]:03}" / "Trajectory"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"{latitude},{longitude},0,160,39744.2451967593,{_iso(second)[:10]},{_iso(second)[11:19]}\n"
            for _, second, latitude, longitude in fixes[start : start + 1000]
        ]
        (folder / f"{number}.plt").write_text("header\n" * 6 + "".join(lines))


def write_gpx(path: Path, rows: int) -> None:
    path.mkdir()
    fixes = list(zip(*_fixes(rows), strict=True))
    for user in range(USERS):
        with (path / f"{user}.gpx").open("w") as file:
            file.write('<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n')
            for owner, second, latitude, longitude in fixes[user * (rows // USERS) : (user + 1) * (rows // USERS)]:
                assert owner == user
                file.write(f'<trkpt lat="{latitude}" lon="{longitude}"><time>{_iso(second)}</time></trkpt>\n')
            file.write("</trkseg></trk></gpx>\n")


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "table (CSV)": write_csv,
    "table (Parquet)": write_parquet,
    "checkins (gzip)": write_checkins,
    "geolife": write_geolife,
    "gpx": write_gpx,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--write"]:
        WRITERS[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()

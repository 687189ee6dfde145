"""Uploaded files of traces: read from memory, in a worker process with a memory limit."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from privacygames import traces
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.progress import Progress

FORMATS = {
    "csv": "table",
    "parquet": "table",
    "gpx": "gpx",
    "kml": "kml",
    "kmz": "kml",
    "json": None,
    "geolife": "geolife",
    "checkins": "checkins",
}
"""The formats of ``traces.read`` by the form of a file; None where its content tells."""

ENDINGS = {form: f".{form}" for form in FORMATS} | {"geolife": ".plt", "checkins": ".txt"}
GZIP = b"\x1f\x8b"


def read_traces(content: bytes, form: str, *, rows: int) -> traces.Visits:
    """Visits from the content of a file, gzipped or not, which is kept in memory only.

    Args:
        content: the file.
        form: a key of ``FORMATS``.
        rows: the largest number of rows.

    Raises:
        InvalidProblem: if it cannot be read.
        TooLarge: if it has more rows than are allowed, however small it is compressed.
    """
    ending = ENDINGS[form] + (".gz" if content.startswith(GZIP) and form not in ("parquet", "kmz") else "")
    with _file_in_memory(content, ending) as path:
        try:
            return traces.read(path, format=FORMATS[form], progress=_at_most(rows))
        except TooLarge:
            raise
        except InvalidProblem as error:  # the name of the file in memory says nothing to anybody
            raise InvalidProblem(str(error).replace(str(path), "the file").replace(path.name, "the file")) from None


def _at_most(rows: int) -> Callable[[Progress], None]:
    def watch(now: Progress) -> None:
        if now.done > rows:
            raise TooLarge(f"the file has more than {rows} rows: leave some out, or use the command line")

    return watch


@contextmanager
def _file_in_memory(content: bytes, ending: str) -> Iterator[Path]:
    """A file in memory with that ending; where there are none, a temporary file that only its owner can read."""
    with tempfile.TemporaryDirectory() as folder:
        named = Path(folder) / f"traces{ending}"
        if not hasattr(os, "memfd_create"):
            named.write_bytes(content)
            yield named
            return
        handle = os.memfd_create("traces")
        try:
            with os.fdopen(os.dup(handle), "wb") as file:
                file.write(content)
            named.symlink_to(f"/proc/self/fd/{handle}")
            yield named
        finally:
            os.close(handle)

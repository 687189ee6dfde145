"""GPX: the track points of an XML file, with or without times; where it has none, its routes and waypoints."""

from collections.abc import Iterator
from pathlib import Path

from privacygames.csv_reader import expansion_limit, open_decompressed
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource
from privacygames.traces.readers.xml_points import PointParser, WrittenPoint

MAX_TIME_LENGTH = 100
"""Characters read of a time."""

TRACK_POINT, OTHER_POINTS = "trkpt", ("rtept", "wpt")
"""The elements of recorded points, and of points on planned routes and of marked places."""


class _GpxParser(PointParser):
    """An XML parser that collects track points; planned and marked ones only where there are no others."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._point: WrittenPoint | None = None
        self._others: list[WrittenPoint] = []
        self._has_track = self._in_time = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == TRACK_POINT or tag in OTHER_POINTS:
            coordinates = attributes.get("lat", ""), attributes.get("lon", "")
            self._point = WrittenPoint(self.line, *coordinates, time="")
        elif tag == "time":
            self._in_time = self._point is not None and not self._point.time

    def text(self, text: str) -> None:
        if self._in_time and self._point is not None and len(self._point.time) < MAX_TIME_LENGTH:
            self._point = self._point._replace(time=self._point.time + text)

    def end(self, tag: str) -> None:
        if tag == "time":
            self._in_time = False
        elif tag == TRACK_POINT and self._point is not None:
            self.points.append(self._point)
            self._point, self._has_track = None, True
            self._others.clear()
        elif tag in OTHER_POINTS and self._point is not None:
            if not self._has_track:
                self._others.append(self._point)
            self._point = None
        elif tag == "gpx":
            self.points += self._others
            self._others.clear()


def read_gpx(source: TraceSource) -> Iterator[RowBatch]:
    """The points of a GPX file."""
    with open_decompressed(source.path, max_expanded=expansion_limit(source.path)) as (file, position):
        yield from _GpxParser(source.path.name).read(source, file, position)


def user_of_file(file: Path, root: Path) -> str:
    """The file's name without its endings, or the name of its folder below the one being read."""
    stem = file.name
    for ending in (".gz", ".gpx", ".kml", ".kmz", ".geojson", ".json"):
        stem = stem[: -len(ending)] if stem.lower().endswith(ending) else stem
    return stem if root in (file, file.parent) else file.parent.name


GPX = TraceFormat(read_gpx, endings=(".gpx", ".gpx.gz"), user_of=user_of_file)

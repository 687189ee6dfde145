"""GPX: the track points of an XML file, read as a stream; document types, entities and huge tags are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from privacygames.csv_reader import BLOCK, expansion_limit, open_decompressed
from privacygames.errors import InvalidProblem
from privacygames.traces import timestamps
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource, parse_numbers

MAX_TIME_LENGTH = 100
"""Characters read of a time."""

MAX_TAG_BYTES = 1 << 20
"""Longest tag, attribute or comment: the parser holds all of it in memory."""


class TrackPoint(NamedTuple):
    """A track point as it is written."""

    line: int
    latitude: str
    longitude: str
    time: str


class _TrackPointParser:
    """An XML parser that collects track points."""

    def __init__(self, name: str) -> None:
        self.points: list[TrackPoint] = []
        self.last_event = 0  # byte at which the last event ended
        self._name = name
        self._point: TrackPoint | None = None
        self._in_time = False
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = self._record_event

    def _refuse(self, *_: object) -> None:
        raise InvalidProblem(
            f"{self._name}, line {self.parser.CurrentLineNumber}: declares a document type or entities, which GPX "
            "does not need and attacks use; remove the declaration if you trust the file"
        )

    def _record_event(self, *_: object) -> None:
        self.last_event = self.parser.CurrentByteIndex

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._record_event()
        match tag.rpartition(" ")[2]:
            case "trkpt":
                coordinates = attributes.get("lat", ""), attributes.get("lon", "")
                self._point = TrackPoint(self.parser.CurrentLineNumber, *coordinates, time="")
            case "time":
                self._in_time = self._point is not None and not self._point.time

    def _text(self, text: str) -> None:
        self._record_event()
        if self._in_time and self._point is not None and len(self._point.time) < MAX_TIME_LENGTH:
            self._point = self._point._replace(time=self._point.time + text)

    def _end(self, tag: str) -> None:
        self._record_event()
        match tag.rpartition(" ")[2]:
            case "time":
                self._in_time = False
            case "trkpt" if self._point is not None:
                self.points.append(self._point)
                self._point = None


def read_gpx(source: TraceSource) -> Iterator[RowBatch]:
    """The track points of a GPX file. Where its XML breaks off, the points before count, and one line is broken."""
    points = _TrackPointParser(source.path.name)
    with open_decompressed(source.path, max_expanded=expansion_limit(source.path)) as (file, position):
        broken: list[int] = []
        more, bytes_fed = True, 0
        while more:
            block = file.read(BLOCK)
            more, bytes_fed = bool(block), bytes_fed + len(block)
            if bytes_fed - points.last_event > MAX_TAG_BYTES + 2 * BLOCK:
                raise InvalidProblem(f"{source.path.name} has a tag of over {MAX_TAG_BYTES} bytes, as no GPX file does")
            try:
                points.parser.Parse(block, not more)
            except expat.ExpatError as error:
                broken, more = [error.lineno], False
            except InvalidProblem:
                raise
            except (LookupError, ValueError):  # an encoding that Python does not know, or expat does not take
                raise InvalidProblem(
                    f"{source.path.name} has an encoding that cannot be read; save it as UTF-8"
                ) from None
            yield _row_batch(points.points, source, broken, position())
            points.points.clear()


def _row_batch(points: list[TrackPoint], source: TraceSource, broken: list[int], position: int) -> RowBatch:
    return RowBatch(
        users=[source.user] * len(points),
        times=timestamps.seconds_from_texts((point.time for point in points), source.zone),
        latitude=parse_numbers(point.latitude for point in points),
        longitude=parse_numbers(point.longitude for point in points),
        lines=[point.line for point in points],
        broken=broken,
        position=position,
    )


def _user(file: Path, root: Path) -> str:
    """The file's name without its ending, or the name of its folder below the one being read."""
    stem = file.name[: len(file.name.lower().split(".gpx")[0])]
    return stem if root in (file, file.parent) else file.parent.name


GPX = TraceFormat(read_gpx, endings=(".gpx", ".gpx.gz"), user_of=_user)

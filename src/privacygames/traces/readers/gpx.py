"""GPX: the track points of an XML file, read as a stream with nothing but its own elements believed."""

from collections.abc import Iterator
from xml.parsers import expat

from privacygames.errors import InvalidProblem
from privacygames.traces import clock
from privacygames.traces.readers.row_batch import RowBatch, Source, numbers
from privacygames.traces.readers.text_lines import BLOCK, opened

LONGEST_TIME = 100
LONGEST_PIECE = 1 << 20
"""No tag, attribute or comment of a GPX file is that long; the parser would keep all of it."""


class _Points:
    """Collects (line, latitude, longitude, time) of every track point, as texts."""

    def __init__(self, name: str) -> None:
        self.found: list[tuple[int, str, str, str]] = []
        self._name = name
        self._point: tuple[int, str, str] | None = None
        self._time = ""
        self._in_time = False
        self.seen = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = self._notice

    def _refuse(self, *_: object) -> None:
        raise InvalidProblem(
            f"{self._name}, line {self.parser.CurrentLineNumber}: declares a document type or entities, which GPX "
            "does not need and attacks use; remove the declaration if you trust the file"
        )

    def _notice(self, *_: object) -> None:
        """Something ended here: what comes next is a new piece."""
        self.seen = self.parser.CurrentByteIndex

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._notice()
        match tag.rpartition(" ")[2]:
            case "trkpt":
                where = attributes.get("lat", ""), attributes.get("lon", "")
                self._point, self._time = (self.parser.CurrentLineNumber, *where), ""
            case "time":
                self._in_time = self._point is not None and not self._time

    def _text(self, text: str) -> None:
        self._notice()
        if self._in_time and len(self._time) < LONGEST_TIME:
            self._time += text

    def _end(self, tag: str) -> None:
        self._notice()
        match tag.rpartition(" ")[2]:
            case "time":
                self._in_time = False
            case "trkpt" if self._point is not None:
                self.found.append((*self._point, self._time))
                self._point = None


def read_gpx(source: Source) -> Iterator[RowBatch]:
    """The track points of a GPX file; where its XML breaks off, what came before counts and one line is broken."""
    points = _Points(source.path.name)
    with opened(source.path) as (file, position):
        broken: list[int] = []
        more, fed = True, 0
        while more:
            block = file.read(BLOCK)
            more, fed = bool(block), fed + len(block)
            if fed - points.seen > LONGEST_PIECE + 2 * BLOCK:
                raise InvalidProblem(f"{source.path.name} has a tag of over {LONGEST_PIECE} bytes, as no GPX file does")
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
            yield _rows(points.found, source, broken, position())
            points.found.clear()


def _rows(found: list[tuple[int, str, str, str]], source: Source, broken: list[int], position: int) -> RowBatch:
    count = len(found)
    return RowBatch(
        users=[source.user] * count,
        times=clock.from_text((point[3] for point in found), source.zone),
        latitude=numbers((point[1] for point in found), count),
        longitude=numbers((point[2] for point in found), count),
        lines=[point[0] for point in found],
        broken=broken,
        position=position,
    )

"""Positions in XML files, read as a stream; document types, entities and huge tags are refused."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple
from xml.parsers import expat

from privacygames.csv_reader import BLOCK
from privacygames.errors import InvalidProblem
from privacygames.traces import timestamps
from privacygames.traces.readers.row_batch import RowBatch, TraceSource, parse_numbers

MAX_TAG_BYTES = 1 << 20
"""Longest tag, attribute or comment: the parser holds all of it in memory."""


class WrittenPoint(NamedTuple):
    """A position as it is written; an empty time stands for none."""

    line: int
    latitude: str
    longitude: str
    time: str


class XmlParser(ABC):
    """An XML parser that is fed blocks of a file; subclasses say what becomes of elements.

    Args:
        name: what messages call the file.
    """

    def __init__(self, name: str) -> None:
        self.last_event = 0  # byte at which the last event ended
        self._name = name
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start_element
        self.parser.EndElementHandler = self._end_element
        self.parser.CharacterDataHandler = self._characters
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = self._record_event

    @abstractmethod
    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element of that name, without its namespace, begins."""

    @abstractmethod
    def text(self, text: str) -> None:
        """Text inside the element that began last, or after one that ended."""

    @abstractmethod
    def end(self, tag: str) -> None:
        """An element ends."""

    @property
    def line(self) -> int:
        """The line that is being read."""
        return self.parser.CurrentLineNumber

    def feed(self, file: IO[bytes]) -> Iterator[int | None]:
        """Parse a file; yields after each block: None, or the line where its XML breaks off, which is the end."""
        more, bytes_fed = True, 0
        while more:
            block = file.read(BLOCK)
            more, bytes_fed = bool(block), bytes_fed + len(block)
            if bytes_fed - self.last_event > MAX_TAG_BYTES + 2 * BLOCK:
                raise InvalidProblem(f"{self._name} has a tag of over {MAX_TAG_BYTES} bytes, as no such file does")
            broken = None
            try:
                self.parser.Parse(block, not more)
            except expat.ExpatError as error:
                broken, more = error.lineno, False
            except InvalidProblem:
                raise
            except (LookupError, ValueError):  # an encoding that Python does not know, or expat does not take
                raise InvalidProblem(f"{self._name} has an encoding that cannot be read; save it as UTF-8") from None
            yield broken

    def _refuse(self, *_: object) -> None:
        raise InvalidProblem(
            f"{self._name}, line {self.line}: declares a document type or entities, which such files do not need and "
            "attacks use; remove the declaration if you trust the file"
        )

    def _record_event(self, *_: object) -> None:
        self.last_event = self.parser.CurrentByteIndex

    def _start_element(self, tag: str, attributes: dict[str, str]) -> None:
        self._record_event()
        self.start(tag.rpartition(" ")[2], attributes)

    def _characters(self, text: str) -> None:
        self._record_event()
        self.text(text)

    def _end_element(self, tag: str) -> None:
        self._record_event()
        self.end(tag.rpartition(" ")[2])


class PointParser(XmlParser):
    """An XML parser that collects positions.

    Attributes:
        points: the positions since they were last taken.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.points: list[WrittenPoint] = []

    def read(self, source: TraceSource, file: IO[bytes], position: Callable[[], int]) -> Iterator[RowBatch]:
        """The positions of a file. Where its XML breaks off, those before count, and one line is broken."""
        for broken in self.feed(file):
            yield RowBatch(
                users=[source.user] * len(self.points),
                times=timestamps.seconds_if_given([point.time for point in self.points], source.zone),
                latitude=parse_numbers(point.latitude for point in self.points),
                longitude=parse_numbers(point.longitude for point in self.points),
                lines=[point.line for point in self.points],
                broken=[] if broken is None else [broken],
                position=position(),
            )
            self.points.clear()

"""Positions in XML files, read as a stream."""

from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from privacygames.traces import timestamps
from privacygames.traces.readers.row_batch import RowBatch, TraceSource, parse_numbers
from privacygames.xml_reader import XmlParser


class WrittenPoint(NamedTuple):
    """A position as it is written; an empty time stands for none."""

    line: int
    latitude: str
    longitude: str
    time: str


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

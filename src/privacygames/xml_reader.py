"""XML files of strangers, read as a stream; document types, entities and huge tags are refused."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from privacygames.csv_reader import BLOCK
from privacygames.errors import InvalidProblem

MAX_TAG_BYTES = 1 << 20
"""Longest tag, attribute or comment: the parser holds all of it in memory."""


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

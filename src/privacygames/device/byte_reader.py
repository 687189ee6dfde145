"""Reading and writing the bytes of files for devices; every length is checked before anything of it is read."""

import struct
from math import copysign
from typing import Any

from privacygames.errors import InvalidFile

MOST_BYTES = 2**26
"""Largest size of a file, in bytes."""

MOST_SECRETS = 2048
"""Largest number of secrets that are labels or cells: verification takes the square of it, times the outputs."""

MOST_OUTPUTS = 8192
"""Largest number of outputs."""

MOST_WEIGHTS = 2**23 - 2**16
"""Largest number of weights: they leave a megabyte of the largest file for the rest."""

MOST_MEMBERS = 1000
"""Largest number of texts in one set."""

MOST_TEXT_BYTES = 1000
"""Largest number of bytes of one text."""

SMALLEST, LARGEST = 1e-12, 1e12
"""Parameters and distances are 0 or between these, so that no product of a few of them over- or underflows."""


class ByteReader:
    r"""The bytes of a file in order.

    >>> from privacygames.device.byte_reader import ByteReader
    >>> ByteReader(b"\x02\x00ok").text()
    'ok'
    """

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > len(self._content) - self._at:
            raise InvalidFile("the file ends too early")
        self._at += count
        return self._content[self._at - count : self._at]

    def line(self, most: int) -> bytes:
        """The next line, without its end."""
        end = self._content.find(b"\n", self._at, self._at + most)
        if end < 0:
            raise InvalidFile("this is no mechanism for devices")
        line = self._content[self._at : end]
        self._at = end + 1
        return line

    def u8(self) -> int:
        """A whole number of one byte."""
        return self.take(1)[0]

    def choice(self, choices: int) -> int:
        """One of the first so many whole numbers."""
        value = self.u8()
        if value >= choices:
            raise InvalidFile("a choice is out of range")
        return value

    def u16(self) -> int:
        """A whole number of two bytes."""
        return int.from_bytes(self.take(2), "little")

    def count(self, most: int, least: int = 1) -> int:
        """A whole number of four bytes between two others."""
        value = int.from_bytes(self.take(4), "little")
        if not least <= value <= most:
            raise InvalidFile("a count is out of range")
        return value

    def f64(self) -> float:
        """A number, which may be any of IEEE 754."""
        return float(struct.unpack("<d", self.take(8))[0])

    def number(self, low: float, high: float) -> float:
        """A number between two others; negative zero is none."""
        value = self.f64()
        if not low <= value <= high or (value == 0 and copysign(1.0, value) < 0):
            raise InvalidFile("a number is out of range")
        return value

    def text(self) -> str:
        """A text in UTF-8."""
        length = self.u16()
        if length > MOST_TEXT_BYTES:
            raise InvalidFile("a text is too long")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise InvalidFile("a text is not UTF-8") from None

    def end(self) -> None:
        """Refuse bytes that nothing has read."""
        if self._at != len(self._content):
            raise InvalidFile("something follows the end of the file")


class ByteWriter:
    r"""The bytes of a file, appended in order.

    >>> from privacygames.device.byte_reader import ByteWriter
    >>> writer = ByteWriter()
    >>> writer.text("ok")
    >>> writer.content
    b'\x02\x00ok'
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    @property
    def content(self) -> bytes:
        """Everything that was written."""
        return b"".join(self._parts)

    def raw(self, content: bytes) -> None:
        """Bytes as they are."""
        self._parts.append(content)

    def u8(self, value: int) -> None:
        """A whole number of one byte."""
        self._parts.append(value.to_bytes(1, "little"))

    def u16(self, value: int) -> None:
        """A whole number of two bytes."""
        self._parts.append(value.to_bytes(2, "little"))

    def u32(self, value: int) -> None:
        """A whole number of four bytes."""
        self._parts.append(value.to_bytes(4, "little"))

    def numbers(self, *values: float) -> None:
        """Numbers; negative zero is written as zero."""
        self._parts.append(struct.pack(f"<{len(values)}d", *(value + 0.0 for value in values)))

    def text(self, value: str) -> None:
        """A text in UTF-8."""
        encoded = value.encode()
        self.u16(len(encoded))
        self._parts.append(encoded)

    def array(self, values: Any, kind: str) -> None:
        """An array of NumPy as numbers of this type."""
        self._parts.append(values.astype(kind).tobytes())

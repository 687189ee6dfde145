"""Regular files, read at places; anything else is refused before it is opened.

None is mapped into memory: unlike a map's, a reader of a file that shrinks meanwhile gets fewer bytes, and lives.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from weakref import finalize

from privacygames.errors import InvalidFile, UnreadableFile

MOST_BYTES = 2**31
"""Bytes of a file that is read whole."""

ReadAt = Callable[[int, int], bytes]
"""Reads bytes of a file: from where, and how many."""

Signature = tuple[int, ...]
"""What the system says of a file without reading it: another one whenever it was written to or replaced."""

_one_reader = Lock()
"""Where the system has no way to read at a place without moving there first."""


class RegularFile:
    """A regular file, open for reading until nothing refers to it.

    Args:
        path: where.

    Attributes:
        opened_as: its signature when it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # before it is opened: a pipe may never answer
                raise UnreadableFile(path, "it is not a regular file")
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        finalize(self, os.close, self._descriptor)
        self.opened_as: Signature = _of(os.fstat(self._descriptor))

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return os.fstat(self._descriptor).st_size

    def read(self) -> bytes:
        """All of it."""
        if self.size > MOST_BYTES:
            raise InvalidFile(f"{self.path} is too large: at most {MOST_BYTES} bytes are allowed")
        return self.read_at(0, self.size)

    def read_at(self, start: int, size: int) -> bytes:
        """Some bytes of it; fewer at its end."""
        return read_at(self._descriptor, start, size)


def signature_at(path: Path) -> Signature | None:
    """The signature of the file that is at a path now; None where there is none."""
    try:
        return _of(path.stat())
    except OSError:
        return None


def read_at(descriptor: int, start: int, size: int) -> bytes:
    """Some bytes of an open file; fewer at its end."""
    if not hasattr(os, "pread"):
        with _one_reader:
            os.lseek(descriptor, start, os.SEEK_SET)
            return os.read(descriptor, size)
    parts: list[bytes] = []
    while size > 0 and (part := os.pread(descriptor, min(size, 2**30), start)):
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def _of(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

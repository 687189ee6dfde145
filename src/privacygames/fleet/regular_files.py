"""Regular files, read at given offsets. Pipes, devices and folders are refused before they are opened.

Files are not mapped into memory: where a mapped file shrinks, reading it kills the process; here it gives fewer bytes.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from weakref import finalize

from privacygames.errors import InvalidFile, UnreadableFile

MAX_BYTES = 2**31
"""Largest size of a file that is read as a whole."""

ReadAt = Callable[[int, int], bytes]
"""Reads bytes of a file, given the offset and the number of bytes."""

Signature = tuple[int, ...]
"""Device, inode, size and times of a file: another signature whenever the file was written to or replaced."""

_seek_lock = Lock()
"""Held from seeking to reading, on systems that have no call that does both."""


class RegularFile:
    """A regular file, open for reading as long as anything refers to it.

    Args:
        path: the file.

    Attributes:
        opened_as: its signature when it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # before opening it, which may block on a pipe
                raise UnreadableFile(path, "it is not a regular file")
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        finalize(self, os.close, self._descriptor)
        self.opened_as: Signature = _signature(os.fstat(self._descriptor))

    @property
    def size(self) -> int:
        """Its present size in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self) -> bytes:
        """The whole content."""
        if self.size > MAX_BYTES:
            raise InvalidFile(f"{self.path} is too large: at most {MAX_BYTES} bytes are allowed")
        return self.read_at(0, self.size)

    def read_at(self, start: int, size: int) -> bytes:
        """Bytes from an offset on; fewer at the end of the file."""
        return read_at(self._descriptor, start, size)


def signature_at(path: Path) -> Signature | None:
    """The signature of the file now at a path; None where there is none."""
    try:
        return _signature(path.stat())
    except OSError:
        return None


def read_at(descriptor: int, start: int, size: int) -> bytes:
    """Bytes of an open file from an offset on; fewer at its end."""
    if not hasattr(os, "pread"):
        with _seek_lock:
            os.lseek(descriptor, start, os.SEEK_SET)
            return os.read(descriptor, size)
    parts: list[bytes] = []
    while size > 0 and (part := os.pread(descriptor, min(size, 2**30), start)):
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

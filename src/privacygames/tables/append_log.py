"""A file of JSON entries, one a line, to which entries are only appended: each on the disk before anybody relies on it.

Every entry carries a hash of itself and of all before it, so that an entry that was changed, moved or removed from the
middle does not go unnoticed. (Entries removed from the end do: whoever wants to notice that compares the last hash with
the one in a manifest.) Processes that append take turns. What a crash left of a last line is dropped: an entry counts
from the moment that it is written whole.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from privacygames.errors import InvalidFile, InvalidProblem, UnreadableFile
from privacygames.storage import keep_the_name

Entry = dict[str, Any]
CHAIN = "chain"


@dataclass
class OpenLog:
    """A log that nobody else writes to meanwhile.

    Attributes:
        entries: all there are, without their hashes.
        chain: the hash of the last one and of all before it.
    """

    entries: list[Entry]
    chain: str
    _handle: int | None = None

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, and wait until it is on the disk."""
        after = _chained(self.chain, entry)
        if self._handle is not None:
            _write(self._handle, json.dumps({**entry, CHAIN: after}, allow_nan=False).encode() + b"\n")
        self.entries.append(dict(entry))
        self.chain = after


@dataclass
class AppendLog:
    """The log in a file, after some lines of a header; or in memory, where it ends with the process.

    Attributes:
        path: the file; None: in memory.
        header: the lines that come before the entries.
        about: what the first entry's hash starts from.
    """

    path: Path | None
    header: bytes = field(repr=False)
    about: str
    _memory: OpenLog = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._memory = OpenLog([], _start(self.about))

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "header": self.header, "about": self.about}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # locks do not travel to other processes, nor do logs in memory

    @classmethod
    def create(cls, path: Path, header: bytes, about: str, first: Mapping[str, Any] | None = None) -> "AppendLog":
        """A log in a new file that only its owner can read; a file that is there is never touched."""
        made = cls(path.absolute(), header, about)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            raise InvalidProblem(f"{path} exists already: it is never replaced") from None
        try:
            _write(handle, header)
            if first is not None:
                OpenLog([], _start(about), handle).append(first)
        finally:
            os.close(handle)
        keep_the_name(path.absolute().parent)
        return made

    def entries(self) -> list[Entry]:
        """All entries there are now."""
        if self.path is None:
            return list(self._memory.entries)
        try:
            return self._read(self.path.read_bytes()).entries
        except OSError as error:
            raise UnreadableFile(self.path, error.strerror) from None

    @contextmanager
    def alone(self) -> Iterator[OpenLog]:
        """The log, while other processes and threads wait that want to append."""
        if self.path is None:
            with self._lock:
                yield self._memory
            return
        try:
            handle = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise UnreadableFile(self.path, f"{error.strerror}; it must be there, and writable") from None
        try:
            _lock(handle)
            with open(handle, "rb", closefd=False) as file:
                content = file.read()
            opened = self._read(content, handle)
            os.ftruncate(handle, content.rfind(b"\n") + 1)
            yield opened
        finally:
            os.close(handle)

    def _read(self, content: bytes, handle: int | None = None) -> OpenLog:
        """What a file holds, its last line left out if it is torn; refuses what was altered."""
        if not content.startswith(self.header) or not self.header.endswith(b"\n"):
            raise InvalidFile(f"{self.path} was replaced since it was opened, or its first lines are damaged")
        log = OpenLog([], _start(self.about), handle)
        lines = content[len(self.header) : content.rfind(b"\n") + 1].split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                stated = entry.pop(CHAIN)
                log.chain = _chained(log.chain, entry)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise self._altered(number) from None
            if stated != log.chain:
                raise self._altered(number)
            log.entries.append(entry)
        return log

    def _altered(self, number: int) -> InvalidFile:
        name = self.path.name if self.path else "the log"
        return InvalidFile(f"{name}: entry {number}, or one before it, was altered after it was written, or is damaged")


def _start(about: str) -> str:
    return sha256(about.encode()).hexdigest()


def _chained(before: str, entry: Mapping[str, Any]) -> str:
    text = json.dumps([before, entry], sort_keys=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()


def _write(handle: int, line: bytes) -> None:
    """All of it, on the disk, or nothing."""
    size = os.lseek(handle, 0, os.SEEK_END)
    try:
        left = memoryview(line)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _lock(handle: int) -> None:
    """Wait for our turn; where the system has no such locks, there are no turns."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_EX)

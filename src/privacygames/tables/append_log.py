"""An append-only log of JSON entries, one per line, chained by hashes; each is on the disk before anybody relies on it.

Every entry has a hash of itself and of all entries before it, which reveals entries that were changed, moved or removed
from the middle. It does not reveal entries removed from the end: for that, keep the last hash elsewhere, and look for
it among the hashes of the file. Processes that append take turns. An incomplete last line, which a crash leaves, is
dropped. A complete entry counts with or without its line end, which editors and transfers may remove.
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

from privacygames.atomic_io import fsync_directory
from privacygames.errors import InvalidFile, InvalidProblem, UnreadableFile

Entry = dict[str, Any]
CHAIN = "chain"
"""Key of an entry's hash."""


@dataclass
class OpenLog:
    """A log that no other process or thread writes to.

    Attributes:
        entries: all entries, without their hashes.
        chain: the hash of the last entry and of all before it.
        heads: the hash before the first entry, and after each one.
    """

    entries: list[Entry]
    chain: str
    heads: list[str] = field(init=False)
    _handle: int | None = None

    def __post_init__(self) -> None:
        self.heads = [self.chain]

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, and wait until it is on the disk."""
        chain = _chain(self.chain, entry)
        if self._handle is not None:
            _write(self._handle, json.dumps({**entry, CHAIN: chain}, allow_nan=False).encode() + b"\n")
        self.extend(entry, chain)

    def extend(self, entry: Mapping[str, Any], chain: str) -> None:
        """Add an entry that is on the disk, with its hash."""
        self.entries.append(dict(entry))
        self.chain = chain
        self.heads.append(chain)


@dataclass
class AppendLog:
    """A log in a file, after the lines of a header; or in memory, for the life of the process.

    Attributes:
        path: the file; None: in memory.
        header: the lines before the entries.
        about: the text from whose hash the chain starts.
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
        self.__init__(**state)  # type: ignore[misc]  # locks and logs in memory are not pickled

    @classmethod
    def create(cls, path: Path, header: bytes, about: str, first: Mapping[str, Any] | None = None) -> "AppendLog":
        """A log in a new file that only its owner can read; an existing file is never touched."""
        log = cls(path.absolute(), header, about)
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
        fsync_directory(path.absolute().parent)
        return log

    def entries(self) -> list[Entry]:
        """All entries."""
        return list(self.read().entries)

    def read(self) -> OpenLog:
        """The log as it is now, for reading."""
        if self.path is None:
            return self._memory
        try:
            return self._read(self.path.read_bytes())[0]
        except OSError as error:
            raise UnreadableFile(self.path, error.strerror) from None

    @contextmanager
    def exclusive(self) -> Iterator[OpenLog]:
        """The log, locked for appending: other processes and threads wait."""
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
            opened, end = self._read(content, handle)
            os.ftruncate(handle, end)
            if not content[:end].endswith(b"\n"):
                _write(handle, b"\n")
            yield opened
        finally:
            os.close(handle)

    def _read(self, content: bytes, handle: int | None = None) -> tuple[OpenLog, int]:
        """The log in a file, and the byte at which its last complete entry ends; refuses what was altered."""
        if not content.startswith(self.header) or not self.header.endswith(b"\n"):
            raise InvalidFile(f"{self.path} was replaced since it was opened, or its first lines are damaged")
        log = OpenLog([], _start(self.about), handle)
        *lines, tail = content[len(self.header) :].split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not _extends(log, line):
                raise self._altered(number)
        if _extends(log, tail):
            return log, len(content)
        if _starts_with_json(tail):
            raise self._altered(len(lines) + 1)
        return log, len(content) - len(tail)

    def _altered(self, number: int) -> InvalidFile:
        name = self.path.name if self.path else "the log"
        return InvalidFile(f"{name}: entry {number}, or one before it, was altered after it was written, or is damaged")


def _extends(log: OpenLog, line: bytes) -> bool:
    """Add a line, if it is an entry whose hash follows from those before it; returns whether it is."""
    try:
        entry = json.loads(line)
        chain = entry.pop(CHAIN)
        if chain != _chain(log.chain, entry):
            return False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    log.extend(entry, chain)
    return True


def _starts_with_json(line: bytes) -> bool:
    """Whether a line starts with a complete JSON value, which no incomplete entry does."""
    try:
        json.JSONDecoder().raw_decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _start(about: str) -> str:
    return sha256(about.encode()).hexdigest()


def _chain(previous: str, entry: Mapping[str, Any]) -> str:
    """The hash of an entry and all before it, from the hash of these."""
    text = json.dumps([previous, entry], sort_keys=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()


def _write(handle: int, line: bytes) -> None:
    """Append a line to the file, synchronised to the disk, or nothing of it."""
    size = os.lseek(handle, 0, os.SEEK_END)
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _lock(handle: int) -> None:
    """Lock the file; systems without such locks have none."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_EX)

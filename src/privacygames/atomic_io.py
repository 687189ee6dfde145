"""Writing files: complete or not at all, whatever happens meanwhile and whoever else writes there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

UMASK = os.umask(0o077)
"""The permissions that new files do not get. To ask for it means to set it: done once, and set back at once."""
os.umask(UMASK)


@contextmanager
def written(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` when the block ends well, and else leaves no trace.

    It is written under a name of its own beside ``path``, flushed to the disk, and moved there in one step; so threads
    and processes that write to one path at once each leave a whole file, and a reader sees the old one or a new one.

    Args:
        path: where the file is to be.
        private: whether only its owner may read it; otherwise as the system's defaults say.
    """
    target = Path(path)
    part = Path()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".part", dir=target.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:
            part.chmod(0o666 & ~UMASK)
        part.replace(target)
    except OSError as error:  # name the file that was asked for, not the one beside it
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        if part != Path():
            part.unlink(missing_ok=True)
    fsync_directory(target.parent)


def write_bytes(path: str | os.PathLike[str], *parts: bytes, private: bool = False) -> None:
    """Write a whole file at once."""
    with written(path, private=private) as file:
        file.writelines(parts)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a whole text file, in UTF-8, at once."""
    write_bytes(path, text.encode())


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[bool]:
    """Hold a file, made if need be, that only one process can hold at a time; gives whether it is ours.

    Where the system has no such locks, it always is.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def fsync_directory(folder: Path) -> None:
    """Ask for the folder's entry to be on the disk too, where the system lets one."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)

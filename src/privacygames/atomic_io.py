"""Atomic file writes: a file appears complete or not at all, also after a crash or with concurrent writers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

UMASK = os.umask(0o077)
"""The process's umask. It can only be read by setting it, which is done once, on import."""
os.umask(UMASK)


@contextmanager
def open_atomic(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` when the block ends without an exception, and is deleted otherwise.

    It is written under a temporary name in the same folder, flushed to the disk, and renamed in one step. Threads and
    processes that write to one path at once each leave a complete file, and readers see the old or a new one.

    Args:
        path: the file to replace or create.
        private: whether only its owner may read it; otherwise the umask decides.
    """
    import tempfile

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
    except OSError as error:  # name the requested file, not the temporary one
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        if part != Path():
            part.unlink(missing_ok=True)
    fsync_directory(target.parent)


def write_bytes(path: str | os.PathLike[str], *parts: bytes, private: bool = False) -> None:
    """Write a file atomically."""
    with open_atomic(path, private=private) as file:
        file.writelines(parts)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file atomically."""
    write_bytes(path, text.encode())


@contextmanager
def file_lock(path: str | os.PathLike[str]) -> Iterator[bool]:
    """Take an exclusive lock on a file, created if needed, without waiting; yields whether this process has it.

    On systems without ``fcntl`` there is no lock, and it always yields True.
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
    """Flush a folder's entries to the disk, where the system supports it."""
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

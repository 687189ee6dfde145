"""Files appear complete or not at all: with threads, with processes, and with a writer that is killed."""

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from privacygames.atomic_io import open_atomic, write_bytes, write_text
from waiting import wait_until

SIZE = 200_000


def contents(mark: int) -> bytes:
    return bytes([mark]) * SIZE


def whole(path: Path) -> bool:
    found = path.read_bytes()
    return len(found) == SIZE and len(set(found)) == 1


def test_threads_that_write_to_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, contents(0))
    with ThreadPoolExecutor(12) as pool:
        writers = [pool.submit(write_bytes, path, contents(mark % 256)) for mark in range(400)]
        readers = [pool.submit(whole, path) for _ in range(400)]
        for writer in writers:
            writer.result()
        assert all(reader.result() for reader in readers)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


WRITER = """
import sys
from privacygames.atomic_io import write_bytes
print("at work", flush=True)
for turn in range(10**9):
    write_bytes(sys.argv[1], bytes([turn % 256]) * int(sys.argv[2]))
"""


def differs(path: Path, inode: int) -> bool:
    return path.stat().st_ino != inode


def test_writers_that_are_killed_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, contents(0))
    for turn in range(12):
        before = path.stat().st_ino
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(SIZE)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "at work\n"
            wait_until(partial(differs, path, before))  # the writer has written the file once, and goes on
            for _ in range(1000 * turn):  # to be somewhere else in that every time
                pass
            os.kill(writer.pid, signal.SIGKILL)
        assert whole(path)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")

    def fail() -> None:
        with open_atomic(path) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_permissions(tmp_path: Path) -> None:
    write_bytes(tmp_path / "private", b"", private=True)
    write_bytes(tmp_path / "usual", b"")
    (tmp_path / "by hand").touch()
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert (tmp_path / "usual").stat().st_mode == (tmp_path / "by hand").stat().st_mode


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "file", tmp_path / "folder"):
        with pytest.raises(OSError, match=r".") as caught:
            write_bytes(path, b"")
        assert caught.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]

"""Text files from anybody: regular, of a limited size, and parsed within limits; no message shows what is in them."""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from privacygames.errors import InvalidProblem, TooLarge, UnreadableFile

MOST_BYTES = 2**26
"""Bytes of a file: 64 MiB, some millions of rows."""

MOST_TOML_BYTES = 2**24
"""Bytes of a TOML document, which takes some ten times as many in memory."""

DEEPEST = 32
"""Nesting of tables and lists, and parts of a dotted key: no document of ours has more than a handful."""

MOST_KEY_PARTS = 100_000
"""Parts of all keys and headers of a TOML document: each may become a table, which takes a kilobyte."""

BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
HEADERS_AND_KEYS = re.compile(r"^[ \t]*\[[^\n]*|[^=,\[\]{}\n]*=", re.MULTILINE)


@contextmanager
def open_regular(path: Path, *, most: int = MOST_BYTES) -> Iterator[IO[bytes]]:
    """Open a regular file of at most so many bytes; a pipe or a device is refused without waiting for it.

    Raises:
        UnreadableFile: it is not there, not readable, not a regular file, or has another name than a file can have.
        TooLarge: it is larger.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except ValueError:
        raise UnreadableFile("the file", "its name is not possible") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile(path, "it is not a regular file")
        if status.st_size > most:
            raise TooLarge(f"{path} has {status.st_size} bytes; at most {most} are read")
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        yield file


def file_below(folder: Path, name: str) -> Path:
    """The file of that name in a folder or below it; no way out of the folder is taken, not by a link either.

    Raises:
        InvalidProblem: the name leads elsewhere.
    """
    try:
        root = folder.resolve()
        found = (root / name).resolve()
        inside = not Path(name).is_absolute() and found.is_relative_to(root)
    except (OSError, ValueError, RuntimeError):  # not a possible name, or links in a circle
        inside = False
    if not inside:
        raise InvalidProblem(
            "a file that the document names must be beside the document or in a folder below it: give a relative "
            "path without '..' that no link leads out of"
        )
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    with open_regular(path, most=MOST_TOML_BYTES) as file:
        try:
            text = file.read(MOST_TOML_BYTES + 1).decode("utf-8-sig")
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        except UnicodeDecodeError:
            raise InvalidProblem(f"{path} is not valid TOML: it is not UTF-8 text") from None
    return parse_toml(text, str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of a TOML text; messages call it by a name."""
    if any(piece.count(".") > DEEPEST for piece in BETWEEN_KEYS.split(text)):  # takes the parser quadratic time
        raise InvalidProblem(f"{name} has a dotted key, or a text, with more than {DEEPEST} dots")
    parts = 0
    for piece in HEADERS_AND_KEYS.finditer(text):
        parts += 1 + (piece[0].count(".") if piece[0][-1] == "=" or "," not in piece[0] else 0)
        if parts > MOST_KEY_PARTS:
            raise TooLarge(f"{name} has too many keys and tables: at most {MOST_KEY_PARTS} parts of their names")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{name} is not valid TOML: {_mistake(error)}") from None
    except RecursionError:
        tables = None
    if tables is None or _deeper_than(tables, DEEPEST):
        raise InvalidProblem(f"{name} is nested too deeply: at most {DEEPEST} tables and lists in one another")
    return tables


def _mistake(error: tomllib.TOMLDecodeError) -> str:
    """What the parser said of a mistake; where it quotes a key or a character, only the place."""
    said = str(error)
    if "('" not in said and "character" not in said:
        return said
    found = re.search(r"\(at (?:line \d+, column \d+|end of document)\)$", said)
    return f"there is a mistake {found[0]}" if found else "there is a mistake"


def _deeper_than(values: Any, most: int) -> bool:
    """Whether tables and lists are nested more than so many times; found without recursion."""
    level = [values]
    for _ in range(most + 1):
        held = [each for each in level if isinstance(each, dict | list)]
        if not held:
            return False
        level = [inner for each in held for inner in (each.values() if isinstance(each, dict) else each)]
    return True

"""Untrusted text files: only regular ones, of limited size, parsed within limits; messages never show their content."""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from privacygames.errors import InvalidProblem, TooLarge, UnreadableFile

MAX_BYTES = 2**26
"""Largest CSV file, in bytes: 64 MiB, some millions of rows."""

MAX_TOML_BYTES = 2**24
"""Largest TOML document, in bytes; parsed, it takes about ten times as much memory."""

MAX_NESTING = 32
"""Deepest nesting of tables and lists, and most parts of a dotted key; the problem document needs about five."""

MAX_KEY_PARTS = 100_000
"""Most parts of all keys and headers of a TOML document: each may become a table, which takes a kilobyte."""

BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
HEADERS_AND_KEYS = re.compile(r"^[ \t]*\[[^\n]*|[^=,\[\]{}\n]*=", re.MULTILINE)


@contextmanager
def open_regular(path: Path, *, max_bytes: int = MAX_BYTES) -> Iterator[IO[bytes]]:
    """Open a regular file of at most ``max_bytes``; pipes and devices are refused without waiting for them.

    Raises:
        UnreadableFile: the file is missing, unreadable or not regular, or its name is not valid.
        TooLarge: the file is larger.
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
        if status.st_size > max_bytes:
            raise TooLarge(f"{path} has {status.st_size} bytes; at most {max_bytes} are read")
    except BaseException:
        os.close(handle)
        raise
    with os.fdopen(handle, "rb") as file:
        yield file


def resolve_inside(folder: Path, name: str) -> Path:
    """The path of a file in a folder or below it, with links resolved; they must not lead out of the folder either.

    Raises:
        InvalidProblem: the path is outside the folder.
    """
    try:
        root = folder.resolve()
        resolved = (root / name).resolve()
        inside = not Path(name).is_absolute() and resolved.is_relative_to(root)
    except (OSError, ValueError, RuntimeError):  # an invalid name, or a cycle of links
        inside = False
    if not inside:
        raise InvalidProblem(
            "a file that the document names must be beside the document or in a folder below it: give a relative "
            "path without '..' that no link leads out of"
        )
    return resolved


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file."""
    with open_regular(path, max_bytes=MAX_TOML_BYTES) as file:
        try:
            text = file.read(MAX_TOML_BYTES + 1).decode("utf-8-sig")
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        except UnicodeDecodeError:
            raise InvalidProblem(f"{path} is not valid TOML: it is not UTF-8 text") from None
    return parse_toml(text, str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse a TOML string; ``name`` is what messages call it."""
    if any(piece.count(".") > MAX_NESTING for piece in BETWEEN_KEYS.split(text)):  # the parser takes quadratic time
        raise InvalidProblem(f"{name} has a dotted key, or a text, with more than {MAX_NESTING} dots")
    parts = 0
    for piece in HEADERS_AND_KEYS.finditer(text):
        parts += 1 + (piece[0].count(".") if piece[0][-1] == "=" or "," not in piece[0] else 0)
        if parts > MAX_KEY_PARTS:
            raise TooLarge(f"{name} has too many keys and tables: at most {MAX_KEY_PARTS} parts of their names")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblem(f"{name} is not valid TOML: {_describe_toml_error(error)}") from None
    except RecursionError:
        tables = None
    if tables is None or _is_nested_deeper(tables, MAX_NESTING):
        raise InvalidProblem(f"{name} is nested too deeply: at most {MAX_NESTING} tables and lists in one another")
    return tables


def _describe_toml_error(error: tomllib.TOMLDecodeError) -> str:
    """The parser's message; only the position where it would quote the document."""
    message = str(error)
    if "('" not in message and "character" not in message:
        return message
    position = re.search(r"\(at (?:line \d+, column \d+|end of document)\)$", message)
    return f"there is a mistake {position[0]}" if position else "there is a mistake"


def _is_nested_deeper(values: Any, limit: int) -> bool:
    """Whether tables and lists are nested more than ``limit`` levels deep; computed without recursion."""
    level = [values]
    for _ in range(limit + 1):
        nested = [value for value in level if isinstance(value, dict | list)]
        if not nested:
            return False
        level = [inner for value in nested for inner in (value.values() if isinstance(value, dict) else value)]
    return True

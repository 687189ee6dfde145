"""The file format: a readable JSON header followed by plain arrays. Nothing in it can be executed.

    privacygames mechanism 2                     format and version (3 with promises that version 2 did not know)
    <sha-256> <header bytes> <body bytes>        checksum over header and body, and their lengths
    { … }                                        the header, JSON; "arrays" lists name, type and shape
    <arrays>                                     little-endian, one after the other, in that order

A reader needs no more than this page. Everything is bounded and checked before it is used, so a file from a
stranger can be wrong but cannot do harm.
"""

import hashlib
import io
import json
import os
import stat
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import freeze
from privacygames.atomic_io import write_bytes
from privacygames.errors import InvalidFile, UnreadableFile

FORMAT = "privacygames mechanism"
VERSION = 2
NEWEST = 3
READ = (1, 2, 3)
"""The versions that can be read. 1 knew no graphs, subsets and distances: of such spaces it kept the labels. 3 is 2
with promises against several adversaries or for every secret's cost, and is written only where there are some."""

MOST_BYTES = 2**31
MOST_HEADER = 2**23
LONGEST_LINE = 200
TYPES = {"<f8", "<i8", "<i4"}

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Header, arrays: Arrays, *, version: int = VERSION) -> None:
    """Write a file in one step: it appears complete or not at all, and only its owner can read it."""
    write_bytes(path, *content(header, arrays, version=version), private=True)


def content(header: Header, arrays: Arrays, *, version: int = VERSION) -> tuple[bytes, bytes, bytes]:
    """What a file consists of: its first lines, the header and the arrays."""
    listed = [
        {"name": name, "type": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    text = json.dumps(header | {"arrays": listed}, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    body = b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays.values())
    checksum = hashlib.sha256(text + body).hexdigest()
    first = f"{FORMAT} {version}\n{checksum} {len(text)} {len(body)}\n".encode()
    return first, text, body


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """Read a file back, or raise :class:`InvalidFile` saying what is wrong; sizes are refused before reading."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # before it is opened: a pipe may never answer
            raise UnreadableFile(path, "it is not a regular file")
        with Path(path).open("rb") as file:
            return _parse(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except InvalidFile:
        raise
    except (ValueError, TypeError):
        raise UnreadableFile("the file", "its name is not possible") from None


def parse(content: bytes) -> tuple[Header, Arrays]:
    """Take the bytes of a file apart."""
    return _parse(io.BytesIO(content), len(content))


def _parse(file: BinaryIO, size: int) -> tuple[Header, Arrays]:
    """Take a file apart, looking at no more than the next piece needs."""
    if size > MOST_BYTES:
        raise InvalidFile(f"the file has {size} bytes; at most {MOST_BYTES} are allowed")
    first = file.readline(LONGEST_LINE).rstrip(b"\n")
    if not first.startswith(FORMAT.encode() + b" "):
        raise InvalidFile("this is not a privacygames mechanism file")
    version = first[len(FORMAT) + 1 :]
    if version not in [str(known).encode() for known in READ]:
        raise InvalidFile(
            f"the file has format version {version[:20].decode(errors='replace')!r} and this release reads "
            f"versions {', '.join(map(str, READ))}; upgrade privacygames to read it"
        )
    fields = file.readline(LONGEST_LINE).rstrip(b"\n").split(b" ")
    if len(fields) != 3 or not all(field.isdigit() and len(field) < 12 for field in fields[1:]):
        raise InvalidFile("the line of checksum and lengths is damaged")
    header_size, body_size, left = int(fields[1]), int(fields[2]), size - file.tell()
    if header_size > MOST_HEADER or left != header_size + body_size:
        raise InvalidFile(
            f"the file is truncated or has something added: {left} bytes follow where "
            f"{header_size} + {body_size} should"
        )
    text, body = file.read(header_size), file.read(body_size)
    checksum = hashlib.sha256(text)
    checksum.update(body)
    if checksum.hexdigest().encode() != fields[0]:
        raise InvalidFile("the content does not match its checksum: the file was damaged or altered")
    header = _parse_header(text) | {"format": int(version)}
    return header, _parse_arrays(header, memoryview(body))


def _parse_header(text: bytes) -> Header:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        header = json.loads(text, parse_constant=refuse, object_pairs_hook=_distinct)
    except (ValueError, RecursionError, MemoryError):
        raise InvalidFile("the header is not valid JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise InvalidFile("the header is not a JSON object with a list of arrays")
    return header


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; one that names a key twice means different things to different readers."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _parse_arrays(header: Header, body: memoryview) -> Arrays:
    arrays: Arrays = {}
    start = 0
    for entry in header["arrays"]:
        name, kind, shape = _parse_entry(entry)
        size = prod(shape) * np.dtype(kind).itemsize
        if name in arrays or start + size > len(body):
            raise InvalidFile("the list of arrays does not fit the content")
        array = np.frombuffer(body[start : start + size], dtype=kind).reshape(shape)
        # Over the file's own bytes, which nobody can write to; a copy only where the machine counts the other way.
        arrays[name] = array if array.dtype.isnative else freeze(array.astype(array.dtype.newbyteorder("=")))
        start += size
    if start != len(body):
        raise InvalidFile("the list of arrays does not fit the content")
    return arrays


def _parse_entry(entry: object) -> tuple[str, str, tuple[int, ...]]:
    if isinstance(entry, dict):
        name, kind, shape = entry.get("name"), entry.get("type"), entry.get("shape")
        if isinstance(name, str) and isinstance(kind, str) and isinstance(shape, list):
            sizes = tuple(size for size in shape if type(size) is int and 0 <= size <= MOST_BYTES)
            if kind in TYPES and 1 <= len(shape) <= 2 and len(sizes) == len(shape):
                return name, kind, sizes
    raise InvalidFile("the list of arrays is damaged")

"""The binary container of mechanism files and of the records of fleets: a JSON header, then the arrays that it lists.

A mechanism file (``.pgm``) starts with two lines of text:

    privacygames mechanism 2                     format and version (3 where guarantees need it, 4 for points)
    <sha-256> <header bytes> <body bytes>        checksum over header and body, and their lengths
    { … }                                        the header, JSON; "arrays" lists name, type and shape
    <arrays>                                     little-endian, one after the other, in that order

A record of a fleet has neither line, since the fleet's index has its checksum:

    <header bytes>                               4 bytes, little-endian
    { … }                                        the header, JSON; "arrays" lists [name, type, shape]
    <arrays>                                     as above

A reader in any language needs no more than this page. Nothing in a container is executed, and every length is checked
before anything of that length is read or built: whatever a stranger's file holds, reading it gives its content or
:class:`privacygames.InvalidFile`.
"""

import hashlib
import io
import json
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import freeze
from privacygames.atomic_io import write_bytes
from privacygames.errors import GuaranteeViolated, InvalidFile, UnreadableFile

FORMAT = "privacygames mechanism"
VERSION = 2
"""The version written, unless a guarantee needs :data:`NEWEST_VERSION`."""

NEWEST_VERSION = 3
POINTS_VERSION = 4
READABLE_VERSIONS = (1, 2, 3, 4)
"""Version 1 had no graphs, subsets and distances: of such spaces it stored the labels. Version 3 is version 2 with
guarantees against several adversaries or for every secret's cost, and is written only where there are some. Version 4
is for mechanisms whose secrets are points, whose header has the kind "points"."""

POINTS_KIND = "points"
"""The kind that the header of a mechanism for points names; those of other mechanisms name none."""

MAX_FILE_BYTES = 2**31
MAX_HEADER_BYTES = 2**23
MAX_LINE_BYTES = 200
MAX_TEXT_LENGTH = 200
MAX_AXIS_LENGTH = 2**31
"""Largest length of one axis of an array: as many bytes as a file may have."""

FILE_TYPES = ("<f8", "<i8", "<i4")
RECORD_TYPES = ("<f8", "<i8", "<u4", "<u2", "|u1")
"""Types of arrays in files and in records, as NumPy writes them."""

RECORD_LENGTH_BYTES = 4

MALFORMED = (
    KeyError,
    TypeError,
    ValueError,  # InvalidProblem among them
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What interpreting the content of a stranger's file may raise."""

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Header, arrays: Arrays, *, version: int = VERSION) -> None:
    """Write a file in one step: it appears complete or not at all, and only its owner can read it."""
    write_bytes(path, *content(header, arrays, version=version), private=True)


def content(header: Header, arrays: Arrays, *, version: int = VERSION) -> tuple[bytes, bytes, bytes]:
    """The three parts of a file: its first two lines, the header and the arrays."""
    entries = [
        {"name": name, "type": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    text = json.dumps(header | {"arrays": entries}, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    body = _array_bytes(arrays)
    checksum = hashlib.sha256(text + body).hexdigest()
    first_lines = f"{FORMAT} {version}\n{checksum} {len(text)} {len(body)}\n".encode()
    return first_lines, text, body


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """Read a file, or raise :class:`InvalidFile` saying what is wrong; it is never read beyond the allowed size."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # before opening it, which may block on a pipe
            raise UnreadableFile(path, "it is not a regular file")
        with Path(path).open("rb") as file:
            return _parse_file(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except InvalidFile:
        raise
    except (ValueError, TypeError):
        raise UnreadableFile("the file", "its name is not possible") from None


def parse(content: bytes) -> tuple[Header, Arrays]:
    """The header and arrays in the bytes of a file."""
    return _parse_file(io.BytesIO(content), len(content))


def encode_record(header: Header, arrays: Arrays) -> bytes:
    """The bytes of a fleet's record.

    >>> from privacygames.mechanism import decode_record, encode_record
    >>> header, arrays = decode_record(encode_record({"name": "ann"}, {"prior": np.array([0.25, 0.75])}))
    >>> header["name"], arrays["prior"].tolist()
    ('ann', [0.25, 0.75])
    """
    entries = [[name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps(header | {"arrays": entries}, ensure_ascii=False, allow_nan=False).encode()
    return len(text).to_bytes(RECORD_LENGTH_BYTES, "little") + text + _array_bytes(arrays)


def decode_record(record: bytes) -> tuple[Header, Arrays]:
    """The header and arrays of a fleet's record."""
    header, start = _parse_record_header(record)
    mismatch = "a record of the fleet is damaged: its arrays do not fit its length"
    return header, _parse_arrays(_record_entries(header), memoryview(record)[start:], mismatch)


def decode_record_header(record: bytes) -> Header:
    """The header of a fleet's record; its arrays are not looked at."""
    return _parse_record_header(record)[0]


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Raise :class:`InvalidFile` where interpreting content fails, whatever it holds.

    Args:
        what: the content, for the message.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (InvalidFile, GuaranteeViolated):
        raise
    except MALFORMED as error:
        raise InvalidFile(f"{what} does not fit together ({type(error).__name__})") from None


def require_array(arrays: Arrays, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array, which must have this type and shape."""
    array = arrays[name]
    if array.dtype != np.dtype(kind) or array.shape != shape:
        raise InvalidFile(f"array {name!r} has the wrong type or shape")
    return array


def require_indices(arrays: Arrays, name: str, shape: tuple[int, ...], limit: int) -> NDArray[np.int32]:
    """An array of indices, which must all lie in [0, limit)."""
    array = require_array(arrays, name, "<i4", shape)
    if ((array < 0) | (array >= limit)).any():
        raise InvalidFile(f"array {name!r} points outside")
    return array


def require_number(value: object) -> float:
    """A value of the header, which must be a finite number."""
    if type(value) not in (int, float) or not abs(float(value)) < np.inf:  # type: ignore[arg-type]
        raise InvalidFile("a number in the header is something else")
    return float(value)  # type: ignore[arg-type]


def require_integer(value: object) -> int:
    """A value of the header, which must be an integer."""
    if type(value) is not int:
        raise InvalidFile("a number in the header is not whole")
    return value


def require_text(value: object) -> str:
    """A value of the header, which must be a short printable text."""
    if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_TEXT_LENGTH:
        raise InvalidFile("a text in the header is too long or not plain text")
    return value


def _array_bytes(arrays: Arrays) -> bytes:
    return b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays.values())


def _parse_file(file: BinaryIO, size: int) -> tuple[Header, Arrays]:
    """The content of a file of this size, of which each part is read only after its length was checked."""
    if size > MAX_FILE_BYTES:
        raise InvalidFile(f"the file has {size} bytes; at most {MAX_FILE_BYTES} are allowed")
    version = _parse_version(file.readline(MAX_LINE_BYTES).rstrip(b"\n"))
    fields = file.readline(MAX_LINE_BYTES).rstrip(b"\n").split(b" ")
    if len(fields) != 3 or not all(field.isdigit() and len(field) < 12 for field in fields[1:]):
        raise InvalidFile("the line of checksum and lengths is damaged")
    header_size, body_size, left = int(fields[1]), int(fields[2]), size - file.tell()
    if header_size > MAX_HEADER_BYTES or left != header_size + body_size:
        raise InvalidFile(
            f"the file is truncated or has something added: {left} bytes follow where "
            f"{header_size} + {body_size} should"
        )
    text, body = file.read(header_size), file.read(body_size)
    checksum = hashlib.sha256(text)
    checksum.update(body)
    if checksum.hexdigest().encode() != fields[0]:
        raise InvalidFile("the content does not match its checksum: the file was damaged or altered")
    header = _parse_json(text, not_json="the header is not valid JSON")
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise InvalidFile("the header is not a JSON object with a list of arrays")
    arrays = _parse_arrays(_file_entries(header), memoryview(body), "the list of arrays does not fit the content")
    return header | {"format": version}, arrays


def _parse_version(line: bytes) -> int:
    if not line.startswith(FORMAT.encode() + b" "):
        raise InvalidFile("this is not a privacygames mechanism file")
    version = line[len(FORMAT) + 1 :]
    if version not in [str(known).encode() for known in READABLE_VERSIONS]:
        raise InvalidFile(
            f"the file has format version {version[:20].decode(errors='replace')!r} and this release reads "
            f"versions {', '.join(map(str, READABLE_VERSIONS))}; upgrade privacygames to read it"
        )
    return int(version)


def _parse_record_header(record: bytes) -> tuple[Header, int]:
    """A record's header, and where its arrays begin."""
    start = RECORD_LENGTH_BYTES + int.from_bytes(record[:RECORD_LENGTH_BYTES], "little")
    if len(record) < RECORD_LENGTH_BYTES or start > len(record):
        raise InvalidFile("a record of the fleet is cut short")
    text = record[RECORD_LENGTH_BYTES:start]
    header = _parse_json(text, not_json="a record of the fleet is damaged: its header is not JSON")
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise InvalidFile("a record of the fleet is damaged: its header lists no arrays")
    return header, start


def _parse_json(text: bytes, *, not_json: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=_require_distinct)
    except (ValueError, RecursionError, MemoryError):
        raise InvalidFile(not_json) from None


def _require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; one that has a key twice means different things to different readers."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError
    return table


Entry = tuple[str, str, tuple[int, ...]]
"""Name, type and shape of an array, checked."""


def _file_entries(header: Header) -> list[Entry]:
    keys = ("name", "type", "shape")
    entries = [[entry.get(key) for key in keys] if isinstance(entry, dict) else None for entry in header["arrays"]]
    return [_require_entry(entry, FILE_TYPES, "the list of arrays is damaged") for entry in entries]


def _record_entries(header: Header) -> list[Entry]:
    damaged = "a record of the fleet is damaged: its list of arrays"
    return [_require_entry(entry, RECORD_TYPES, damaged) for entry in header["arrays"]]


def _require_entry(entry: object, types: Collection[str], damaged: str) -> Entry:
    if isinstance(entry, list) and len(entry) == 3:
        name, kind, shape = entry
        if isinstance(name, str) and isinstance(kind, str) and kind in types and isinstance(shape, list):
            lengths = tuple(length for length in shape if type(length) is int and 0 <= length <= MAX_AXIS_LENGTH)
            if 1 <= len(shape) <= 2 and len(lengths) == len(shape):
                return name, kind, lengths
    raise InvalidFile(damaged)


def _parse_arrays(entries: list[Entry], body: memoryview, mismatch: str) -> Arrays:
    """Arrays over the bytes of a body, which must be used up exactly."""
    arrays: Arrays = {}
    start = 0
    for name, kind, shape in entries:
        size = prod(shape) * np.dtype(kind).itemsize
        if name in arrays or start + size > len(body):
            raise InvalidFile(mismatch)
        array = np.frombuffer(body[start : start + size], dtype=kind).reshape(shape)
        # The bytes read are immutable; a copy is needed only where the machine has the other byte order.
        arrays[name] = array if array.dtype.isnative else freeze(array.astype(array.dtype.newbyteorder("=")))
        start += size
    if start != len(body):
        raise InvalidFile(mismatch)
    return arrays

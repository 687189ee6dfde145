"""People's mechanisms one after the other in a file that only grows; an index beside it finds anybody at once.

    record:   "PGF1"  payload length (4 bytes)  SHA-256 of the payload (32)  payload
    payload:  header length (4)  header (JSON)  arrays, little-endian, as the header lists them
    index:    "PGI1"  length of the file indexed (8)  entries, sorted: hash of a name (16)  where (8)  size (8)

Nothing in either is executed, and every length is checked against what is there.
"""

import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b, sha256
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidFile, UnreadableFile
from privacygames.storage import write_bytes

MARK, INDEX_MARK = b"PGF1", b"PGI1"
PREFIX = 4 + 4 + 32
ENTRY = 16 + 8 + 8
INDEX_START = 4 + 8
TYPES = ("<f8", "<i8", "<u4", "<u2", "|u1")

Record = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""A header, and arrays by name."""


def encode(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """A record's payload."""
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in little.items()]
    text = json.dumps(header | {"arrays": listed}, ensure_ascii=False, allow_nan=False).encode()
    return b"".join([len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in little.values())])


def header_in(payload: memoryview) -> tuple[dict[str, Any], int]:
    """A payload's header, and where its arrays begin."""
    size = int.from_bytes(payload[:4], "little")
    try:
        header = json.loads(bytes(payload[4 : 4 + size]))
    except (ValueError, RecursionError):
        raise InvalidFile("a record of the fleet is damaged: its header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise InvalidFile("a record of the fleet is damaged: its header lists no arrays")
    return header, 4 + size


def decode(payload: memoryview) -> Record:
    """Header and arrays of a payload; the arrays look into it."""
    header, at = header_in(payload)
    arrays: dict[str, NDArray[Any]] = {}
    for entry in header["arrays"]:
        if not (isinstance(entry, list) and len(entry) == 3 and entry[1] in TYPES and isinstance(entry[2], list)):
            raise InvalidFile("a record of the fleet is damaged: its list of arrays")
        name, kind, shape = entry
        if not all(type(size) is int and 0 <= size < 2**32 for size in shape):
            raise InvalidFile("a record of the fleet is damaged: its list of arrays")
        size = prod(shape) * np.dtype(kind).itemsize
        if at + size > len(payload):
            raise InvalidFile("a record of the fleet is cut short")
        arrays[str(name)] = np.frombuffer(payload[at : at + size], dtype=kind).reshape(shape)
        at += size
    return header, arrays


def name_hash(name: str) -> bytes:
    """What the index is sorted by."""
    return blake2b(name.encode(), digest_size=16).digest()


class RecordLog:
    """The growing file of records, open for appending. One process at a time may do so: its caller sees to it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        self.found: dict[str, tuple[dict[str, Any], int, int]] = {}

    def recover(self) -> None:
        """Find every whole record; what a killed process left half-written behind them is cut off."""
        for header, at, size in self._scan():
            self.found[str(header.get("name"))] = (header, at, size)

    def _scan(self) -> Iterator[tuple[dict[str, Any], int, int]]:
        end, at = self._file.seek(0, os.SEEK_END), 0
        while at < end:
            self._file.seek(at)
            prefix = self._file.read(PREFIX)
            size = int.from_bytes(prefix[4:8], "little")
            if len(prefix) < PREFIX or prefix[:4] != MARK or at + PREFIX + size > end:
                break
            payload = self._file.read(size)
            if sha256(payload).digest() != prefix[8:]:
                break
            header, _ = header_in(memoryview(payload))
            yield header, at + PREFIX, size
            at += PREFIX + size
        self._file.truncate(at)
        self._file.seek(at)

    def add(self, payload: bytes) -> None:
        """Append a record; a later one of the same name takes the place of an earlier one."""
        at = self._file.seek(0, os.SEEK_END)
        self._file.write(MARK + len(payload).to_bytes(4, "little") + sha256(payload).digest() + payload)
        self._file.flush()
        header, _ = header_in(memoryview(payload))
        self.found[str(header["name"])] = (header, at + PREFIX, len(payload))

    def write_index(self, path: Path, names: set[str]) -> None:
        """Write the index of some people, whole or not at all."""
        os.fsync(self._file.fileno())
        listed = [(name_hash(name), at, size) for name, (_, at, size) in self.found.items() if name in names]
        parts = [each + at.to_bytes(8, "little") + size.to_bytes(8, "little") for each, at, size in sorted(listed)]
        length = self._file.seek(0, os.SEEK_END)
        write_bytes(path, INDEX_MARK, length.to_bytes(8, "little"), *parts, private=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


@dataclass
class RecordReader:
    """Records found by name, looked at where they lie on the disk: memory does not grow with the people."""

    records: mmap.mmap
    index: mmap.mmap

    @classmethod
    def open(cls, records: Path, index: Path) -> "RecordReader":
        """Look at a file of records and its index."""
        try:
            reader = cls(_mapped(records), _mapped(index))
        except OSError as error:
            raise UnreadableFile(error.filename or records, error.strerror) from None
        whole = reader.index[:4] == INDEX_MARK and (len(reader.index) - INDEX_START) % ENTRY == 0
        if not whole or int.from_bytes(reader.index[4:INDEX_START], "little") > len(reader.records):
            raise InvalidFile(
                f"{index} does not fit the records beside it: design the fleet again, which goes on with it"
            )
        return reader

    def __len__(self) -> int:
        return (len(self.index) - INDEX_START) // ENTRY

    def payload_at(self, position: int) -> memoryview:
        """The payload of the person at a position of the index, checked against its checksum."""
        at, size = self._place(position)
        payload = memoryview(self.records)[at : at + size]
        if sha256(payload).digest() != self.checksum_at(position):
            raise InvalidFile("a record of the fleet does not match its checksum: it was damaged or altered")
        return payload

    def checksum_at(self, position: int) -> bytes:
        """The checksum of a record: another one wherever anything in it is."""
        at, _ = self._place(position)
        return self.records[at - 32 : at]

    def _place(self, position: int) -> tuple[int, int]:
        start = INDEX_START + position * ENTRY
        at, size = (int.from_bytes(self.index[start + skip : start + skip + 8], "little") for skip in (16, 24))
        if at < PREFIX or at + size > len(self.records):
            raise InvalidFile("the index of the fleet points outside its records")
        return at, size

    def position_of(self, name: str) -> int | None:
        """Where a person is in the index; None for strangers."""
        wanted, low, high = name_hash(name), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            start = INDEX_START + middle * ENTRY
            if self.index[start : start + 16] < wanted:
                low = middle + 1
            else:
                high = middle
        start = INDEX_START + low * ENTRY
        return low if low < len(self) and self.index[start : start + 16] == wanted else None


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise OSError(0, "it is empty", str(path))
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

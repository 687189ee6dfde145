"""A fleet's folder as it is at one time: who is in it, which bytes are whose, and what they share.

    shared.pgm  spaces, costs, distances and promises
    people.dat  "PGD2"  identity (16)  records, one after the other
    record:     "PGF1"  payload length (4)  SHA-256 of the payload (32)  payload
    people.idx  "PGI2"  SHA-256 of what follows (32)
                SHA-256 of shared.pgm (32)  identity of people.dat (16)  how much of it counts (8)
                entries, sorted: hash of a name (16)  where the payload begins (8)  its size (8)  its SHA-256 (32)

The index pins every byte that counts. It is replaced in one step, and with it the fleet goes from one generation to
the next: whatever is interrupted before leaves the previous one. Fleets of the last release, whose index pins nothing
("PGI1": length, entries without SHA-256), are read too, and written anew when they change.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from privacygames.errors import InvalidFile, StaleFleet
from privacygames.fleet.person_record import require_owner
from privacygames.fleet.records import name_hash
from privacygames.fleet.regular_files import ReadAt, RegularFile, signature_at
from privacygames.fleet.shared_data import SHARED, Shared, hash_of, read_content, shared_with

RECORDS, NEXT_RECORDS, INDEX = "people.dat", "people-next.dat", "people.idx"
"""Records are rewritten beside the ones that count, and take their name once the index counts them."""

RECORD_MARK, DATA_MARK, INDEX_MARK, OLD_INDEX_MARK = b"PGF1", b"PGD2", b"PGI2", b"PGI1"
PREFIX = 4 + 4 + 32
IDENTITY = 16
DATA_START = 4 + IDENTITY
INDEX_START = 32 + IDENTITY + 8
ENTRY, OLD_ENTRY = 16 + 8 + 8 + 32, 16 + 8 + 8
FARTHEST = 2**62
"""No record is as far from the start of a file as that: what says so is damaged."""

ATTEMPTS = 3
"""How often a folder is read that is changed meanwhile."""


@dataclass(frozen=True)
class Place:
    """Where a payload is in the file of records, and what it must be."""

    start: int
    size: int
    checksum: bytes

    def read(self, read_at: ReadAt) -> bytes:
        """The payload, copied, whose SHA-256 is the expected one."""
        inside = PREFIX <= self.start < FARTHEST and self.size < 2**32
        whole = read_at(self.start - PREFIX, PREFIX + self.size) if inside else b""
        payload = whole[PREFIX:]
        expected = record_prefix(self.size, self.checksum) if inside else None
        if whole[:PREFIX] != expected or sha256(payload).digest() != self.checksum:
            raise InvalidFile("a record of the fleet does not match its checksum: it was damaged or altered")
        return payload


Places = Mapping[bytes, Place]
"""Where everybody's record is, by the hash of the name."""


def record_prefix(size: int, checksum: bytes) -> bytes:
    """What stands before a payload in the file of records."""
    return RECORD_MARK + size.to_bytes(4, "little") + checksum


class Generation:
    """The people of a fleet's folder at one time; nothing of it changes while it is open.

    Args:
        folder: where.
        index: what the index says, without its mark and checksum.
        index_file: the file it is from: as long as it is open, no other file gets its signature.
        records: the file of records.
    """

    def __init__(self, folder: Path, index: bytes, index_file: RegularFile, records: RegularFile) -> None:
        self.folder, self._index_file, self._records = folder, index_file, records
        self._signature = index_file.opened_as
        self.records_path = records.path
        self.shared_hash, self.identity = index[:32].hex(), index[32 : 32 + IDENTITY]
        self.length = int.from_bytes(index[32 + IDENTITY : INDEX_START], "little")
        self._entries = index[INDEX_START:]
        self.shared: Shared = shared_with(self.shared_hash, folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read a folder: its index must be whole, and pin the shared part and the records beside it."""
        for _ in range(ATTEMPTS):
            index_file = RegularFile(folder / INDEX)
            index = _read_index(index_file)
            if index[:32].hex() != hash_of(read_content(folder)):
                raise InvalidFile(f"{folder / INDEX} is not of the {SHARED} beside it: one of them was replaced")
            records = _records_of(folder, index)
            if records is not None:
                return cls(folder, index, index_file, records)
        raise InvalidFile(
            f"{folder / INDEX} does not fit the records beside it: one of them was replaced, or is cut short"
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what all share, and of who is in the fleet with which record; wherever the bytes lie."""
        return sha256(bytes.fromhex(self.shared_hash) + b"".join(self._pairs())).hexdigest()

    @cached_property
    def records_digest(self) -> str:
        """SHA-256 of what is each person's own."""
        return sha256(b"".join(self.place(position).checksum for position in range(len(self)))).hexdigest()

    def current(self) -> "Generation":
        """This generation where the folder still holds it, maybe in other files.

        Raises:
            StaleFleet: the folder holds another one, or none.
        """
        if signature_at(self.folder / INDEX) == self._signature:
            return self
        try:
            now = Generation.open(self.folder)
        except InvalidFile:
            now = None
        if now is None or now.digest != self.digest:
            raise stale(self.folder)
        return now

    def __len__(self) -> int:
        return len(self._entries) // ENTRY

    def position_of(self, name: str) -> int | None:
        """Where a person is in the index; None for strangers."""
        return self._position(name_hash(name))

    def place(self, position: int) -> Place:
        """Where the record at a position of the index is."""
        entry = self._entries[position * ENTRY : (position + 1) * ENTRY]
        return Place(int.from_bytes(entry[16:24], "little"), int.from_bytes(entry[24:32], "little"), entry[32:])

    def places(self) -> dict[bytes, Place]:
        """Where everybody's record is, by the hash of the name."""
        return {self.hash_at(position): self.place(position) for position in range(len(self))}

    def hash_at(self, position: int) -> bytes:
        """The hash of the name at a position of the index."""
        return self._entries[position * ENTRY : position * ENTRY + 16]

    def payload(self, position: int) -> bytes:
        """A record's payload: the very bytes that the index pins, of the person it has them for."""
        payload = self.place(position).read(self._records.read_at)
        require_owner(payload, self.hash_at(position))
        return payload

    def _pairs(self) -> Iterator[bytes]:
        for position in range(len(self)):
            yield self.hash_at(position)
            yield self.place(position).checksum

    def _position(self, wanted: bytes) -> int | None:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.hash_at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.hash_at(low) == wanted else None


def index_content(shared_hash: str, identity: bytes, length: int, places: Places) -> tuple[bytes, ...]:
    """What the index of a generation consists of."""
    entries = (
        hashed + place.start.to_bytes(8, "little") + place.size.to_bytes(8, "little") + place.checksum
        for hashed, place in sorted(places.items())
    )
    rest = b"".join([bytes.fromhex(shared_hash), identity, length.to_bytes(8, "little"), *entries])
    return INDEX_MARK, sha256(rest).digest(), rest


def stale(folder: Path) -> StaleFleet:
    """The error of a fleet that is not any more what it was."""
    return StaleFleet(f"the fleet in {folder} is not the one that was opened: it was changed since. Open it again")


def identity_of_records(read_at: ReadAt) -> bytes:
    """What a file of records is told by; zeros for those of the last release, which start with a record."""
    head = read_at(0, DATA_START)
    return head[4:] if head[:4] == DATA_MARK else bytes(IDENTITY)


def _read_index(file: RegularFile) -> bytes:
    """What an index says."""
    content = file.read()
    if content[:4] == OLD_INDEX_MARK:
        content = _upgraded(file.path.parent, content)
    index = content[36:]
    if content[:4] != INDEX_MARK or sha256(index).digest() != content[4:36]:
        raise InvalidFile(f"{file.path} is damaged, or of a version that this release does not read")
    hashes = [index[start : start + 16] for start in range(INDEX_START, len(index), ENTRY)]
    if len(index) < INDEX_START or (len(index) - INDEX_START) % ENTRY or hashes != sorted(set(hashes)):
        raise InvalidFile(f"{file.path} is damaged: its entries are not in order")
    return index


def _upgraded(folder: Path, content: bytes) -> bytes:
    """An index as the last release wrote it, as this one does: with the checksums that stand before its records."""
    places: dict[bytes, Place] = {}
    records = RegularFile(folder / RECORDS)
    for at in range(12, len(content), OLD_ENTRY):
        start, size = (int.from_bytes(content[each : each + 8], "little") for each in (at + 16, at + 24))
        checksum = records.read_at(start - 32, 32) if PREFIX <= start < FARTHEST else b""
        places[content[at : at + 16]] = Place(start, size, checksum.ljust(32, b"\0"))
    length = int.from_bytes(content[4:12], "little")
    return b"".join(index_content(hash_of(read_content(folder)), bytes(IDENTITY), length, places))


def _records_of(folder: Path, index: bytes) -> RegularFile | None:
    """The file of records that an index is about; None where it is not there."""
    identity, length = index[32 : 32 + IDENTITY], int.from_bytes(index[32 + IDENTITY : INDEX_START], "little")
    for path in (folder / RECORDS, folder / NEXT_RECORDS):
        if path.exists():
            with suppress(FileNotFoundError):
                file = RegularFile(path)
                if identity_of_records(file.read_at) == identity and file.size >= length:
                    return file
    return None

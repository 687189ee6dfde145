"""A fleet's folder at one moment: whose record is where, which bytes count, and what all people share.

    shared.pgm  spaces, costs, distances and guarantees
    people.dat  "PGD2"  identity (16)  records, one after the other
    record:     "PGF1"  length of what follows the checksum (4)  its SHA-256 (32)  header and arrays
    people.idx  "PGI2"  SHA-256 of what follows (32)
                SHA-256 of shared.pgm (32)  identity of people.dat (16)  its length (8)
                entries, sorted: hash of a name (16)  offset of the record (8)  its size (8)  its SHA-256 (32)

The index fixes every byte that counts by its SHA-256. Replacing it, which is atomic, commits a change; an interrupted
change leaves the previous index and all that it refers to. Format 1 of the index ("PGI1": length, entries without
SHA-256) is read too, and written in the present format when the fleet is changed.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from privacygames.errors import InvalidFile, StaleFleet
from privacygames.fleet.person_record import NAME_HASH_BYTES, name_hash, require_owner
from privacygames.fleet.regular_files import ReadAt, RegularFile, signature_at
from privacygames.fleet.shared_problem import SHARED_FILE, AnyShared, hash_shared, load_shared, read_shared

RECORDS_FILE, NEXT_RECORDS_FILE, INDEX_FILE = "people.dat", "people-next.dat", "people.idx"
"""Records are rewritten to the second file, which takes the name of the first once the index refers to it."""

RECORD_MAGIC, RECORDS_MAGIC, INDEX_MAGIC, INDEX_1_MAGIC = b"PGF1", b"PGD2", b"PGI2", b"PGI1"
CHECKSUM_BYTES = 32
RECORD_PREFIX_BYTES = 4 + 4 + CHECKSUM_BYTES
IDENTITY_BYTES = 16
RECORDS_START = 4 + IDENTITY_BYTES
INDEX_HEADER_BYTES = CHECKSUM_BYTES + IDENTITY_BYTES + 8
ENTRY_BYTES = NAME_HASH_BYTES + 8 + 8 + CHECKSUM_BYTES
ENTRY_1_BYTES = NAME_HASH_BYTES + 8 + 8

MAX_OFFSET = 2**62
"""Largest offset of a record that is believed: offsets beyond it do not fit the system's signed 64 bits."""

MAX_OPEN_ATTEMPTS = 3
"""Number of times a folder is read again because it was changed while it was read."""


@dataclass(frozen=True)
class RecordLocation:
    """Where a record is in the file of records, and its checksum.

    Attributes:
        start: the offset of its header.
        size: its size in bytes.
        checksum: its SHA-256.
    """

    start: int
    size: int
    checksum: bytes

    def read(self, read_at: ReadAt) -> bytes:
        """A copy of the record, whose checksum was verified."""
        plausible = RECORD_PREFIX_BYTES <= self.start < MAX_OFFSET and self.size < 2**32
        content = read_at(self.start - RECORD_PREFIX_BYTES, RECORD_PREFIX_BYTES + self.size) if plausible else b""
        prefix, record = content[:RECORD_PREFIX_BYTES], content[RECORD_PREFIX_BYTES:]
        expected = record_prefix(self.size, self.checksum) if plausible else None
        if prefix != expected or sha256(record).digest() != self.checksum:
            raise InvalidFile("a record of the fleet does not match its checksum: it was damaged or altered")
        return record


RecordLocations = Mapping[bytes, RecordLocation]
"""The location of each person's record, by the hash of the name."""


def record_prefix(size: int, checksum: bytes) -> bytes:
    """The bytes before a record in the file of records."""
    return RECORD_MAGIC + size.to_bytes(4, "little") + checksum


class Snapshot:
    """A fleet's folder at one moment; what it gives does not change while it is open.

    Args:
        folder: the folder.
        index: the index, from the SHA-256 of the shared file on.
        index_file: the file that it was read from. As long as it is open, no other file can have its signature.
        records: the file of records.
    """

    def __init__(self, folder: Path, index: bytes, index_file: RegularFile, records: RegularFile) -> None:
        self.folder, self._index_file, self._records = folder, index_file, records
        self._signature = index_file.opened_as
        self.records_path = records.path
        self.shared_hash, self.identity, self.length = _index_header(index)
        self._entries = index[INDEX_HEADER_BYTES:]
        self.shared: AnyShared = load_shared(self.shared_hash, folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read a folder, whose index must be undamaged and fit the shared file and the records beside it."""
        for _ in range(MAX_OPEN_ATTEMPTS):
            index_file = RegularFile(folder / INDEX_FILE)
            index = _read_index(index_file)
            if _index_header(index)[0] != hash_shared(read_shared(folder)):
                raise InvalidFile(
                    f"{folder / INDEX_FILE} is not of the {SHARED_FILE} beside it: one of them was replaced"
                )
            records = _find_records(folder, index)
            if records is not None:
                return cls(folder, index, index_file, records)
        raise InvalidFile(
            f"{folder / INDEX_FILE} does not fit the records beside it: one of them was replaced, or is cut short"
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what all people share, of who is in the fleet, and of their records; not of where these are."""
        return sha256(bytes.fromhex(self.shared_hash) + b"".join(self._hashes_and_checksums())).hexdigest()

    @cached_property
    def records_digest(self) -> str:
        """SHA-256 of the checksums of all records."""
        return sha256(b"".join(self.location(number).checksum for number in range(len(self)))).hexdigest()

    def current(self) -> "Snapshot":
        """This snapshot if the folder still holds the same fleet, possibly in other files.

        Raises:
            StaleFleet: the folder holds another fleet, or none.
        """
        if signature_at(self.folder / INDEX_FILE) == self._signature:
            return self
        try:
            present = Snapshot.open(self.folder)
        except InvalidFile:
            present = None
        if present is None or present.digest != self.digest:
            raise stale_fleet(self.folder)
        return present

    def __len__(self) -> int:
        return len(self._entries) // ENTRY_BYTES

    def find(self, name: str) -> int | None:
        """The number of a person's entry in the index; None for unknown people."""
        wanted = name_hash(name)
        low, high = 0, len(self)
        while low < high:  # a binary search: entries are sorted by hash
            middle = (low + high) // 2
            if self.hash_at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.hash_at(low) == wanted else None

    def location(self, number: int) -> RecordLocation:
        """The location of the record of an entry."""
        fields = self._entries[number * ENTRY_BYTES + NAME_HASH_BYTES : (number + 1) * ENTRY_BYTES]
        start, size = int.from_bytes(fields[:8], "little"), int.from_bytes(fields[8:16], "little")
        return RecordLocation(start, size, fields[16:])

    def locations(self) -> dict[bytes, RecordLocation]:
        """The locations of all records, by the hash of the name."""
        return {self.hash_at(number): self.location(number) for number in range(len(self))}

    def hash_at(self, number: int) -> bytes:
        """The hash of the name of an entry."""
        return self._entries[number * ENTRY_BYTES : number * ENTRY_BYTES + NAME_HASH_BYTES]

    def record(self, number: int) -> bytes:
        """The record of an entry, after checking its checksum and whose it is."""
        record = self.location(number).read(self._records.read_at)
        require_owner(record, self.hash_at(number))
        return record

    def _hashes_and_checksums(self) -> Iterator[bytes]:
        for number in range(len(self)):
            yield self.hash_at(number)
            yield self.location(number).checksum


def encode_index(shared_hash: str, identity: bytes, length: int, locations: RecordLocations) -> tuple[bytes, ...]:
    """The parts of an index file."""
    entries = (
        hashed + location.start.to_bytes(8, "little") + location.size.to_bytes(8, "little") + location.checksum
        for hashed, location in sorted(locations.items())
    )
    index = b"".join([bytes.fromhex(shared_hash), identity, length.to_bytes(8, "little"), *entries])
    return INDEX_MAGIC, sha256(index).digest(), index


def stale_fleet(folder: Path) -> StaleFleet:
    """The error to raise when a folder no longer holds the fleet that was opened."""
    return StaleFleet(f"the fleet in {folder} is not the one that was opened: it was changed since. Open it again")


def identity_of_records(read_at: ReadAt) -> bytes:
    """The random identity of a file of records; zeros in format 1, which begins with a record."""
    head = read_at(0, RECORDS_START)
    return head[4:] if head[:4] == RECORDS_MAGIC else bytes(IDENTITY_BYTES)


def _index_header(index: bytes) -> tuple[str, bytes, int]:
    """SHA-256 of the shared file, and identity and length of the file of records."""
    identity = index[CHECKSUM_BYTES : CHECKSUM_BYTES + IDENTITY_BYTES]
    length = int.from_bytes(index[CHECKSUM_BYTES + IDENTITY_BYTES : INDEX_HEADER_BYTES], "little")
    return index[:CHECKSUM_BYTES].hex(), identity, length


def _read_index(file: RegularFile) -> bytes:
    """The index in a file, from the SHA-256 of the shared file on."""
    content = file.read()
    if content[:4] == INDEX_1_MAGIC:
        content = _upgrade_index(file.path.parent, content)
    index = content[4 + CHECKSUM_BYTES :]
    if content[:4] != INDEX_MAGIC or sha256(index).digest() != content[4 : 4 + CHECKSUM_BYTES]:
        raise InvalidFile(f"{file.path} is damaged, or of a version that this release does not read")
    hashes = [index[at : at + NAME_HASH_BYTES] for at in range(INDEX_HEADER_BYTES, len(index), ENTRY_BYTES)]
    incomplete = len(index) < INDEX_HEADER_BYTES or (len(index) - INDEX_HEADER_BYTES) % ENTRY_BYTES
    if incomplete or hashes != sorted(set(hashes)):
        raise InvalidFile(f"{file.path} is damaged: its entries are not in order")
    return index


def _upgrade_index(folder: Path, content: bytes) -> bytes:
    """An index of format 1 in the present format, with the checksums that precede the records."""
    locations: dict[bytes, RecordLocation] = {}
    records = RegularFile(folder / RECORDS_FILE)
    for at in range(12, len(content), ENTRY_1_BYTES):
        hashed = content[at : at + NAME_HASH_BYTES]
        start, size = (int.from_bytes(content[field : field + 8], "little") for field in (at + 16, at + 24))
        believed = RECORD_PREFIX_BYTES <= start < MAX_OFFSET
        checksum = records.read_at(start - CHECKSUM_BYTES, CHECKSUM_BYTES) if believed else b""
        locations[hashed] = RecordLocation(start, size, checksum.ljust(CHECKSUM_BYTES, b"\0"))
    length = int.from_bytes(content[4:12], "little")
    return b"".join(encode_index(hash_shared(read_shared(folder)), bytes(IDENTITY_BYTES), length, locations))


def _find_records(folder: Path, index: bytes) -> RegularFile | None:
    """The file of records that an index refers to, under either name; None where it is not there."""
    _, identity, length = _index_header(index)
    for path in (folder / RECORDS_FILE, folder / NEXT_RECORDS_FILE):
        if path.exists():
            with suppress(FileNotFoundError):
                file = RegularFile(path)
                if identity_of_records(file.read_at) == identity and file.size >= length:
                    return file
    return None

"""Changing a fleet's folder: one process at a time, records first, and the index last, which is replaced atomically."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import IO

from privacygames.atomic_io import file_lock, fsync_directory, open_atomic, write_bytes
from privacygames.errors import GuaranteeViolated, InvalidFile, InvalidProblem, UnreadableFile
from privacygames.fleet.person_record import header_of, name_hash, require_owner
from privacygames.fleet.records import AnyPrior, prior_in, same_prior, verify_record
from privacygames.fleet.regular_files import RegularFile, read_at
from privacygames.fleet.shared_problem import SHARED_FILE, AnyShared, hash_shared, load_shared, read_shared
from privacygames.fleet.snapshot import (
    IDENTITY_BYTES,
    INDEX_FILE,
    NEXT_RECORDS_FILE,
    RECORD_MAGIC,
    RECORD_PREFIX_BYTES,
    RECORDS_FILE,
    RECORDS_MAGIC,
    RECORDS_START,
    RecordLocation,
    RecordLocations,
    Snapshot,
    encode_index,
    identity_of_records,
    record_prefix,
)


@contextmanager
def open_writer(folder: Path) -> Iterator["FleetWriter"]:
    """A writer for a fleet's folder, locked for this process, in which an interrupted change was finished or undone."""
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder")
    with file_lock(folder / ".lock") as acquired:
        if not acquired:
            raise InvalidProblem(f"another process is changing the fleet in {folder}: wait for it")
        writer = FleetWriter(folder)
        try:
            yield writer
        finally:
            writer.close()


class FleetWriter:
    """The records of a fleet, open for change; :func:`open_writer` makes one.

    Attributes:
        committed: the fleet as the index has it; None where there is no index yet.
        locations: the locations of its records, by the hash of the name.
        removed_before: the hashes of names that an interrupted rewrite had left out, and that are removed now.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for leftover in folder.glob(".*.part"):  # they may hold records of people who were removed since
            leftover.unlink()
        self.committed = Snapshot.open(folder) if (folder / INDEX_FILE).exists() else None
        self.locations: RecordLocations = {} if self.committed is None else self.committed.locations()
        self.removed_before: set[bytes] = set()
        self._prepare_records_file()
        self._file: IO[bytes] = (folder / RECORDS_FILE).open("r+b")
        self._pending: dict[bytes, RecordLocation] = {}
        self._shared_hash = ""
        if self.committed is not None:
            self._shared_hash = self.committed.shared_hash
            if not any(self.committed.identity):
                self.rewrite(self.locations)  # format 1 is brought up to date
        self._recover(RECORDS_START if self.committed is None else self.committed.length)

    @property
    def shared(self) -> AnyShared:
        """What all people share."""
        return load_shared(self._shared_hash, self.folder)

    @property
    def shared_hash(self) -> str:
        """SHA-256 of the shared file."""
        return self._shared_hash

    def set_shared(self, shared: AnyShared) -> None:
        """Write the shared file of a new fleet; refuse a fleet that shares something else."""
        if not (self.folder / SHARED_FILE).exists():
            write_bytes(self.folder / SHARED_FILE, shared.encode(), private=True)
        self._shared_hash = hash_shared(read_shared(self.folder))
        if self.shared.digest != shared.digest:
            raise InvalidProblem(
                f"{self.folder} holds a fleet with other spaces, costs, distances or guarantees: choose another folder"
            )

    def close(self) -> None:
        """Close the file of records."""
        self._file.close()

    def read(self, location: RecordLocation) -> bytes:
        """The record at a location."""
        return location.read(self._read_at)

    def find(self, name: str, prior: AnyPrior) -> RecordLocation | None:
        """The record of a person with exactly this prior, from the fleet or from an interrupted call; None without one.

        Its mechanism is verified again: a record that is damaged or does not keep the guarantees does not count.
        """
        for locations in (self.locations, self._pending):
            location = locations.get(name_hash(name))
            try:
                if location is not None and same_prior(prior_in(self.read(location), self.shared), prior):
                    verify_record(self.read(location), self.shared)
                    return location
            except (InvalidFile, GuaranteeViolated):
                continue
        return None

    def append(self, record: bytes, name: str, *, certified: bool = False) -> RecordLocation:
        """Append a person's record.

        Args:
            record: the record.
            name: the person.
            certified: whether this release has just certified its mechanism, in this process or in one of its own.
                Others need not be trusted: their mechanism is verified on these very bytes first.

        Raises:
            InvalidFile: it is not a record of this person, or of this fleet.
            GuaranteeViolated: its mechanism does not keep the fleet's guarantees.
        """
        owner = name_hash(name)
        require_owner(record, owner)
        if not certified:
            verify_record(record, self.shared)
        start = self._file.seek(0, os.SEEK_END) + RECORD_PREFIX_BYTES
        location = RecordLocation(start, len(record), sha256(record).digest())
        self._file.write(record_prefix(location.size, location.checksum) + record)
        self._file.flush()
        self._pending[owner] = location
        return location

    def commit(self, locations: RecordLocations) -> None:
        """Make these records the fleet, atomically."""
        if self.committed is not None and locations == self.locations:
            return
        os.fsync(self._file.fileno())
        committed = set(self.locations.values())
        for location in locations.values():
            if location not in committed:
                self.read(location)  # raises unless the file holds the bytes that were verified
        self._require_unchanged_folder()
        identity, length = identity_of_records(self._read_at), self._file.seek(0, os.SEEK_END)
        self._write_index(identity, length, locations)

    def rewrite(self, locations: RecordLocations) -> None:
        """Make these records the fleet, in a new file of records that holds nothing else.

        The new file is written beside the old one; then the index is replaced; then the new file takes the old one's
        name. Wherever this is interrupted, the index refers to one of the two files.
        """
        identity, start, moved = token_bytes(IDENTITY_BYTES), RECORDS_START, {}
        self._require_unchanged_folder()
        with open_atomic(self.folder / NEXT_RECORDS_FILE, private=True) as file:
            file.write(RECORDS_MAGIC + identity)
            for hashed, location in sorted(locations.items(), key=lambda item: item[1].start):
                file.write(record_prefix(location.size, location.checksum) + self.read(location))
                moved[hashed] = RecordLocation(start + RECORD_PREFIX_BYTES, location.size, location.checksum)
                start += RECORD_PREFIX_BYTES + location.size
        self._write_index(identity, start, moved)
        self._prepare_records_file()
        self._file.close()
        self._file, self._pending = (self.folder / RECORDS_FILE).open("r+b"), {}

    def _write_index(self, identity: bytes, length: int, locations: RecordLocations) -> None:
        index = encode_index(self._shared_hash, identity, length, locations)
        write_bytes(self.folder / INDEX_FILE, *index, private=True)
        self.committed, self.locations = Snapshot.open(self.folder), locations

    def _read_at(self, start: int, size: int) -> bytes:
        return read_at(self._file.fileno(), start, size)

    def _require_unchanged_folder(self) -> None:
        """Refuse to write into a folder that took the place of the one that was opened."""
        try:
            opened, present = os.fstat(self._file.fileno()), (self.folder / RECORDS_FILE).stat()
            same = (opened.st_dev, opened.st_ino) == (present.st_dev, present.st_ino)
        except OSError:
            same = False
        if not same or hash_shared(read_shared(self.folder)) != self._shared_hash:
            raise InvalidFile(f"{self.folder} was replaced while its fleet was being changed: nothing was written")

    def _prepare_records_file(self) -> None:
        """Finish or undo an interrupted rewrite; create the file of a new fleet."""
        records, next_records = self.folder / RECORDS_FILE, self.folder / NEXT_RECORDS_FILE
        if self.committed is not None:
            if next_records.exists() and _identity(next_records) == self.committed.identity:
                self.removed_before = self._names_in(records) - set(self.locations)
                next_records.replace(records)
                fsync_directory(self.folder)
            next_records.unlink(missing_ok=True)
            return
        next_records.unlink(missing_ok=True)
        if not records.exists() or not any(_identity(records)):
            write_bytes(records, RECORDS_MAGIC + token_bytes(IDENTITY_BYTES), private=True)

    def _recover(self, start: int) -> None:
        """Find undamaged records that are not committed; cut off what an interrupted call left after them."""
        for location, record in _read_records(self._file, start):
            with suppress(InvalidFile):  # it does not say whose it is, so nobody will ask for it
                self._pending[name_hash(header_of(record)["name"])] = location
            start = location.start + location.size
        self._file.truncate(start)

    def _names_in(self, records: Path) -> set[bytes]:
        """The hashes of names in a file of records; none where there is no such file."""
        names: set[bytes] = set()
        with suppress(FileNotFoundError), records.open("rb") as file:
            for _, record in _read_records(file, RECORDS_START if any(_identity(records)) else 0):
                with suppress(InvalidFile):
                    names.add(name_hash(header_of(record)["name"]))
        return names


def _read_records(file: IO[bytes], start: int) -> Iterator[tuple[RecordLocation, bytes]]:
    """The records from an offset on, up to the first that is damaged or cut short."""
    end = file.seek(0, os.SEEK_END)
    while start < end:
        file.seek(start)
        prefix = file.read(RECORD_PREFIX_BYTES)
        size, checksum = int.from_bytes(prefix[4:8], "little"), prefix[8:]
        too_short = len(prefix) < RECORD_PREFIX_BYTES or start + RECORD_PREFIX_BYTES + size > end
        if too_short or prefix[:4] != RECORD_MAGIC:
            return
        record = file.read(size)
        if sha256(record).digest() != checksum:
            return
        yield RecordLocation(start + RECORD_PREFIX_BYTES, size, checksum), record
        start += RECORD_PREFIX_BYTES + size


def _identity(path: Path) -> bytes:
    return identity_of_records(RegularFile(path).read_at)

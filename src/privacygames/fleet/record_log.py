"""Changing a fleet's folder: one process at a time, records first, the index last and in one step."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import IO

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.atomic_io import file_lock, fsync_directory, open_atomic, write_bytes
from privacygames.errors import GuaranteeViolated, InvalidFile, InvalidProblem, UnreadableFile
from privacygames.fleet.generation import (
    DATA_MARK,
    DATA_START,
    IDENTITY,
    INDEX,
    NEXT_RECORDS,
    PREFIX,
    RECORD_MARK,
    RECORDS,
    Generation,
    Place,
    Places,
    identity_of_records,
    index_content,
    record_prefix,
)
from privacygames.fleet.person_record import mechanism_of, prior_in
from privacygames.fleet.records import header_in, name_hash
from privacygames.fleet.regular_files import RegularFile, read_at
from privacygames.fleet.shared_data import SHARED, Shared, hash_of, read_content, shared_with


@contextmanager
def changing(folder: Path) -> Iterator["RecordLog"]:
    """A fleet's folder, for this process alone to change; what an interrupted one left there is put in order."""
    if not folder.is_dir():
        raise UnreadableFile(folder, "there is no such folder")
    with file_lock(folder / ".lock") as ours:
        if not ours:
            raise InvalidProblem(f"another process is changing the fleet in {folder}: wait for it")
        log = RecordLog(folder)
        try:
            yield log
        finally:
            log.close()


class RecordLog:
    """The records of a fleet, open for change; :func:`changing` makes one.

    Attributes:
        committed: the generation that counts; None where there is none yet.
        places: where its records are, by the hash of the name.
        left_out: the hashes of names in the records that an interrupted rewrite replaced, which it left out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for leftover in folder.glob(".*.part"):  # copies of people who may have been removed since
            leftover.unlink()
        self.committed = Generation.open(folder) if (folder / INDEX).exists() else None
        self.places: Places = {} if self.committed is None else self.committed.places()
        self.left_out: set[bytes] = set()
        self._settle_names()
        self._file: IO[bytes] = (folder / RECORDS).open("r+b")
        self._pending: dict[bytes, Place] = {}
        self._shared_hash = ""
        if self.committed is not None:
            self._shared_hash = self.committed.shared_hash
            if not any(self.committed.identity):
                self.rewrite(self.places)  # of the last release: from now on as this one writes it
        self._recover(DATA_START if self.committed is None else self.committed.length)

    @property
    def shared(self) -> Shared:
        """The shared part, as its bytes in the folder say."""
        return shared_with(self._shared_hash, self.folder)

    @property
    def shared_hash(self) -> str:
        """SHA-256 of these bytes."""
        return self._shared_hash

    def share(self, wanted: Shared) -> None:
        """Write the shared part of a new fleet; refuse another than the one that is there."""
        if not (self.folder / SHARED).exists():
            write_bytes(self.folder / SHARED, wanted.content(), private=True)
        self._shared_hash = hash_of(read_content(self.folder))
        if self.shared.digest != wanted.digest:
            raise InvalidProblem(
                f"{self.folder} holds a fleet with other spaces, costs, distances or promises: choose another folder"
            )

    def close(self) -> None:
        """Close the file of records."""
        self._file.close()

    def read(self, place: Place) -> bytes:
        """The payload at a place."""
        return place.read(self._read_at)

    def place_of(self, name: str, prior: FloatArray) -> Place | None:
        """Where the record of a person with exactly this prior is: in the fleet, or from an interrupted run.

        It is certified again; one that is damaged, or does not keep the promises, is none.
        """
        for places in (self.places, self._pending):
            place = places.get(name_hash(name))
            try:
                if place is not None and np.array_equal(self._prior(place), prior):
                    mechanism_of(self.read(place), self.shared)
                    return place
            except (InvalidFile, GuaranteeViolated):
                continue
        return None

    def add(self, payload: bytes) -> Place:
        """Append a record that was certified on these very bytes, here and now, whoever made them.

        Raises:
            InvalidFile: it is no record for this fleet.
            GuaranteeViolated: it does not keep the fleet's promises.
        """
        mechanism_of(payload, self.shared)
        place = Place(self._file.seek(0, os.SEEK_END) + PREFIX, len(payload), sha256(payload).digest())
        self._file.write(record_prefix(place.size, place.checksum) + payload)
        self._file.flush()
        self._pending[name_hash(header_in(payload)[0]["name"])] = place
        return place

    def commit(self, places: Places) -> None:
        """Go to the next generation, in one step: these people, with these records."""
        if self.committed is not None and places == self.places:
            return
        os.fsync(self._file.fileno())
        counted = set(self.places.values())
        for place in places.values():
            if place not in counted:
                self.read(place)  # that it is in the file as it was certified
        self._require_own_folder()
        identity, length = identity_of_records(self._read_at), self._file.seek(0, os.SEEK_END)
        self._write_index(identity, length, places)

    def rewrite(self, places: Places) -> None:
        """Go to the next generation with a new file of records, in which there is nothing but these.

        It is written beside the one that counts; the index then counts it, and it takes the name. Whatever is
        interrupted, either the old file counts or the new one.
        """
        identity, start, moved = token_bytes(IDENTITY), DATA_START, {}
        self._require_own_folder()
        with open_atomic(self.folder / NEXT_RECORDS, private=True) as file:
            file.write(DATA_MARK + identity)
            for hashed, place in sorted(places.items(), key=lambda each: each[1].start):
                file.write(record_prefix(place.size, place.checksum) + self.read(place))
                moved[hashed] = Place(start + PREFIX, place.size, place.checksum)
                start += PREFIX + place.size
        self._write_index(identity, start, moved)
        self._settle_names()
        self._file.close()
        self._file, self._pending = (self.folder / RECORDS).open("r+b"), {}

    def _write_index(self, identity: bytes, length: int, places: Places) -> None:
        write_bytes(self.folder / INDEX, *index_content(self._shared_hash, identity, length, places), private=True)
        self.committed, self.places = Generation.open(self.folder), places

    def _read_at(self, start: int, size: int) -> bytes:
        return read_at(self._file.fileno(), start, size)

    def _prior(self, place: Place) -> FloatArray:
        return prior_in(self.read(place), self.shared)

    def _require_own_folder(self) -> None:
        """Refuse to write into a folder that took the place of the one that was opened."""
        try:
            own, now = os.fstat(self._file.fileno()), (self.folder / RECORDS).stat()
            same = (own.st_dev, own.st_ino) == (now.st_dev, now.st_ino)
        except OSError:
            same = False
        if not same or hash_of(read_content(self.folder)) != self._shared_hash:
            raise InvalidFile(f"{self.folder} was replaced while its fleet was being changed: nothing was written")

    def _settle_names(self) -> None:
        """Finish, or undo, what was interrupted while records were rewritten; make the file of a new fleet."""
        records, following = self.folder / RECORDS, self.folder / NEXT_RECORDS
        if self.committed is not None:
            if following.exists() and _identity(following) == self.committed.identity:
                self.left_out = self._names_in(records) - set(self.places)
                following.replace(records)
                fsync_directory(self.folder)
            following.unlink(missing_ok=True)
            return
        following.unlink(missing_ok=True)
        if not records.exists() or not any(_identity(records)):
            write_bytes(records, DATA_MARK + token_bytes(IDENTITY), private=True)

    def _recover(self, start: int) -> None:
        """Find whole records that no index counts yet; what a killed process left half-written behind them goes."""
        for place, payload in _whole_records(self._file, start):
            with suppress(InvalidFile):  # of a stranger: it is no record, and nobody's
                self._pending[name_hash(header_in(payload)[0]["name"])] = place
            start = place.start + place.size
        self._file.truncate(start)

    def _names_in(self, records: Path) -> set[bytes]:
        """The hashes of names in a file of records; none where there is no such file."""
        names: set[bytes] = set()
        with suppress(FileNotFoundError), records.open("rb") as file:
            for _, payload in _whole_records(file, DATA_START if any(_identity(records)) else 0):
                with suppress(InvalidFile):
                    names.add(name_hash(header_in(payload)[0]["name"]))
        return names


def _whole_records(file: IO[bytes], start: int) -> Iterator[tuple[Place, bytes]]:
    """The records from a place on, up to the first that is damaged or cut short."""
    end = file.seek(0, os.SEEK_END)
    while start < end:
        file.seek(start)
        prefix = file.read(PREFIX)
        size = int.from_bytes(prefix[4:8], "little")
        if len(prefix) < PREFIX or prefix[:4] != RECORD_MARK or start + PREFIX + size > end:
            return
        payload = file.read(size)
        if sha256(payload).digest() != prefix[8:]:
            return
        yield Place(start + PREFIX, size, prefix[8:]), payload
        start += PREFIX + size


def _identity(path: Path) -> bytes:
    return identity_of_records(RegularFile(path).read_at)

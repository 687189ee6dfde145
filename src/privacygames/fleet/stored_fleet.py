"""What fleets have in common, whatever the secrets are: a folder at one moment, its people, and its verification."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.errors import Field, GuaranteeViolated, InvalidProblem, PrivacyGamesError, UnknownLabel
from privacygames.fleet.person_record import header_of, prior_source_of, require_owner
from privacygames.fleet.records import verify_record
from privacygames.fleet.regular_files import RegularFile
from privacygames.fleet.shared_problem import DEFAULT_NAME, AnyShared, load_shared
from privacygames.fleet.snapshot import RecordLocation, Snapshot, stale_fleet
from privacygames.jobs import Scheduler, executor_for
from privacygames.mechanism import RandomWords, RowSampler
from privacygames.people_column import require_user_ids
from privacygames.problem import Bounds
from privacygames.progress import Progress, ProgressCallback
from privacygames.validation import require_choice

MAX_CACHED_SAMPLERS = 32
"""Number of people whose sampling tables are kept in memory, most recently used first."""

Unknown = Literal["refuse", "default"]
"""What to do about people who are not in the fleet: raise an error, or use the fleet's default mechanism."""


AnySampler = TypeVar("AnySampler", bound=RowSampler)


class StoredFleet(ABC, Generic[AnySampler]):
    """Certified mechanisms of many people over one space, in a folder.

    >>> issubclass(pg.fleet.Fleet, pg.fleet.StoredFleet), issubclass(pg.fleet.PointFleet, pg.fleet.StoredFleet)
    (True, True)

    Args:
        folder: a folder that :func:`design` wrote.
        unknown: what to do about people who are not in the fleet: ``"refuse"`` raises an error, ``"default"`` uses the
            mechanism that was designed with ``default="pooled"``.
    """

    def __init__(self, folder: str | os.PathLike[str], *, unknown: Unknown = "refuse") -> None:
        require_choice(unknown, ("refuse", "default"), "unknown")
        self._prepare(Path(folder).absolute(), unknown, None)
        _ = self._shared  # raises where the secrets of this fleet are others than this class is for
        if unknown == "default" and not self.has_default:
            raise UnknownLabel(
                "this fleet has no default mechanism: design it with default='pooled', or refuse unknown people"
            )

    def _prepare(self, folder: Path, unknown: Unknown, digest: str | None) -> None:
        self.folder, self.unknown = folder, unknown
        self._snapshot = Snapshot.open(folder) if digest is None else None
        self._digest = digest or self._current.digest
        self._samplers = lru_cache(maxsize=MAX_CACHED_SAMPLERS)(self._sampler)

    def __reduce__(self) -> tuple[Any, ...]:
        return _fleet_in_another_process, (type(self), str(self.folder), self.unknown, self._digest)

    def __fspath__(self) -> str:
        return str(self.folder)

    def reopen(self) -> Self:
        """The fleet that the folder holds now."""
        return type(self)(self.folder, unknown=self.unknown)

    @property
    def _current(self) -> Snapshot:
        """The snapshot of the folder, after checking that the folder still holds the fleet that was opened.

        In another process, the folder is opened at the first call, and must hold the same fleet there.
        """
        current = Snapshot.open(self.folder) if self._snapshot is None else self._snapshot.current()
        if self._snapshot is None and current.digest != self._digest:
            raise stale_fleet(self.folder)
        self._snapshot = current
        return current

    @property
    @abstractmethod
    def _shared(self) -> AnyShared:
        """What all people share; raises where the fleet is of another kind."""

    @property
    def bounds(self) -> Bounds:
        """What every mechanism of the fleet guarantees."""
        return self._shared.bounds

    @property
    def digest(self) -> str:
        """SHA-256 of what all people share; :attr:`records_digest` covers the rest."""
        return self._shared.digest

    @property
    def records_digest(self) -> str:
        """SHA-256 of the checksums of all people's records; it changes when any record does."""
        return self._current.records_digest

    def __len__(self) -> int:
        return len(self._current) - self.has_default

    @property
    def has_default(self) -> bool:
        """Whether there is a mechanism for unknown people."""
        return self._current.find(DEFAULT_NAME) is not None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != DEFAULT_NAME and self._current.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self._current)):
            name = str(header_of(self._current.record(number))["name"])
            if name != DEFAULT_NAME:
                yield name

    def prior_source(self, name: str) -> dict[str, Any]:
        """Where a person's prior is from: ``"prior_from"`` is ``"own"`` or ``"pooled"``, ``"visits"`` their number.

        >>> prior = pg.Prior.uniform(pg.Numbers([20, 30, 40]))
        >>> fleet = pg.fleet.design({"ann": prior}, out="fleet-of-one", epsilon=0.1, jobs=1)
        >>> fleet.prior_source("ann")
        {'visits': None, 'prior_from': 'own'}
        """
        snapshot = self._current
        visits, source = prior_source_of(snapshot.record(self._find(snapshot, name)))
        return {"visits": visits, "prior_from": source}

    def record_checksum(self, name: str) -> str:
        """SHA-256 of a person's record: another one after their prior was updated.

        >>> ages = pg.Numbers([20, 30, 40])
        >>> fleet = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="fleet", epsilon=0.1, jobs=1)
        >>> len(fleet.record_checksum("ann"))
        64
        """
        snapshot = self._current
        return snapshot.location(self._find(snapshot, name)).checksum.hex()

    def verify(
        self, *, jobs: int | None = 1, scheduler: Scheduler | None = None, progress: ProgressCallback | None = None
    ) -> int:
        """Check every guarantee of every mechanism again, on the bytes in the folder.

        The folder is read anew, from the index on, and must hold the fleet that was opened, before and after.

        Args:
            jobs: number of processes; None for one for each processor.
            scheduler: a Dask cluster whose workers see the same folder, as in :func:`design`.
            progress: called after every person.

        Returns:
            The number of people.

        Raises:
            GuaranteeViolated: how many mechanisms do not keep their guarantees, and what is wrong with the first.
            StaleFleet: the folder holds another fleet than the one opened.
        """
        snapshot = Snapshot.open(self.folder)
        if snapshot.digest != self._digest:
            raise stale_fleet(self.folder)
        records, shared_hash = str(snapshot.records_path), snapshot.shared_hash
        checks = [
            RecordCheck(records, shared_hash, number, snapshot.hash_at(number), snapshot.location(number))
            for number in range(len(snapshot))
        ]
        failures: list[str] = []
        started = monotonic()
        with closing(executor_for(jobs, scheduler).run(checks)) as results:
            for done, (_, failure) in enumerate(results, start=1):
                failures += [] if failure is None else [failure]
                if progress is not None:
                    message = f"{done} of {len(checks)} people verified"
                    seconds = monotonic() - started
                    progress(Progress(job="verify", done=done, total=len(checks), seconds=seconds, message=message))
        if snapshot.current() and failures:
            raise GuaranteeViolated(
                f"{len(failures)} of {len(checks)} mechanisms of the fleet do not hold: {failures[0]}"
            )
        return len(self)

    def _find(self, snapshot: Snapshot, name: str) -> int:
        """The number of a person's entry in the index; the default's for unknown people, where that is allowed."""
        if not isinstance(name, str):
            raise UnknownLabel("people of a fleet are called by texts")
        number = None if name == DEFAULT_NAME else snapshot.find(name)
        if number is None and self.unknown == "default":
            number = snapshot.find(DEFAULT_NAME)
        if number is None:
            raise UnknownLabel(f"the person asked for is none of the {len(self)} of this fleet")
        return number

    @property
    def per_user(self) -> bool:
        """True: each person has a mechanism of their own."""
        return True

    @property
    def constant(self) -> None:
        """None: it is not known whether anybody's outputs are independent of the secret."""
        return None

    @property
    def usefulness(self) -> None:
        """None: each person's mechanism has its own."""
        return None

    def to_manifest(self) -> dict[str, Any]:
        """The number of people, the digest of their records, and what is done about unknown people."""
        return {"people": len(self), "records": self.records_digest, "unknown_people": self.unknown}

    def row_sampler(self, users: Any = None) -> "FleetRowSampler":
        """The sampler for the rows of a batch: each row's output is drawn from its user's mechanism.

        >>> import pyarrow as pa
        >>> prior = pg.Prior.uniform(pg.Numbers([20, 30, 40]))
        >>> fleet = pg.fleet.design({"ann": prior}, out="fleet-of-one", epsilon=0.1, jobs=1)
        >>> sampler = fleet.row_sampler(pa.array(["ann", "ann"]))
        >>> sampler.draw(np.array([0, 2]), lambda number: np.zeros(2, dtype=np.uint64))
        array([0, 0])

        Args:
            users: an Arrow array of names, one for each row.

        Raises:
            InvalidProblem: no users were given.
            UnknownLabel: how many people are unknown; never who.
        """
        if users is None:
            raise InvalidProblem("a fleet has a mechanism for each person: say which column names the user of each row")
        require_user_ids(users)
        encoded = users if hasattr(users, "dictionary") else users.dictionary_encode()
        names = [str(name) for name in encoded.dictionary.to_pylist()]
        codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        present, snapshot = np.unique(codes), self._current
        unknown = sum(names[code] not in self for code in present) if self.unknown == "refuse" else 0
        if unknown:
            raise UnknownLabel(
                f"{unknown} of {len(present)} people are not in this fleet: design it for them, or open it with ",
                Field("unknown"),
                "='default'",
            )
        tags = np.zeros(len(names), dtype=np.int64)
        for code in present:
            checksum = snapshot.location(self._find(snapshot, names[code])).checksum
            tags[code] = int.from_bytes(checksum[:8], "little") >> 20
        return FleetRowSampler(self, names, codes, tags)

    def _draw(self, names: list[str], codes: IntArray, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row: ``names[codes]`` are the users of the rows."""
        drawn, snapshot = np.zeros(len(secrets), dtype=np.int64), self._current
        words = cache(random_words)  # each person takes the words of their rows
        order = np.argsort(codes, kind="stable")
        boundaries = np.flatnonzero(np.diff(codes[order])) + 1
        for rows in np.split(order, boundaries) if len(order) else []:
            sampler = self._samplers(self._find(snapshot, names[int(codes[rows[0]])]))
            drawn[rows] = sampler.draw(secrets[rows], partial(_words_of_rows, words, rows))
        return drawn

    @abstractmethod
    def _sampler(self, number: int) -> AnySampler:
        """The sampler of an entry of the index, verified: a changed folder raises before it is used again."""

    @abstractmethod
    def _tweak(self, secrets: IntArray, tags: IntArray) -> IntArray:
        """64 bits for each row that differ where the secret or the user's mechanism does."""


@dataclass(frozen=True)
class FleetRowSampler:
    """Draws the outputs of a batch of rows, each from its user's mechanism; :meth:`Fleet.row_sampler` makes one.

    >>> import pyarrow as pa
    >>> prior = pg.Prior.uniform(pg.Numbers([20, 30, 40]))
    >>> fleet = pg.fleet.design({"ann": prior}, out="fleet-of-one", epsilon=0.1, jobs=1)
    >>> sampler = fleet.row_sampler(pa.array(["ann", "ann"]))
    >>> len(sampler.tweak(np.array([0, 2])))
    2

    Attributes:
        fleet: the fleet with these mechanisms.
        names: the users.
        codes: for each row, its user, as an index into ``names``.
        tags: for each user, 44 bits that change with their mechanism.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> fleet = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="fleet", epsilon=0.1, jobs=1)
    >>> import pyarrow as pa
    >>> fleet.row_sampler(pa.array(["ann", "ann"])).names
    ['ann']
    """

    fleet: StoredFleet[Any]
    names: list[str]
    codes: IntArray
    tags: IntArray

    def tweak(self, secrets: IntArray) -> IntArray:
        """64 bits for each row that differ where the secret or the user's mechanism does."""
        return self.fleet._tweak(secrets, self.tags[self.codes])

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        return self.fleet._draw(self.names, self.codes, secrets, random_words)


@dataclass(frozen=True)
class RecordCheck:
    """The job of verifying one record, on the bytes that the worker finds in the folder.

    Attributes:
        records: the file of records, beside the shared file.
        shared_hash: SHA-256 of the shared file.
        number: the record's number, for messages.
        owner: the hash of the name that the index has the record for.
        location: where the record is, and its checksum.
    """

    records: str
    shared_hash: str
    number: int
    owner: bytes
    location: RecordLocation

    @property
    def key(self) -> str:
        """Identifies the check within one verification."""
        return f"record-{self.number}"

    def run(self) -> str | None:
        """What is wrong with the record; None where nothing is."""
        path = Path(self.records)
        try:
            record = self.location.read(RegularFile(path).read_at)
            require_owner(record, self.owner)
            verify_record(record, load_shared(self.shared_hash, path.parent))
        except PrivacyGamesError as error:
            return f"record {self.number}: {error}"
        return None


def _words_of_rows(words: RandomWords, rows: IntArray, number: int) -> NDArray[np.uint64]:
    return words(number)[rows]


def _fleet_in_another_process(
    kind: type[StoredFleet[Any]], folder: str, unknown: Unknown, digest: str
) -> StoredFleet[Any]:
    """The fleet as unpickled in another process: opened when it is first used, when its digest must be the same."""
    fleet = kind.__new__(kind)
    fleet._prepare(Path(folder), unknown, digest)
    return fleet

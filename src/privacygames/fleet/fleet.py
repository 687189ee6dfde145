"""Mechanisms for many people over one space, opened where they lie: any of them answers within milliseconds."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from privacygames.arguments import one_of
from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import check
from privacygames.errors import BrokenPromise, InvalidFile, PrivacyGamesError, UnknownLabel
from privacygames.events import Progress, Watcher
from privacygames.fleet.person_record import mechanism_of, statement_of
from privacygames.fleet.records import RecordReader, decode, header_in
from privacygames.fleet.shared_part import DEFAULT, INDEX, RECORDS, SHARED, Shared, read_shared
from privacygames.jobs import workers_for
from privacygames.mechanism import Mechanism, PublicMechanism, Sampler
from privacygames.problem import Bounds
from privacygames.spaces import Label, Space

KEPT = 32
"""So many people's tables for drawing are kept in memory: of whoever was asked for last."""

Unknown = Literal["refuse", "default"]
"""What becomes of people the fleet does not know: an error, or the fleet's default mechanism."""


class Fleet:
    """Certified mechanisms of many people over one space, in a folder. ``fleet["user-7"]`` is a :class:`Mechanism`.

    Space, costs and distances are there once; each person's weights are looked at on the disk, so that memory does not
    grow with the people. A record is checked against its checksum when it is opened; :meth:`verify` re-checks what
    all of them promise.

    Args:
        folder: as :func:`design` wrote it.
        unknown: what becomes of people the fleet does not know.
    """

    def __init__(self, folder: str | os.PathLike[str], *, unknown: Unknown = "refuse") -> None:
        one_of(unknown, ("refuse", "default"), "unknown")
        self.folder, self.unknown = Path(folder).absolute(), unknown
        self._shared: Shared = read_shared(self.folder / SHARED)
        self._reader = RecordReader.open(self.folder / RECORDS, self.folder / INDEX)
        self._keep = lru_cache(maxsize=KEPT)(self._sampler)
        if unknown == "default" and not self.has_default:
            raise UnknownLabel(
                "this fleet has no default mechanism: design it with default='pooled', or refuse unknown people"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (str(self.folder), self.unknown)

    @property
    def secrets(self) -> Space:
        """What may be secret."""
        return self._shared.problem.space

    @property
    def observables(self) -> Space:
        """What may be answered."""
        return self._shared.problem.observables

    @property
    def bounds(self) -> Bounds:
        """What every mechanism of the fleet promises."""
        return self._shared.bounds

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances in which epsilon counts."""
        return self._shared.problem.distinguishability

    @property
    def digest(self) -> str:
        """SHA-256 of what all people have in common. What is hers alone, each person's record says."""
        return self._shared.digest

    @cached_property
    def records_digest(self) -> str:
        """SHA-256 of what is each person's own: the checksums of all records. Another one where anybody's changed."""
        digest = sha256()
        for position in range(len(self._reader)):
            digest.update(self._reader.checksum_at(position))
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._reader) - self.has_default

    @cached_property
    def has_default(self) -> bool:
        """Whether there is a mechanism for unknown people."""
        return self._reader.position_of(DEFAULT) is not None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != DEFAULT and self._reader.position_of(name) is not None

    def __iter__(self) -> Iterator[str]:
        for position in range(len(self._reader)):
            name = str(header_in(self._reader.payload_at(position))[0]["name"])
            if name != DEFAULT:
                yield name

    def __getitem__(self, name: str) -> Mechanism:
        return mechanism_of(decode(self._payload(name)), self._shared)

    def about(self, name: str) -> dict[str, Any]:
        """What is known of a person's mechanism: ``"visits"``, and whether her prior was ``"own"`` or ``"pooled"``."""
        header, _ = header_in(self._payload(name))
        return {key: header.get(key) for key in ("visits", "prior_from")}

    def sample(self, name: str, secret: Label) -> Label:
        """One observable for a person's secret, with randomness from the operating system."""
        position = self.secrets.indices([secret])
        return self.observables.labels[int(self._keep(name).draw(position)[0])]

    def export(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write a person's mechanism without her prior and cost: :func:`privacygames.load_public` reads it."""
        PublicMechanism.of(self[name]).save(path)

    def verify(self, *, jobs: int | None = 1, scheduler: str | None = None, progress: Watcher | None = None) -> int:
        """Re-check what every mechanism promises, on the integers that are sampled; returns how many there are.

        Raises:
            BrokenPromise: how many do not keep their promise, and which is the first.
        """
        checks = [RecordCheck(str(self.folder), position) for position in range(len(self._reader))]
        broken: list[str] = []
        started = monotonic()
        with closing(workers_for(jobs, scheduler).work(checks)) as finished:
            for done, (_, trouble) in enumerate(finished, start=1):
                broken += [] if trouble is None else [trouble]
                if progress is not None:
                    message = f"{done} of {len(checks)} people verified"
                    seconds = monotonic() - started
                    progress(Progress(job="verify", done=done, total=len(checks), seconds=seconds, message=message))
        if broken:
            raise BrokenPromise(f"{len(broken)} of {len(checks)} mechanisms of the fleet do not hold: {broken[0]}")
        return len(self)

    def _payload(self, name: str) -> memoryview:
        return self._reader.payload_at(self._position(name))

    def _position(self, name: str) -> int:
        """Where somebody's record is in the index; the default's for strangers, where that is allowed."""
        if not isinstance(name, str):
            raise UnknownLabel("people of a fleet are called by texts")
        found = None if name == DEFAULT else self._reader.position_of(name)
        if found is None and self.unknown == "default":
            found = self._reader.position_of(DEFAULT)
        if found is None:
            raise UnknownLabel(f"the person asked for is none of the {len(self)} of this fleet")
        return found

    def people_in(self, names: Any) -> "People":
        """Who is in an Arrow array of names, each looked up once.

        Raises:
            UnknownLabel: how many people are unknown; never who.
        """
        coded = names if hasattr(names, "dictionary") else names.dictionary_encode()
        if coded.null_count:
            raise UnknownLabel(f"{coded.null_count} rows do not say whose they are")
        listed = [str(name) for name in coded.dictionary.to_pylist()]
        codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        present = np.unique(codes)
        strangers = sum(listed[code] not in self for code in present) if self.unknown == "refuse" else 0
        if strangers:
            raise UnknownLabel(
                f"{strangers} of {len(present)} people are not in this fleet: design it for them, or open it with "
                "unknown='default'"
            )
        tags = np.zeros(len(listed), dtype=np.int64)
        for code in present:
            tags[code] = int.from_bytes(self._reader.checksum_at(self._position(listed[code]))[:8], "little") >> 20
        return People(listed, codes, tags)

    def draw_with(self, people: "People", secrets: IntArray, words: Any) -> IntArray:
        """Observables for people's secrets, with 64 random bits for each from elsewhere."""
        drawn = np.zeros(len(secrets), dtype=np.int64)
        order = np.argsort(people.codes, kind="stable")
        bounds = np.flatnonzero(np.diff(people.codes[order])) + 1
        for group in np.split(order, bounds) if len(order) else []:
            sampler = self._keep(people.names[int(people.codes[group[0]])])
            drawn[group] = sampler.draw_with(secrets[group], words[group])
        return drawn

    def _sampler(self, name: str) -> Sampler:
        return self[name].sampler()

    def __repr__(self) -> str:
        secrets, observables = self._shared.problem.shape
        return f"Fleet({len(self)} people, {secrets} secrets, {observables} observables)"


@dataclass(frozen=True)
class People:
    """People of rows: whose each row is, and 44 bits that stand for her mechanism.

    Attributes:
        names: the people.
        codes: for each row, whose it is, as a position in ``names``.
        tags: for each person, bits that change with her mechanism: draws from another one are independent.
    """

    names: list[str]
    codes: IntArray
    tags: IntArray

    def tweak(self, secrets: IntArray) -> IntArray:
        """What tells draws of one row apart: the secret, below 2^20, and the mechanism above."""
        return secrets | (self.tags[self.codes] << 20)


@dataclass(frozen=True)
class RecordCheck:
    """The work of verifying one record."""

    folder: str
    position: int

    @property
    def key(self) -> str:
        """Which record."""
        return f"record-{self.position}"

    def run(self) -> str | None:
        """What is wrong with it; None where nothing is."""
        fleet = _fleet_in(self.folder)
        try:
            payload = fleet._reader.payload_at(self.position)
            check(statement_of(decode(payload), fleet._shared))
        except (PrivacyGamesError, InvalidFile) as error:
            return f"record {self.position}: {error}"
        return None


@lru_cache(maxsize=2)
def _fleet_in(folder: str) -> Fleet:
    return Fleet(folder)


def _opened(folder: str, unknown: Unknown) -> Fleet:
    return Fleet(folder, unknown=unknown)

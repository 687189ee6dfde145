"""Mechanisms for many people over one space, opened where they lie: any of them answers within milliseconds."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import ROUNDING, check
from privacygames.errors import Field, GuaranteeViolated, InvalidProblem, PrivacyGamesError, UnknownLabel
from privacygames.fleet.generation import Generation, Place, stale
from privacygames.fleet.person_record import about_in, mechanism_of, require_owner, statement_of
from privacygames.fleet.records import header_in
from privacygames.fleet.regular_files import RegularFile
from privacygames.fleet.shared_data import DEFAULT, Shared, shared_with
from privacygames.jobs import executor_for
from privacygames.mechanism import EpsilonGuarantee, Mechanism, PublicMechanism, RandomWords, Sampler
from privacygames.people_column import require_user_ids
from privacygames.problem import Bounds, measure_scale
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Label, Space
from privacygames.validation import require_choice

KEPT = 32
"""So many people's tables for drawing are kept in memory: of whoever was asked for last."""

Unknown = Literal["refuse", "default"]
"""What becomes of people the fleet does not know: an error, or the fleet's default mechanism."""


class Fleet:
    """Certified mechanisms of many people over one space, in a folder. ``fleet["user-7"]`` is a :class:`Mechanism`.

    Space, costs and distances are there once; each person's weights are read from the disk, so that memory grows by the
    64 bytes of a person's entry in the index. Whoever is asked for is verified first, on the bytes read: every promise
    of the fleet, as :func:`privacygames.load` does for a file.

    A Fleet is about its folder as it was when it was opened. Once people were added, updated or removed, or files
    replaced, it raises :class:`privacygames.StaleFleet` instead of answering: open it again, or :meth:`reopen` it.

    Args:
        folder: as :func:`design` wrote it.
        unknown: what becomes of people the fleet does not know.
    """

    def __init__(self, folder: str | os.PathLike[str], *, unknown: Unknown = "refuse") -> None:
        require_choice(unknown, ("refuse", "default"), "unknown")
        self._prepare(Path(folder).absolute(), unknown, None)
        if unknown == "default" and not self.has_default:
            raise UnknownLabel(
                "this fleet has no default mechanism: design it with default='pooled', or refuse unknown people"
            )

    def _prepare(self, folder: Path, unknown: Unknown, digest: str | None) -> None:
        self.folder, self.unknown = folder, unknown
        self._generation = Generation.open(folder) if digest is None else None
        self._digest = digest or self._opened.digest
        self._samplers = lru_cache(maxsize=KEPT)(self._sampler)
        self._certified: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return _elsewhere, (str(self.folder), self.unknown, self._digest)

    def __fspath__(self) -> str:
        return str(self.folder)

    def reopen(self) -> "Fleet":
        """The fleet as its folder has it now."""
        return Fleet(self.folder, unknown=self.unknown)

    @property
    def _opened(self) -> Generation:
        """What was opened, if it is still what the folder holds: whatever is answered is answered from it.

        In another process it is opened when it is first asked for, and must be the same there.
        """
        now = Generation.open(self.folder) if self._generation is None else self._generation.current()
        if self._generation is None and now.digest != self._digest:
            raise stale(self.folder)
        self._generation = now
        return now

    @property
    def _shared(self) -> Shared:
        return self._opened.shared

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
        """SHA-256 of what all people have in common. What is a person's own, their record says."""
        return self._shared.digest

    @property
    def records_digest(self) -> str:
        """SHA-256 of what is each person's own: the checksums of all records. Another one where anybody's changed."""
        return self._opened.records_digest

    def __len__(self) -> int:
        return len(self._opened) - self.has_default

    @property
    def has_default(self) -> bool:
        """Whether there is a mechanism for unknown people."""
        return self._opened.position_of(DEFAULT) is not None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != DEFAULT and self._opened.position_of(name) is not None

    def __iter__(self) -> Iterator[str]:
        for position in range(len(self._opened)):
            name = str(header_in(self._opened.payload(position))[0]["name"])
            if name != DEFAULT:
                yield name

    def __getitem__(self, name: str) -> Mechanism:
        generation = self._opened
        return mechanism_of(generation.payload(self._position(generation, name)), generation.shared)

    def about(self, name: str) -> dict[str, Any]:
        """What is known of a person's mechanism: ``"visits"``, and whether the prior was ``"own"`` or ``"pooled"``."""
        generation = self._opened
        visits, prior_from = about_in(generation.payload(self._position(generation, name)))
        return {"visits": visits, "prior_from": prior_from}

    def sample(self, name: str, secret: Label) -> Label:
        """One observable for a person's secret, with randomness from the operating system."""
        generation = self._opened
        sampler = self._samplers(self._position(generation, name))
        space, observables = generation.shared.problem.space, generation.shared.problem.observables
        return observables.labels[int(sampler.draw(space.indices([secret]))[0])]

    def export(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write a person's mechanism without prior and cost: :func:`privacygames.load_public` reads it."""
        PublicMechanism.of(self[name]).save(path)

    def verify(
        self, *, jobs: int | None = 1, scheduler: str | None = None, progress: ProgressCallback | None = None
    ) -> int:
        """Re-check what every mechanism promises, on the bytes that are in the folder; returns how many there are.

        The folder is read anew, from the index on: it must be what this fleet was opened as, before and after.

        Raises:
            GuaranteeViolated: how many do not keep their promise, and which is the first.
            StaleFleet: the folder holds another fleet than the one opened.
        """
        now = Generation.open(self.folder)
        if now.digest != self._digest:
            raise stale(self.folder)
        checks = [
            RecordCheck(str(now.records_path), now.shared_hash, position, now.hash_at(position), now.place(position))
            for position in range(len(now))
        ]
        broken: list[str] = []
        started = monotonic()
        with closing(executor_for(jobs, scheduler).work(checks)) as results:
            for done, (_, trouble) in enumerate(results, start=1):
                broken += [] if trouble is None else [trouble]
                if progress is not None:
                    message = f"{done} of {len(checks)} people verified"
                    seconds = monotonic() - started
                    progress(Progress(job="verify", done=done, total=len(checks), seconds=seconds, message=message))
        if now.current() and broken:
            raise GuaranteeViolated(f"{len(broken)} of {len(checks)} mechanisms of the fleet do not hold: {broken[0]}")
        return len(self)

    def _position(self, generation: Generation, name: str) -> int:
        """Where somebody's record is in the index; the default's for strangers, where that is allowed."""
        if not isinstance(name, str):
            raise UnknownLabel("people of a fleet are called by texts")
        position = None if name == DEFAULT else generation.position_of(name)
        if position is None and self.unknown == "default":
            position = generation.position_of(DEFAULT)
        if position is None:
            raise UnknownLabel(f"the person asked for is none of the {len(self)} of this fleet")
        return position

    @property
    def per_user(self) -> bool:
        """True: each person has a mechanism of their own."""
        return True

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """What one output of any mechanism of the fleet guarantees of differential privacy, with its unit."""
        problem, bounds = self._shared.problem, self.bounds
        scale = measure_scale(problem.distinguishability, problem.space)
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        np.fill_diagonal(exponents, 0.0)
        any_pair = float(exponents.max()) * (1 + ROUNDING)
        return EpsilonGuarantee(bounds.epsilon, scale.per(bounds.within), scale.unit, any_pair)

    @property
    def constant(self) -> None:
        """None: it is not known whether anybody's outputs are independent of the secret."""
        return None

    @property
    def usefulness(self) -> None:
        """None: each person's mechanism has its own."""
        return None

    def to_manifest(self) -> dict[str, Any]:
        """How many people there are, the digest of their records, and what becomes of unknown people."""
        return {"people": len(self), "records": self.records_digest, "unknown_people": self.unknown}

    def row_sampler(self, users: Any = None) -> "FleetRowSampler":
        """The sampler for the rows of a batch: each row's output is drawn from its user's mechanism.

        Args:
            users: an Arrow array of names, one for each row.

        Raises:
            InvalidProblem: no users were given.
            UnknownLabel: how many people are unknown; never who.
        """
        if users is None:
            raise InvalidProblem("a fleet has a mechanism for each person: say which column names the user of each row")
        require_user_ids(users)
        coded = users if hasattr(users, "dictionary") else users.dictionary_encode()
        names = [str(name) for name in coded.dictionary.to_pylist()]
        codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        present, generation = np.unique(codes), self._opened
        unknown = sum(names[code] not in self for code in present) if self.unknown == "refuse" else 0
        if unknown:
            raise UnknownLabel(
                f"{unknown} of {len(present)} people are not in this fleet: design it for them, or open it with ",
                Field("unknown"),
                "='default'",
            )
        tags = np.zeros(len(names), dtype=np.int64)
        for code in present:
            checksum = generation.place(self._position(generation, names[code])).checksum
            tags[code] = int.from_bytes(checksum[:8], "little") >> 20
        return FleetRowSampler(self, names, codes, tags)

    def _draw(self, names: list[str], codes: IntArray, secrets: IntArray, words: Any) -> IntArray:
        """The index of an output for each row: ``names[codes]`` are the users of the rows."""
        drawn, generation = np.zeros(len(secrets), dtype=np.int64), self._opened
        order = np.argsort(codes, kind="stable")
        boundaries = np.flatnonzero(np.diff(codes[order])) + 1
        for rows in np.split(order, boundaries) if len(order) else []:
            sampler = self._samplers(self._position(generation, names[int(codes[rows[0]])]))
            drawn[rows] = sampler.draw_with(secrets[rows], words[rows])
        return drawn

    def _sampler(self, position: int) -> Sampler:
        """The sampler of the record at a position of the index, which no change of the folder gives to another."""
        generation = self._opened
        statement = statement_of(generation.payload(position), generation.shared)
        if position not in self._certified:
            check(statement)
            self._certified.add(position)
        return Sampler(statement.weights, statement.bits)

    def __repr__(self) -> str:
        return f"Fleet({len(self)} people, {len(self.secrets)} secrets, {len(self.observables)} observables)"


@dataclass(frozen=True)
class FleetRowSampler:
    """Draws the outputs of a batch of rows, each from its user's mechanism.

    Attributes:
        fleet: whose mechanisms.
        names: the users.
        codes: for each row, its user, as an index into ``names``.
        tags: for each user, 44 bits that change with their mechanism.
    """

    fleet: Fleet
    names: list[str]
    codes: IntArray
    tags: IntArray

    def tweak(self, secrets: IntArray) -> IntArray:
        """The secret, below 2^20, and the tag of the user's mechanism above it."""
        return secrets | (self.tags[self.codes] << 20)

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        return self.fleet._draw(self.names, self.codes, secrets, random_words(0))


@dataclass(frozen=True)
class RecordCheck:
    """The work of verifying one record, on the bytes that the worker finds in the folder.

    Attributes:
        records: the file of records, beside the shared part.
        shared_hash: SHA-256 of the shared part.
        position: which record, for messages.
        owner: the hash of the name that the index has it for.
        place: where it is, and what it must be.
    """

    records: str
    shared_hash: str
    position: int
    owner: bytes
    place: Place

    @property
    def key(self) -> str:
        """Which record; what comes of it is about files as they are, and for nobody else."""
        return f"record-{self.position}"

    def run(self) -> str | None:
        """What is wrong with it; None where nothing is."""
        path = Path(self.records)
        try:
            payload = self.place.read(RegularFile(path).read_at)
            require_owner(payload, self.owner)
            check(statement_of(payload, shared_with(self.shared_hash, path.parent)))
        except PrivacyGamesError as error:
            return f"record {self.position}: {error}"
        return None


def _elsewhere(folder: str, unknown: Unknown, digest: str) -> Fleet:
    """The fleet in another process: opened when it is first asked for, which fails where it is another one there."""
    fleet = Fleet.__new__(Fleet)
    fleet._prepare(Path(folder), unknown, digest)
    return fleet

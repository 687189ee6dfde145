"""Each person's mechanism and ledger: sessions that are kept while they are used, and the fleet's generations."""

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from privacygames.errors import InvalidProblem, StaleFleet
from privacygames.fleet import AnyFleet, PointFleet, open_fleet
from privacygames.releases import Budget, FixedReleases, LedgerStore, Memoised, PointReleases, StoredLedger
from privacygames.studio import Refused

Session = FixedReleases | PointReleases

MAX_SESSIONS = 512
"""People whose mechanism and balances are kept in memory by each worker, most recently used first."""

MIN_KEY_BYTES = 16
"""Fewest bytes of a key that outputs are memoised with."""


@dataclass(frozen=True)
class ServiceSettings:
    """What a service releases, and within which budgets; every worker process has the same.

    Attributes:
        fleet: the folder of the fleet.
        store: the path or URL of the store.
        budgets: of each person; a new account takes them, and an existing one must have the same.
        clock: whether releases happen at this machine's time, as budgets per window need; otherwise they are counted.
        memo_key_file: a file with the key that outputs are memoised with; None: each output is drawn independently.
        place: with a key, where secrets are points: the side of the cells whose points share an output.
        when_spent: without budget left, an error (``"refuse"``) or the last output again (``"repeat"``).
        key_seconds: how long the keys of releases are kept.
        sessions: people whose mechanism and balances are kept in memory.

    >>> from privacygames.service import ServiceSettings
    >>> ServiceSettings("people", "people.db").when_spent
    'refuse'
    """

    fleet: str
    store: str
    budgets: tuple[Budget, ...] = ()
    clock: bool = True
    memo_key_file: str | None = None
    place: float | None = None
    when_spent: Literal["refuse", "repeat"] = "refuse"
    key_seconds: float = 7 * 24 * 3600.0
    sessions: int = MAX_SESSIONS

    def memo_key(self) -> bytes | None:
        """The key that outputs are memoised with."""
        if self.memo_key_file is None:
            if self.place is not None:
                raise InvalidProblem("a place is the cell of memoised outputs: give the file of their key, too")
            return None
        key = Path(self.memo_key_file).read_bytes()
        if len(key) < MIN_KEY_BYTES:
            raise InvalidProblem(f"the file of the key must have {MIN_KEY_BYTES} random bytes or more")
        return key


class CurrentFleet:
    """The fleet that its folder holds now: after a change, the next call opens the new generation.

    Args:
        folder: of the fleet.
        changed: called after another generation was opened.
    """

    def __init__(self, folder: str, changed: Callable[[], None] = lambda: None) -> None:
        self._folder, self._changed = folder, changed
        self._lock = threading.Lock()
        self._fleet: AnyFleet = open_fleet(folder)

    def get(self) -> AnyFleet:
        """The fleet."""
        with self._lock:
            try:
                len(self._fleet)  # raises where the folder holds another generation
            except StaleFleet:
                self._fleet = open_fleet(self._folder)
                self._changed()
            return self._fleet


class Accounts:
    """The sessions of people: each has a mechanism of the fleet, and a ledger in the store.

    One thread uses it, the one that commits.

    Args:
        settings: of the service.
        store: the store; these sessions alone use this connection.
        fleet: the fleet.
    """

    def __init__(self, settings: ServiceSettings, store: LedgerStore, fleet: CurrentFleet) -> None:
        self._settings, self._store, self._fleet = settings, store, fleet
        self._key = settings.memo_key()
        self._sessions: OrderedDict[str, tuple[str, Session]] = OrderedDict()
        self._mechanisms: dict[str, tuple[str, Any]] = {}

    def prepare(self, person: str) -> None:
        """Read and verify a person's mechanism, unless there is a session with it; nothing is locked meanwhile.

        Raises:
            Refused: the person is not in the fleet.
        """
        fleet = self._fleet.get()
        if person not in fleet:
            raise unknown_person()
        checksum = fleet.record_checksum(person)
        if person in self._sessions and self._sessions[person][0] != checksum:
            self.forget(person)
        if person not in self._sessions and self._mechanisms.get(person, ("",))[0] != checksum:
            self._mechanisms[person] = checksum, fleet[person]

    def session(self, person: str) -> Session:
        """The session of a person who was prepared; a new one opens the ledger, in the transaction that is open."""
        if person not in self._sessions:
            if person not in self._mechanisms:
                self.prepare(person)  # the session was forgotten within this batch
            checksum, mechanism = self._mechanisms[person]
            self._sessions[person] = checksum, self._open(person, mechanism)
            if len(self._sessions) > self._settings.sessions:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(person)
        return self._sessions[person][1]

    def has_session(self, person: str) -> bool:
        """Whether the person's ledger is open."""
        return person in self._sessions

    def forget(self, person: str) -> None:
        """Forget a person's session, which is opened again when it is needed."""
        self._sessions.pop(person, None)

    def end_batch(self) -> None:
        """Forget mechanisms that no session was opened for."""
        self._mechanisms.clear()

    def _open(self, person: str, mechanism: Any) -> Session:
        ledger = StoredLedger(self._store, person)
        options: dict[str, Any] = {
            "budget": list(self._settings.budgets) or None,
            "ledger": ledger,
            "when_spent": self._settings.when_spent,
        }
        memoised = None
        if self._key is not None:  # another key for everybody, which is of no use once their ledger is erased
            key = hmac.digest(self._key, ledger.balances().identity.encode(), "sha256")
            memoised = Memoised(key, place=self._settings.place)
        if isinstance(self._fleet.get(), PointFleet):
            return PointReleases(mechanism, policy=memoised, **options)
        return FixedReleases(mechanism, memoised=memoised, **options)


def unknown_person() -> Refused:
    """The error about a person who is not in the fleet; it does not say who."""
    return Refused(404, "UNKNOWN", "there is no such person in the fleet")

"""What a ledger reads and writes inside one transaction, wherever its rows are stored."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from privacygames.errors import InvalidFile
from privacygames.releases.ledger.events import Event, linked, next_chain_hash


class LedgerRows(ABC):
    """The rows of one ledger inside a transaction: its events, its head, and the belief after the last release.

    :class:`BaseLedger` has the rules; a subclass only stores. A file of its own and a store of many people differ in
    nothing else.
    """

    @abstractmethod
    def head(self) -> tuple[str, int, str] | None:
        """The ledger's identity, the number of its events and the hash over them; None if that row is missing."""

    @abstractmethod
    def last_number(self) -> int:
        """The number of the last event; 0 if there is none."""

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[Event]:
        """The events after a given one, in order."""

    @abstractmethod
    def stored_key(self, identity: str, key: str) -> str:
        """A caller's name for a release, as the ledger with this identity stores it."""

    @abstractmethod
    def number_of(self, stored_key: str) -> int | None:
        """The number of the event of the release with a key; None if there is none."""

    @abstractmethod
    def chain_at(self, number: int) -> str | None:
        """The chain hash of an event; None if it does not exist."""

    @abstractmethod
    def has_chain(self, chain_hash: str) -> bool:
        """Whether an event has this chain hash."""

    @abstractmethod
    def releases_after(self, number: int) -> int:
        """How many releases there are after an event."""

    @abstractmethod
    def first_number(self) -> int:
        """The number of the first event that was not deleted; 1 if there is none."""

    @abstractmethod
    def last_summary(self) -> int:
        """The number of the last event that has the balances; 0 if there is none."""

    @abstractmethod
    def first_release_since(self, time: float) -> int | None:
        """The number of the first release at or after a time; None if there is none."""

    @abstractmethod
    def delete_up_to(self, number: int) -> None:
        """Delete the events up to this one, which a summary stands for."""

    @abstractmethod
    def likelihoods(self, after: int) -> list[bytes | None]:
        """The stored likelihoods of the releases after an event, in order."""

    @abstractmethod
    def belief(self) -> bytes | None:
        """The stored logarithms of the belief after the last release; None before the first."""

    @abstractmethod
    def require_charges(self, count: int) -> None:
        """Refuse charges that belong to no event, where charges are rows of their own.

        Args:
            count: the number of charges of all events.
        """

    @abstractmethod
    def require_intact(self) -> None:
        """Refuse storage that is damaged, where that can be told."""

    @abstractmethod
    def insert(self, event: Event) -> None:
        """Store an event with its charges."""

    @abstractmethod
    def set_head(self, identity: str, events: int, chain_hash: str) -> None:
        """Record which event is the last."""

    @abstractmethod
    def set_belief(self, logarithms: bytes) -> None:
        """Replace the belief."""

    def write(self, identity: str, previous: str, event: Event) -> Event:
        """Chain an event to the one before it, and store it with the new head.

        Args:
            identity: the ledger's.
            previous: the chain hash of the event before it.
            event: without its chain hash.
        """
        chained = linked(previous, event)
        self.insert(chained)
        self.set_head(identity, chained.number, chained.chain_hash)
        return chained

    def checked_event(self, number: int, previous: str | None, name: str) -> Event:
        """An event, once its hash has been checked.

        Args:
            number: the event's.
            previous: the chain hash of the event before it.
            name: of the ledger, for messages.
        """
        event = next(self.events(number - 1), None)
        if event is None or previous is None or next_chain_hash(previous, event) != event.chain_hash:
            raise InvalidFile(f"{name}: event {number}, or one before it, was altered after it was written")
        return event

"""The rules of a ledger: what is charged, what is checked before it counts, and the hash chain over all events."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from hashlib import sha256
from time import time

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Timestamp, to_seconds
from privacygames.errors import InvalidFile, InvalidProblem, PrivacyGamesError
from privacygames.releases.budgets import Account, Spent, more_releases, releases_left, share_text
from privacygames.releases.decimal_epsilon import minus, read_amount
from privacygames.releases.ledger.balances import AccountTerms, LedgerBalances, VerifiedLedger
from privacygames.releases.ledger.events import (
    NO_BELIEF,
    Event,
    LedgerHead,
    ReleaseEntry,
    ReleaseRecord,
    initial_chain_hash,
    next_chain_hash,
    release_record,
)
from privacygames.releases.ledger.rows import LedgerRows
from privacygames.releases.ledger.scope import LedgerScope, WhenChanged, changed_terms

AHEAD_SECONDS = 300.0
"""Seconds that a ledger may be ahead of this machine's clock when it is pruned: clocks differ by less."""


class BaseLedger(ABC):
    """The releases of one person's secret, with their charges and what each budget has left, wherever they are stored.

    The output and the charges of a release are committed together before the output is returned. A subclass says in
    :meth:`_transaction` and :meth:`_reading` where the rows are; everything else is here, once.

    All events are checked on the first query, and later ones before they count. Sums are recomputed from the events,
    never read.

    Args:
        name: of the ledger, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._state: LedgerBalances | None = None
        self._error: PrivacyGamesError | None = None
        self._seen: tuple[str, int, str] | None = None  # identity, events and chain hash, as last committed
        self._wrote = False

    @abstractmethod
    def close(self) -> None:
        """End the use of the ledger."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[LedgerRows]:
        """An atomic transaction; within another transaction of this handle, a part of it."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[LedgerRows]:
        """A read transaction: all reads see one state."""

    def set_scope(
        self, wanted: LedgerScope, when_changed: WhenChanged = "refuse", format_1: LedgerScope | None = None
    ) -> int:
        """Set the scope of the ledger, and return the number of the event that records it.

        A scope that differs from the present one is refused, or recorded as a change that keeps all charges.

        Args:
            wanted: the problem, mobility and accounts of the caller's releases.
            when_changed: how another scope is treated.
            format_1: the same with digests as versions of privacygames up to 0.2 wrote them; None if they cannot be
                computed.
        """
        with self._transaction() as rows:
            state = self._synchronise(rows)
            terms = changed_terms(state.scope_period, wanted, format_1, when_changed, self.name)
            if terms is None:
                return state.scope_period.scope_event
            report = {"about": dict(wanted.about), "accounts": [each.to_dict() for each in terms], "how": when_changed}
            return self._write(rows, Event(state.events + 1, "change", report=_json(report))).number

    def head(self) -> LedgerHead:
        """The state after the last event."""
        with self._reading() as rows:
            return self._head(rows)

    def spent(self, accounts: tuple[Account, ...], at: float) -> tuple[Spent, ...]:
        """The charges that count against each account at a time: all, or those within its window."""
        with self._reading() as rows:
            balances = self._synchronise(rows).accounts
            return tuple(balances[each.name].spent(at) for each in accounts)

    def due(self, secret_mark: str | None, costs: tuple[Decimal, ...], at: float) -> tuple[Decimal, ...]:
        """The charge of a release to each account, given its costs: a memoised secret counts once per window."""
        with self._reading() as rows:
            state = self._synchronise(rows)
            pairs = zip(state.scope_period.terms, costs, strict=True)
            mark = state.scoped_mark(secret_mark)
            return tuple(state.accounts[each.name].due(mark, cost, at) for each, cost in pairs)

    def find(self, key: str) -> ReleaseRecord | None:
        """The earlier release with a key; None if there is none."""
        with self._reading() as rows:
            state = self._synchronise(rows)
            number = rows.number_of(rows.stored_key(state.identity, key))
            if number is None:
                return None
            previous = self._chain_before(rows, state, number)
            event = rows.checked_event(number, previous, self.name)
            if event.kind != "release" or event.key != rows.stored_key(state.identity, key):
                raise InvalidFile(f"{self.name}: event {number} has another key than its index says: it was altered")
            return release_record(event, state.releases - rows.releases_after(number), state.scope_at(number))

    def has_used(self, mechanism: str) -> bool:
        """Whether a mechanism, or a memoised function drawn from one, was used before."""
        with self._reading() as rows:
            return mechanism in self._synchronise(rows).mechanisms

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclusive lock, held while a release is chosen again after a concurrent write."""
        with self._transaction():
            yield

    def append(self, head: LedgerHead, draw: Callable[[], ReleaseEntry]) -> ReleaseRecord | None:
        """Draw one release and commit it with its charges; None if the ledger changed since ``head`` was read."""
        with self._transaction() as rows:
            state = self._synchronise(rows)
            if state.chain_hash != head.chain_hash:
                return None
            entry = draw()
            key = None if entry.key is None else rows.stored_key(state.identity, entry.key)
            event = self._write(rows, _release_event(state, entry, key))
            rows.set_belief(_bytes(entry.log_belief))
            return release_record(event, state.releases, state.scope_period.scope_event)

    def correct_clock(self, to: Timestamp | None = None) -> float:
        """Set the ledger's clock back to the present, after a release with a time in the future.

        Charges at later times then count as charged now, so that windows hold them for as long as possible.

        Args:
            to: the right time; by default that of this machine's clock.

        Returns:
            The seconds by which the ledger was ahead; 0 if it was not, and nothing was written.
        """
        at = to_seconds(time() if to is None else to)
        with self._transaction() as rows:
            state = self._synchronise(rows)
            ahead = state.time - at
            if not state.releases or ahead <= 0:
                return 0.0
            if at < state.earliest_clock:
                raise InvalidProblem(f"{self.name} was pruned since: its clock cannot be set back before that")
            if not state.clocked:
                raise InvalidProblem(f"{self.name} counts steps, not seconds: there is no clock to correct")
            report = _json({"from": state.time})
            self._write(rows, Event(state.events + 1, "clock", time=at, clocked=1, report=report))
            return ahead

    def prune(self, before: float) -> int:
        """Delete the releases before a time, once an event with the balances that they led to is written.

        Totals, the charges that a window may still hold, and memoised secrets are part of that event, so that every
        later release is charged as if nothing had been deleted. The last release stays.

        Args:
            before: unix seconds.

        Returns:
            The number of events that were deleted; 0, and nothing was written, where none is older, where releases are
            counted in steps, or where the ledger is ahead of this machine's clock.
        """
        with self._transaction() as rows:
            state = self._synchronise(rows)
            last = state.last
            if last is None or not state.clocked or state.time > time() + AHEAD_SECONDS:
                return 0
            if last.likelihood is not None:
                raise InvalidProblem(f"{self.name} is about a belief, which depends on every output: it is not pruned")
            since = rows.first_release_since(before)
            cut, first = (last.number if since is None else min(since, last.number)) - 1, rows.first_number()
            chain_hash = rows.chain_at(cut)
            if cut < first or chain_hash is None:
                return 0
            report = {"balances": state.summary(), "deleted": cut, "chain of deleted": chain_hash}
            self._write(rows, Event(state.events + 1, "summary", report=_json(report)))
            rows.delete_up_to(cut)
            return cut - first + 1

    def records(self) -> list[ReleaseRecord]:
        """All releases that were not deleted by :meth:`prune`, in order."""
        with self._reading() as rows:
            state = self._synchronise(rows)
            events = [event for event in rows.events() if event.kind == "release"]
            first = state.releases - len(events) + 1
            return [
                release_record(each, number, state.scope_at(each.number)) for number, each in enumerate(events, first)
            ]

    def accounts(self) -> list[dict[str, object]]:
        """All accounts: name, limit, window, total charge, what is counted, and what is left by now."""
        with self._reading() as rows:
            state = self._synchronise(rows)
            now = max(state.time, time()) if state.clocked else state.time
            return [_account_row(state, terms, now) for terms in state.scope_period.terms]

    def likelihoods(self) -> tuple[list[float], list[bool], list[FloatArray | None]]:
        """Times, whether these are by the clock, and log-likelihoods of the releases about the present problem."""
        with self._reading() as rows:
            state = self._synchronise(rows)
            if state.deleted_in_scope:
                raise InvalidProblem(f"outputs of {self.name} were deleted: what follows from all of them is not known")
            blobs = rows.likelihoods(state.scope_period.scope_event)
            columns = [None if blob is None else _vector(blob, self.name) for blob in blobs]
            return list(state.times), [bool(state.clocked)] * len(blobs), columns

    def balances(self) -> LedgerBalances:
        """All balances; for reading only."""
        with self._reading() as rows:
            return self._synchronise(rows)

    def verify(self, head: str | None = None) -> VerifiedLedger:
        """Recompute every balance, every window and the hash chain over all events.

        Args:
            head: the head that an earlier :meth:`verify` returned and you stored; it must still be in the hash
                chain. Only this detects that the whole file was replaced by an older copy.

        Raises:
            GuaranteeViolated: a balance does not add up, a budget or one of its windows is exceeded, or time goes back.
            InvalidFile: the file is damaged, an event was altered after it was written, or it is an older copy.
        """
        with self._reading() as rows:
            rows.require_intact()
            state = self._synchronise(rows, from_start=True)
            self._log_belief(rows, state)
            known = (None, initial_chain_hash(state.identity), state.chain_of_deleted)
            if head not in known and not rows.has_chain(str(head)):
                raise InvalidFile(
                    f"{self.name} does not have the head that was given: it is an older copy, or another ledger"
                )
            return state.verified()

    def _rolled_back(self) -> None:
        self._state = None

    def _committed(self) -> None:
        if self._state is not None:
            self._seen = self._state.identity, self._state.events, self._state.chain_hash

    def _synchronise(self, rows: LedgerRows, *, from_start: bool = False) -> LedgerBalances:
        """The balances after checking the events written since the last call; an error is final."""
        if self._error is not None:
            raise self._error
        try:
            self._state = self._read_balances(rows, None if from_start else self._state, from_start=from_start)
        except PrivacyGamesError as error:
            self._error = error
            raise
        if not self._wrote:
            self._committed()
        return self._state

    def _read_balances(
        self, rows: LedgerRows, known: LedgerBalances | None, *, from_start: bool = False
    ) -> LedgerBalances:
        head = rows.head()
        if head is None:
            raise InvalidFile(f"{self.name} has no record of its last event: it was altered")
        identity, events, chain_hash = head
        if rows.last_number() != events:
            raise InvalidFile(f"{self.name} does not end with event {events}, as it says: it was altered")
        self._require_descendant(rows, identity)
        if known is not None and (known.events, known.chain_hash) == (events, chain_hash):
            return known
        if known is not None:
            following = list(rows.events(known.events))
            if following and following[0].number == known.events + 1:
                state = known.add_all(following)
            else:
                known = None  # events that this handle has not seen were deleted, or are missing
        if known is None:
            state = self._first_balances(rows, identity, from_start=from_start)
            state.add_all(rows.events(state.events))
        if (state.events, state.chain_hash) != (events, chain_hash):
            raise InvalidFile(f"{self.name} was altered: its last event does not match its header")
        rows.require_charges(state.charges)
        return state

    def _first_balances(self, rows: LedgerRows, identity: str, *, from_start: bool) -> LedgerBalances:
        """The balances before the first event that is to be added: none, or those of the last summary.

        The events from the last release on, or from the first that was not deleted, must be a chain up to the summary.
        """
        number = rows.last_summary()
        if number == 0 or (from_start and rows.first_number() == 1):
            return LedgerBalances(identity, self.name)
        summary = next(rows.events(number - 1))
        try:
            stated = json.loads(summary.report)
            last, deleted = int(stated["balances"]["last"]), int(stated["deleted"])
            chain_hash = str(stated["chain of deleted"])
        except (ValueError, KeyError, TypeError):
            raise InvalidFile(f"{self.name}: event {number} holds values that a ledger does not") from None
        after = deleted if from_start else last - 1
        previous = chain_hash if after == deleted else rows.chain_at(after)
        last_release = summary
        for event in rows.events(after):
            if event.number > number:
                break
            after += 1
            if previous is None or event.number != after or next_chain_hash(previous, event) != event.chain_hash:
                raise InvalidFile(f"{self.name}: event {after}, or one before it, was altered after it was written")
            previous = event.chain_hash
            last_release = event if event.number == last else last_release
        return LedgerBalances.restored(identity, self.name, summary, last_release)

    def _chain_before(self, rows: LedgerRows, state: LedgerBalances, number: int) -> str | None:
        """The chain hash of the event before this one."""
        if number == 1:
            return initial_chain_hash(state.identity)
        return state.chain_of_deleted if number - 1 == state.deleted else rows.chain_at(number - 1)

    def _require_descendant(self, rows: LedgerRows, identity: str) -> None:
        """Refuse a file that is not a continuation of the events that this handle has seen."""
        if self._seen is None:
            return
        own, events, chain_hash = self._seen
        present = rows.chain_at(events) if events else chain_hash
        if present is None and events < rows.first_number():
            present = chain_hash  # it was deleted, and the summary after it is in the chain
        if identity != own or present != chain_hash:
            raise InvalidFile(f"{self.name} was replaced by an older copy, or altered, while it was open")

    def _head(self, rows: LedgerRows) -> LedgerHead:
        state = self._synchronise(rows)
        return LedgerHead(
            release_count=state.releases,
            releases_in_scope=state.releases_in_scope,
            scope_event=state.scope_period.scope_event,
            time=state.time,
            clocked=bool(state.clocked),
            output_index=-1 if state.last is None or state.last.output_index is None else state.last.output_index,
            log_belief=self._log_belief(rows, state),
            chain_hash=state.chain_hash,
        )

    def _log_belief(self, rows: LedgerRows, state: LedgerBalances) -> FloatArray:
        """The logarithms of the belief after the last release."""
        stored = rows.belief()
        expected = None if state.last is None else state.last.belief
        if (None if stored is None else sha256(stored).hexdigest()) != expected:
            raise InvalidFile(f"{self.name} was altered: its stored belief does not match its last release")
        return NO_BELIEF if stored is None else _vector(stored, self.name)

    def _write(self, rows: LedgerRows, event: Event) -> Event:
        state = self._synchronise(rows)
        self._wrote = True
        written = rows.write(state.identity, state.chain_hash, event)
        self._synchronise(rows)
        return written


def _release_event(state: LedgerBalances, entry: ReleaseEntry, key: str | None) -> Event:
    charges = tuple(
        (terms.name, str(amount), state.total_with(terms.name, amount))
        for terms, amount in zip(state.scope_period.terms, entry.charges, strict=True)
    )
    return Event(
        number=state.events + 1,
        kind="release",
        key=key,
        time=entry.time,
        clocked=int(entry.clocked),
        output_index=entry.output_index,
        mechanism=entry.mechanism,
        secret_mark=entry.secret_mark,
        report=_json(entry.report),
        likelihood=None if entry.likelihood is None else _bytes(entry.likelihood),
        belief=sha256(_bytes(entry.log_belief)).hexdigest(),
        charges=charges,
    )


def _account_row(state: LedgerBalances, terms: AccountTerms, now: float) -> dict[str, object]:
    """An account in plain values, with what is left in the window that ends now."""
    account, guarantee = state.accounts[terms.name], terms.approximate
    left = None if account.limit is None else minus(account.limit, account.spent(now).amount)
    count = None
    if state.last is not None:
        charges = {name: read_amount(amount) for name, amount, _ in state.last.charges}
        count = releases_left(left, charges[terms.name], json.loads(state.last.report).get("source"))
    if left is None or account.limit is None:
        in_words = "no limit"
    else:
        in_words = str(left) if guarantee is None else share_text(left, account.limit)
        in_words += "" if count is None else f"; {more_releases(count)}"
    return {
        "name": terms.name,
        "limit": account.limit and str(account.limit),
        "limit_in_words": terms.limit_text,
        "every": account.every,
        "spent": str(account.charged),
        "counted": terms.counted,
        "any_pair": state.max_log_ratio(terms.name, account.charged),
        "approximate": None if guarantee is None else guarantee.to_dict(),
        "left": None if left is None else str(left),
        "left_in_words": in_words,
        "releases_left": count,
    }


def _json(report: Mapping[str, object]) -> str:
    return json.dumps(report, sort_keys=True, allow_nan=False)


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8").tobytes()


def _vector(blob: bytes, name: str) -> FloatArray:
    if len(blob) % 8:
        raise InvalidFile(f"{name} holds a likelihood that is cut off: it was altered or is damaged")
    return np.frombuffer(blob, dtype="<f8")

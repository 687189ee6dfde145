"""The balances of a ledger, recomputed from its events one by one; no sum that the file holds is trusted."""

import json
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import Any

from privacygames.errors import GuaranteeViolated, InvalidFile, PrivacyGamesError
from privacygames.problem import Scale, format_epsilon
from privacygames.releases.approximate import ApproximateGuarantee
from privacygames.releases.budgets import Spent
from privacygames.releases.decimal_epsilon import EXACT, NOTHING, minus, read_amount, total
from privacygames.releases.ledger.events import Event, initial_chain_hash, next_chain_hash

MEMOISED_CHARGING = "places"
"""The stored value of ``counts`` for memoised outputs: each secret is charged once, however often it is released."""

ScopedMark = tuple[int, str]
"""A memoised secret: the number of the event that fixed the distinguishability, and the secret's keyed mark."""


@dataclass(frozen=True)
class AccountTerms:
    """The name, limit, window and distinguishability of an account, as a ledger stores them.

    Attributes:
        name: unique in a ledger.
        limit: the largest total charge, as a decimal number; None: no limit.
        every: the length of its sliding window; None: all time.
        distinguishability_digest: the digest of the distinguishability and of its secrets.
        max_distance: the largest distinguishability between any two secrets; None: unknown, or infinite.
        all_distances_one: whether any two secrets are 1 apart, so that ε has the same unit whatever the secrets are.
        measure: the name of the distance that ε counts in; empty if it has none, or an older ledger did not say.
        unit: the unit of that distance, such as km; empty likewise.
        approximate: what the limit of an account of Rényi divergences guarantees; None where ε is added up.
    """

    name: str
    limit: str | None
    every: float | None
    distinguishability_digest: str
    max_distance: float | None
    all_distances_one: bool
    measure: str = ""
    unit: str = ""
    approximate: ApproximateGuarantee | None = None

    @property
    def scale(self) -> Scale:
        """The scale of the distinguishability."""
        return Scale(self.measure, self.unit)

    @property
    def counted(self) -> str:
        """What charges count: ``"per km"`` for ε, or which divergence."""
        if self.approximate is None:
            return self.scale.per()
        order = self.approximate.order
        return "of the largest loss" if order == inf else f"of the Rényi divergence of order {order:.4g}"

    @property
    def distance(self) -> float | None:
        """The largest distance, if ε times it bounds what lies between two secrets."""
        return None if self.approximate is not None else self.max_distance

    def format_amount(self, amount: Decimal | float | str) -> str:
        """A charge or a limit with its unit, and the bound that it implies between any two secrets."""
        return format_epsilon(str(amount), self.counted, max_log_ratio(amount, self.distance))

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        if self.approximate is not None:
            return self.approximate.describe(self.scale)
        return "no limit" if self.limit is None else self.format_amount(self.limit)

    @property
    def fixed(self) -> tuple[object, ...]:
        """The terms that no change of the ledger's scope may alter: name, limit, window, and what is guaranteed."""
        return self.name, self.limit, self.every, self.approximate

    @property
    def stated(self) -> tuple[object, ...]:
        """The same as a budget states them: the ledger has chosen an order, and the limit follows from it."""
        if self.approximate is None:
            return self.fixed
        return self.name, self.approximate.stated, self.every

    def to_dict(self) -> dict[str, object]:
        """Plain values under the keys of the file format, for JSON."""
        values = {STORED_KEYS.get(name, name): getattr(self, name) for name in self.__dataclass_fields__}
        guarantee = values.pop("approximate")
        return values if guarantee is None else values | {"approximate": guarantee.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "AccountTerms":
        """The terms that an event stores; an error of Python's own if they are not what :meth:`to_dict` returns."""
        values = {ATTRIBUTES[key]: value for key, value in stored.items()}
        if "approximate" not in values:
            return cls(**values)
        guarantee = ApproximateGuarantee.from_dict(values.pop("approximate"))
        if values["limit"] != str(guarantee.limit):  # computed equally on all machines
            raise ValueError
        return cls(**values, approximate=guarantee)


STORED_KEYS = {"distinguishability_digest": "subject", "max_distance": "largest", "all_distances_one": "any_two"}
"""Attributes of :class:`AccountTerms` whose keys in the file format differ from their names."""

ATTRIBUTES = {STORED_KEYS.get(name, name): name for name in AccountTerms.__dataclass_fields__}
"""The attribute of :class:`AccountTerms` for each key of the file format."""


@dataclass(frozen=True)
class ScopePeriod:
    """The scope of a ledger from one event until the next change of it.

    Attributes:
        scope_event: the number of the event that began it; 0 before a ledger has a scope.
        about: digests of what must be equal in all processes that use the ledger.
        terms: the accounts that releases are charged to; their number, names, limits and windows never change.
    """

    scope_event: int
    about: Mapping[str, str]
    terms: tuple[AccountTerms, ...]


@dataclass(frozen=True)
class VerifiedLedger:
    """The sums of a ledger that passed every check.

    Attributes:
        releases: number of releases.
        spent: total charge, by account.
        fullest: largest charge within one window (or all time), by account.
        limits: by account; None: no limit.
        counted: what ε is counted for, by account: ``"per km"``.
        farthest: the largest distinguishability between any two secrets, by account; None: unknown, or infinite.
        with_delta: what the limit guarantees, for accounts of divergences.
        events: number of events: releases, changes of scope and corrections of the clock.
        head: the hash over all of them. Keep a copy elsewhere: ``verify(head=...)`` then detects a file that was
            replaced by an older copy of itself.
    """

    releases: int
    spent: dict[str, str]
    fullest: dict[str, str]
    limits: dict[str, str | None]
    counted: dict[str, str]
    farthest: dict[str, float | None]
    with_delta: dict[str, str]
    events: int
    head: str

    def any_pair(self, account: str) -> float | None:
        """The bound between any two secrets that the account's total implies; None: unknown, or without limit."""
        return max_log_ratio(self.spent[account], self.farthest[account])

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class AccountBalance:
    """One account, updated event by event.

    A release is charged at its time. A memoised secret is charged once in every window in which it was released: at the
    first output, and again once the previous output is out of the window.

    Args:
        limit: the largest charge within a window, or in all time; None: no limit.
        every: the length of the window; None: all time.
    """

    def __init__(self, limit: Decimal | None, every: float | None) -> None:
        self.limit, self.every = limit, every
        self.charged, self.fullest = NOTHING, NOTHING
        self._times: list[float] = []
        self._sums, self._release_counts = [NOTHING], [0]
        self._marks: OrderedDict[ScopedMark, tuple[Decimal, float]] = OrderedDict()

    def due(self, secret_mark: ScopedMark | None, cost: Decimal, at: float) -> Decimal:
        """The charge for a release at a time: its cost, or nothing if its memoised secret was charged already."""
        if secret_mark is None or secret_mark not in self._marks:
            return cost
        known, last = self._marks[secret_mark]
        return NOTHING if self.every is None or last >= self._window_start(at) else known

    def add(self, secret_mark: ScopedMark | None, amount: Decimal, at: float) -> None:
        """Add a charge."""
        self.charged = total([self.charged, amount])
        if secret_mark is None or self.every is None:
            self._times.append(at)
            self._sums.append(total([self._sums[-1], amount]))
            self._release_counts.append(self._release_counts[-1] + (amount > 0))
        if secret_mark is not None:
            self._marks[secret_mark] = self._marks.get(secret_mark, (amount, at))[0], at
            self._marks.move_to_end(secret_mark)
        self.fullest = max(self.fullest, self.spent(at).amount)

    def spent(self, at: float) -> Spent:
        """The charges that count at a time not before the last one: all of them, or those in the window ending then.

        For a window these are the charges in it, and the cost of every distinct memoised secret released in it.
        """
        if self.every is None:
            return Spent(self._sums[-1], self._release_counts[-1])
        start = self._window_start(at)
        before = bisect_left(self._times, start)
        amounts = [minus(self._sums[-1], self._sums[before])]
        release_count = self._release_counts[-1] - self._release_counts[before]
        for cost, last in reversed(self._marks.values()):
            if last < start:
                break
            amounts.append(cost)
            release_count += cost > 0
        return Spent(total(amounts), release_count)

    def correct_clock(self, to: float) -> None:
        """Move charges at later times to this time, so that windows hold them for as long as possible."""
        later = bisect_right(self._times, to)
        self._times[later:] = [to] * (len(self._times) - later)
        for secret_mark, (cost, last) in self._marks.items():
            self._marks[secret_mark] = cost, min(last, to)

    def summary(self, at: float) -> dict[str, object]:
        """Plain values from which :meth:`restored` makes an account that counts every later charge as this one does.

        Args:
            at: the time of the last release, before which no window will end.
        """
        before = len(self._times) if self.every is None else bisect_left(self._times, self._window_start(at))
        kept = range(before, len(self._times))
        counts = self._release_counts
        return {
            "charged": _canonical(self.charged),
            "fullest": _canonical(self.fullest),
            "releases": counts[-1] if self.every is None else 0,
            "times": self._times[before:],
            "amounts": [_canonical(minus(self._sums[each + 1], self._sums[each])) for each in kept],
            "counted": [counts[each + 1] - counts[each] for each in kept],
            "marks": [[*mark, _canonical(cost), last] for mark, (cost, last) in self._marks.items()],
        }

    @classmethod
    def restored(cls, limit: Decimal | None, every: float | None, summary: Mapping[str, Any]) -> "AccountBalance":
        """The account that a summary is of.

        Args:
            limit: of the account.
            every: of the account.
            summary: what :meth:`summary` returned.
        """
        account = cls(limit, every)
        account.charged, account.fullest = read_amount(summary["charged"]), read_amount(summary["fullest"])
        account._sums = [account.charged if every is None else NOTHING]
        account._release_counts = [int(summary["releases"])]
        for time, amount, counted in zip(summary["times"], summary["amounts"], summary["counted"], strict=True):
            account._times.append(float(time))
            account._sums.append(total([account._sums[-1], read_amount(amount)]))
            account._release_counts.append(account._release_counts[-1] + int(counted))
        for event, mark, cost, last in summary["marks"]:
            account._marks[int(event), str(mark)] = read_amount(cost), float(last)
        return account

    def _window_start(self, at: float) -> float:
        """The first float in the window that ends at a time, decided without rounding."""
        start = at - (self.every or inf)
        exact = Fraction(at) - Fraction(self.every or 0)
        return start if Fraction(start) >= exact else nextafter(start, inf)


class LedgerBalances:
    """All accounts, the last release and the hash chain of a ledger, as its events so far imply.

    Args:
        identity: the ledger's own random name, from which its hash chain starts.
        name: of the ledger, for messages.
    """

    def __init__(self, identity: str, name: str) -> None:
        self.identity, self.name = identity, name
        self.events, self.releases, self.charges, self.chain_hash = 0, 0, 0, initial_chain_hash(identity)
        self.scope_periods: list[ScopePeriod] = [ScopePeriod(0, {}, ())]
        self.accounts: dict[str, AccountBalance] = {}
        self.mechanisms: set[str] = set()
        self.last: Event | None = None
        self.time, self.clocked = 0.0, 0
        self.times: list[float] = []
        self.deleted_in_scope = 0
        self.deleted, self.chain_of_deleted, self.earliest_clock = 0, "", -inf
        self._distinguishability_event = 0

    @property
    def scope_period(self) -> ScopePeriod:
        """The present scope of the ledger."""
        return self.scope_periods[-1]

    @property
    def releases_in_scope(self) -> int:
        """The number of releases since the last change of the scope."""
        return self.deleted_in_scope + len(self.times)

    def scope_at(self, number: int) -> int:
        """The number of the event that set the scope in force at an event."""
        return max(period.scope_event for period in self.scope_periods if period.scope_event < number)

    def summary(self) -> dict[str, Any]:
        """Plain values from which :meth:`restored` makes balances that treat every later event as these do."""
        return {
            "previous": self.chain_hash,
            "releases": self.releases,
            "in scope": self.releases_in_scope,
            "periods": [
                {
                    "event": each.scope_event,
                    "about": dict(each.about),
                    "accounts": [one.to_dict() for one in each.terms],
                }
                for each in self.scope_periods[1:]
            ],
            "distinguishability": self._distinguishability_event,
            "mechanisms": sorted(self.mechanisms),
            "time": self.time,
            "clocked": self.clocked,
            "last": None if self.last is None else self.last.number,
            "accounts": {name: account.summary(self.time) for name, account in self.accounts.items()},
        }

    @classmethod
    def restored(cls, identity: str, name: str, event: Event, last: Event) -> "LedgerBalances":
        """The balances that an event states, once the events before it are deleted.

        Args:
            identity: the ledger's.
            name: of the ledger, for messages.
            event: the summary; that it continues the chain is checked by the caller.
            last: the last release before it.
        """
        state = cls(identity, name)
        try:
            report = json.loads(event.report)
            stated = report["balances"]
            for period in stated["periods"]:
                terms = tuple(AccountTerms.from_dict(each) for each in period["accounts"])
                state.scope_periods.append(ScopePeriod(int(period["event"]), dict(period["about"]), terms))
            for each in state.scope_period.terms:
                limit = None if each.limit is None else read_amount(each.limit)
                state.accounts[each.name] = AccountBalance.restored(limit, each.every, stated["accounts"][each.name])
            state.releases, state.deleted_in_scope = int(stated["releases"]), int(stated["in scope"])
            state._distinguishability_event = int(stated["distinguishability"])
            state.mechanisms = set(map(str, stated["mechanisms"]))
            state.time, state.clocked = float(stated["time"]), int(stated["clocked"])
            state._note_deleted(report)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            if isinstance(error, PrivacyGamesError):
                raise
            raise InvalidFile(f"{name}: event {event.number} holds values that a ledger does not") from None
        if stated["last"] != last.number or last.kind != "release":
            raise InvalidFile(f"{name}: event {event.number} has another last release than the ledger: it was altered")
        state.last, state.events, state.chain_hash = last, event.number, event.chain_hash
        return state

    def scoped_mark(self, mark: str | None) -> ScopedMark | None:
        """A mark together with the event that fixed the distinguishability; marks of different ones never coincide."""
        return None if mark is None else (self._distinguishability_event, mark)

    def max_distance_before(self, account: str) -> float:
        """The largest distinguishability that an account was charged in before the present scope."""
        earlier = [terms for period in self.scope_periods[:-1] for terms in period.terms]
        before = [terms.distance for terms in earlier if terms.name == account]
        return max((inf if distance is None else distance for distance in before), default=0.0)

    def max_distance(self, account: str, scope_event: int | None = None) -> float | None:
        """The largest distance that an account was charged in, up to a change of scope; None: unknown or infinite."""
        so_far = [each for each in self.scope_periods if scope_event is None or each.scope_event <= scope_event]
        known = [terms.distance for each in so_far for terms in each.terms if terms.name == account]
        return None if None in known else max((each for each in known if each is not None), default=None)

    def terms_at(self, scope_event: int) -> tuple[AccountTerms, ...]:
        """The accounts that releases were charged to from a change of scope on."""
        return next(each.terms for each in self.scope_periods if each.scope_event == scope_event)

    def format_amount(self, account: str, amount: Decimal | float | str) -> str:
        """A charge of an account with its unit, over all scopes the ledger had."""
        terms = next(each for each in self.scope_period.terms if each.name == account)
        return format_epsilon(str(amount), terms.counted, self.max_log_ratio(account, amount))

    def max_log_ratio(
        self, account: str, epsilon: Decimal | float | str, scope_event: int | None = None
    ) -> float | None:
        """The bound between any two secrets that an account's ε implies, up to a change of scope; None: unknown."""
        return max_log_ratio(epsilon, self.max_distance(account, scope_event))

    def add(self, event: Event) -> None:
        """Check the next event, and add it."""
        if event.number != self.events + 1:
            raise InvalidFile(f"{self.name}: event {self.events + 1} is missing")
        if next_chain_hash(self.chain_hash, event) != event.chain_hash:
            raise InvalidFile(f"{self.name}: event {event.number}, or one before it, was altered after it was written")
        try:
            getattr(self, f"_add_{event.kind}")(event)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            if isinstance(error, PrivacyGamesError):
                raise
            raise InvalidFile(f"{self.name}: event {event.number} holds values that a ledger does not") from None
        self.events, self.chain_hash = event.number, event.chain_hash
        self.charges += len(event.charges)

    def add_all(self, events: Iterable[Event]) -> "LedgerBalances":
        """Check and add events in order."""
        for event in events:
            self.add(event)
        return self

    def total_with(self, account: str, amount: Decimal) -> str:
        """The running total of an account after a further charge."""
        return str(total([self.accounts[account].charged, amount]))

    def verified(self) -> VerifiedLedger:
        """The sums of all accounts."""
        accounts = self.accounts
        return VerifiedLedger(
            releases=self.releases,
            spent={name: str(account.charged) for name, account in accounts.items()},
            fullest={name: str(account.fullest) for name, account in accounts.items()},
            limits={name: None if each.limit is None else str(each.limit) for name, each in accounts.items()},
            counted={each.name: each.counted for each in self.scope_period.terms},
            farthest={each.name: self.max_distance(each.name) for each in self.scope_period.terms},
            with_delta={each.name: each.limit_text for each in self.scope_period.terms if each.approximate is not None},
            events=self.events,
            head=self.chain_hash,
        )

    def _add_change(self, event: Event) -> None:
        report = json.loads(event.report)
        terms = tuple(AccountTerms.from_dict(each) for each in report["accounts"])
        if self.scope_period.scope_event == 0:
            self._open(terms)
        elif [each.fixed for each in terms] != [each.fixed for each in self.scope_period.terms]:
            raise GuaranteeViolated(f"{self.name}: event {event.number} changes the budgets")
        elif _digests(terms) != _digests(self.scope_period.terms):
            self._distinguishability_event = event.number
        self.scope_periods.append(ScopePeriod(event.number, dict(report["about"]), terms))
        self.times, self.deleted_in_scope = [], 0

    def _open(self, terms: tuple[AccountTerms, ...]) -> None:
        for each in terms:
            if each.name in self.accounts:
                raise InvalidFile(f"{self.name} has two accounts of one name")
            limit = None if each.limit is None else read_amount(each.limit)
            self.accounts[each.name] = AccountBalance(limit, each.every)

    def _add_release(self, event: Event) -> None:
        if event.time is None or not isfinite(event.time) or event.clocked not in (0, 1):
            raise InvalidFile(f"{self.name}: event {event.number} has no time")
        if self.releases and (event.time < self.time or event.clocked != self.clocked):
            raise GuaranteeViolated(f"{self.name}: event {event.number} is earlier than the release before it")
        names = [each.name for each in self.scope_period.terms]
        if not names or [name for name, _, _ in event.charges] != names:
            raise InvalidFile(f"{self.name}: event {event.number} is not charged to every account")
        secret_mark = self.scoped_mark(event.secret_mark)
        for name, written, stated in event.charges:
            amount = read_amount(written)
            if secret_mark is not None and amount != self.accounts[name].due(secret_mark, amount, event.time):
                raise GuaranteeViolated(
                    f"{self.name}: event {event.number} charges the same memoised secret twice in one window"
                )
            self._charge(event, name, amount, stated, secret_mark)
        self.releases, self.last, self.time, self.clocked = self.releases + 1, event, event.time, event.clocked
        self.times.append(event.time)
        if event.mechanism is not None:
            self.mechanisms.add(event.mechanism)

    def _add_clock(self, event: Event) -> None:
        to = event.time
        if to is None or not isfinite(to) or to > self.time:
            raise GuaranteeViolated(f"{self.name}: event {event.number} sets the clock forward")
        if to < self.earliest_clock:
            raise GuaranteeViolated(f"{self.name}: event {event.number} sets the clock back before deleted charges")
        self.time, self.times = to, [min(time, to) for time in self.times]
        for account in self.accounts.values():
            account.correct_clock(to)

    def _add_summary(self, event: Event) -> None:
        report = json.loads(event.report)
        if report["balances"] != json.loads(json.dumps(self.summary())):
            raise GuaranteeViolated(
                f"{self.name}: event {event.number} states other balances than its events add up to"
            )
        self._note_deleted(report)

    def _note_deleted(self, report: Mapping[str, Any]) -> None:
        """Take note which events a summary stands for, and of the time before which the clock may not be set."""
        self.deleted, self.chain_of_deleted = int(report["deleted"]), str(report["chain of deleted"])
        self.earliest_clock = float(report["balances"]["time"])

    def _charge(self, event: Event, name: str, amount: Decimal, stated: str, secret_mark: ScopedMark | None) -> None:
        """Charge an account, and check the stated total and the limit."""
        account, at = self.accounts[name], event.time or 0.0
        account.add(secret_mark, amount, at)
        if read_amount(stated) != account.charged:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} states {stated}, but its charges add up to "
                f"{self.format_amount(name, account.charged)}"
            )
        held = account.spent(at).amount
        if account.limit is not None and amount > 0 and held > account.limit:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} holds {self.format_amount(name, held)}, "
                f"above its {account.limit}"
            )


def _canonical(amount: Decimal) -> str:
    """The same text for equal amounts, however they were computed."""
    return str(EXACT.normalize(amount))


def _digests(terms: tuple[AccountTerms, ...]) -> list[str]:
    return [each.distinguishability_digest for each in terms]


def max_log_ratio(epsilon: Decimal | float | str, max_distance: float | None) -> float | None:
    """The largest log-ratio between any two secrets that ε allows; None if the largest distance is not known."""
    return None if max_distance is None else float(epsilon) * max_distance

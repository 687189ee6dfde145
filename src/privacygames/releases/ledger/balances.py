"""The balances of a ledger, recomputed from its events one by one; no sum that the file holds is believed."""

import json
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter

from privacygames.errors import GuaranteeViolated, InvalidFile, PrivacyGamesError
from privacygames.problem import Scale
from privacygames.releases.budgets import Spent
from privacygames.releases.decimal_epsilon import NOTHING, minus, read_amount, total
from privacygames.releases.ledger.events import Event, chain_after, chain_of_no_events

PLACES = "places"
"""What a ledger of memoised outputs counts."""

Place = tuple[int, str]
"""A memoised secret: the number of the event that fixed the distinguishability, and the secret's keyed mark."""


@dataclass(frozen=True)
class AccountTerms:
    """What an account counts, as a ledger holds it.

    Attributes:
        name: unique in a ledger.
        limit: the largest total charge, as a decimal number; None: no limit.
        every: the length of its sliding window; None: all time.
        subject: the digest of the distinguishability and of its secrets.
        largest: the largest distinguishability between any two secrets; None: unknown, or infinite.
        any_two: whether any two secrets are 1 apart, so that ε has the same unit whatever the secrets are.
        measure: the name of the distance that ε counts in; empty if it has none, or an older ledger did not say.
        unit: the unit of that distance, such as km; empty likewise.
    """

    name: str
    limit: str | None
    every: float | None
    subject: str
    largest: float | None
    any_two: bool
    measure: str = ""
    unit: str = ""

    @property
    def scale(self) -> Scale:
        """The scale of the distinguishability."""
        return Scale(self.measure, self.unit)

    def format_epsilon(self, epsilon: Decimal | float | str) -> str:
        """ε with its unit, and the bound it implies between any two secrets."""
        return self.scale.epsilon(str(epsilon), any_pair(epsilon, self.largest))

    @property
    def fixed(self) -> tuple[str, str | None, float | None]:
        """What no change of the ledger's subject may alter: name, limit and window."""
        return self.name, self.limit, self.every

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Change:
    """The subject of a ledger from one event on.

    Attributes:
        number: the event's; 0 before a ledger has a subject.
        about: digests of what must be equal in all processes that use the ledger.
        terms: the accounts that releases are charged to; their number, names, limits and windows never change.
    """

    number: int
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
        events: number of events: releases, changes and corrections of the clock.
        head: the hash over all of them. Keep a copy elsewhere: ``verify(head=...)`` then detects a file that was
            replaced by an older copy of itself.
    """

    releases: int
    spent: dict[str, str]
    fullest: dict[str, str]
    limits: dict[str, str | None]
    counted: dict[str, str]
    farthest: dict[str, float | None]
    events: int
    head: str

    def any_pair(self, account: str) -> float | None:
        """The bound between any two secrets that the account's total implies; None: unknown, or without limit."""
        return any_pair(self.spent[account], self.farthest[account])

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class AccountBalance:
    """One account, updated event by event.

    A release is charged at its time. A memoised secret counts once in every window in which it was released: at the
    first output, and again once the previous output is out of the window.

    Args:
        limit: the largest charge within a window, or in all time; None: no limit.
        every: the length of the window; None: all time.
    """

    def __init__(self, limit: Decimal | None, every: float | None) -> None:
        self.limit, self.every = limit, every
        self.charged, self.fullest = NOTHING, NOTHING
        self._times: list[float] = []
        self._sums, self._counts = [NOTHING], [0]
        self._places: OrderedDict[Place, tuple[Decimal, float]] = OrderedDict()

    def due(self, place: Place | None, cost: Decimal, at: float) -> Decimal:
        """The charge for a release at a time: its cost, or nothing if its memoised secret counts already."""
        if place is None or place not in self._places:
            return cost
        known, last = self._places[place]
        return NOTHING if self.every is None or last >= self._window_start(at) else known

    def add(self, place: Place | None, amount: Decimal, at: float) -> None:
        """Add a charge."""
        self.charged = total([self.charged, amount])
        if place is None or self.every is None:
            self._times.append(at)
            self._sums.append(total([self._sums[-1], amount]))
            self._counts.append(self._counts[-1] + (amount > 0))
        if place is not None:
            self._places[place] = self._places.get(place, (amount, at))[0], at
            self._places.move_to_end(place)
        self.fullest = max(self.fullest, self.spent(at).amount)

    def spent(self, at: float) -> Spent:
        """The charges that count at a time not before the last one: all of them, or those in the window ending then.

        For a window these are the charges in it, and the cost of every distinct memoised secret released in it.
        """
        if self.every is None:
            return Spent(self._sums[-1], self._counts[-1])
        start = self._window_start(at)
        before = bisect_left(self._times, start)
        amounts = [minus(self._sums[-1], self._sums[before])]
        count = self._counts[-1] - self._counts[before]
        for cost, last in reversed(self._places.values()):
            if last < start:
                break
            amounts.append(cost)
            count += cost > 0
        return Spent(total(amounts), count)

    def correct_clock(self, to: float) -> None:
        """Move charges at later times to this time, so that windows hold them for as long as possible."""
        later = bisect_right(self._times, to)
        self._times[later:] = [to] * (len(self._times) - later)
        for place, (cost, last) in self._places.items():
            self._places[place] = cost, min(last, to)

    def _window_start(self, at: float) -> float:
        """The first float in the window that ends at a time, decided without rounding."""
        start = at - (self.every or inf)
        exact = Fraction(at) - Fraction(self.every or 0)
        return start if Fraction(start) >= exact else nextafter(start, inf)


class LedgerBalances:
    """All accounts, the last release and the hash chain of a ledger, as its events so far imply.

    Args:
        identity: the ledger's own random name, from which its chain starts.
        name: of the ledger, for messages.
    """

    def __init__(self, identity: str, name: str) -> None:
        self.identity, self.name = identity, name
        self.events, self.releases, self.charges, self.chain = 0, 0, 0, chain_of_no_events(identity)
        self.changes: list[Change] = [Change(0, {}, ())]
        self.accounts: dict[str, AccountBalance] = {}
        self.last: Event | None = None
        self.time, self.clocked = 0.0, 0
        self.times: list[float] = []
        self._distinguishability_event = 0

    @property
    def change(self) -> Change:
        """The present subject of the ledger."""
        return self.changes[-1]

    def place(self, mark: str | None) -> Place | None:
        """A mark as accounts know it: marks of different distinguishabilities are different places."""
        return None if mark is None else (self._distinguishability_event, mark)

    def largest_before(self, account: str) -> float:
        """The largest distinguishability that an account was charged in before the present subject."""
        before = [terms.largest for change in self.changes[:-1] for terms in change.terms if terms.name == account]
        return max((inf if largest is None else largest for largest in before), default=0.0)

    def farthest(self, account: str, change: int | None = None) -> float | None:
        """The largest distinguishability that an account was charged in, up to a change; None: unknown or infinite."""
        so_far = [each for each in self.changes if change is None or each.number <= change]
        known = [terms.largest for each in so_far for terms in each.terms if terms.name == account]
        return None if None in known else max((each for each in known if each is not None), default=None)

    def terms_at(self, change: int) -> tuple[AccountTerms, ...]:
        """The accounts that releases were charged to from a change on."""
        return next(each.terms for each in self.changes if each.number == change)

    def format_epsilon(self, account: str, epsilon: Decimal | float | str) -> str:
        """ε of an account with its unit, over all subjects the ledger had."""
        terms = next(each for each in self.change.terms if each.name == account)
        return terms.scale.epsilon(str(epsilon), self.any_pair(account, epsilon))

    def any_pair(self, account: str, epsilon: Decimal | float | str, change: int | None = None) -> float | None:
        """The bound between any two secrets that an account's ε implies, up to a change; None: unknown."""
        return any_pair(epsilon, self.farthest(account, change))

    def add(self, event: Event) -> None:
        """Check the next event, and add it."""
        if event.number != self.events + 1:
            raise InvalidFile(f"{self.name}: event {self.events + 1} is missing")
        if chain_after(self.chain, event) != event.chain:
            raise InvalidFile(f"{self.name}: event {event.number}, or one before it, was altered after it was written")
        try:
            getattr(self, f"_add_{event.kind}")(event)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            if isinstance(error, PrivacyGamesError):
                raise
            raise InvalidFile(f"{self.name}: event {event.number} holds values that a ledger does not") from None
        self.events, self.chain = event.number, event.chain
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
            counted={each.name: each.scale.per() for each in self.change.terms},
            farthest={each.name: self.farthest(each.name) for each in self.change.terms},
            events=self.events,
            head=self.chain,
        )

    def _add_change(self, event: Event) -> None:
        report = json.loads(event.report)
        terms = tuple(AccountTerms(**each) for each in report["accounts"])
        if self.change.number == 0:
            self._open(terms)
        elif [each.fixed for each in terms] != [each.fixed for each in self.change.terms]:
            raise GuaranteeViolated(f"{self.name}: event {event.number} changes the budgets")
        elif [each.subject for each in terms] != [each.subject for each in self.change.terms]:
            self._distinguishability_event = event.number
        self.changes.append(Change(event.number, dict(report["about"]), terms))
        self.times = []

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
        if not self.change.terms or [name for name, _, _ in event.charges] != [each.name for each in self.change.terms]:
            raise InvalidFile(f"{self.name}: event {event.number} is not charged to every account")
        place = self.place(event.place)
        for name, written, stated in event.charges:
            amount = read_amount(written)
            if place is not None and amount != self.accounts[name].due(place, amount, event.time):
                raise GuaranteeViolated(f"{self.name}: event {event.number} is charged again for a place in one window")
            self._charge(event, name, amount, stated, place)
        self.releases, self.last, self.time, self.clocked = self.releases + 1, event, event.time, event.clocked
        self.times.append(event.time)

    def _add_clock(self, event: Event) -> None:
        to = event.time
        if to is None or not isfinite(to) or to > self.time:
            raise GuaranteeViolated(f"{self.name}: event {event.number} sets the clock forward")
        self.time, self.times = to, [min(time, to) for time in self.times]
        for account in self.accounts.values():
            account.correct_clock(to)

    def _charge(self, event: Event, name: str, amount: Decimal, stated: str, place: Place | None) -> None:
        """Charge an account, and check the stated total and the limit."""
        account, at = self.accounts[name], event.time or 0.0
        account.add(place, amount, at)
        if read_amount(stated) != account.charged:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} says {stated} and adds up to "
                f"{self.format_epsilon(name, account.charged)}"
            )
        held = account.spent(at).amount
        if account.limit is not None and amount > 0 and held > account.limit:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} holds {self.format_epsilon(name, held)}, "
                f"above its {account.limit}"
            )


def any_pair(epsilon: Decimal | float | str, farthest: float | None) -> float | None:
    """The largest log-ratio between any two secrets that ε allows; None if the largest distance is not known."""
    return None if farthest is None else float(epsilon) * farthest

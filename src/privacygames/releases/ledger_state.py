"""What the events of a ledger add up to: followed event by event, each checked before it counts."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from math import inf, isfinite

from privacygames.errors import GuaranteeViolated, InvalidFile, PrivacyGamesError
from privacygames.problem import Scale
from privacygames.releases.account_state import AccountState, Place
from privacygames.releases.decimal_epsilon import read_amount, total
from privacygames.releases.entries import Event, Verified, chained, genesis

PLACES = "places"


@dataclass(frozen=True)
class AccountTerms:
    """What an account of releases counts, as a ledger holds it.

    Attributes:
        name: unique in a ledger.
        limit: the most that may be charged, as a decimal number; None: counted only.
        every: the length of its window; None: all time.
        subject: the digest of the distinguishability and of the secrets it is between.
        largest: the largest distinguishability between any two secrets; None: unknown, or infinite.
        any_two: whether any two secrets are 1 apart, so that ε is the same unit whatever the secrets are.
        measure: the name of the distance that ε counts in; empty where it has none, or an older ledger did not say.
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

    def told(self, epsilon: Decimal | float | str) -> str:
        """ε with what it is counted for, and what it allows between any two secrets."""
        return self.scale.epsilon(str(epsilon), any_pair(epsilon, self.largest))

    @property
    def lasting(self) -> tuple[str, str | None, float | None]:
        """What no change of the problem may change."""
        return self.name, self.limit, self.every

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Change:
    """What a ledger is about from an event on.

    Attributes:
        number: the event's; 0 before a ledger is about anything.
        about: digests of what may not differ between the processes that use the ledger.
        terms: the accounts that releases are charged to; their number, names, limits and windows never change.
    """

    number: int
    about: Mapping[str, str]
    terms: tuple[AccountTerms, ...]


class LedgerBalances:
    """Every account, the last release and the chain, as the events so far say; nothing else in the file is believed.

    Args:
        identity: the ledger's own random name, which its chain starts from.
        name: what messages call the ledger.
    """

    def __init__(self, identity: str, name: str) -> None:
        self.identity, self.name = identity, name
        self.events, self.releases, self.charges, self.chain = 0, 0, 0, genesis(identity)
        self.changes: list[Change] = [Change(0, {}, ())]
        self.accounts: dict[str, AccountState] = {}
        self.last: Event | None = None
        self.time, self.clocked = 0.0, 0
        self.times: list[float] = []
        self._metric = 0

    @property
    def change(self) -> Change:
        """What the ledger is about."""
        return self.changes[-1]

    @property
    def counts_places(self) -> bool:
        """Whether memoised answers were ever released."""
        return any(change.about.get("counts") == PLACES for change in self.changes)

    def place(self, mark: str | None) -> Place | None:
        """A mark as accounts know it: places are told apart within one distinguishability only."""
        return None if mark is None else (self._metric, mark)

    def largest(self, account: str) -> float:
        """The largest distinguishability that releases so far were charged in, before the present problem."""
        before = [terms.largest for change in self.changes[:-1] for terms in change.terms if terms.name == account]
        return max((inf if each is None else each for each in before), default=0.0)

    def farthest(self, account: str, change: int | None = None) -> float | None:
        """The largest distinguishability that releases were charged in, up to a change; None: unknown, or infinite."""
        so_far = [each for each in self.changes if change is None or each.number <= change]
        known = [each.largest for change in so_far for each in change.terms if each.name == account]
        return None if None in known else max((each for each in known if each is not None), default=None)

    def charged_in(self, change: int) -> tuple[AccountTerms, ...]:
        """The accounts that releases were charged to from a change on."""
        return next(each.terms for each in self.changes if each.number == change)

    def told(self, account: str, epsilon: Decimal | float | str) -> str:
        """ε of an account, over all that the ledger was about, with its unit."""
        terms = next(each for each in self.change.terms if each.name == account)
        return terms.scale.epsilon(str(epsilon), self.any_pair(account, epsilon))

    def any_pair(self, account: str, epsilon: Decimal | float | str, change: int | None = None) -> float | None:
        """The largest log-ratio between any two secrets that an account's ε allows, up to a change; None: unknown."""
        return any_pair(epsilon, self.farthest(account, change))

    def add(self, event: Event) -> None:
        """Check the next event, and take it in."""
        if event.number != self.events + 1:
            raise InvalidFile(f"{self.name}: event {self.events + 1} is missing")
        if chained(self.chain, event) != event.chain:
            raise InvalidFile(f"{self.name}: event {event.number}, or one before it, was altered after it was written")
        try:
            getattr(self, f"_add_{event.kind}")(event)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            if isinstance(error, PrivacyGamesError):
                raise
            raise InvalidFile(f"{self.name}: event {event.number} holds values that a ledger does not") from None
        self.events, self.chain = event.number, event.chain
        self.charges += len(event.charges)

    def verified(self) -> Verified:
        """The sums, for people."""
        known = self.accounts
        return Verified(
            releases=self.releases,
            spent={name: str(account.charged) for name, account in known.items()},
            fullest={name: str(account.fullest) for name, account in known.items()},
            limits={name: None if each.limit is None else str(each.limit) for name, each in known.items()},
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
        elif [each.lasting for each in terms] != [each.lasting for each in self.change.terms]:
            raise GuaranteeViolated(f"{self.name}: event {event.number} changes the budgets")
        elif [each.subject for each in terms] != [each.subject for each in self.change.terms]:
            self._metric = event.number
        self.changes.append(Change(event.number, dict(report["about"]), terms))
        self.times = []

    def _open(self, terms: tuple[AccountTerms, ...]) -> None:
        for each in terms:
            if each.name in self.accounts:
                raise InvalidFile(f"{self.name} has two accounts of one name")
            limit = None if each.limit is None else read_amount(each.limit)
            self.accounts[each.name] = AccountState(limit, each.every)

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
        """Charge an account, and check what the ledger says and what the limit allows."""
        account, at = self.accounts[name], event.time or 0.0
        account.add(place, amount, at)
        if read_amount(stated) != account.charged:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} says {stated} and adds up to "
                f"{self.told(name, account.charged)}"
            )
        held = account.spent(at).amount
        if account.limit is not None and amount > 0 and held > account.limit:
            raise GuaranteeViolated(
                f"{self.name}: event {event.number}: the account {name!r} holds {self.told(name, held)}, above its "
                f"{account.limit}"
            )


def follow(state: LedgerBalances, events: Iterable[Event]) -> LedgerBalances:
    """Take in events, each checked."""
    for event in events:
        state.add(event)
    return state


def describe_limits(terms: Iterable[AccountTerms]) -> str:
    """Accounts and their limits, for messages."""
    return "; ".join(f"{each.name}: {'no limit' if each.limit is None else each.told(each.limit)}" for each in terms)


def any_pair(epsilon: Decimal | float | str, farthest: float | None) -> float | None:
    """The largest log-ratio between any two secrets that ε allows; None where the largest distance is not known."""
    return None if farthest is None else float(epsilon) * farthest


def running_total(account: AccountState, amount: Decimal) -> str:
    """What an account will have been charged in all."""
    return str(total([account.charged, amount]))

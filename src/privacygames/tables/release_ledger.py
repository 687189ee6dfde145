"""The ledger of a table: the total cost of its releases, and a budget that limits it. It holds no secrets.

A release of a table is one draw of the secrets of its rows. Releases of the same secrets add up, whatever the columns,
mechanisms, keys and engines. There are several accounts: the log-ratio *between any two secrets*, which is one number
for all columns, and ε by what it is counted for (``per year``, ``per km``), which only adds up within a unit. A release
is charged for the person who has most rows in it; without a user column, for one row.

The same release is charged once: same key, row identity, mechanism and columns, *and* same rows with the same secrets,
by a hash under the key. Its outputs are the same, bit by bit, so that whoever sees them again learns nothing.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import fsum, inf
from pathlib import Path
from typing import Any

from privacygames.errors import BudgetExceeded, GuaranteeViolated, InvalidFile, InvalidProblem, UnreadableFile
from privacygames.problem import ANY_PAIR
from privacygames.tables.accounting import Charge, ReleaseAccount, finite_or_text
from privacygames.tables.append_log import AppendLog, Entry, OpenLog
from privacygames.validation import is_number

FIRST_LINE = "privacygames table ledger 1"
HEADER = f"{FIRST_LINE}\n".encode()
Budget = float | Mapping[str, float] | None


@dataclass(frozen=True)
class RuleCharge:
    """The cost of one rule of a release.

    Attributes:
        release: a name that this release of these columns has under its key, and no other.
        columns: the columns of secrets, as messages name them.
        mechanism: the digest of the mechanism.
        amounts: the cost by account.
    """

    release: str
    columns: str
    mechanism: str
    amounts: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        amounts = {name: finite_or_text(amount) for name, amount in self.amounts.items()}
        return {"release": self.release, "columns": self.columns, "mechanism": self.mechanism, "amounts": amounts}


@dataclass(frozen=True)
class LedgerCharge:
    """What a release was charged to a ledger, for its manifest.

    Attributes:
        amounts: charged now, by account; empty if all of it was charged before.
        spent: charged in all, by account.
        limits: the budget, by account.
        chain: the hash of the ledger's last entry: with the manifest, one can check that it is still there.

    >>> pg.tables.LedgerCharge({"per km": 0.5}, {"per km": 1.5}, {"per km": 2.0}, chain="…").to_dict()["spent"]
    {'per km': 1.5}
    """

    amounts: Mapping[str, float]
    spent: Mapping[str, float]
    limits: Mapping[str, float]
    chain: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        amounts, spent, limits = (
            {account: finite_or_text(amount) for account, amount in by_account.items()}
            for by_account in (self.amounts, self.spent, self.limits)
        )
        return {"charged": amounts, "spent": spent, "limits": limits, "chain": self.chain}


@dataclass(frozen=True)
class LedgerState:
    """The totals of a ledger.

    Attributes:
        limits: the budget, by account.
        protects: whose cost is counted: a person's, or a row's.
        releases: number of releases of columns that were charged.
        spent: charged in all, by account.
        head: the hash of all entries. Keep it elsewhere, as manifests do: ``verify(head=...)`` then tells whether
            entries were removed from the end, or the file is an older copy.

    >>> pg.tables.ReleaseLedger(budget={"per km": 2.0}).state().limits
    {'per km': 2.0}
    """

    limits: Mapping[str, float]
    protects: str | None
    releases: int
    spent: Mapping[str, float]
    head: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        spent = {name: finite_or_text(amount) for name, amount in self.spent.items()}
        totals = {"protects": self.protects, "releases": self.releases}
        return {**totals, "spent": spent, "limits": dict(self.limits), "head": self.head}


class ReleaseLedger:
    """The total cost of the releases of a table, and the budget that limits it.

    A charge is on the disk before the release can be seen. Any number of processes may use one file. It holds no
    secrets, outputs or keys.

    Args:
        path: an existing file (:meth:`create` makes one); None keeps the ledger in memory.
        budget: the budget of a ledger in memory; a file has its own.

    >>> ledger = ReleaseLedger(budget=2.0)
    >>> ledger.state().spent
    {}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, budget: Budget = None) -> None:
        if path is None:
            self._log = AppendLog(None, b"", FIRST_LINE)
            with self._log.exclusive() as log:
                log.append({"budget": _limits(budget)})
            return
        if budget is not None:
            raise InvalidProblem("a ledger's file has its budget: ReleaseLedger.create(path, budget=…) makes a new one")
        if not is_release_ledger(path):
            raise InvalidFile(f"{path} is not a ledger of table releases: ReleaseLedger.create(path) makes one")
        self._log = AppendLog(Path(path).absolute(), HEADER, FIRST_LINE)
        self.state()

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, budget: Budget = None) -> "ReleaseLedger":
        """A new ledger in a new file that only its owner can read.

        Args:
            path: the file; an existing one is never replaced.
            budget: limits of the total cost: a number limits the log-ratio between any two secrets;
                ``{"per km": 2, "per year": 0.5}`` limits ε by what it is counted for. None: no limits.

        >>> ledger = pg.tables.ReleaseLedger.create("visits.ledger", budget={"per year": 5.0})
        >>> ledger.state().releases
        0
        """
        _require_path(path)
        AppendLog.create(Path(path), HEADER, FIRST_LINE, {"budget": _limits(budget)})
        return cls(path)

    def state(self) -> LedgerState:
        """The budget and the total cost."""
        return _state(self._log.read())

    def entries(self) -> list[Entry]:
        """Every charge in the order of time: what was released, when, and its cost."""
        return self._log.entries()[1:]

    def verify(self, head: str | None = None) -> LedgerState:
        """Recompute the hashes and sums of all entries, and check them.

        Args:
            head: the head of an earlier :meth:`verify`, or the chain in a manifest, kept elsewhere: the ledger must
                still have it. Only this tells whether entries were removed from the end.

        Raises:
            GuaranteeViolated: more was spent than the budget has.
            InvalidFile: the file is damaged, an entry was altered after it was written, or it is an older copy.
        """
        log = self._log.read()
        state = _state(log)
        for name, limit in state.limits.items():
            if state.spent.get(name, 0.0) > limit:
                raise GuaranteeViolated(
                    f"the account {name!r} holds {state.spent[name]:g}, above its limit of {limit:g}"
                )
        if head is not None and head not in log.heads:
            raise InvalidFile(
                "the ledger does not have the head that was given: entries were removed from its end, it is an older "
                "copy, or another ledger"
            )
        return state

    def charge(self, charges: Sequence[RuleCharge], protects: str, *, commit: bool = True) -> LedgerCharge:
        """Charge what was not charged before, durably; refuse all of it if the budget has no room.

        Args:
            charges: the costs of the rules of a release.
            protects: whose cost it is: a person's, or a row's.
            commit: whether to write the charge, rather than only check that there is room.
        """
        with self._log.exclusive() as log:
            before = _state(log)
            charged = [rule for entry in log.entries[1:] for rule in entry["rules"]]
            names = {rule["release"] for rule in charged}
            new = [charge for charge in charges if charge.release not in names]
            amounts = _sum_by_account(charge.amounts for charge in new)
            spent = _sum_by_account([*map(_amounts, charged), *(charge.amounts for charge in new)])
            if new:
                _require_same_subject(before.protects, protects)
                _require_limited(new, before.limits)
                _require_room(before, amounts, spent)
                if commit:
                    when = datetime.now(UTC).isoformat(timespec="seconds")
                    log.append({"time": when, "protects": protects, "rules": [charge.to_dict() for charge in new]})
            return LedgerCharge(amounts, spent, before.limits, log.chain)


def is_release_ledger(path: str | os.PathLike[str]) -> bool:
    """Whether an existing file is the ledger of a table, by its first line.

    >>> _ = pg.tables.ReleaseLedger.create("new.ledger")
    >>> pg.tables.is_release_ledger("new.ledger")
    True
    """
    _require_path(path)
    try:
        with Path(path).open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except FileNotFoundError:
        raise UnreadableFile(path, "there is no such ledger") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None


def _require_path(path: object) -> None:
    if not isinstance(path, str | os.PathLike):
        raise InvalidProblem("a ledger of table releases is a file: give its path")


def amounts_by_rule(account: ReleaseAccount) -> list[dict[str, float]]:
    """The cost of each rule of a release, by account: for the person with most rows, or for a row."""
    amounts = []
    for charge in account.charges:
        draws = account.draws(charge)
        by_account = {
            ANY_PAIR: _multiply(draws, charge.any_pair),
            _epsilon_account(charge): _multiply(draws, charge.epsilon),
        }
        amounts.append(by_account if draws else {})
    return amounts


def _epsilon_account(charge: Charge) -> str:
    """What ε is counted for. Nobody knows whether distances without a unit are alike: of each columns, their own."""
    return charge.per if charge.unit else f"{charge.per} of {charge.columns}"


def _multiply(count: int, epsilon: float) -> float:
    """The product in decimal arithmetic: six times 0.4 is 2.4."""
    return float(count * Decimal(repr(epsilon)))


def _state(log: OpenLog) -> LedgerState:
    entries = log.entries
    try:
        limits = {str(name): float(limit) for name, limit in entries[0]["budget"].items()}
        rules = [rule for entry in entries[1:] for rule in entry["rules"]]
        spent = _sum_by_account(map(_amounts, rules))
        protects = {str(entry["protects"]) for entry in entries[1:]}
        if not all(value >= 0 for value in [*limits.values(), *spent.values()]) or len(protects) > 1:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InvalidFile("the ledger holds values that a ledger does not: it was altered") from None
    return LedgerState(limits, next(iter(protects), None), len(rules), spent, log.chain)


def _amounts(rule: Entry) -> dict[str, float]:
    return {str(name): float(value) for name, value in rule["amounts"].items()}


def _sum_by_account(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums by account, each rounded once."""
    by_account: dict[str, list[float]] = {}
    for part in parts:
        for name, amount in part.items():
            by_account.setdefault(name, []).append(amount)
    return {name: inf if inf in amounts else fsum(amounts) for name, amounts in by_account.items()}


def _limits(budget: Any) -> dict[str, float]:
    limits = {} if budget is None else {ANY_PAIR: budget} if is_number(budget) else budget
    if not isinstance(limits, Mapping) or not all(
        isinstance(name, str) and name and is_number(value) and 0 < value < inf for name, value in limits.items()
    ):
        raise InvalidProblem(
            "budget must be a positive number, between any two secrets, or limits by what ε is counted for: "
            "{'per km': 2.0}"
        )
    return {name: float(value) for name, value in limits.items()}


def _require_same_subject(before: str | None, now: str) -> None:
    if before is not None and before != now:
        raise InvalidProblem(
            f"the ledger counts what {before} is charged, and this release is counted for {now}: these do not add up; "
            "name the same user column, or start another ledger"
        )


def _require_limited(charges: Sequence[RuleCharge], limits: Mapping[str, float]) -> None:
    """Refuse a rule that is charged to no account with a limit, if there is a budget."""
    for charge in charges:
        if limits and charge.amounts and not set(charge.amounts) & set(limits):
            raise InvalidProblem(
                f"the ledger limits {', '.join(limits)}, and the release of {charge.columns} is charged to "
                f"{', '.join(charge.amounts)}: nothing would limit it; start a ledger with a budget for one of these"
            )


def _require_room(before: LedgerState, amounts: Mapping[str, float], spent: Mapping[str, float]) -> None:
    for name, limit in before.limits.items():
        if spent.get(name, 0.0) > limit:
            raise BudgetExceeded(
                f"the release costs {amounts.get(name, 0.0):.6g} {name}, and {before.spent.get(name, 0.0):.6g} of "
                f"{limit:g} are spent: there is no room for it; nothing was released or charged"
            )

"""The ledger of a table: what its releases have cost together, a budget above which there are no more, and no secrets.

A release of a table is one draw of the secrets of its rows. Releases of the same secrets add up, whatever the columns,
mechanisms, keys and engines. Amounts are kept in several accounts: the exponent *between any two secrets*, which is one
number for all columns, and ε as columns count it (``per year``, ``per km``), which only adds up within a unit. A
release is charged for the person who has most rows in it; without a column that names people, for one row.

The same release is charged once: same key, identity of rows, mechanism and columns, *and* same rows with the same
secrets, by a hash under the key. Its answers are the same, bit by bit, so whoever sees them again learns nothing.
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
from privacygames.tables.accounting import Charge, ReleaseAccount
from privacygames.tables.append_log import AppendLog, Entry, OpenLog
from privacygames.validation import is_number

FIRST_LINE = "privacygames table ledger 1"
HEADER = f"{FIRST_LINE}\n".encode()
Budget = float | Mapping[str, float] | None


@dataclass(frozen=True)
class RuleCharge:
    """What one rule of a release costs.

    Attributes:
        release: a name that this very release of these columns has under its key, and no other.
        columns: the columns of secrets, as messages call them.
        mechanism: the digest of what drew the answers.
        amounts: by account.
    """

    release: str
    columns: str
    mechanism: str
    amounts: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        amounts = {name: _plain(each) for name, each in self.amounts.items()}
        return {"release": self.release, "columns": self.columns, "mechanism": self.mechanism, "amounts": amounts}


@dataclass(frozen=True)
class LedgerCharge:
    """What a release was charged to a ledger: for its manifest.

    Attributes:
        amounts: charged now, by account; nothing where all of it had been released and charged before.
        spent: in all, after it, by account.
        limits: by account.
        chain: the hash of the ledger's last entry: whoever has the manifest can tell whether it is still there.
    """

    amounts: Mapping[str, float]
    spent: Mapping[str, float]
    limits: Mapping[str, float]
    chain: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found: dict[str, Any] = {
            name: {account: _plain(each) for account, each in getattr(self, name).items()}
            for name in ("amounts", "spent", "limits")
        }
        return {"charged": found["amounts"], "spent": found["spent"], "limits": found["limits"], "chain": self.chain}


@dataclass(frozen=True)
class LedgerState:
    """What a ledger's entries add up to.

    Attributes:
        limits: the budget, by account.
        protects: what the amounts are about: a person, or a row.
        releases: how many releases of columns were charged.
        spent: by account, in all.
        head: the hash over all entries. Keep it elsewhere, as manifests do: ``verify(head=...)`` then tells whether
            entries were removed from the end, or the file is an older copy.
    """

    limits: Mapping[str, float]
    protects: str | None
    releases: int
    spent: Mapping[str, float]
    head: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        spent = {name: _plain(each) for name, each in self.spent.items()}
        counted = {"protects": self.protects, "releases": self.releases}
        return {**counted, "spent": spent, "limits": dict(self.limits), "head": self.head}


class ReleaseLedger:
    """What the releases of a table have cost, and what they may cost in all.

    A charge is on the disk before the release it is for can be seen. Any number of processes may use one file. No
    secret, answer or key is in it.

    Args:
        path: a file that is there (:meth:`create` makes one); None keeps the ledger in memory.
        budget: of a ledger in memory; a file has its own.

    >>> ledger = ReleaseLedger(budget=2.0)
    >>> ledger.state().spent
    {}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, budget: Budget = None) -> None:
        if path is None:
            self._log = AppendLog(None, b"", FIRST_LINE)
            with self._log.alone() as log:
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
            path: where; a file that is there is never replaced.
            budget: the most that all releases may cost: a number is a limit on the exponent between any two secrets;
                ``{"per km": 2, "per year": 0.5}`` limits ε as columns count it. None: count only.
        """
        _require_path(path)
        AppendLog.create(Path(path), HEADER, FIRST_LINE, {"budget": _limits(budget)})
        return cls(path)

    def state(self) -> LedgerState:
        """The budget, and what is spent of it."""
        return _state(self._log.read())

    def entries(self) -> list[Entry]:
        """Every charge, the first first: what was released, when, and for how much."""
        return self._log.entries()[1:]

    def verify(self, head: str | None = None) -> LedgerState:
        """Recompute the hashes and sums of all entries.

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
        """Charge what was not charged before, durably; refuse, and charge nothing, where the budget has no room.

        Args:
            charges: of the rules of a release.
            protects: what the amounts are about: a person, or a row.
            commit: whether to write the charge, rather than only see that there is room.
        """
        with self._log.alone() as log:
            before = _state(log)
            charged = [each for entry in log.entries[1:] for each in entry["rules"]]
            known = {each["release"] for each in charged}
            new = [each for each in charges if each.release not in known]
            amounts = _sums(each.amounts for each in new)
            spent = _sums([*map(_amounts, charged), *(each.amounts for each in new)])
            if new:
                _require_same_unit(before.protects, protects)
                _require_limited(new, before.limits)
                _require_room(before, amounts, spent)
                if commit:
                    when = datetime.now(UTC).isoformat(timespec="seconds")
                    log.append({"time": when, "protects": protects, "rules": [each.to_dict() for each in new]})
            return LedgerCharge(amounts, spent, before.limits, log.chain)


def is_release_ledger(path: str | os.PathLike[str]) -> bool:
    """Whether a file that is there starts as a table's ledger does."""
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


def amounts_of(account: ReleaseAccount) -> list[dict[str, float]]:
    """What each rule of a release costs, by account: for the person who has most rows, or for a row."""
    found = []
    for each in account.charges:
        times = account.times(each)
        amounts = {ANY_PAIR: _times(times, each.any_pair), _counted(each): _times(times, each.epsilon)}
        found.append(amounts if times else {})
    return found


def _counted(charge: Charge) -> str:
    """What ε is counted for. Nobody knows whether distances without a unit are alike: of each columns, their own."""
    return charge.per if charge.unit else f"{charge.per} of {charge.columns}"


def _times(count: int, epsilon: float) -> float:
    """So many times ε as people write it: six times 0.4 is 2.4."""
    return float(count * Decimal(repr(epsilon)))


def _state(log: OpenLog) -> LedgerState:
    entries = log.entries
    try:
        limits = {str(name): float(each) for name, each in entries[0]["budget"].items()}
        rules = [each for entry in entries[1:] for each in entry["rules"]]
        spent = _sums(map(_amounts, rules))
        protects = {str(entry["protects"]) for entry in entries[1:]}
        if not all(value >= 0 for value in [*limits.values(), *spent.values()]) or len(protects) > 1:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InvalidFile("the ledger holds values that a ledger does not: it was altered") from None
    return LedgerState(limits, next(iter(protects), None), len(rules), spent, log.chain)


def _amounts(rule: Entry) -> dict[str, float]:
    return {str(name): float(value) for name, value in rule["amounts"].items()}


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums by account, rounded once."""
    found: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, []).append(value)
    return {name: inf if inf in values else fsum(values) for name, values in found.items()}


def _limits(budget: Any) -> dict[str, float]:
    given = {} if budget is None else {ANY_PAIR: budget} if is_number(budget) else budget
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and name and is_number(value) and 0 < value < inf for name, value in given.items()
    ):
        raise InvalidProblem(
            "budget must be a positive number, between any two secrets, or limits by what ε is counted for: "
            "{'per km': 2.0}"
        )
    return {name: float(value) for name, value in given.items()}


def _require_same_unit(before: str | None, now: str) -> None:
    if before is not None and before != now:
        raise InvalidProblem(
            f"the ledger counts what {before} is charged, and this release is counted for {now}: these do not add up; "
            "name the same user column, or start another ledger"
        )


def _require_limited(charges: Sequence[RuleCharge], limits: Mapping[str, float]) -> None:
    """Where there is a budget, every rule is charged to something that it limits."""
    for each in charges:
        if limits and each.amounts and not set(each.amounts) & set(limits):
            raise InvalidProblem(
                f"the ledger limits {', '.join(limits)}, and the release of {each.columns} is charged to "
                f"{', '.join(each.amounts)}: nothing would limit it; start a ledger with a budget for one of these"
            )


def _require_room(before: LedgerState, amounts: Mapping[str, float], spent: Mapping[str, float]) -> None:
    for name, limit in before.limits.items():
        if spent.get(name, 0.0) > limit:
            raise BudgetExceeded(
                f"the release costs {amounts.get(name, 0.0):.6g} {name}, and {before.spent.get(name, 0.0):.6g} of "
                f"{limit:g} are spent: there is no room for it; nothing was released or charged"
            )


def _plain(value: float) -> float | str:
    """JSON has no number for ∞."""
    return "inf" if value == inf else value

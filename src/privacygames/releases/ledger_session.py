"""The base of sessions: each release is chosen from public information, charged, drawn, committed, and returned."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Generic, TypeVar

import numpy as np

from privacygames.beliefs import Timestamp
from privacygames.errors import BudgetExceeded, InvalidProblem
from privacygames.releases.budgets import Account, Spent, remaining
from privacygames.releases.decimal_epsilon import NOTHING, minus, read_amount
from privacygames.releases.guarantees import EarlierReleases
from privacygames.releases.ledger import (
    NO_BELIEF,
    AccountTerms,
    BaseLedger,
    Ledger,
    LedgerHead,
    LedgerScope,
    ReleaseEntry,
    ReleaseRecord,
    WhenChanged,
)
from privacygames.releases.release import NextRelease, Output, Release, output_text, release_from_record
from privacygames.releases.sampling import DrawnOutput
from privacygames.releases.timeline import ReleaseClock, ReleaseTime
from privacygames.releases.validation import WhenSpent, require_key

Secret = TypeVar("Secret")
AnyPreview = TypeVar("AnyPreview", bound=NextRelease)


class LedgerSession(ABC, Generic[Secret, Output, AnyPreview]):
    """Releases of one secret over time on a ledger, whatever the secrets are.

    A subclass says in :meth:`_preview` what public information determines, and in :meth:`_entry` what is drawn.
    """

    ledger: BaseLedger
    accounts: tuple[Account, ...]
    when_spent: WhenSpent
    _generator: np.random.Generator | None
    _outputs: Sequence[Output]
    """All outputs, by their indices."""
    _clock: ReleaseClock

    def _open(
        self,
        ledger: BaseLedger | str | os.PathLike[str] | None,
        scope: LedgerScope,
        when_changed: WhenChanged,
        format_1: LedgerScope | None = None,
    ) -> None:
        """Open the ledger, which must be about this scope, or record the change."""
        self.ledger = ledger if isinstance(ledger, BaseLedger) else Ledger(ledger)
        self._scope = scope
        self._scope_event = self.ledger.set_scope(scope, when_changed, format_1)
        pairs = zip(self.accounts, self.ledger.balances().scope_period.terms, strict=True)
        self.accounts = tuple(_as_held(each, held) for each, held in pairs)

    def preview(self, at: Timestamp | None = None) -> AnyPreview:
        """The mechanism and the charges of the next release; nothing is drawn or charged, and no secret is needed."""
        head = self._head()
        return self._preview(head, self._clock.release_time(head, at))

    @abstractmethod
    def _preview(self, head: LedgerHead, when: ReleaseTime) -> AnyPreview:
        """Choose from public information, and check every budget."""

    @abstractmethod
    def _entry(self, preview: AnyPreview, secret: Secret, key: str | None) -> ReleaseEntry:
        """Draw the output, and record everything that follows from it. Runs inside the ledger's transaction."""

    def _entry_without_belief(
        self, preview: AnyPreview, drawn: DrawnOutput, key: str | None, *, new_function: bool
    ) -> ReleaseEntry:
        """The entry of an output where no belief is maintained.

        Args:
            preview: the release.
            drawn: its output.
            key: the caller's name for it.
            new_function: whether memoised outputs come from a function that was not used before.
        """
        return ReleaseEntry(
            key=key,
            time=preview.when.time,
            clocked=preview.when.clocked,
            output_index=drawn.output_index,
            mechanism=drawn.mechanism,
            secret_mark=drawn.secret_mark,
            report=self._report(drawn, preview, self._general_remarks(preview, new_function=new_function)),
            charges=drawn.charges,
            likelihood=None,
            log_belief=NO_BELIEF,
        )

    def _release(self, secret: Secret, at: Timestamp | None, key: str | None) -> Release[Output]:
        """The stored release with this key, or a new one, charged and committed."""
        require_key(key)
        release = self._try_release(secret, at, key)
        if release is None:  # another process wrote meanwhile: choose again while nobody else can write
            with self.ledger.exclusive():
                release = self._try_release(secret, at, key)
        if release is None:
            raise AssertionError("the ledger changed under a lock")
        return release

    def _try_release(self, secret: Secret, at: Timestamp | None, key: str | None) -> Release[Output] | None:
        """The stored release with this key, or a new one; None if the ledger changed meanwhile."""
        stored = None if key is None else self.ledger.find(key)
        if stored is not None:
            self._require_same_outputs(stored)
            return self._returned(stored, already_made=True)
        head = self._head()
        preview = self._preview(head, self._clock.release_time(head, at))
        record = self.ledger.append(head, lambda: self._entry(preview, secret, key))
        return None if record is None else self._returned(record, already_made=False)

    def _returned(self, record: ReleaseRecord, *, already_made: bool) -> Release[Output]:
        return release_from_record(record, self.ledger.balances(), self._outputs, already_made=already_made)

    def _report(self, drawn: DrawnOutput, preview: AnyPreview, remarks: list[str]) -> dict[str, object]:
        """The report of a release as a ledger stores it; what a belief would add is not known."""
        return {  # the keys are part of the file format
            "answer": self._output_text(drawn.output_index),
            "source": drawn.source,
            "promised": None,
            "realised": None,
            "entropy": None,
            "pursuits": [],
            "gap": None,
            "left": self._remaining_after(preview.spent, drawn.charges),
            "own": [account.in_problem_distance for account in self.accounts],
            "remarks": remarks,
        }

    def _output_text(self, output_index: int) -> str:
        """An output as the ledger shows it to its owner."""
        return output_text(self._outputs[output_index])

    @property
    def _no_charges(self) -> tuple[Decimal, ...]:
        return (NOTHING,) * len(self.accounts)

    def _affordable(self, charges: tuple[Decimal, ...], spent: tuple[Spent, ...]) -> bool:
        left = [remaining(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        return all(each is None or charge <= each for charge, each in zip(charges, left, strict=True))

    def _remaining_after(self, spent: tuple[Spent, ...], charges: tuple[Decimal, ...]) -> list[float | None]:
        """What each account has left after these charges."""
        left = [remaining(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        return [
            None if limit is None else float(minus(limit, charge)) for limit, charge in zip(left, charges, strict=True)
        ]

    def _charged_once(self, drawn: DrawnOutput, preview: AnyPreview) -> DrawnOutput | None:
        """A memoised output, charged unless its secret was charged already; None if a budget has no room for it.

        Whether a secret was charged already follows from its returns, which memoised outputs do not protect.
        """
        charges = self.ledger.due(drawn.secret_mark, drawn.charges, preview.when.time)
        return replace(drawn, charges=charges) if self._affordable(charges, preview.spent) else None

    def _require_fallback(self, preview: AnyPreview) -> None:
        """Raise where nothing may be released without budget left."""
        if self.when_spent == "refuse" or (self.when_spent == "repeat" and preview.last_output is None):
            raise BudgetExceeded(self._spent_message(preview))

    def _spent_message(self, preview: AnyPreview) -> str:
        left = [
            f"{account.name}: {account.format_left(each)}"
            for account, each in zip(self.accounts, preview.spent, strict=True)
            if account.limit is not None
        ]
        return f"the budget has no room for another release ({'; '.join(left)}); nothing was released or charged"

    def _head(self) -> LedgerHead:
        """The head of the ledger, provided that it is still about this problem."""
        head = self.ledger.head()
        if head.scope_event != self._scope_event:
            raise InvalidProblem(
                f"{self.ledger.name} was switched to a different problem after this session began; "
                "create a new session with the current settings"
            )
        return head

    def _statements_with_delta(self) -> tuple[str, ...]:
        return tuple(each.statement for each in self.accounts if each.statement is not None)

    def _earlier_releases(self) -> EarlierReleases:
        balances = self.ledger.balances()
        memoised = [period.about.get("counts") == "places" for period in balances.scope_periods]
        max_distance = balances.max_distance_before(self.accounts[0].name)
        return EarlierReleases(memoised_before=any(memoised[:-1]), memoised_now=memoised[-1], max_distance=max_distance)

    def _require_same_outputs(self, stored: ReleaseRecord) -> None:
        """Refuse to interpret an output from before a change as if it came from the present set of outputs."""
        periods = self.ledger.balances().scope_periods
        about = next(period.about for period in periods if period.scope_event == stored.scope_event)
        if about.get("observables") != self._scope.about["observables"]:
            raise InvalidProblem(
                "this key belongs to a release made before the problem changed, with a different set of outputs: "
                "choose another key; `privacygames ledger show` has the output"
            )

    def _general_remarks(self, preview: AnyPreview, *, new_function: bool) -> list[str]:
        """What the user should know of any release.

        Args:
            preview: the release.
            new_function: whether memoised outputs come from a function that was not used before.
        """
        remarks = []
        if preview.when.clock_behind:
            remarks.append(f"the clock went back by {preview.when.clock_behind:g} s; taken as standing still")
        if new_function and preview.number > 1:
            remarks.append("another key or mechanism than before: every secret gets a new output, charged anew")
        if self._generator is not None:
            remarks.append("drawn with a generator passed by the caller: reproducible, so not private")
        return remarks


def _as_held(account: Account, held: AccountTerms) -> Account:
    """An account as the ledger has it: named as by an older version, and with the order that the ledger chose."""
    limit = None if held.limit is None else read_amount(held.limit)
    return replace(account, name=held.name, limit=limit, approximate=held.approximate)

"""Releases of a cell or label from one certified mechanism, without a belief: charged, drawn, and committed."""

import os
from typing import Literal

from privacygames.beliefs import Timestamp
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.releases.budgets import Budgets, FiniteAccount, MechanismCharges, accounts_for
from privacygames.releases.guarantees import Guarantees, trace_guarantees
from privacygames.releases.ledger import BaseLedger, LedgerHead, ReleaseEntry, WhenChanged, fixed_scope
from privacygames.releases.ledger_session import LedgerSession
from privacygames.releases.policies import Choice, Memoised
from privacygames.releases.release import FixedPreview, Release
from privacygames.releases.sampling import DrawnOutput, MemoisedFunction, draw_output, memoised_output
from privacygames.releases.timeline import CLOCK_TOLERANCE, ReleaseClock, ReleaseTime
from privacygames.releases.validation import require_clock_tolerance
from privacygames.spaces import Label
from privacygames.validation import require_choice, require_instance


class FixedReleases(LedgerSession[int, Label, FixedPreview]):
    """Releases of a cell or label over time from one certified mechanism, without a belief.

    What :class:`PointReleases` is for points: no prior and no movement is part of the account, so that a person's
    prior, and with it their mechanism, may change while their ledger goes on. All releases together guarantee ε per
    unit of the distinguishability, summed, for any correlation and any adversary; how much an adversary with a model of
    movement learns is not reported (:class:`Releases` does).

    Args:
        mechanism: the mechanism that every output is drawn from.
        memoised: draws one output for each secret and repeats it: :class:`Memoised`.
        budget: as in :class:`Releases`.
        when_spent: without budget left, ``"refuse"`` (an error) or ``"repeat"`` the last output.
        ledger: as in :class:`Releases`.
        when_changed: as in :class:`Releases`; another mechanism for the same secrets and outputs is no change.
        clock_tolerance: as in :class:`Releases`.

    >>> mechanism = pg.design(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40]))), epsilon=0.5)
    >>> releases = pg.FixedReleases(mechanism, budget=1.0)
    >>> releases.release(30).spent, releases.release(20).spent
    (0.5, 1.0)
    >>> releases.release(30)
    Traceback (most recent call last):
        ...
    privacygames.errors.BudgetExceeded: the budget has no room for another release ...
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        memoised: Memoised | None = None,
        budget: Budgets = None,
        when_spent: Literal["refuse", "repeat"] = "refuse",
        ledger: BaseLedger | str | os.PathLike[str] | None = None,
        when_changed: WhenChanged = "refuse",
        clock_tolerance: float | None = CLOCK_TOLERANCE,
    ) -> None:
        require_instance(mechanism, Mechanism, "the mechanism")
        require_choice(when_spent, ("refuse", "repeat"), "when_spent")
        require_choice(when_changed, ("refuse", "record", "same-unit"), "when_changed")
        require_clock_tolerance(clock_tolerance)
        if memoised is not None and memoised.place is not None:
            raise InvalidProblem("a place has a size where secrets are points; leave it out")
        self.mechanism, self.when_spent, self._generator = mechanism, when_spent, None
        self._function = None if memoised is None else MemoisedFunction(mechanism, memoised.memo_key)
        planned = accounts_for(mechanism.problem, budget, mechanism)
        self.accounts = planned
        self._clock = ReleaseClock(
            windows=any(account.every is not None for account in planned), clock_tolerance=clock_tolerance
        )
        self._outputs = mechanism.observables.labels
        charging = "releases" if memoised is None else memoised.charging
        scope = fixed_scope(mechanism.secrets, mechanism.observables, charging, planned)
        self._open(ledger, scope, when_changed)
        opened = tuple(each for each in self.accounts if isinstance(each, FiniteAccount))  # with the ledger's orders
        self._charges = MechanismCharges(mechanism.problem, opened)

    def release(self, secret: Label, at: Timestamp | None = None, key: str | None = None) -> Release[Label]:
        """Draw one output for the present secret; it is charged and committed before it is returned.

        Args:
            secret: the true value at this moment.
            at: the time: unix seconds, or a datetime with a time zone. If left out, releases are counted.
            key: as in :meth:`Releases.release`.

        Raises:
            BudgetExceeded: if ``when_spent`` is ``"refuse"``, or there is no output to repeat yet.
        """
        return self._release(self.mechanism.secrets.index(secret), at, key)

    def guarantees(self) -> Guarantees:
        """What is guaranteed about all releases so far, for any correlation and any adversary."""
        head, first = self._head(), self.accounts[0]
        spent = self.ledger.spent((first,), head.time)[0].amount
        return trace_guarantees(first.scale, first.max_distance, spent, self._earlier_releases(), still=False)

    def _preview(self, head: LedgerHead, when: ReleaseTime) -> FixedPreview:
        spent = self.ledger.spent(self.accounts, when.time)
        mechanism: Mechanism | None = self.mechanism
        charges = self._charges.of(self.mechanism, None)
        if self._function is None and not self._affordable(charges, spent):
            mechanism, charges = None, self._no_charges
        return FixedPreview(
            number=head.release_count + 1,
            when=when,
            charges=charges,
            spent=spent,
            last_output=head.output_index if head.releases_in_scope else None,
            used_before=self._function is not None and self.ledger.has_used(self._function.name),
            mechanism=mechanism,
        )

    def _entry(self, preview: FixedPreview, secret: int, key: str | None) -> ReleaseEntry:
        new_function = self._function is not None and not preview.used_before
        return self._entry_without_belief(preview, self._output(preview, secret), key, new_function=new_function)

    def _output(self, preview: FixedPreview, secret: int) -> DrawnOutput:
        if self._function is not None:
            drawn = self._charged_once(memoised_output(self._function, secret, preview.charges), preview)
            if drawn is not None:
                return drawn
        elif preview.mechanism is not None:
            return draw_output(Choice(preview.mechanism, None), secret, preview.charges, None, None)
        self._require_fallback(preview)
        return DrawnOutput(preview.last_output or 0, "repeated", None, None, self._no_charges)

    def __repr__(self) -> str:
        return f"FixedReleases({len(self.mechanism.secrets)} secrets, {self.ledger!r})"

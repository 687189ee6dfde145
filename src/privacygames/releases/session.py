"""Releases of one secret over time: each is chosen from public information, charged, drawn, committed, and returned."""

import os
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Mobility, Prior, Timestamp, entropy
from privacygames.errors import BudgetExceeded, InvalidFile, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import DistortionGuarantee, Problem, max_distortion
from privacygames.releases.budgets import Budget, MechanismCharges, Spent, accounts_for, remaining
from privacygames.releases.decimal_epsilon import NOTHING, minus, total
from privacygames.releases.design_cache import PRESENT_SECRET, DesignCache, DesignSettings, WhenImpossible, best_error
from privacygames.releases.guarantees import EarlierReleases, Guarantees, guarantees_after
from privacygames.releases.inference_targets import InferenceTarget, TargetInference
from privacygames.releases.ledger import (
    Ledger,
    LedgerHead,
    ReleaseEntry,
    ReleaseRecord,
    WhenChanged,
    format_1_scope,
    ledger_scope,
)
from privacygames.releases.policies import Choice, Policy, PublicState, best_blind_output
from privacygames.releases.release import Preview, Release, release_from_record
from privacygames.releases.sampling import DrawnOutput, MemoisedFunction, draw_output, memoised_output
from privacygames.releases.timeline import CLOCK_TOLERANCE, ReleaseTime, Timeline
from privacygames.releases.validation import (
    WhenSpent,
    check_settings,
    checked_policy,
    checked_targets,
    require_guaranteed,
    require_key,
)
from privacygames.solvers import SolveOptions, Solver
from privacygames.spaces import Label, display_label
from privacygames.tracking import Observations, best_guess, normalise

IMPOSSIBLE = "this output is impossible under the belief: prior or mobility is wrong, and the belief was left as it was"


class Releases:
    """Releases of one secret over time, with everything they reveal accounted for.

    Each release is chosen from public information only: the previous outputs, the clock and the settings given here.
    What all releases together guarantee is proved in docs/theory/sharing.md; :meth:`guarantees` gives the numbers.

    Args:
        problem: secrets, costs and distances; its prior is the belief before the first release.
        mobility: how the secret changes over time; ``Mobility.still(space)`` if it does not.
        epsilon: of every release. Alternatively ``policy`` or ``mechanism`` determines it.
        distortion: guaranteed against the belief at each release. If the belief no longer allows it, the largest
            possible one is guaranteed instead, and the result says so, unless ``when_impossible`` is ``"refuse"``.
        adversaries: inference targets other than the present secret, such as an earlier one or an attribute
            (:class:`InferenceTarget`), with a guaranteed distortion or reported only.
        mechanism: one certified mechanism for all releases instead of a design for each, which is faster.
        policy: :class:`EvenSpread`, :class:`Predictive` or :class:`Memoised`, instead of the same epsilon every time.
        budget: the largest epsilon in all; or a :class:`Budget`, or several.
        when_spent: without budget left, ``"refuse"`` (an error), ``"repeat"`` the last output, or release the output
            that is best under the ``"belief"`` alone.
        when_impossible: ``"largest"`` or ``"refuse"``.
        ledger: a :class:`Ledger` or its path. None keeps it in memory until the process ends.
        when_changed: if the ledger is about another prior, mobility or problem: ``"refuse"``; ``"record"`` the change
            and go on, keeping everything charged so far; or ``"same-unit"``, which also states that another
            distinguishability has the same unit as before.
        clock_tolerance: seconds that ``at`` may be ahead of this machine's clock; None: any number, for simulations.
        reuse: reuse a design if its belief is within this total variation distance; 0 requires the same belief.
        solver: as in :func:`privacygames.design`.
        time_limit: seconds for each design; the remaining gap is in the result.
        tolerance: as in :func:`privacygames.design`.
        generator: for experiments: outputs are then reproducible, and not private.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> problem = pg.Problem(pg.Prior(city, [0.5, 0.3, 0.2]), cost="euclidean")
    >>> walk = pg.Mobility(city, np.tile([0.5, 0.3, 0.2], (3, 1)))
    >>> releases = pg.Releases(problem, walk, epsilon=0.5, budget=1.0)
    >>> first, second = releases.release("cell-0"), releases.release("cell-2")
    >>> first.epsilon, second.spent, second.left
    (0.5, 1.0, 0.0)
    >>> releases.release("cell-0")
    Traceback (most recent call last):
        ...
    privacygames.errors.BudgetExceeded: the budget has no room for another release ...
    """

    def __init__(
        self,
        problem: Problem,
        mobility: Mobility,
        *,
        epsilon: float | None = None,
        distortion: float | None = None,
        adversaries: Sequence[InferenceTarget] = (),
        mechanism: Mechanism | None = None,
        policy: Policy | None = None,
        budget: float | Budget | Sequence[Budget] | None = None,
        when_spent: WhenSpent = "refuse",
        when_impossible: WhenImpossible = "largest",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        when_changed: WhenChanged = "refuse",
        clock_tolerance: float | None = CLOCK_TOLERANCE,
        reuse: float = 0.0,
        solver: Literal["auto"] | Solver = "auto",
        time_limit: float | None = None,
        tolerance: float = 1e-6,
        generator: np.random.Generator | None = None,
    ) -> None:
        check_settings(
            problem,
            mobility,
            when_spent=when_spent,
            when_impossible=when_impossible,
            when_changed=when_changed,
            reuse=reuse,
            distortion=distortion,
            clock_tolerance=clock_tolerance,
        )
        self.problem, self.mobility, self.when_spent = problem, mobility, when_spent
        self.policy = checked_policy(problem, epsilon, mechanism, policy)
        targets = checked_targets(adversaries)
        require_guaranteed(self.policy, mechanism, [distortion, *(target.distortion for target in targets)])
        self._guarantees = () if distortion is None else (DistortionGuarantee(PRESENT_SECRET, float(distortion)),)
        self._fixed_mechanism, self._generator = mechanism, generator
        options = SolveOptions(tolerance=tolerance, time_limit=time_limit)
        self._designs = DesignCache(DesignSettings(when_impossible, float(reuse), solver, options))
        self.accounts = accounts_for(problem, budget)
        self._charges = MechanismCharges(problem, self.accounts)
        windows = any(account.every is not None for account in self.accounts)
        self._timeline = Timeline(problem.prior, mobility, windows=windows, clock_tolerance=clock_tolerance)
        self._targets = TargetInference(problem, mobility, self._timeline, targets)
        self._belief_is_known = self.policy.charging == "releases" or mobility.is_still
        if targets and not self._belief_is_known:
            raise InvalidProblem("memoised outputs about a secret that changes: adversaries' errors are not known")
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        arguments = problem, mobility, self.policy.charging, self.accounts
        self._scope = ledger_scope(*arguments)
        self._scope_event = self.ledger.set_scope(self._scope, when_changed, format_1_scope(*arguments))
        pairs = zip(self.accounts, self.ledger.balances().scope_period.terms, strict=True)
        self.accounts = tuple(replace(each, name=held.name) for each, held in pairs)  # as an older version named them

    @property
    def belief(self) -> Prior:
        """The belief after the last release, at its time; before the first release, the problem's prior."""
        self._require_belief()
        head = self._head()
        return Prior(self.problem.space, normalise(head.log_belief)) if head.releases_in_scope else self.problem.prior

    def release(self, secret: Label | set[str], at: Timestamp | None = None, key: str | None = None) -> Release:
        """Draw one output for the present secret; it is charged and committed before it is returned.

        Args:
            secret: the true value at this moment.
            at: the time: unix seconds, or a datetime with a time zone. If left out, one time step passes
                between releases. The first release is always against the prior itself.
            key: the caller's name for this release, chosen without looking at the secret: a second call with the same
                key returns the stored output and charges nothing.

        Raises:
            BudgetExceeded: if ``when_spent`` is ``"refuse"``, or there is no output to repeat yet.
            Infeasible: if the belief allows no such distortion, and ``when_impossible`` is ``"refuse"``.
        """
        secret_index = self.problem.space.index(secret)
        require_key(key)
        release = self._try_release(secret_index, at, key)
        if release is None:  # another process wrote meanwhile: choose again while nobody else can write
            with self.ledger.exclusive():
                release = self._try_release(secret_index, at, key)
        if release is None:
            raise AssertionError("the ledger changed under a lock")
        return release

    def preview(self, at: Timestamp | None = None) -> Preview:
        """The mechanism and the charges of the next release; nothing is drawn or charged, and no secret is needed."""
        head = self._head()
        return self._preview(head, self._timeline.release_time(head, at))

    def observations(self) -> Observations:
        """All outputs about this problem so far, as the tracking attacks take them."""
        self._require_belief()
        self._head()
        times, clocked, likelihoods = self.ledger.likelihoods()
        if not times:
            raise InvalidProblem("nothing was released yet")
        if any(row is None or len(row) != len(self.problem.space) for row in likelihoods):
            raise InvalidFile(f"{self.ledger.name} holds likelihoods of another size: it was altered")
        slots = [self._timeline.slot(time, clocked=by_clock) for time, by_clock in zip(times, clocked, strict=True)]
        return Observations(np.array(likelihoods), np.array(slots))

    def guarantees(self) -> Guarantees:
        """Everything that is guaranteed about all releases so far (docs/theory/sharing.md)."""
        head = self._head()
        observations = self.observations() if head.releases_in_scope and self._belief_is_known else None
        spent = self.ledger.spent(self.accounts[:1], head.time)[0]
        return guarantees_after(self.problem, self.mobility, observations, spent.amount, self._earlier_releases())

    def _try_release(self, secret_index: int, at: Timestamp | None, key: str | None) -> Release | None:
        """The stored release with this key, or a new one; None if the ledger changed meanwhile."""
        stored = None if key is None else self.ledger.find(key)
        if stored is not None:
            self._require_same_outputs(stored)
            return self._returned(stored, already_made=True)
        head = self._head()
        preview = self._preview(head, self._timeline.release_time(head, at))
        record = self.ledger.append(head, lambda: self._entry(preview, secret_index, key))
        return None if record is None else self._returned(record, already_made=False)

    def _returned(self, record: ReleaseRecord, *, already_made: bool) -> Release:
        balances = self.ledger.balances()
        return release_from_record(record, balances, self.problem.observables, already_made=already_made)

    def _preview(self, head: LedgerHead, when: ReleaseTime) -> Preview:
        """Compute the belief and the balances, choose from public information, and check every budget."""
        log_belief = self._timeline.log_belief(head, when)
        current_problem = self.problem.with_prior(Prior(self.problem.space, normalise(log_belief)))
        spent = self.ledger.spent(self.accounts, when.time)
        last = head.output_index if head.releases_in_scope else None
        targets = self._targets.guarantees(self.ledger, when)
        state = PublicState(
            problem=current_problem,
            last_output=last,
            accounts=self.accounts,
            spent=spent,
            mechanism_for=lambda epsilon: self._mechanism(current_problem, epsilon, (*self._guarantees, *targets)),
            initial_mechanism_for=lambda epsilon: self._mechanism(self.problem, epsilon, ()),
        )
        choice = self.policy.choose(state)
        charges = self._no_charges if choice is None else self._largest_charges(choice)
        if choice is not None and choice.memo_key is None and not self._affordable(charges, spent):
            choice, charges = None, self._no_charges
        used_before = choice is not None and self._used_before(choice)
        channel = np.ones((len(current_problem.space), 1)) if choice is None or used_before else choice.channel
        return Preview(
            number=head.release_count + 1,
            when=when,
            problem=current_problem,
            choice=choice,
            charges=charges,
            expected_error=best_error(channel, current_problem) if self._belief_is_known else None,
            targets=targets,
            target_errors=tuple(best_error(channel, current_problem, target.adversary.errors) for target in targets),
            log_belief=log_belief,
            spent=spent,
            last_output=last,
            used_before=used_before,
        )

    @property
    def _no_charges(self) -> tuple[Decimal, ...]:
        return (NOTHING,) * len(self.accounts)

    def _largest_charges(self, choice: Choice) -> tuple[Decimal, ...]:
        charges = self._charges.of(choice.mechanism, choice.epsilon)
        if choice.test is None:
            return charges
        test_charges = self._charges.of(choice.test, choice.test_epsilon)
        return tuple(total(pair) for pair in zip(charges, test_charges, strict=True))

    def _affordable(self, charges: tuple[Decimal, ...], spent: tuple[Spent, ...]) -> bool:
        left = [remaining(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        return all(each is None or charge <= each for charge, each in zip(charges, left, strict=True))

    def _entry(self, preview: Preview, secret_index: int, key: str | None) -> ReleaseEntry:
        """Draw the output, and record everything that follows from it. Runs inside the ledger's transaction."""
        drawn, before = self._output(preview, secret_index), preview.log_belief
        likelihood = drawn.likelihood
        impossible = likelihood is not None and not (before + likelihood).max() > -np.inf
        if impossible:  # an error would depend on the secret, so the belief stays as it was
            likelihood = np.zeros_like(before)
        after = before if likelihood is None else before + likelihood
        belief = normalise(after)
        known = self._belief_is_known
        report: dict[str, object] = {  # the keys are part of the file format
            "answer": display_label(self.problem.observables.labels[drawn.output_index]),
            "source": drawn.source,
            "promised": preview.expected_error,
            "realised": best_guess(belief, self.problem.distance)[1] if known else None,
            "entropy": entropy(belief) if known else None,
            "pursuits": [
                {"name": target.adversary.name, "promised": error, "realised": best_guess(belief, _errors(target))[1]}
                for target, error in zip(preview.targets, preview.target_errors, strict=True)
            ],
            "gap": preview.gap,
            "left": self._remaining_after(preview.spent, drawn.charges),
            "own": [account.in_problem_distance for account in self.accounts],
            "remarks": [*self._remarks(preview), *([IMPOSSIBLE] if impossible else [])],
        }
        return ReleaseEntry(
            key=key,
            time=preview.when.time,
            clocked=preview.when.clocked,
            output_index=drawn.output_index,
            mechanism=drawn.mechanism,
            secret_mark=drawn.secret_mark,
            report=report,
            charges=drawn.charges,
            likelihood=likelihood,
            log_belief=after - after.max(),
        )

    def _remaining_after(self, spent: tuple[Spent, ...], charges: tuple[Decimal, ...]) -> list[float | None]:
        """What each account has left after these charges."""
        left = [remaining(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        return [
            None if limit is None else float(minus(limit, charge)) for limit, charge in zip(left, charges, strict=True)
        ]

    def _output(self, preview: Preview, secret_index: int) -> DrawnOutput:
        choice = preview.choice
        if choice is not None and choice.memo_key is None:
            test_charges = None if choice.test is None else self._charges.of(choice.test, choice.test_epsilon)
            charges = self._charges.of(choice.mechanism, choice.epsilon)
            return draw_output(choice, secret_index, charges, test_charges, self._generator)
        if choice is not None and choice.memo_key is not None:
            memoised = self._memoised_output(choice.mechanism, choice.memo_key, preview, secret_index)
            if memoised is not None:
                return memoised
        if self.when_spent == "refuse" or (self.when_spent == "repeat" and preview.last_output is None):
            raise BudgetExceeded(self._spent_message(preview))
        uninformative = np.zeros(len(self.problem.space))
        if self.when_spent == "repeat" and preview.last_output is not None:
            return DrawnOutput(preview.last_output, "repeated", None, uninformative, self._no_charges)
        return DrawnOutput(best_blind_output(preview.problem), "belief", None, uninformative, self._no_charges)

    def _memoised_output(
        self, mechanism: Mechanism, key: bytes, preview: Preview, secret_index: int
    ) -> DrawnOutput | None:
        """The memoised output, charged unless its secret was charged already; None if a budget has no room for it.

        Whether a secret was charged already follows from its returns, which memoised outputs do not protect.
        """
        drawn = memoised_output(MemoisedFunction(mechanism, key), secret_index, preview.charges)
        charges = self.ledger.due(drawn.secret_mark, drawn.charges, preview.when.time)
        if not self._affordable(charges, preview.spent):
            return None
        likelihood = drawn.likelihood if self.mobility.is_still else None
        if self.mobility.is_still and charges[0] < drawn.charges[0]:  # released before: it carries no information
            likelihood = np.zeros(len(self.problem.space))
        return replace(drawn, likelihood=likelihood, charges=charges)

    def _spent_message(self, preview: Preview) -> str:
        left = [
            f"{account.name}: {remaining(account, each)} of {account.format_epsilon(account.limit)} left"
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

    def _remarks(self, preview: Preview) -> list[str]:
        remarks = []
        if preview.when.clock_behind:
            remarks.append(f"the clock went back by {preview.when.clock_behind:g} s; taken as standing still")
        choice = preview.choice
        if choice is not None and choice.memo_key is not None and preview.number > 1 and not preview.used_before:
            remarks.append("another key or mechanism than before: every secret gets a new output, charged anew")
        for guarantee in (*self._guarantees, *preview.targets) if choice is not None else ():
            largest = max_distortion(preview.problem, guarantee.adversary)
            if guarantee.distortion is not None and guarantee.distortion > largest:
                remarks.append(
                    f"the belief allows no such distortion against {guarantee.adversary.name!r}: {largest:.6g} is "
                    f"guaranteed instead of {guarantee.distortion:g}"
                )
        if self._generator is not None:
            remarks.append("drawn with a generator passed by the caller: reproducible, so not private")
        return remarks

    def _mechanism(
        self, problem: Problem, epsilon: Decimal | None, guarantees: tuple[DistortionGuarantee, ...]
    ) -> Mechanism:
        if self._fixed_mechanism is not None:
            return self._fixed_mechanism
        return self._designs.mechanism(problem, epsilon, [each for each in guarantees if each.distortion is not None])

    def _used_before(self, choice: Choice) -> bool:
        """Whether memoised outputs of the same function were released before."""
        if choice.memo_key is None:
            return False
        return self.ledger.has_used(MemoisedFunction(choice.mechanism, choice.memo_key).name)

    def _require_belief(self) -> None:
        if not self._belief_is_known:
            raise InvalidProblem(
                "the belief after memoised outputs of a changing secret is not known, and not reported"
            )

    def __repr__(self) -> str:
        return f"Releases({len(self.problem.space)} secrets, {type(self.policy).__name__}, {self.ledger!r})"


def _errors(target: DistortionGuarantee) -> FloatArray:
    """The errors of an inference target, which always has some."""
    return np.asarray(target.adversary.errors)

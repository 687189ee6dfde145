"""Releases of one secret over time: each is chosen from public information, charged, drawn, committed, and returned."""

import os
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Mobility, Prior, Timestamp, entropy
from privacygames.errors import Field, InvalidFile, InvalidProblem
from privacygames.mechanism import Mechanism, require_fit
from privacygames.problem import DistortionGuarantee, Problem, max_distortion
from privacygames.releases.budgets import Budgets, FiniteAccount, MechanismCharges, accounts_for
from privacygames.releases.decimal_epsilon import total
from privacygames.releases.design_cache import PRESENT_SECRET, DesignCache, DesignSettings, WhenImpossible, best_error
from privacygames.releases.guarantees import Guarantees, guarantees_after
from privacygames.releases.inference_targets import InferenceTarget, TargetInference
from privacygames.releases.ledger import (
    BaseLedger,
    LedgerHead,
    ReleaseEntry,
    WhenChanged,
    format_1_scope,
    ledger_scope,
)
from privacygames.releases.ledger_session import LedgerSession
from privacygames.releases.policies import Choice, Memoised, Policy, PublicState, best_blind_output
from privacygames.releases.release import Preview, Release
from privacygames.releases.sampling import DrawnOutput, MemoisedFunction, draw_output, memoised_output
from privacygames.releases.timeline import CLOCK_TOLERANCE, ReleaseTime, Timeline
from privacygames.releases.validation import (
    WhenSpent,
    check_settings,
    checked_policy,
    checked_targets,
    require_guaranteed,
)
from privacygames.solvers import SolveOptions, Solver
from privacygames.spaces import Label
from privacygames.tracking import Observations, best_guess, normalise

IMPOSSIBLE = "this output is impossible under the belief: prior or mobility is wrong, and the belief was left as it was"


class Releases(LedgerSession[int, Label, Preview]):
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
        budget: Budgets = None,
        when_spent: WhenSpent = "refuse",
        when_impossible: WhenImpossible = "largest",
        ledger: BaseLedger | str | os.PathLike[str] | None = None,
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
        if mechanism is not None:
            require_fit(mechanism, problem)
        self.policy = checked_policy(epsilon, policy, fixed_mechanism=mechanism is not None)
        if isinstance(self.policy, Memoised) and self.policy.place is not None:
            raise InvalidProblem(Field("place"), " says how large a place is where secrets are points; leave it out")
        targets = checked_targets(adversaries)
        require_guaranteed(self.policy, mechanism, [distortion, *(target.distortion for target in targets)])
        self._guarantees = () if distortion is None else (DistortionGuarantee(PRESENT_SECRET, float(distortion)),)
        self._fixed_mechanism, self._generator = mechanism, generator
        options = SolveOptions(tolerance=tolerance, time_limit=time_limit)
        self._designs = DesignCache(DesignSettings(when_impossible, float(reuse), solver, options))
        accounts = accounts_for(problem, budget, self.policy.epsilon if mechanism is None else mechanism)
        self.accounts = accounts
        windows = any(account.every is not None for account in accounts)
        self._outputs = problem.observables.labels
        self._clock = self._timeline = Timeline(
            problem.prior, mobility, windows=windows, clock_tolerance=clock_tolerance
        )
        self._targets = TargetInference(problem, mobility, self._timeline, targets)
        self._belief_is_known = self.policy.charging == "releases" or mobility.is_still
        if targets and not self._belief_is_known:
            raise InvalidProblem("memoised outputs about a secret that changes: adversaries' errors are not known")
        arguments = problem, mobility, self.policy.charging, accounts
        self._open(ledger, ledger_scope(*arguments), when_changed, format_1_scope(*arguments))
        opened = tuple(each for each in self.accounts if isinstance(each, FiniteAccount))  # with the ledger's orders
        self._charges = MechanismCharges(problem, opened)

    @property
    def belief(self) -> Prior:
        """The belief after the last release, at its time; before the first release, the problem's prior."""
        self._require_belief()
        head = self._head()
        return Prior(self.problem.space, normalise(head.log_belief)) if head.releases_in_scope else self.problem.prior

    def release(self, secret: Label | set[str], at: Timestamp | None = None, key: str | None = None) -> Release[Label]:
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
        return self._release(self.problem.space.index(secret), at, key)

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
        earlier = self._earlier_releases()
        statement = guarantees_after(self.problem, self.mobility, observations, spent.amount, earlier)
        return replace(statement, with_delta=self._statements_with_delta())

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

    def _largest_charges(self, choice: Choice) -> tuple[Decimal, ...]:
        charges = self._charges.of(choice.mechanism, choice.epsilon)
        if choice.test is None:
            return charges
        test_charges = self._charges.of(choice.test, choice.test_epsilon)
        return tuple(total(pair) for pair in zip(charges, test_charges, strict=True))

    def _entry(self, preview: Preview, secret: int, key: str | None) -> ReleaseEntry:
        drawn, before = self._output(preview, secret), preview.log_belief
        likelihood = drawn.likelihood
        impossible = likelihood is not None and not (before + likelihood).max() > -np.inf
        if impossible:  # an error would depend on the secret, so the belief stays as it was
            likelihood = np.zeros_like(before)
        after = before if likelihood is None else before + likelihood
        belief = normalise(after)
        known = self._belief_is_known
        report = self._report(drawn, preview, [*self._remarks(preview), *([IMPOSSIBLE] if impossible else [])])
        report |= {
            "promised": preview.expected_error,
            "realised": best_guess(belief, self.problem.distance)[1] if known else None,
            "entropy": entropy(belief) if known else None,
            "pursuits": [
                {"name": target.adversary.name, "promised": error, "realised": best_guess(belief, _errors(target))[1]}
                for target, error in zip(preview.targets, preview.target_errors, strict=True)
            ],
            "gap": preview.gap,
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
        self._require_fallback(preview)
        uninformative = np.zeros(len(self.problem.space))
        if self.when_spent == "repeat" and preview.last_output is not None:
            return DrawnOutput(preview.last_output, "repeated", None, uninformative, self._no_charges)
        return DrawnOutput(best_blind_output(preview.problem), "belief", None, uninformative, self._no_charges)

    def _memoised_output(
        self, mechanism: Mechanism, key: bytes, preview: Preview, secret_index: int
    ) -> DrawnOutput | None:
        """The memoised output, charged unless its secret was charged already; None if a budget has no room for it."""
        first = memoised_output(MemoisedFunction(mechanism, key), secret_index, preview.charges)
        drawn = self._charged_once(first, preview)
        if drawn is None or not self.mobility.is_still:
            return None if drawn is None else replace(drawn, likelihood=None)
        if drawn.charges[0] < first.charges[0]:  # released before: it carries no information
            return replace(drawn, likelihood=np.zeros(len(self.problem.space)))
        return drawn

    def _remarks(self, preview: Preview) -> list[str]:
        choice = preview.choice
        new_function = choice is not None and choice.memo_key is not None and not preview.used_before
        remarks = self._general_remarks(preview, new_function=new_function)
        for guarantee in (*self._guarantees, *preview.targets) if choice is not None else ():
            largest = max_distortion(preview.problem, guarantee.adversary)
            if guarantee.distortion is not None and guarantee.distortion > largest:
                remarks.append(
                    f"the belief allows no such distortion against {guarantee.adversary.name!r}: {largest:.6g} is "
                    f"guaranteed instead of {guarantee.distortion:g}"
                )
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

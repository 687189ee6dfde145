"""Releases: sharing a secret again and again, each time against what is believed by then, within a budget."""

import os
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal, get_args

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Mobility, Moment, Prior, entropy
from privacygames.errors import BudgetExceeded, Field, InvalidFile, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import DistortionGuarantee, Problem, max_distortion
from privacygames.releases.budgets import Budget, Charges, Spent, accounts_for, left_in
from privacygames.releases.decimal_epsilon import NOTHING, minus, total
from privacygames.releases.designs import NOW, DesignSettings, MechanismDesigner, WhenImpossible, best_error
from privacygames.releases.entries import Entry, Head, Record
from privacygames.releases.guarantees import Earlier, Guarantees, guarantees_of
from privacygames.releases.inference_targets import InferenceTarget, TargetInference
from privacygames.releases.initial_problem import first_case
from privacygames.releases.ledger_store import Ledger
from privacygames.releases.ledger_terms import WhenChanged
from privacygames.releases.policies import Choice, Policy, PublicState, blind_answer
from privacygames.releases.previews import Preview
from privacygames.releases.release import Release, released
from privacygames.releases.sampling import Drawn, MemoisedFunction, drawn, memoised
from privacygames.releases.timeline import CLOCK_TOLERANCE, Timeline, When
from privacygames.releases.validation import about, policy_from, pursuits_from, require_key, require_promises
from privacygames.solvers import SolveOptions, Solver
from privacygames.spaces import Label, display_label
from privacygames.tracking import Observations, best_guess, normalised
from privacygames.validation import is_number, require_choice, require_instance

WhenSpent = Literal["refuse", "repeat", "belief"]
SURPRISE = "this answer is impossible under the belief: prior or mobility is wrong, and the belief was left as it was"


class Releases:
    """A secret shared over time, with what that reveals accounted for.

    Every release is chosen from what is public: past answers, the clock, and the settings here. What may be claimed of
    all of them together is in docs/theory/sharing.md, and :meth:`claims` says it in numbers.

    Args:
        problem: secrets, costs, distances; its prior is what is believed before the first release.
        mobility: how the secret changes; ``Mobility.still(space)`` if it does not.
        epsilon: of every release; or leave it to ``policy`` or ``mechanism``.
        distortion: promised against the belief at each release; one the belief no longer allows becomes the largest
            possible, and the result says so, unless ``when_impossible`` is ``"refuse"``.
        adversaries: what else is promised, or reported: where she was, an attribute such as home
            (:class:`InferenceTarget`).
        mechanism: a fixed, certified mechanism for all releases, instead of a design for each: quick.
        policy: :class:`EvenSpread`, :class:`Predictive` or :class:`Memoised` instead of the same epsilon always.
        budget: the most epsilon in all; or a :class:`Budget`, or several.
        when_spent: ``"refuse"`` (an error), ``"repeat"`` the last answer, or answer from the ``"belief"`` alone.
        when_impossible: ``"largest"`` or ``"refuse"``.
        ledger: a :class:`Ledger` or the path of one. None keeps accounts in memory, until the process ends.
        when_changed: where the ledger is about another prior, mobility or problem: ``"refuse"``; ``"record"`` the
            change and go on, with everything charged so far kept; or ``"same-unit"``, which also states that another
            distinguishability counts in the same unit as before.
        clock_tolerance: how many seconds ahead of this machine's clock ``at`` may be; None: any number, for times that
            are made up.
        reuse: use a design again for beliefs up to so far away, in total variation; 0: for the same belief only.
        solver: as in :func:`privacygames.design`.
        time_limit: seconds for each design; the gap it leaves is in the result.
        tolerance: as in :func:`privacygames.design`.
        generator: for experiments: answers are then reproducible, and not private.
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
        self.problem = require_instance(problem, Problem, "the problem")
        if require_instance(mobility, Mobility, "the mobility").space != problem.space:
            raise InvalidProblem("the mobility is over other secrets than the problem's")
        require_choice(when_spent, get_args(WhenSpent), "when_spent")
        require_choice(when_impossible, get_args(WhenImpossible), "when_impossible")
        require_choice(when_changed, get_args(WhenChanged), "when_changed")
        if not (is_number(reuse) and 0 <= reuse <= 1):
            raise InvalidProblem(f"reuse is {repr(reuse)[:40]}; it must be a number from 0 to 1")
        if distortion is not None and not (is_number(distortion) and 0 <= distortion < np.inf):
            raise InvalidProblem(Field("distortion"), f" is {repr(distortion)[:40]}; it must be a number, 0 or more")
        if clock_tolerance is not None and not (is_number(clock_tolerance) and clock_tolerance >= 0):
            raise InvalidProblem("clock_tolerance must be a number of seconds, 0 or more, or None")
        self.mobility, self.when_spent = mobility, when_spent
        self.policy = policy_from(problem, epsilon, mechanism, policy)
        pursuits = pursuits_from(adversaries)
        require_promises(self.policy, mechanism, [distortion, *(each.distortion for each in pursuits)])
        self._distortion = None if distortion is None else float(distortion)
        self._fixed, self._generator = mechanism, generator
        options = SolveOptions(tolerance=tolerance, time_limit=time_limit)
        self._designs = MechanismDesigner(DesignSettings(when_impossible, float(reuse), solver, options))
        self.accounts = accounts_for(problem, budget)
        self._charges = Charges(problem, self.accounts)
        windows = any(account.every is not None for account in self.accounts)
        self._elapsed = Timeline(problem.prior, mobility, windows=windows, clock_tolerance=clock_tolerance)
        self._targets = TargetInference(problem, mobility, self._elapsed, pursuits)
        if pursuits and self._if_known(0.0) is None:
            raise InvalidProblem(
                "memoised answers about a secret that changes: nothing is known of adversaries' errors"
            )
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._about = about(problem, mobility, self.policy)
        first = first_case(problem, mobility, self.policy, self.accounts)
        self._change = self.ledger.setup(self._about, self.accounts, when_changed, first)
        pairs = zip(self.accounts, self.ledger.state().change.terms, strict=True)
        self.accounts = tuple(replace(each, name=held.name) for each, held in pairs)  # as an older release named them

    @property
    def belief(self) -> Prior:
        """What is believed after the last release, at its time; before the first, the problem's prior."""
        self._require_belief()
        head = self._head()
        return Prior(self.problem.space, normalised(head.belief)) if head.current else self.problem.prior

    def release(self, secret: Label | set[str], at: Moment | None = None, key: str | None = None) -> Release:
        """One answer for the secret as it is now, charged and committed before it is returned.

        Args:
            secret: where she is, what it is.
            at: when: unix seconds or a datetime with a time zone. Left out, one step of the chain passes between
                releases. The first release is against the prior itself, whenever it is.
            key: a name of your own for this release, chosen without looking at the secret: asking again with the same
                key returns the stored answer and charges nothing.

        Raises:
            BudgetExceeded: where ``when_spent`` is ``"refuse"``, or there is no answer to repeat yet.
            Infeasible: the belief allows no such distortion, and ``when_impossible`` is ``"refuse"``.
        """
        position = self.problem.space.index(secret)
        require_key(key)
        found = self._released(position, at, key)
        if found is None:  # somebody else released meanwhile: choose anew, with nobody else writing
            with self.ledger.alone():
                found = self._released(position, at, key)
        if found is None:
            raise AssertionError("the ledger moved on under a lock")
        return found

    def preview(self, at: Moment | None = None) -> Preview:
        """What the next release would be and cost; nothing is drawn or charged, and no secret is needed."""
        head = self._head()
        return self._preview(head, self._elapsed.when(head, at))

    def observations(self) -> Observations:
        """Everything released about this problem so far, as tracking attacks take it."""
        self._require_belief()
        self._head()
        times, clocked, columns = self.ledger.likelihoods()
        if not times:
            raise InvalidProblem("nothing was released yet")
        if any(column is None or len(column) != len(self.problem.space) for column in columns):
            raise InvalidFile(f"{self.ledger.name} holds likelihoods of another size: it was altered")
        slots = [self._elapsed.slot(time, clocked=by_clock) for time, by_clock in zip(times, clocked, strict=True)]
        return Observations(np.array(columns), np.array(slots))

    def claims(self) -> Guarantees:
        """What may be claimed of all releases so far, and nothing else (docs/theory/sharing.md)."""
        head = self._head()
        seen = self.observations() if head.current and self._if_known(0.0) is not None else None
        spent = self.ledger.spent(self.accounts[:1], head.time)[0]
        return guarantees_of(self.problem, self.mobility, seen, spent.amount, self._earlier())

    def _released(self, position: int, at: Moment | None, key: str | None) -> Release | None:
        """The answer stored under the key, or a new one; None if the ledger moved on meanwhile."""
        stored = None if key is None else self.ledger.find(key)
        if stored is not None:
            self._require_same_answers(stored)
            return released(stored, self.ledger.state(), self.problem.observables, again=True)
        head = self._head()
        preview = self._preview(head, self._elapsed.when(head, at))
        record = self.ledger.append(head, lambda: self._entry(head, preview, position, key))
        if record is None:
            return None
        return released(record, self.ledger.state(), self.problem.observables, again=False)

    def _preview(self, head: Head, when: When) -> Preview:
        """Choose, from what is public, and see whether every budget has room for it."""
        belief = Prior(self.problem.space, normalised(self._elapsed.belief(head, when)))
        now = self.problem.with_prior(belief)
        spent = self.ledger.spent(self.accounts, when.time)
        last = head.observable if head.current else None
        chase = self._targets.adversaries(self.ledger, when)
        after = tuple(DistortionGuarantee(adversary, pursuit.distortion) for pursuit, adversary in chase)
        known = PublicState(
            now, last, self.accounts, spent, lambda asked: self._mechanism(now, asked, after), self._start
        )
        choice = self.policy.choose(known)
        nothing = (NOTHING,) * len(self.accounts)
        charges = nothing if choice is None else self._most(choice)
        if choice is not None and choice.memo is None and not self._fits(charges, spent):
            choice, charges = None, nothing
        blind = choice is None or (choice.memo is not None and self._was_drawn(choice))
        channel = np.ones((len(belief.space), 1)) if blind or choice is None else choice.channel
        promised = self._if_known(best_error(channel, now))
        apart = tuple(best_error(channel, now, promise.adversary.errors) for promise in after)
        return Preview(head.count + 1, when, belief, choice, charges, promised, after, apart)

    def _most(self, choice: Choice) -> tuple[Decimal, ...]:
        charges = self._charges.of(choice.mechanism, choice.epsilon)
        if choice.test is None:
            return charges
        tests = self._charges.of(choice.test, choice.test_epsilon)
        return tuple(total(pair) for pair in zip(charges, tests, strict=True))

    def _fits(self, charges: tuple[Decimal, ...], spent: tuple[Spent, ...]) -> bool:
        left = [left_in(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        return all(each is None or charge <= each for charge, each in zip(charges, left, strict=True))

    def _entry(self, head: Head, preview: Preview, position: int, key: str | None) -> Entry:
        """Draw, and write down all that follows from the answer."""
        when, found = preview.when, self._answer(head, preview, position)
        before, likelihood = self._elapsed.belief(head, when), found.likelihood
        surprising = likelihood is not None and not (before + likelihood).max() > -np.inf
        if surprising:  # an error here would depend on the secret; what is impossible teaches nothing
            likelihood = np.zeros_like(before)
        after = before if likelihood is None else before + likelihood
        belief = normalised(after)
        report: dict[str, object] = {
            "answer": display_label(self.problem.observables.labels[found.observable]),
            "source": found.source,
            "promised": preview.promised,
            "realised": self._if_known(best_guess(belief, self.problem.distance)[1]),
            "entropy": self._if_known(entropy(belief)),
            "pursuits": [
                {"name": each.adversary.name, "promised": apart, "realised": best_guess(belief, _errors(each))[1]}
                for each, apart in zip(preview.after, preview.apart, strict=True)
            ],
            "gap": _gap(preview),
            "left": self._left(when, found.charges),
            "own": [account.own for account in self.accounts],
            "remarks": [*self._remarks(preview), *([SURPRISE] if surprising else [])],
        }
        return Entry(
            key=key,
            time=when.time,
            clocked=when.clocked,
            observable=found.observable,
            mechanism=found.mechanism,
            place=found.place,
            report=report,
            charges=found.charges,
            likelihood=likelihood,
            belief=after - after.max(),
        )

    def _left(self, when: When, charges: tuple[Decimal, ...]) -> list[float | None]:
        """What every account has left once these are charged."""
        spent = self.ledger.spent(self.accounts, when.time)
        limits = [left_in(account, each) for account, each in zip(self.accounts, spent, strict=True)]
        pairs = zip(limits, charges, strict=True)
        return [None if limit is None else float(minus(limit, charge)) for limit, charge in pairs]

    def _answer(self, head: Head, preview: Preview, position: int) -> Drawn:
        choice = preview.choice
        if choice is not None and choice.memo is None:
            tests = None if choice.test is None else self._charges.of(choice.test, choice.test_epsilon)
            return drawn(choice, position, self._charges.of(choice.mechanism, choice.epsilon), tests, self._generator)
        if choice is not None and choice.memo is not None:
            found = self._memoised(choice, choice.memo, preview, position)
            if found is not None:
                return found
        if self.when_spent == "refuse" or (self.when_spent == "repeat" and head.current == 0):
            raise BudgetExceeded(self._spent_message(preview))
        nothing, silent = (NOTHING,) * len(self.accounts), np.zeros(len(self.problem.space))
        if self.when_spent == "repeat":
            return Drawn(head.observable, "repeated", None, silent, nothing)
        return Drawn(blind_answer(self.problem.with_prior(preview.belief)), "belief", None, silent, nothing)

    def _memoised(self, choice: Choice, key: bytes, preview: Preview, position: int) -> Drawn | None:
        """The answer of a place, charged unless it counts already; None where a budget has no room for it.

        Whether a place counts already follows from its returns, which memoised answers do not protect.
        """
        at = preview.when.time
        found = memoised(MemoisedFunction(choice.mechanism, key), position, self._most(choice))
        charges = self.ledger.due(found.place, found.charges, at)
        if not self._fits(charges, self.ledger.spent(self.accounts, at)):
            return None
        likelihood = found.likelihood if self.mobility.is_still else None
        if self.mobility.is_still and charges[0] < found.charges[0]:  # the place was answered before: nothing new
            likelihood = np.zeros(len(self.problem.space))
        return replace(found, likelihood=likelihood, charges=charges)

    def _spent_message(self, preview: Preview) -> str:
        spent = self.ledger.spent(self.accounts, preview.when.time)
        left = [
            f"{account.name}: {left_in(account, each)} of {account.told(account.limit)} left"
            for account, each in zip(self.accounts, spent, strict=True)
            if account.limit is not None
        ]
        return f"the budget has no room for another release ({'; '.join(left)}); nothing was released or charged"

    def _head(self) -> Head:
        """Where the ledger stands, as long as it is about this problem."""
        head = self.ledger.head()
        if head.change != self._change:
            raise InvalidProblem(
                f"{self.ledger.name} is about another case since this sharing began: somebody recorded a change; "
                "begin again with the settings of now"
            )
        return head

    def _earlier(self) -> Earlier:
        """What was released before the ledger was about this problem."""
        state = self.ledger.state()
        places = [change.about.get("counts") == "places" for change in state.changes]
        return Earlier(places=any(places[:-1]), now_places=places[-1], largest=state.largest(self.accounts[0].name))

    def _require_same_answers(self, stored: Record) -> None:
        """Refuse to read an answer of before a change as one of other observables."""
        about = next(each.about for each in self.ledger.state().changes if each.number == stored.change)
        if about.get("observables") != self._about["observables"]:
            raise InvalidProblem(
                "this key names a release of before the problem changed, with other observables: choose another key; "
                "`privacygames ledger show` has the answer"
            )

    def _remarks(self, preview: Preview) -> list[str]:
        found = []
        if preview.when.behind:
            found.append(f"the clock went back by {preview.when.behind:g} s; taken as standing still")
        choice = preview.choice
        if choice is not None and choice.memo is not None and preview.number > 1 and not self._was_drawn(choice):
            found.append("another key or mechanism than before: every place gets a new answer, charged anew")
        now = self.problem.with_prior(preview.belief)
        for promise in (*self._promises(), *preview.after) if preview.choice is not None else ():
            most = max_distortion(now, promise.adversary)
            if promise.distortion is not None and promise.distortion > most:
                whom = f"against {promise.adversary.name!r}: {most:.6g} is promised instead of {promise.distortion:g}"
                found.append(f"the belief allows no such distortion {whom}")
        if self._generator is not None:
            found.append("drawn with a generator passed by the caller: reproducible, so not private")
        return found

    def _if_known(self, value: float) -> float | None:
        """A number that follows from the belief, where that is known."""
        return value if self.policy.counts == "releases" or self.mobility.is_still else None

    def _promises(self) -> tuple[DistortionGuarantee, ...]:
        return () if self._distortion is None else (DistortionGuarantee(NOW, self._distortion),)

    def _mechanism(self, now: Problem, asked: Decimal | None, after: tuple[DistortionGuarantee, ...]) -> Mechanism:
        promises = [*self._promises(), *(each for each in after if each.distortion is not None)]
        return self._fixed if self._fixed is not None else self._designs.mechanism(now, asked, promises)

    def _start(self, asked: Decimal | None) -> Mechanism:
        return self._fixed if self._fixed is not None else self._designs.mechanism(self.problem, asked, [])

    def _was_drawn(self, choice: Choice) -> bool:
        return choice.memo is not None and self.ledger.knows(MemoisedFunction(choice.mechanism, choice.memo).name)

    def _require_belief(self) -> None:
        if self._if_known(0.0) is None:
            raise InvalidProblem(
                "what memoised answers let one believe about a secret that changes is not known: it is not reported"
            )

    def __repr__(self) -> str:
        return f"Releases({len(self.problem.space)} secrets, {type(self.policy).__name__}, {self.ledger!r})"


def _gap(preview: Preview) -> float | None:
    """How far from the best a design for this very belief may be."""
    if preview.choice is None:
        return None
    mechanism = preview.choice.mechanism
    own = np.array_equal(mechanism.statement.prior, preview.belief.probabilities)
    return mechanism.certificate.gap if own else None


def _errors(promise: DistortionGuarantee) -> FloatArray:
    """Her errors, which a chase always has."""
    return np.asarray(promise.adversary.errors)

"""Pursuits: what else an adversary is after than where she is now, and what she errs by, from the chain."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, require_nonnegative
from privacygames.beliefs import Mobility, Moment, moment
from privacygames.errors import InvalidProblem
from privacygames.problem import Adversary, Problem
from privacygames.releases.ledger_store import Ledger
from privacygames.releases.timeline import Timeline, When
from privacygames.tracking import normalised
from privacygames.validation import is_integer, is_number

SUM_TOLERANCE = 1e-9
LONGEST_NAME = 100


@dataclass(frozen=True, eq=False)
class InferenceTarget:
    """What an adversary wants to know: where she was, or an attribute of where she is or was.

    Before each release her errors are worked out under the declared chain, E(g, x) = E[e(g, a) | the secret now is x,
    answers so far], and the design promises that her best guess errs by at least ``distortion`` on average.

    Attributes:
        name: what to call her.
        distortion: promised against her at every release; None: reported only.
        ago: she is after the secret as it was so many releases ago; before there are so many, nothing is promised.
        at: or after the secret as it was at a time, not before the first release; from then on.
        given: P(a|x), (secrets, attributes): she is after an attribute of that secret; None: after the secret itself.
        errors: e(g, a), (guesses, attributes); by default the problem's distance, or 1 for a wrong attribute.
    """

    name: str
    distortion: float | None = None
    ago: int | None = None
    at: Moment | None = None
    given: ArrayLike | None = None
    errors: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and len(self.name) <= LONGEST_NAME):
            raise InvalidProblem(f"a pursuit's name must be a text of 1 to {LONGEST_NAME} characters")
        if self.distortion is not None and not (is_number(self.distortion) and 0 <= self.distortion < np.inf):
            raise InvalidProblem(f"the distortion against {self.name!r} must be a number, 0 or more, or None")
        if self.ago is not None and not is_integer(self.ago):
            raise InvalidProblem(f"ago of {self.name!r} must be a whole number of releases, 1 or more")
        if self.ago is not None and self.at is not None:
            raise InvalidProblem(f"{self.name!r} has ago and at: give the one that says which moment she is after")
        if self.at is not None:
            moment(self.at)

    def table(self, problem: Problem) -> FloatArray:
        """E[e(g, a) | x] for the secret x that she is after something of, (guesses, secrets)."""
        size = len(problem.space)
        if self.given is None:
            wrong = problem.distance if self.errors is None else as_floats(self.errors, f"the errors of {self.name!r}")
            return _checked(wrong, (len(wrong) if wrong.ndim == 2 else 0, size), self.name, "(guesses, secrets)")
        shares = as_floats(self.given, f"given of {self.name!r}")
        count = shares.shape[1] if shares.ndim == 2 else 0
        chances = require_nonnegative(
            shares, what=f"given of {self.name!r}", shape=(size, count), meaning="(secrets, attributes)"
        )
        if not count or (np.abs(chances.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            raise InvalidProblem(f"every row of given of {self.name!r} must sum to 1: P(·|s) is a distribution")
        wrong = 1.0 - np.eye(count) if self.errors is None else as_floats(self.errors, f"the errors of {self.name!r}")
        table = _checked(wrong, (len(wrong) if wrong.ndim == 2 else 0, count), self.name, "(guesses, attributes)")
        return np.asarray(table @ chances.T)


class TargetInference:
    """Pursuits of one sharing: each one's errors at the moment of a release, from the ledger and the chain."""

    def __init__(
        self, problem: Problem, mobility: Mobility, elapsed: Timeline, pursuits: tuple[InferenceTarget, ...]
    ) -> None:
        names = [each.name for each in pursuits]
        if len(set(names)) < len(names):
            raise InvalidProblem(f"two pursuits are called {max(names, key=names.count)!r}; names tell them apart")
        self.pursuits = pursuits
        self._tables = [each.table(problem) for each in pursuits]
        self._problem, self._mobility, self._elapsed = problem, mobility, elapsed

    def adversaries(self, ledger: Ledger, when: When) -> list[tuple[InferenceTarget, Adversary]]:
        """Who is after something by now, with her errors for each secret now."""
        if not self.pursuits:
            return []
        times, clocked, columns = ledger.likelihoods()
        slots = [self._elapsed.slot(time, clocked=by_clock) for time, by_clock in zip(times, clocked, strict=True)]
        now = self._elapsed.slot(when.time, clocked=when.clocked)
        found = []
        for pursuit, table in zip(self.pursuits, self._tables, strict=True):
            start = self._start(pursuit, slots, now)
            if start is not None:
                errors = self._errors(table, start, slots, columns, now)
                found.append((pursuit, Adversary(pursuit.name, errors=errors)))
        return found

    def _start(self, pursuit: InferenceTarget, slots: list[int], now: int) -> int | None:
        """The slot she is after; None where there is none yet."""
        if pursuit.ago is not None:
            return slots[-pursuit.ago] if len(slots) >= pursuit.ago else None
        if pursuit.at is None:
            return now
        wanted = self._mobility.slot(pursuit.at)
        if wanted < (slots[0] if slots else now):
            raise InvalidProblem(f"{pursuit.name!r} is after a moment before the first release: the chain starts there")
        return wanted if wanted <= now else None

    def _errors(
        self, table: FloatArray, start: int, slots: list[int], columns: list[FloatArray | None], now: int
    ) -> FloatArray:
        """Σ_y P(secret at start = y | secret now = x, answers so far) e(g, y): docs/theory/sharing.md, claim 3.

        The rows e(g, ·)·α(·) and α itself are carried along together, so that their ratio is the conditional mean; what
        underflows counts as error 0, which promises less than is true.
        """
        if start == now:
            return table
        seen = list(zip(slots, columns, strict=True))
        until = self._carried(
            self._problem.prior.probabilities, [each for each in seen if each[0] <= start], slots[0], start
        )
        after = [each for each in seen if each[0] > start]
        rows = self._carried(np.vstack([table * until, until]), after, start, now)
        below = rows[-1]
        return np.asarray(np.divide(rows[:-1], below, out=np.zeros_like(rows[:-1]), where=below > 0))

    def _carried(
        self, weights: FloatArray, seen: list[tuple[int, FloatArray | None]], start: int, end: int
    ) -> FloatArray:
        """Weights moved from one slot to another, and multiplied by the likelihood of each answer on the way."""
        for at, likelihood in seen:
            weights = self._mobility.pushed(weights, start, at - start)
            if likelihood is not None:
                weights = weights * normalised(likelihood)
            weights, start = _scaled(weights), at
        return _scaled(self._mobility.pushed(weights, start, end - start))


def _scaled(weights: FloatArray) -> FloatArray:
    """With a largest weight of 1: only ratios matter."""
    largest = float(weights.max())
    return weights / largest if largest > 0 else weights


def _checked(values: FloatArray, shape: tuple[int, int], name: str, meaning: str) -> FloatArray:
    if not all(shape):
        raise InvalidProblem(f"the errors of {name!r} must be a table {meaning}")
    return require_nonnegative(values, what=f"the errors of {name!r}", shape=shape, meaning=meaning)

"""Inference targets other than the present secret, and the expected error on each under the Markov model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, require_nonnegative
from privacygames.beliefs import Mobility, Timestamp, to_seconds
from privacygames.errors import InvalidProblem
from privacygames.problem import Adversary, DistortionGuarantee, Problem
from privacygames.releases.ledger import BaseLedger
from privacygames.releases.timeline import ReleaseTime, Timeline
from privacygames.tracking import normalise
from privacygames.validation import is_integer, is_number

SUM_TOLERANCE = 1e-9
"""Difference from 1 up to which a row of P(a|x) counts as a distribution."""

MAX_NAME_LENGTH = 100


@dataclass(frozen=True, eq=False)
class InferenceTarget:
    """An adversary's inference target: an earlier secret, or an attribute of the present or an earlier one.

    Before each release the adversary's errors are computed under the declared mobility model,
    E(g, x) = E[e(g, a) | the present secret is x, outputs so far], and the design guarantees that their best guess has
    an expected error of at least ``distortion``.

    Attributes:
        name: of the adversary.
        distortion: guaranteed at every release; None: reported only.
        ago: the target is the secret this many releases ago; until there are so many, nothing is guaranteed.
        at: the target is the secret at this time, which must not be before the first release; guaranteed from then on.
        given: P(a|x), (secrets, attributes): the target is an attribute of that secret; None: the secret itself.
        errors: e(g, a), (guesses, attributes); by default the problem's distance, or 1 for a wrong attribute.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> walk = pg.Mobility(city, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    >>> problem = pg.Problem(pg.Prior.uniform(city), cost="euclidean")
    >>> before = pg.InferenceTarget("one release ago", distortion=0.3, ago=1)
    >>> releases = pg.Releases(problem, walk, epsilon=2.0, adversaries=[before])
    >>> [len(releases.release(cell).targets) for cell in ("cell-0", "cell-1")]
    [0, 1]
    """

    name: str
    distortion: float | None = None
    ago: int | None = None
    at: Timestamp | None = None
    given: ArrayLike | None = None
    errors: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and len(self.name) <= MAX_NAME_LENGTH):
            raise InvalidProblem(f"an inference target's name must be a text of 1 to {MAX_NAME_LENGTH} characters")
        if self.distortion is not None and not (is_number(self.distortion) and 0 <= self.distortion < np.inf):
            raise InvalidProblem(f"the distortion against {self.name!r} must be a number, 0 or more, or None")
        if self.ago is not None and not is_integer(self.ago):
            raise InvalidProblem(f"ago of {self.name!r} must be a whole number of releases, 1 or more")
        if self.ago is not None and self.at is not None:
            raise InvalidProblem(f"{self.name!r} has ago and at: give one of them")
        if self.at is not None:
            to_seconds(self.at)

    def table(self, problem: Problem) -> FloatArray:
        """E[e(g, a) | x] for the secret x at the target's time, (guesses, secrets)."""
        size = len(problem.space)
        if self.given is None:
            wrong = problem.distance if self.errors is None else as_floats(self.errors, f"the errors of {self.name!r}")
            return _checked(wrong, (len(wrong) if wrong.ndim == 2 else 0, size), self.name, "(guesses, secrets)")
        shares = as_floats(self.given, f"given of {self.name!r}")
        attributes = shares.shape[1] if shares.ndim == 2 else 0
        chances = require_nonnegative(
            shares, what=f"given of {self.name!r}", shape=(size, attributes), meaning="(secrets, attributes)"
        )
        if not attributes or (np.abs(chances.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            raise InvalidProblem(f"every row of given of {self.name!r} must sum to 1: P(·|s) is a distribution")
        wrong = (
            1.0 - np.eye(attributes) if self.errors is None else as_floats(self.errors, f"the errors of {self.name!r}")
        )
        table = _checked(wrong, (len(wrong) if wrong.ndim == 2 else 0, attributes), self.name, "(guesses, attributes)")
        return np.asarray(table @ chances.T)


class TargetInference:
    """The errors of all inference targets at the time of a release, from the ledger and the mobility model."""

    def __init__(
        self, problem: Problem, mobility: Mobility, timeline: Timeline, targets: tuple[InferenceTarget, ...]
    ) -> None:
        names = [target.name for target in targets]
        if len(set(names)) < len(names):
            repeated = max(names, key=names.count)
            raise InvalidProblem(f"two inference targets are called {repeated!r}; their names must differ")
        self._targets = targets
        self._tables = [target.table(problem) for target in targets]
        self._problem, self._mobility, self._timeline = problem, mobility, timeline

    def guarantees(self, ledger: BaseLedger, when: ReleaseTime) -> tuple[DistortionGuarantee, ...]:
        """The adversaries whose target exists by then, with their errors for each present secret."""
        if not self._targets:
            return ()
        times, clocked, likelihoods = ledger.likelihoods()
        slots = [self._timeline.slot(time, clocked=by_clock) for time, by_clock in zip(times, clocked, strict=True)]
        current_slot = self._timeline.slot(when.time, clocked=when.clocked)
        guarantees = []
        for target, table in zip(self._targets, self._tables, strict=True):
            start = self._target_slot(target, slots, current_slot)
            if start is not None:
                errors = self._errors(table, start, slots, likelihoods, current_slot)
                guarantees.append(DistortionGuarantee(Adversary(target.name, errors=errors), target.distortion))
        return tuple(guarantees)

    def _target_slot(self, target: InferenceTarget, slots: list[int], current_slot: int) -> int | None:
        """The time step that the target is about; None if there is none yet."""
        if target.ago is not None:
            return slots[-target.ago] if len(slots) >= target.ago else None
        if target.at is None:
            return current_slot
        slot = self._mobility.slot(target.at)
        if slot < (slots[0] if slots else current_slot):
            raise InvalidProblem(
                f"{target.name!r} is about a time before the first release, where the mobility model starts"
            )
        return slot if slot <= current_slot else None

    def _errors(
        self, table: FloatArray, start: int, slots: list[int], likelihoods: list[FloatArray | None], current_slot: int
    ) -> FloatArray:
        """Σ_y P(secret at ``start`` = y | present secret = x, outputs so far) e(g, y), as in docs/theory/sharing.md.

        With α the forward weights at ``start``, the rows e(g, ·)·α(·) and α itself are advanced together, so that their
        ratio is the conditional mean. Weights that underflow count as error 0, which guarantees less than is true.
        """
        if start == current_slot:
            return table
        outputs = list(zip(slots, likelihoods, strict=True))
        earlier = [output for output in outputs if output[0] <= start]
        later = [output for output in outputs if output[0] > start]
        forward = self._advance(self._problem.prior.probabilities, earlier, slots[0], start)
        rows = self._advance(np.vstack([table * forward, forward]), later, start, current_slot)
        weights = rows[-1]
        return np.asarray(np.divide(rows[:-1], weights, out=np.zeros_like(rows[:-1]), where=weights > 0))

    def _advance(
        self, weights: FloatArray, outputs: list[tuple[int, FloatArray | None]], start: int, end: int
    ) -> FloatArray:
        """Weights advanced from one slot to another, and multiplied by the likelihood of each output on the way."""
        for slot, likelihood in outputs:
            weights = self._mobility.push_forward(weights, start, slot - start)
            if likelihood is not None:
                weights = weights * normalise(likelihood)
            weights, start = _scaled(weights), slot
        return _scaled(self._mobility.push_forward(weights, start, end - start))


def _scaled(weights: FloatArray) -> FloatArray:
    """Weights divided by the largest; only their ratios matter."""
    largest = float(weights.max())
    return weights / largest if largest > 0 else weights


def _checked(values: FloatArray, shape: tuple[int, int], name: str, meaning: str) -> FloatArray:
    if not all(shape):
        raise InvalidProblem(f"the errors of {name!r} must be a table {meaning}")
    return require_nonnegative(values, what=f"the errors of {name!r}", shape=shape, meaning=meaning)

"""Tracking attacks: what an adversary who knows the chain makes of a whole sequence of answers.

Everything here is exact under the declared chain, and only there (docs/theory/sharing.md, claim 3). Probabilities are
carried as logarithms, so that ten thousand answers neither underflow nor lose a place that becomes likely again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray, as_floats, freeze
from privacygames.beliefs import Mobility
from privacygames.errors import InvalidProblem
from privacygames.mechanism import FiniteMechanism, require_finite_mechanism
from privacygames.problem import Problem
from privacygames.spaces import Label, Space
from privacygames.validation import as_list, require_instance

__all__ = ["Observations", "Track", "averaged", "filtered", "most_likely_path", "smoothed"]


def __dir__() -> list[str]:
    return __all__


LOST = 1e-280
"""A weight below this, relative to the largest, is computed again with logarithms."""

ROUNDING = 1e-9
"""Differences of log-odds up to this, relative to the largest, are rounding: they shift no odds between secrets that
nothing separates."""

MOST_KEPT = 1000
"""Up to so many secrets, logarithms of transition matrices are kept."""

MOST_BY_HOUR = 400
"""And those of several steps by the hour of the day, of which there are more."""


@dataclass(frozen=True, eq=False)
class Observations:
    """A sequence of answers, as all that matters of them: how likely each was, for every secret.

    Attributes:
        log_likelihoods: ln p(o_t|s), (answers, secrets); −∞ where s cannot give that answer.
        slots: the step of the chain each answer was given in, never decreasing.
    """

    log_likelihoods: FloatArray
    slots: IntArray

    def __post_init__(self) -> None:
        values = as_floats(self.log_likelihoods, "the likelihoods")
        slots = np.asarray(self.slots)
        if values.ndim != 2 or len(values) == 0 or np.isnan(values).any() or (values == np.inf).any():
            raise InvalidProblem("log-likelihoods must be numbers or −∞, of shape (answers, secrets), and not empty")
        if slots.shape != values.shape[:1] or slots.dtype.kind not in "iu" or (np.diff(slots) < 0).any():
            raise InvalidProblem("slots must be whole numbers, one per answer, that never decrease")
        object.__setattr__(self, "log_likelihoods", freeze(np.ascontiguousarray(values)))
        object.__setattr__(self, "slots", freeze(slots.astype(np.int64)))

    @classmethod
    def of(
        cls,
        mechanisms: FiniteMechanism | Sequence[FiniteMechanism],
        answers: Iterable[Label],
        slots: Iterable[int] | None = None,
    ) -> "Observations":
        """Answers drawn from mechanisms.

        Args:
            mechanisms: the one they were all drawn from, or each answer's own.
            answers: what was released, in the order of time.
            slots: the step of the chain each was given in; by default one after the other.
        """
        given = as_list(answers, "the answers")
        one_or_each = "give one Mechanism, or one for each answer"
        used = as_list(mechanisms, "the mechanisms") if isinstance(mechanisms, Iterable) else [mechanisms] * len(given)
        if len(used) != len(given):
            raise InvalidProblem(one_or_each)
        for mechanism in used:
            require_finite_mechanism(mechanism, one_or_each)
        columns = [each.probabilities[:, each.observables.index(o)] for each, o in zip(used, given, strict=True)]
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(columns))
        when = np.arange(len(given)) if slots is None else np.asarray(as_list(slots, "slots"))
        return cls(logs, when)

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True, eq=False)
class Track:
    """What a tracking attack concludes, at the moment of each answer.

    Attributes:
        name: which attack.
        space: the secrets.
        beliefs: P(secret at that moment | answers), (answers, secrets).
        guesses: the estimates, as positions: those with the least expected error, or the most likely path.
        errors: the expected error of each estimate, under the declared chain.
        log_likelihood: ln P(all answers); for the most likely path, ln P(path, all answers).
        log_odds: ln P(the answers used | secret at that moment), up to a constant a row; −∞ or nan where it cannot be.
    """

    name: str
    space: Space
    beliefs: FloatArray
    guesses: IntArray
    errors: FloatArray
    log_likelihood: float
    log_odds: FloatArray

    @property
    def estimates(self) -> list[Label]:
        """The estimates, as labels."""
        return [self.space.labels[position] for position in self.guesses]

    def shift(self, distinguishability: FloatArray) -> FloatArray:
        """By how much the answers shifted the odds between two secrets at each moment, per unit that separates them.

        max over a, b of (ln P(o|a) − ln P(o|b)) / d(a,b), over secrets that the chain allows at that moment: claim 2
        under the declared chain, and only there. ∞ where the odds between two secrets shifted that nothing separates
        (d = 0), which happens where they lead to others that something does.
        """
        found = np.zeros(len(self.log_odds))
        for at, odds in enumerate(self.log_odds):
            possible = np.flatnonzero(~np.isnan(odds))
            kept, apart = odds[possible], distinguishability[np.ix_(possible, possible)]
            finite = kept[np.isfinite(kept)]
            noise = ROUNDING * max(1.0, float(np.abs(finite).max(initial=0.0)))
            with np.errstate(invalid="ignore", divide="ignore"):  # −∞ − (−∞): neither could have given these answers
                shifts = kept[:, None] - kept
                ratios = np.where(shifts > noise * (apart == 0), shifts / apart, 0.0)
            found[at] = float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0))
        return found

    def __repr__(self) -> str:
        return f"Track({self.name}, {len(self.errors)} answers, mean expected error {self.errors.mean():.4g})"


def filtered(problem: Problem, mobility: Mobility, observations: Observations) -> Track:
    """Where she is, after each answer: the forward filter, from the answers so far."""
    _check(problem, mobility, observations)
    forward = _forward(problem, mobility, observations)
    return _track("filter", problem, forward, _unseen(problem, mobility, observations), float(_total(forward[-1])))


def smoothed(problem: Problem, mobility: Mobility, observations: Observations) -> Track:
    """Where she was at each answer, knowing all of them: forward–backward."""
    _check(problem, mobility, observations)
    forward = _forward(problem, mobility, observations)
    both = forward + _backward(mobility, observations)
    return _track("smoother", problem, both, _unseen(problem, mobility, observations), float(_total(forward[-1])))


def most_likely_path(problem: Problem, mobility: Mobility, observations: Observations) -> Track:
    """The path that is likeliest given all answers (Viterbi); its errors are expected under the smoother's beliefs.

    Where several steps pass between two answers, a path is where she was at the answers; what lies between is summed.
    """
    track = smoothed(problem, mobility, observations)
    path, log_probability = _viterbi(problem, mobility, observations)
    errors = np.einsum("ts,ts->t", problem.distance[path], track.beliefs)
    return Track(
        "most likely path", problem.space, track.beliefs, freeze(path), errors, log_probability, track.log_odds
    )


def averaged(problem: Problem, observations: Observations) -> Track:
    """Where she always is, if all answers are about one and the same secret: the averaging attack that finds home.

    The filter under :meth:`privacygames.Mobility.still`; its errors are exact only for a secret that does not change.
    """
    track = filtered(problem, Mobility.still(problem.space), observations)
    return Track("averaging", *(getattr(track, name) for name in Track.__dataclass_fields__ if name != "name"))


def log_moved(log_belief: FloatArray, mobility: Mobility, start: int, steps: int) -> FloatArray:
    """A belief's logarithms after some steps of the chain."""
    return _log_carried(log_belief, mobility, start, steps, forward=True)


def best_guess(belief: FloatArray, errors: FloatArray) -> tuple[int, float]:
    """The guess with the least expected error (guesses, secrets) under a belief, and that error."""
    expected = errors @ belief
    best = int(expected.argmin())
    return best, float(expected[best])


def normalised(log_weights: FloatArray) -> FloatArray:
    """Probabilities from logarithms of weights, along the last axis."""
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _check(problem: Problem, mobility: Mobility, observations: Observations) -> None:
    require_instance(problem, Problem, "the problem")
    require_instance(observations, Observations, "the observations")
    if require_instance(mobility, Mobility, "the mobility").space != problem.space:
        raise InvalidProblem("the mobility is over other secrets than the problem's")
    if observations.log_likelihoods.shape[1] != len(problem.space):
        raise InvalidProblem("the observations are about another number of secrets than the problem's")


def _forward(problem: Problem, mobility: Mobility, observations: Observations) -> FloatArray:
    """The logarithms of P(answers up to t, secret at t), (answers, secrets)."""
    logs, slots = observations.log_likelihoods, observations.slots
    found = np.empty_like(logs)
    with np.errstate(divide="ignore"):
        state = np.log(problem.prior.probabilities)
    for at, own in enumerate(logs):
        if at:
            state = log_moved(state, mobility, int(slots[at - 1]), int(slots[at] - slots[at - 1]))
        state = state + own
        if not state.max() > -np.inf:
            raise InvalidProblem(
                f"answer {at} is impossible after those before it: prior, mobility or mechanism is not hers"
            )
        found[at] = state
    return found


def _backward(mobility: Mobility, observations: Observations) -> FloatArray:
    """The logarithms of P(answers after t | secret at t)."""
    logs, slots = observations.log_likelihoods, observations.slots
    found = np.zeros_like(logs)
    for at in range(len(logs) - 2, -1, -1):
        later = found[at + 1] + logs[at + 1]
        start, steps = int(slots[at]), int(slots[at + 1] - slots[at])
        found[at] = _log_carried(later, mobility, start, steps, forward=False)
    return found


def _log_carried(logs: FloatArray, mobility: Mobility, start: int, steps: int, *, forward: bool) -> FloatArray:
    """Logarithms of weights carried along the chain; the few that underflow on the way are computed in logarithms."""
    if steps == 0 or mobility.is_still:
        return logs
    top = float(logs.max())
    if top == -np.inf:
        return logs
    weights = np.exp(logs - top)
    carried = (mobility.pushed if forward else mobility.pulled)(weights, start, steps)
    with np.errstate(divide="ignore"):
        found = np.log(carried) + top
    if carried.min() >= LOST or not (np.isfinite(logs) & (weights < LOST)).any():
        return np.asarray(found)
    slots = range(start, start + steps) if forward else range(start + steps - 1, start - 1, -1)
    for slot in slots:
        matrix = _log_matrix(mobility, slot, 1)
        logs = _log_sum(logs[:, None] + matrix, 0) if forward else _log_sum(matrix + logs, 1)
    return np.asarray(np.where(carried >= LOST, found, logs))


def _log_sum(values: FloatArray, axis: int) -> FloatArray:
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis))


def _total(logs: FloatArray) -> float:
    return float(_log_sum(logs, 0))


def _log_matrix(mobility: Mobility, start: int, steps: int) -> FloatArray:
    """The logarithms of P^steps from a slot on; those that come again and again are kept."""
    size = len(mobility.space)
    if size > MOST_KEPT or (mobility.by_hour and steps != 1 and size > MOST_BY_HOUR):
        return _logs(mobility.transition(start, steps))
    if not mobility.by_hour or steps == 1:
        return _kept_logs(mobility, mobility.hour(start) if mobility.by_hour else 0, steps)
    hours = [mobility.hour(slot) for slot in range(start, start + steps)]
    return _kept_products(mobility, tuple((hour, len(list(run))) for hour, run in groupby(hours)))


@lru_cache(maxsize=32)
def _kept_logs(mobility: Mobility, hour: int, steps: int) -> FloatArray:
    return freeze(_logs(mobility.matrices[hour] if steps == 1 else mobility.transition(0, steps)))


@lru_cache(maxsize=128)
def _kept_products(mobility: Mobility, runs: tuple[tuple[int, int], ...]) -> FloatArray:
    """The logarithms of a product of hours' matrices, each so many times."""
    product = np.eye(len(mobility.space))
    for hour, steps in runs:
        product = product @ np.linalg.matrix_power(_dense(mobility.matrices[hour]), steps)
    return freeze(_logs(product))


def _logs(matrix: Any) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_dense(matrix)))


def _dense(matrix: Any) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _unseen(problem: Problem, mobility: Mobility, observations: Observations) -> FloatArray:
    """The logarithms of P(secret at t) with no answers at all."""
    slots = observations.slots
    found = np.empty_like(observations.log_likelihoods)
    with np.errstate(divide="ignore"):
        state = np.log(problem.prior.probabilities)
    for at in range(len(slots)):
        if at:
            state = log_moved(state, mobility, int(slots[at - 1]), int(slots[at] - slots[at - 1]))
        found[at] = state
    return found


def _track(name: str, problem: Problem, log_weights: FloatArray, unseen: FloatArray, log_likelihood: float) -> Track:
    beliefs = normalised(log_weights)
    expected = beliefs @ problem.distance.T
    guesses = expected.argmin(axis=1)
    errors = expected[np.arange(len(guesses)), guesses]
    with np.errstate(invalid="ignore"):
        odds = np.where(np.isfinite(unseen), log_weights - unseen, np.nan)
    return Track(name, problem.space, freeze(beliefs), freeze(guesses), freeze(errors), log_likelihood, freeze(odds))


def _viterbi(problem: Problem, mobility: Mobility, observations: Observations) -> tuple[IntArray, float]:
    logs, slots = observations.log_likelihoods, observations.slots
    with np.errstate(divide="ignore"):
        best = np.log(problem.prior.probabilities) + logs[0]
    came_from = np.zeros(logs.shape, dtype=np.int32)
    everyone = np.arange(logs.shape[1])
    for at in range(1, len(logs)):
        steps = _log_matrix(mobility, int(slots[at - 1]), int(slots[at] - slots[at - 1]))
        through = steps.T + best
        came_from[at] = through.argmax(axis=1)
        best = through[everyone, came_from[at]] + logs[at]
    path = np.empty(len(logs), dtype=np.int64)
    path[-1] = int(best.argmax())
    for at in range(len(logs) - 1, 0, -1):
        path[at - 1] = came_from[at, path[at]]
    return path, float(best.max())

"""Tracking attacks: inference of a sequence of secrets from a sequence of outputs, under a Markov model.

The attacks are exact under the declared chain, and only there (docs/theory/sharing.md, guarantee 3). They compute with
logarithms, so that ten thousand outputs neither underflow nor lose a secret that becomes likely again.
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

__all__ = [
    "Observations",
    "TrackingResult",
    "averaging_attack",
    "filtering_attack",
    "smoothing_attack",
    "viterbi_attack",
]


def __dir__() -> list[str]:
    return __all__


UNDERFLOW = 1e-280
"""A weight below this, relative to the largest, is computed again in logarithms: floats end near 1e-308."""

ROUNDING = 1e-9
"""Differences of log-odds up to this, relative to the largest, count as rounding between secrets at distance 0."""

MAX_CACHED_SECRETS = 1000
"""Number of secrets up to which logarithms of transition matrices are cached: 32 of them take 256 MB."""

MAX_CACHED_SECRETS_BY_HOUR = 400
"""The same for several steps by the hour of the day, of which 128 are cached: 164 MB."""


@dataclass(frozen=True, eq=False)
class Observations:
    """A sequence of outputs, represented by their likelihoods.

    Attributes:
        log_likelihoods: ln p(o_t|s), (outputs, secrets); −∞ where s cannot give that output.
        slots: the step of the chain at each output, never decreasing.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> noise = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), 1.0)
    >>> outputs = pg.tracking.Observations.of(noise, ["cell-0", "cell-0", "cell-1"])
    >>> outputs.log_likelihoods.shape
    (3, 3)
    """

    log_likelihoods: FloatArray
    slots: IntArray

    def __post_init__(self) -> None:
        values = as_floats(self.log_likelihoods, "the likelihoods")
        slots = np.asarray(self.slots)
        if values.ndim != 2 or len(values) == 0 or np.isnan(values).any() or (values == np.inf).any():
            raise InvalidProblem("log-likelihoods must be numbers or −∞, of shape (outputs, secrets), and not empty")
        if slots.shape != values.shape[:1] or slots.dtype.kind not in "iu" or (np.diff(slots) < 0).any():
            raise InvalidProblem("slots must be whole numbers, one per output, that never decrease")
        object.__setattr__(self, "log_likelihoods", freeze(np.ascontiguousarray(values)))
        object.__setattr__(self, "slots", freeze(slots.astype(np.int64)))

    @classmethod
    def of(
        cls,
        mechanisms: FiniteMechanism | Sequence[FiniteMechanism],
        outputs: Iterable[Label],
        slots: Iterable[int] | None = None,
    ) -> "Observations":
        """The likelihoods of outputs of mechanisms.

        Args:
            mechanisms: the one that all outputs were drawn from, or one for each output.
            outputs: in order of time.
            slots: the step of the chain at each output; by default one step passes between two.
        """
        given = as_list(outputs, "the outputs")
        one_or_each = "give one Mechanism, or one for each output"
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
class TrackingResult:
    """The inference of a tracking attack at the time of each output.

    Attributes:
        name: of the attack.
        space: the secrets.
        beliefs: P(secret at that time | outputs), (outputs, secrets).
        guesses: the estimates, as indices: those of least expected error, or the most likely path.
        errors: the expected error of each estimate, under the declared chain.
        log_likelihood: ln P(all outputs); for the most likely path, ln P(path, all outputs).
        log_odds: ln P(outputs used | secret at that time), up to a constant per row; −∞ or nan for impossible secrets.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> problem, still = pg.Problem(pg.Prior.uniform(city)), pg.Mobility.still(city)
    >>> noise = pg.baselines.exponential(problem, 1.0)
    >>> outputs = pg.tracking.Observations.of(noise, ["cell-0", "cell-1", "cell-0"])
    >>> result = pg.tracking.filtering_attack(problem, still, outputs)
    >>> result.estimates, bool(result.errors[-1] < result.errors[0])
    (['cell-0', 'cell-1', 'cell-0'], True)
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

    def odds_shift(self, distinguishability: FloatArray) -> FloatArray:
        """The largest shift of the odds between two secrets at each time, per unit of distance.

        max over a, b of (ln P(o|a) − ln P(o|b)) / d(a,b), over secrets that the chain allows at that time: guarantee 2
        under the declared chain, and only there. ∞ if the odds shifted between secrets at distance 0, which happens if
        they lead to secrets at a positive distance.

        Args:
            distinguishability: d, (secrets, secrets).
        """
        largest = np.zeros(len(self.log_odds))
        for at, odds in enumerate(self.log_odds):
            possible = np.flatnonzero(~np.isnan(odds))
            log_odds, distances = odds[possible], distinguishability[np.ix_(possible, possible)]
            finite = log_odds[np.isfinite(log_odds)]
            noise = ROUNDING * max(1.0, float(np.abs(finite).max(initial=0.0)))
            with np.errstate(invalid="ignore", divide="ignore"):  # −∞ − (−∞): neither could have given these outputs
                shifts = log_odds[:, None] - log_odds
                ratios = np.where(shifts > noise * (distances == 0), shifts / distances, 0.0)
            largest[at] = float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0))
        return largest

    def __repr__(self) -> str:
        return f"TrackingResult({self.name}, {len(self.errors)} outputs, mean expected error {self.errors.mean():.4g})"


def filtering_attack(problem: Problem, mobility: Mobility, observations: Observations) -> TrackingResult:
    """The secret at each output, inferred from the outputs so far (forward algorithm).

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> walk = pg.Mobility(city, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> outputs = pg.tracking.Observations.of(pg.baselines.exponential(problem, 2.0), ["cell-0", "cell-2"])
    >>> pg.tracking.filtering_attack(problem, walk, outputs).estimates
    ['cell-0', 'cell-1']
    """
    _check(problem, mobility, observations)
    forward = _forward(problem, mobility, observations)
    return _track("filter", problem, forward, _prior_logs(problem, mobility, observations), float(_total(forward[-1])))


def smoothing_attack(problem: Problem, mobility: Mobility, observations: Observations) -> TrackingResult:
    """The secret at each output, inferred from all outputs (forward–backward algorithm).

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> walk = pg.Mobility(city, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> outputs = pg.tracking.Observations.of(pg.baselines.exponential(problem, 2.0), ["cell-0", "cell-2"])
    >>> pg.tracking.smoothing_attack(problem, walk, outputs).estimates
    ['cell-1', 'cell-1']
    """
    _check(problem, mobility, observations)
    forward = _forward(problem, mobility, observations)
    both = forward + _backward(mobility, observations)
    return _track("smoother", problem, both, _prior_logs(problem, mobility, observations), float(_total(forward[-1])))


def viterbi_attack(problem: Problem, mobility: Mobility, observations: Observations) -> TrackingResult:
    """The most likely sequence of secrets given all outputs (Viterbi algorithm).

    Its errors are expected under the beliefs of the smoothing attack. If several steps pass between two outputs, a path
    consists of the secrets at the outputs, and the steps between are summed over.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> walk = pg.Mobility(city, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> outputs = pg.tracking.Observations.of(pg.baselines.exponential(problem, 4.0), ["cell-0", "cell-1", "cell-1"])
    >>> pg.tracking.viterbi_attack(problem, walk, outputs).estimates
    ['cell-0', 'cell-1', 'cell-1']
    """
    track = smoothing_attack(problem, mobility, observations)
    path, log_probability = _viterbi(problem, mobility, observations)
    errors = np.einsum("ts,ts->t", problem.distance[path], track.beliefs)
    return TrackingResult(
        "most likely path", problem.space, track.beliefs, freeze(path), errors, log_probability, track.log_odds
    )


def averaging_attack(problem: Problem, observations: Observations) -> TrackingResult:
    """One constant secret, such as a home, inferred from repeated outputs.

    This is the filtering attack under :meth:`privacygames.Mobility.still`; its errors are exact only for a secret that
    does not change.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> noise = pg.baselines.exponential(problem, 0.5)
    >>> night = pg.tracking.Observations.of(noise, noise.sample(["cell-2"] * 200, np.random.default_rng(0)))
    >>> pg.tracking.averaging_attack(problem, night).estimates[-1]
    'cell-2'
    """
    track = filtering_attack(problem, Mobility.still(problem.space), observations)
    return TrackingResult(
        "averaging", *(getattr(track, name) for name in TrackingResult.__dataclass_fields__ if name != "name")
    )


def advance_log_belief(log_belief: FloatArray, mobility: Mobility, start: int, steps: int) -> FloatArray:
    """The logarithms of a belief after some steps of the chain."""
    return _advance_logs(log_belief, mobility, start, steps, forward=True)


def best_guess(belief: FloatArray, errors: FloatArray) -> tuple[int, float]:
    """The guess with the least expected error (guesses, secrets) under a belief, and that error."""
    expected = errors @ belief
    best = int(expected.argmin())
    return best, float(expected[best])


def normalise(log_weights: FloatArray) -> FloatArray:
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
    """The logarithms of P(outputs up to t, secret at t), (outputs, secrets)."""
    logs, slots = observations.log_likelihoods, observations.slots
    forward = np.empty_like(logs)
    with np.errstate(divide="ignore"):
        state = np.log(problem.prior.probabilities)
    for at, own in enumerate(logs):
        if at:
            state = advance_log_belief(state, mobility, int(slots[at - 1]), int(slots[at] - slots[at - 1]))
        state = state + own
        if not state.max() > -np.inf:
            raise InvalidProblem(
                f"output {at} is impossible after those before it: the prior, the mobility or the mechanism is "
                "another one"
            )
        forward[at] = state
    return forward


def _backward(mobility: Mobility, observations: Observations) -> FloatArray:
    """The logarithms of P(outputs after t | secret at t)."""
    logs, slots = observations.log_likelihoods, observations.slots
    backward = np.zeros_like(logs)
    for at in range(len(logs) - 2, -1, -1):
        later = backward[at + 1] + logs[at + 1]
        start, steps = int(slots[at]), int(slots[at + 1] - slots[at])
        backward[at] = _advance_logs(later, mobility, start, steps, forward=False)
    return backward


def _advance_logs(logs: FloatArray, mobility: Mobility, start: int, steps: int, *, forward: bool) -> FloatArray:
    """Logarithms of weights advanced along the chain; those that underflow on the way are computed in logarithms."""
    if steps == 0 or mobility.is_still:
        return logs
    top = float(logs.max())
    if top == -np.inf:
        return logs
    weights = np.exp(logs - top)
    carried = (mobility.push_forward if forward else mobility.pull_back)(weights, start, steps)
    with np.errstate(divide="ignore"):
        advanced = np.log(carried) + top
    if carried.min() >= UNDERFLOW or not (np.isfinite(logs) & (weights < UNDERFLOW)).any():
        return np.asarray(advanced)
    slots = range(start, start + steps) if forward else range(start + steps - 1, start - 1, -1)
    for slot in slots:
        matrix = _log_matrix(mobility, slot, 1)
        logs = _log_sum(logs[:, None] + matrix, 0) if forward else _log_sum(matrix + logs, 1)
    return np.asarray(np.where(carried >= UNDERFLOW, advanced, logs))


def _log_sum(values: FloatArray, axis: int) -> FloatArray:
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis))


def _total(logs: FloatArray) -> float:
    return float(_log_sum(logs, 0))


def _log_matrix(mobility: Mobility, start: int, steps: int) -> FloatArray:
    """The logarithms of P^steps from a slot on, cached for small chains."""
    size = len(mobility.space)
    if size > MAX_CACHED_SECRETS or (mobility.by_hour and steps != 1 and size > MAX_CACHED_SECRETS_BY_HOUR):
        return _logs(mobility.transition(start, steps))
    if not mobility.by_hour or steps == 1:
        return _cached_logs(mobility, mobility.hour(start) if mobility.by_hour else 0, steps)
    hours = [mobility.hour(slot) for slot in range(start, start + steps)]
    return _cached_products(mobility, tuple((hour, len(list(run))) for hour, run in groupby(hours)))


@lru_cache(maxsize=32)
def _cached_logs(mobility: Mobility, hour: int, steps: int) -> FloatArray:
    return freeze(_logs(mobility.matrices[hour] if steps == 1 else mobility.transition(0, steps)))


@lru_cache(maxsize=128)
def _cached_products(mobility: Mobility, runs: tuple[tuple[int, int], ...]) -> FloatArray:
    """The logarithms of a product of hours' matrices, each raised to a power."""
    product = np.eye(len(mobility.space))
    for hour, steps in runs:
        product = product @ np.linalg.matrix_power(_dense(mobility.matrices[hour]), steps)
    return freeze(_logs(product))


def _logs(matrix: Any) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(_dense(matrix)))


def _dense(matrix: Any) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _prior_logs(problem: Problem, mobility: Mobility, observations: Observations) -> FloatArray:
    """The logarithms of P(secret at t) without any outputs."""
    slots = observations.slots
    prior_logs = np.empty_like(observations.log_likelihoods)
    with np.errstate(divide="ignore"):
        state = np.log(problem.prior.probabilities)
    for at in range(len(slots)):
        if at:
            state = advance_log_belief(state, mobility, int(slots[at - 1]), int(slots[at] - slots[at - 1]))
        prior_logs[at] = state
    return prior_logs


def _track(
    name: str, problem: Problem, log_weights: FloatArray, unseen: FloatArray, log_likelihood: float
) -> TrackingResult:
    beliefs = normalise(log_weights)
    expected = beliefs @ problem.distance.T
    guesses = expected.argmin(axis=1)
    errors = expected[np.arange(len(guesses)), guesses]
    with np.errstate(invalid="ignore"):
        odds = np.where(np.isfinite(unseen), log_weights - unseen, np.nan)
    return TrackingResult(
        name, problem.space, freeze(beliefs), freeze(guesses), freeze(errors), log_likelihood, freeze(odds)
    )


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

"""For the recipient: what the true frequencies were, from obfuscated answers and the mechanism that made them.

The share of each answer is c = Pᵀf, with P the mechanism's probabilities and f the frequencies of the secrets.

- *Unbiased*: a fixed left inverse A of Pᵀ, applied to the shares seen: E[A c] = f exactly, at the price of numbers that
  may be negative.
- *Maximum likelihood*: the frequencies (never negative, summing to one) under which the answers were likeliest.

What is estimated are the frequencies in the table that was released, as it is: the only randomness is that of the
mechanism. Given the table, answers are drawn independently from the rows P_s of its secrets, so that a statistic
Σ e_o c_o has the variance Σ_s f_s (Σ_o P_so e_o² − (Σ_o P_so e_o)²) / n, which intervals use. They allow nothing for
how the people in the table were sampled from a population. Where answers do not determine f, intervals are the range of
what all frequencies that fit the answers say, by linear programming; these hold the truth at least as often as they
say.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray, as_floats
from privacygames.errors import InvalidProblem, SolveFailed
from privacygames.mechanism import FiniteMechanism, require_finite_mechanism
from privacygames.spaces import Label, Numbers, Space, count_visits
from privacygames.validation import is_number, require_choice

Method = Literal["unbiased", "likelihood"]
CONDITION = 1e9
"""Largest condition number of a matrix of probabilities, plain or with its columns scaled by their standard deviations,
whose left inverse is used: beyond it, no number of answers that anybody has would do."""

KNOWN = 1.0
"""Standard error from which on a frequency is not determined: so much is known of any share without an answer."""

HALF = 0.5
"""Rows added to the count of each secret in estimated variances: what was not seen among few is not impossible."""

MOST_STEPS, SHORTEST, LEAST_BARRIER = 100, 1e-10, 1e-13
GAP = 1e-7
"""How far below its maximum the log-likelihood of one answer may be."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A number, and an interval that holds that of the released table with the confidence asked for."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


class FrequencyEstimate:
    """Estimated frequencies of the secrets behind many answers.

    Attributes:
        space: the secrets.
        frequencies: an estimate for each, in the order of the space's labels.
        sample_size: number of outputs it is from.
        method: ``"unbiased"`` or ``"likelihood"``.
        confidence: of every interval, each by itself.
        identifiable: whether these answers determine the frequencies: the condition number of the mechanism's matrix is
            at most 10⁹, and with so many answers the standard error of every frequency is below 1, whatever the table.
            Where they do not, intervals are the range of what fits.
    """

    def __init__(self, mechanism: FiniteMechanism, counts: FloatArray, method: Method, confidence: float) -> None:
        self.space: Space = mechanism.secrets
        self.method, self.confidence, self.sample_size = method, confidence, int(counts.sum())
        self._model = _Model(mechanism.probabilities, counts)
        self.identifiable = self._model.identifiable
        if method == "unbiased" and self._model.inverse is None:
            raise InvalidProblem(
                "the answers of this mechanism do not determine how frequent each secret was, so no estimate is "
                "unbiased: ask for method='likelihood', whose intervals say what can be known"
            )
        self.frequencies: FloatArray = self._model.unbiased() if method == "unbiased" else self._model.likeliest

    def __getitem__(self, label: Label) -> IntervalEstimate:
        """The frequency of one secret."""
        return self.total([label])

    def total(self, labels: Any) -> IntervalEstimate:
        """The frequency of several secrets together."""
        wanted = np.zeros(len(self.space))
        wanted[self.space.indices(labels)] = 1.0
        return self.average(wanted)

    def average(self, values: Any) -> IntervalEstimate:
        """The mean of a number that each secret has, such as its value."""
        weights = as_floats(values, "the values")
        if weights.shape != (len(self.space),) or not np.isfinite(weights).all():
            raise InvalidProblem(f"one finite number for each of the {len(self.space)} secrets is wanted")
        value = float(weights @ self.frequencies)
        if self.identifiable or self.method == "unbiased":
            low, high = self._model.interval(weights, self.confidence)
        else:
            low, high = self._model.range(weights, self.confidence)
        if self.method == "likelihood":
            low, high = max(low, float(weights.min())), min(high, float(weights.max()))
        return IntervalEstimate(value, min(low, value), max(high, value))

    def mean(self) -> IntervalEstimate:
        """The mean of the secrets, which must be numbers."""
        return self.average(self._values())

    def quantile(self, share: float) -> IntervalEstimate:
        """The smallest number that at least this share of the secrets do not exceed."""
        if not (is_number(share) and 0 < share < 1):
            raise InvalidProblem("a quantile is asked for by a share between 0 and 1, such as 0.5 for the median")
        values = self._values()
        ordered = np.sort(values)
        below = [self.average((values <= each).astype(np.float64)) for each in ordered]

        def first(reached: list[float]) -> float:
            return next((float(at) for at, share_at in zip(ordered, reached, strict=True) if share_at >= share), last)

        last = float(ordered[-1])
        return IntervalEstimate(*(first([getattr(at, edge) for at in below]) for edge in ("value", "high", "low")))

    def _values(self) -> FloatArray:
        if not isinstance(self.space, Numbers):
            raise InvalidProblem("only secrets that are Numbers have a mean and quantiles; use average(values)")
        return self.space.values

    def __repr__(self) -> str:
        return f"FrequencyEstimate({len(self.space)} secrets from {self.sample_size} answers, {self.method})"


def estimate(
    mechanism: FiniteMechanism, outputs: Any, *, method: Method = "likelihood", confidence: float = 0.95
) -> FrequencyEstimate:
    """The frequencies of the secrets behind obfuscated answers, with intervals.

    Intervals are about the table that was released: about the randomness of the mechanism, given the table's secrets.

    Args:
        mechanism: the one that made the answers; each of them from a fresh draw.
        outputs: observables one by one (a list, an array, a column), or counts by observable.
        method: ``"likelihood"``: never negative, sums to one; or ``"unbiased"``: right on average, also in sums.
        confidence: of each interval, by itself.
    """
    require_finite_mechanism(mechanism, "estimate needs the mechanism that made the answers")
    require_choice(method, ("unbiased", "likelihood"), "method")
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InvalidProblem("confidence must be between 0 and 1, such as 0.95")
    positions, times = count_visits(mechanism.observables, outputs)
    counts = np.zeros(len(mechanism.observables))
    np.add.at(counts, positions, times)
    if not 1 <= float(counts.sum()) < inf or (counts < 0).any():
        raise InvalidProblem("there are no answers to estimate anything from")
    if (counts[~mechanism.probabilities.any(axis=0)] > 0).any():
        raise InvalidProblem("some of the answers are never given by this mechanism: they are from another one")
    return FrequencyEstimate(mechanism, counts, method, confidence)


class _Model:
    """The multinomial law of the answers, and what follows from it."""

    def __init__(self, table: FloatArray, counts: FloatArray) -> None:
        used = table.any(axis=0)
        self.table, self.counts = table[:, used], counts[used]
        self.total = float(counts.sum())
        self.shares = self.counts / self.total

    @cached_property
    def inverse(self) -> FloatArray | None:
        """A left inverse of Pᵀ that does not depend on the answers; None where there is none."""
        return left_inverse(self.table)

    def unbiased(self) -> FloatArray:
        """A c."""
        if self.inverse is None:
            raise InvalidProblem("there is no unbiased estimate")
        return self.inverse @ self.shares

    @cached_property
    def likeliest(self) -> FloatArray:
        """The maximum of Σ c_o ln (Pᵀf)_o over frequencies f, by Newton's method with a logarithmic barrier.

        How far it is from the maximum is known at every step: at most ln max_s Σ_o p(o|s) c_o/(Pᵀf)_o.
        """
        found, barrier = np.full(len(self.table), 1.0 / len(self.table)), 0.1
        while barrier > LEAST_BARRIER:
            found = self._centred(found, barrier)
            gap = float(np.log((self.table @ self._ratios(found)).max()))
            if gap <= GAP:
                return found
            barrier *= 0.2
        raise SolveFailed(f"the likelihood is still {gap:.1e} an answer below its maximum: use method='unbiased'")

    def _ratios(self, given: FloatArray) -> FloatArray:
        """C / Pᵀf."""
        return np.asarray(self.shares / (given @ self.table))

    def _centred(self, start: FloatArray, barrier: float) -> FloatArray:
        """Newton steps to the maximum of the likelihood plus ``barrier`` · Σ ln f, kept positive and summing to one."""
        found = start
        for _ in range(MOST_STEPS):
            step, promised = self._newton(found, barrier)
            if promised <= 1e-3 * barrier:
                break
            shrinking = step < 0
            length = min(1.0, 0.95 * float((found[shrinking] / -step[shrinking]).min(initial=inf)))
            before = self._barred(found, barrier)
            while length > SHORTEST and self._barred(found + length * step, barrier) < before + 0.1 * length * promised:
                length /= 2
            found = found + length * step
            found = found / found.sum()
        return found

    def _newton(self, given: FloatArray, barrier: float) -> tuple[FloatArray, float]:
        """The Newton step in frequencies relative to their size, and twice what it promises to gain."""
        ratios, scaled = self._ratios(given), given[:, None] * self.table
        slope = scaled @ ratios + barrier
        curvature = (scaled * (ratios / (given @ self.table))) @ scaled.T + barrier * np.eye(len(given))
        uphill, along = np.linalg.solve(curvature, np.stack([slope, given], axis=1)).T
        relative = uphill - (given @ uphill) / (given @ along) * along
        return given * relative, float(slope @ relative)

    def _barred(self, given: FloatArray, barrier: float) -> float:
        return self._likelihood(given) + barrier * float(np.log(given).sum())

    def _likelihood(self, given: FloatArray) -> float:
        seen = self.shares > 0
        with np.errstate(divide="ignore"):
            return float(self.shares[seen] @ np.log((given @ self.table)[seen]))

    @cached_property
    def identifiable(self) -> bool:
        """Whether so many answers determine every frequency better than no answers do, whatever the frequencies are."""
        if self.inverse is None:
            return False
        of_each = self.table @ (self.inverse**2).T - np.eye(len(self.table))  # (secret, frequency estimated)
        return bool(np.sqrt(of_each.max() / self.total) < KNOWN)

    def interval(self, weights: FloatArray, confidence: float) -> tuple[float, float]:
        """An interval for Σ_s weights(s) f(s), from the left inverse."""
        if self.inverse is None:
            raise InvalidProblem("there is no left inverse")
        score = NormalDist().inv_cdf((1 + confidence) / 2)
        effect = weights @ self.inverse
        of_each = np.maximum(self.table @ effect**2 - (self.table @ effect) ** 2, 0.0)  # of one row, by its secret
        spread = score * float(np.sqrt(self._over_rows(of_each) / self.total))
        middle = float(effect @ self.shares)
        return middle - spread, middle + spread

    def _over_rows(self, of_each: FloatArray) -> float:
        """The mean of a number that each secret has, over the rows of the table; its largest, where that is unknown."""
        try:
            counts = self.total * self.likeliest + HALF
        except SolveFailed:
            return float(of_each.max())
        return float(counts @ of_each / counts.sum())

    def range(self, weights: FloatArray, confidence: float) -> tuple[float, float]:
        """The least and most that frequencies say whose answers would look like those seen, all shares at once.

        A share's variance given the table is at most c (1 − c) / n.
        """
        from scipy.optimize import linprog

        count = len(self.shares)
        score = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * count))
        shares = (self.counts + HALF) / (self.total + HALF * count)
        room = score * np.sqrt(shares * (1 - shares) / self.total) + 1 / self.total
        rows = np.vstack([self.table.T, -self.table.T])
        limits = np.concatenate([self.shares + room, room - self.shares])
        edges = []
        for sign in (1.0, -1.0):
            solved = linprog(sign * weights, rows, limits, np.ones((1, len(weights))), [1.0], method="highs")
            if solved.status != 0:
                raise InvalidProblem("no frequencies fit these answers: they are from another mechanism")
            edges.append(sign * float(solved.fun))
        return edges[0], edges[1]


def left_inverse(table: FloatArray) -> FloatArray | None:
    """A matrix A with A Pᵀ = 1, the same whatever the answers are; None where answers do not determine frequencies.

    Of all of them, the one that varies least where every secret is as frequent as any other.
    """
    typical = table.mean(axis=0)
    used = typical > 0
    if len(table) > int(used.sum()):
        return None
    scaled = table[:, used] / np.sqrt(typical[used])
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    plain = np.linalg.svd(table[:, used], compute_uv=False)
    if any(values[0] > CONDITION * values[-1] for values in (singular, plain)):
        return None
    inverse = np.zeros((len(table), len(used)))
    inverse[:, used] = (left / singular) @ right / np.sqrt(typical[used])
    return inverse

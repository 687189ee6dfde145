r"""Estimates, for the recipient of a table, of the frequencies of the secrets, from the outputs and the mechanism.

The expected shares of the outputs are :math:`c = P^\top f`, with P the mechanism's probabilities and f the frequencies
of the secrets.

- *Unbiased*: :math:`\hat f = A c` with a fixed left inverse A of :math:`P^\top`, so that :math:`E[\hat f] = f`.
  Estimated frequencies may be negative.
- *Maximum likelihood*: the frequencies, non-negative and of sum one, under which the outputs are most likely.

The estimand is the frequencies in the released table: the only randomness is that of the mechanism. Given the table,
outputs are drawn independently from the rows of P, so that a statistic :math:`\sum_o e_o c_o` of n outputs has variance

.. math:: \frac1n \sum_s f_s \Bigl(\sum_o P_{so} e_o^2 - \bigl(\sum_o P_{so} e_o\bigr)^2\Bigr),

which intervals use. They do not cover how the people in the table were sampled from a population. If the outputs do not
identify f, an interval is the range of the statistic over all frequencies that fit the outputs, by linear programming;
its coverage is at least its confidence.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray, as_floats, keep_freed_memory
from privacygames.display import Displayed, ShownTable
from privacygames.errors import Field, InvalidProblem, SolveFailed
from privacygames.mechanism import FiniteMechanism, require_finite_mechanism
from privacygames.spaces import Label, Numbers, Space, count_visits
from privacygames.tables.secret_columns import SecretReader
from privacygames.validation import is_number, require_choice

Method = Literal["unbiased", "likelihood"]
ROWS_AT_ONCE = 1 << 17
"""Rows of an Arrow column that are counted at a time, so that memory does not grow with the column."""

MAX_CONDITION = 1e9
"""Largest condition number of a matrix of probabilities, plain or with its columns scaled by their standard deviations,
whose left inverse is used: beyond it, estimates would need more than 10¹⁸ outputs."""

MAX_STANDARD_ERROR = 1.0
"""Standard error from which a frequency counts as not identified: without any output, it is known to lie in [0, 1]."""

PSEUDOCOUNT = 0.5
"""Rows added to the count of each secret in estimated variances, since an unseen secret is not impossible."""

LINES_SHOWN = 50
"""Secrets that a notebook shows, since each interval may be two linear programs."""

MAX_NEWTON_STEPS, MIN_STEP_LENGTH, MIN_BARRIER = 100, 1e-10, 1e-13
"""Newton steps for one barrier parameter, the shortest step of the line search, and the smallest barrier parameter."""

MAX_GAP = 1e-7
"""Largest distance of the log-likelihood per output from its maximum."""


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with a confidence interval for the statistic of the released table.

    Attributes:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end of the interval.

    >>> print(pg.tables.IntervalEstimate(0.52, 0.49, 0.55))
    0.52 (0.49 to 0.55)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


class FrequencyEstimate(Displayed):
    """Estimated frequencies of the secrets behind many outputs.

    Attributes:
        space: the space of secrets.
        frequencies: the estimated frequency of each, in the order of the space's labels.
        sample_size: the number of outputs.
        method: ``"unbiased"`` or ``"likelihood"``.
        confidence: of each interval separately.
        identifiable: whether so many outputs identify the frequencies: the condition number of the mechanism's matrix
            is at most 10⁹, and the standard error of every frequency is below 1 for every table. If not, intervals are
            ranges over all frequencies that fit the outputs.

    >>> ills = pg.Categories(["flu", "none"])
    >>> mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ills)), epsilon=1.0)
    >>> pg.estimate(mechanism, {"flu": 400, "none": 600}).total(["flu", "none"]).value
    1.0
    """

    def __init__(self, mechanism: FiniteMechanism, counts: FloatArray, method: Method, confidence: float) -> None:
        self.space: Space = mechanism.secrets
        self.method, self.confidence, self.sample_size = method, confidence, int(counts.sum())
        self._model = _MultinomialModel(mechanism.probabilities, counts)
        self.identifiable = self._model.identifiable
        if method == "unbiased" and self._model.inverse is None:
            raise InvalidProblem(
                "the outputs of this mechanism do not identify how frequent each secret was, so no estimate is "
                "unbiased: ask for ",
                Field("method"),
                "='likelihood', whose intervals say what can be known",
            )
        self.frequencies: FloatArray = self._model.unbiased() if method == "unbiased" else self._model.most_likely

    def shown(self) -> ShownTable:
        """The table that people see."""
        lines = []
        for label in self.space.labels[:LINES_SHOWN]:
            estimate = self[label]
            lines.append((str(label), f"{estimate.value:.4g}", f"{estimate.low:.4g} to {estimate.high:.4g}"))
        left_out = len(self.space) - len(lines)
        lines += [(f"and {left_out} more", "", "")] if left_out > 0 else []
        caption = f"Estimated from {self.sample_size} outputs ({self.confidence:.0%} intervals)"
        return ShownTable(caption, ("secret", "frequency", "interval"), lines)

    def _records(self) -> list[dict[str, object]]:
        estimates = [(label, self[label]) for label in self.space.labels]
        return [
            {"secret": label, "frequency": each.value, "low": each.low, "high": each.high} for label, each in estimates
        ]

    def __getitem__(self, label: Label) -> IntervalEstimate:
        """The frequency of one secret."""
        return self.total([label])

    def total(self, labels: Any) -> IntervalEstimate:
        """The frequency of several secrets together."""
        indicator = np.zeros(len(self.space))
        indicator[self.space.indices(labels)] = 1.0
        return self.average(indicator)

    def average(self, values: Any) -> IntervalEstimate:
        """The mean of a number that each secret has, such as its value.

        Args:
            values: a number for each secret, in the order of the space's labels.
        """
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
        """The smallest number that at least this share of the secrets do not exceed.

        Args:
            share: between 0 and 1; 0.5 is the median.
        """
        if not (is_number(share) and 0 < share < 1):
            raise InvalidProblem("a quantile is asked for by a share between 0 and 1, such as 0.5 for the median")
        values = self._values()
        ordered = np.sort(values)
        cumulative = [self.average((values <= number).astype(np.float64)) for number in ordered]

        def first_reached(shares: list[float]) -> float:
            return float(
                next((number for number, reached in zip(ordered, shares, strict=True) if reached >= share), ordered[-1])
            )

        return IntervalEstimate(
            *(first_reached([getattr(each, end) for each in cumulative]) for end in ("value", "high", "low"))
        )

    def _values(self) -> FloatArray:
        if not isinstance(self.space, Numbers):
            raise InvalidProblem("only secrets that are Numbers have a mean and quantiles; use average(values)")
        return self.space.values

    def __repr__(self) -> str:
        return f"FrequencyEstimate({len(self.space)} secrets from {self.sample_size} outputs, {self.method})"


def estimate(
    mechanism: FiniteMechanism, outputs: Any, *, method: Method = "likelihood", confidence: float = 0.95
) -> FrequencyEstimate:
    """Estimate the frequencies of the secrets behind a mechanism's outputs, with confidence intervals.

    Intervals are about the released table: they cover the randomness of the mechanism, given the table's secrets.

    Args:
        mechanism: the mechanism that drew the outputs, each of them independently.
        outputs: the outputs one by one (a list, an array, a column; an Arrow column is read at once), or counts by
            output.
        method: ``"likelihood"``: non-negative frequencies of sum one; or ``"unbiased"``: right on average.
        confidence: of each interval separately.

    >>> ages = pg.Numbers(range(20, 24), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=1.0)
    >>> print(pg.estimate(mechanism, [21, 22, 23, 21, 22, 20, 21] * 100).mean())
    21.35 (21.34 to 21.52)
    """
    require_finite_mechanism(mechanism, "estimate needs the mechanism that drew the outputs")
    require_choice(method, ("unbiased", "likelihood"), "method")
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InvalidProblem("confidence must be between 0 and 1, such as 0.95")
    counts = _count_arrow(mechanism.observables, outputs)
    if counts is None:
        positions, times = count_visits(mechanism.observables, outputs)
        counts = np.zeros(len(mechanism.observables))
        np.add.at(counts, positions, times)
    if not 1 <= float(counts.sum()) < inf or (counts < 0).any():
        raise InvalidProblem("there are no outputs to estimate anything from")
    if (counts[~mechanism.probabilities.any(axis=0)] > 0).any():
        raise InvalidProblem("this mechanism never draws some of the outputs: they are from another one")
    return FrequencyEstimate(mechanism, counts, method, confidence)


def _count_arrow(space: Space, outputs: Any) -> FloatArray | None:
    """How often each output is in an Arrow array, plain or chunked; None where they have to be counted one by one."""
    pa = sys.modules.get("pyarrow")  # where it was not imported, there is no Arrow array
    if pa is None or not isinstance(outputs, pa.Array | pa.ChunkedArray):
        return None
    keep_freed_memory()
    reader, counts = SecretReader(space, "outputs"), np.zeros(len(space))
    chunks = outputs.chunks if isinstance(outputs, pa.ChunkedArray) else [outputs]
    for part in (chunk.slice(start, ROWS_AT_ONCE) for chunk in chunks for start in range(0, len(chunk), ROWS_AT_ONCE)):
        try:
            positions = reader.positions({"outputs": part})
        except InvalidProblem:  # such as a column of texts and numbers
            return None
        if int(positions.min(initial=0)) < 0:  # counted one by one, it is found where
            return None
        counts += np.bincount(positions, minlength=len(space))
    return counts


class _MultinomialModel:
    """The multinomial model of the outputs' counts."""

    def __init__(self, table: FloatArray, counts: FloatArray) -> None:
        used = table.any(axis=0)
        self.table, self.counts = table[:, used], counts[used]
        self.total = float(counts.sum())
        self.shares = self.counts / self.total

    @cached_property
    def inverse(self) -> FloatArray | None:
        """A left inverse of Pᵀ that does not depend on the outputs; None if there is none."""
        return left_inverse(self.table)

    def unbiased(self) -> FloatArray:
        """A c."""
        if self.inverse is None:
            raise InvalidProblem("there is no unbiased estimate")
        return self.inverse @ self.shares

    @cached_property
    def most_likely(self) -> FloatArray:
        r"""The maximum of :math:`\sum_o c_o \ln (P^\top f)_o` over frequencies f, by a barrier method.

        The distance from the maximum is at most :math:`\ln \max_s \sum_o p(o|s)\, c_o/(P^\top f)_o` at every step.
        """
        frequencies, barrier = np.full(len(self.table), 1.0 / len(self.table)), 0.1
        while barrier > MIN_BARRIER:
            frequencies = self._maximise_barrier(frequencies, barrier)
            gap = float(np.log((self.table @ self._ratios(frequencies)).max()))
            if gap <= MAX_GAP:
                return frequencies
            barrier *= 0.2
        raise SolveFailed(f"the likelihood is still {gap:.1e} per output below its maximum: use method='unbiased'")

    def _ratios(self, frequencies: FloatArray) -> FloatArray:
        """The observed share of each output over its expected one."""
        return np.asarray(self.shares / (frequencies @ self.table))

    def _maximise_barrier(self, start: FloatArray, barrier: float) -> FloatArray:
        """Newton steps to the maximum of the log-likelihood plus ``barrier`` · Σ ln f, over positive f of sum one."""
        frequencies = start
        for _ in range(MAX_NEWTON_STEPS):
            step, slope = self._newton_step(frequencies, barrier)
            if slope <= 1e-3 * barrier:
                break
            shrinking = step < 0
            length = min(1.0, 0.95 * float((frequencies[shrinking] / -step[shrinking]).min(initial=inf)))
            value = self._barrier_value(frequencies, barrier)
            while (
                length > MIN_STEP_LENGTH
                and self._barrier_value(frequencies + length * step, barrier) < value + 0.1 * length * slope
            ):
                length /= 2
            frequencies = frequencies + length * step
            frequencies = frequencies / frequencies.sum()
        return frequencies

    def _newton_step(self, frequencies: FloatArray, barrier: float) -> tuple[FloatArray, float]:
        """The Newton step, computed relative to the frequencies, and the slope along it."""
        ratios, scaled = self._ratios(frequencies), frequencies[:, None] * self.table
        gradient = scaled @ ratios + barrier
        hessian = (scaled * (ratios / (frequencies @ self.table))) @ scaled.T + barrier * np.eye(len(frequencies))
        unconstrained, normal = np.linalg.solve(hessian, np.stack([gradient, frequencies], axis=1)).T
        relative = unconstrained - (frequencies @ unconstrained) / (frequencies @ normal) * normal
        return frequencies * relative, float(gradient @ relative)

    def _barrier_value(self, frequencies: FloatArray, barrier: float) -> float:
        return self._log_likelihood(frequencies) + barrier * float(np.log(frequencies).sum())

    def _log_likelihood(self, frequencies: FloatArray) -> float:
        seen = self.shares > 0
        with np.errstate(divide="ignore"):
            return float(self.shares[seen] @ np.log((frequencies @ self.table)[seen]))

    @cached_property
    def identifiable(self) -> bool:
        """Whether so many outputs estimate every frequency better than none, whatever the frequencies are."""
        if self.inverse is None:
            return False
        variances = self.table @ (self.inverse**2).T - np.eye(len(self.table))  # (secret, frequency estimated)
        return bool(np.sqrt(variances.max() / self.total) < MAX_STANDARD_ERROR)

    def interval(self, weights: FloatArray, confidence: float) -> tuple[float, float]:
        """An interval for Σ_s weights(s) f(s), from the left inverse."""
        if self.inverse is None:
            raise InvalidProblem("there is no left inverse")
        score = NormalDist().inv_cdf((1 + confidence) / 2)
        effect = weights @ self.inverse
        variances = np.maximum(self.table @ effect**2 - (self.table @ effect) ** 2, 0.0)  # of one row, by its secret
        spread = score * float(np.sqrt(self._mean_over_rows(variances) / self.total))
        centre = float(effect @ self.shares)
        return centre - spread, centre + spread

    def _mean_over_rows(self, by_secret: FloatArray) -> float:
        """The mean over the rows of the table of a number that each secret has; its maximum if that is unknown."""
        try:
            counts = self.total * self.most_likely + PSEUDOCOUNT
        except SolveFailed:
            return float(by_secret.max())
        return float(counts @ by_secret / counts.sum())

    def range(self, weights: FloatArray, confidence: float) -> tuple[float, float]:
        """The smallest and largest value over all frequencies whose expected shares are close to those observed.

        Bounds of all shares hold simultaneously; the variance of a share c given the table is at most c (1 − c) / n.
        """
        from scipy.optimize import linprog

        count = len(self.shares)
        score = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * count))
        shares = (self.counts + PSEUDOCOUNT) / (self.total + PSEUDOCOUNT * count)
        margin = score * np.sqrt(shares * (1 - shares) / self.total) + 1 / self.total
        rows = np.vstack([self.table.T, -self.table.T])
        limits = np.concatenate([self.shares + margin, margin - self.shares])
        ends = []
        for sign in (1.0, -1.0):
            solved = linprog(sign * weights, rows, limits, np.ones((1, len(weights))), [1.0], method="highs")
            if solved.status != 0:
                raise InvalidProblem("no frequencies fit these outputs: they are from another mechanism")
            ends.append(sign * float(solved.fun))
        return ends[0], ends[1]


def left_inverse(table: FloatArray) -> FloatArray | None:
    """A left inverse of Pᵀ that does not depend on the outputs; None if outputs do not identify frequencies.

    Of all left inverses, the one with least variance if all secrets are equally frequent.
    """
    typical = table.mean(axis=0)
    used = typical > 0
    if len(table) > int(used.sum()):
        return None
    scaled = table[:, used] / np.sqrt(typical[used])
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    plain = np.linalg.svd(table[:, used], compute_uv=False)
    if any(values[0] > MAX_CONDITION * values[-1] for values in (singular, plain)):
        return None
    inverse = np.zeros((len(table), len(used)))
    inverse[:, used] = (left / singular) @ right / np.sqrt(typical[used])
    return inverse

r"""The sum of many independent losses: bounds on its δ by a tilted Fourier transform.

Sums are distributed as a cyclic convolution, by FFT, of masses that are *tilted*: multiplied by :math:`e^{\theta L}`
and normalised. With θ from Chernoff's bound most of the tilted mass is near ε, so that the errors of the FFT and of the
window are relative to the size of δ, not to 1. Both are bounded, and counted on the safe side
(docs/theory/composition.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp, expm1, inf, log, log1p, log2, nextafter

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.optimize import minimize_scalar

from privacygames.arrays import FloatArray, IntArray
from privacygames.composition.grid_losses import UNIT, GridLosses
from privacygames.errors import InvalidProblem

TiltedLosses = tuple[GridLosses, FloatArray, int]
"""Losses, their tilted masses, and the number of times that they occur."""

FFT_ERROR = 16 * UNIT
"""Relative 2-norm error of an FFT for each doubling of its length: twice what Higham (Accuracy and Stability,
theorem 24.2) proves with exponentials of relative error UNIT."""

TAIL = 2.0**-64
"""Tilted probability outside the window, at most: below the error of the FFT."""

TAIL_TILTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Exponents, relative to 1 / standard deviation, that the bound on the tails is tried with; any is valid."""

NEGLIGIBLE = 200.0
"""Exponent of the gains that are bounded instead of computed: e^−200 is below all other errors."""

SMALLEST_TILT, LARGEST_TILT = 2.0**-20, 2.0**14
"""The range of θ."""

LONGEST_WINDOW = 2**20
"""Number of steps in the largest window: some dozens of megabytes."""

LARGEST_EXPONENT = 600.0
"""Exponent above which a bound from an unsuitable tilt is not evaluated: floats end near e^709."""

SLACK = 1 + 2.0**-30
"""Factor for the roundings of sums and exponentials in the last steps, each of which is below 2^-40."""

BISECTIONS = 44
"""Halvings of an interval that ε is searched in."""


@dataclass(frozen=True, eq=False)
class TiltedSum:
    """The tilted distribution of the sum, in a window.

    Attributes:
        tilt: θ.
        positions: sums in steps.
        masses: their tilted probabilities, with errors.
        error: the largest 2-norm of these errors.
        outside: the tilted probability outside the window, at most.
    """

    tilt: float
    positions: IntArray
    masses: FloatArray
    error: float
    outside: float


class LossSum:
    """The sum of many independent losses on a grid, and bounds on the δ that follows from it.

    Args:
        parts: losses, with the number of times that each occurs.
        step: the step of the grid.
        sign: 1 for upper bounds, −1 for lower ones.
    """

    def __init__(self, parts: list[tuple[GridLosses, int]], step: float, *, sign: int) -> None:
        self.parts, self.step, self.sign = parts, step, sign
        finite = sum(count * log1p(-min(part.infinite, 1 - UNIT)) for part, count in parts)
        self.infinite = max(-expm1(finite) * (SLACK if sign > 0 else 1 / SLACK), 0.0)
        self._last: TiltedSum | None = None

    def delta(self, epsilon: float) -> float:
        """The bound on δ for an ε."""
        return self._delta(epsilon, self._tilt(epsilon))

    def epsilon(self, delta: float) -> float:
        """The least ε at which δ is not above; found by halving with two tilts, the second for the first's result."""
        if self.infinite > delta:
            return inf
        if self._delta(0.0, self._tilt(0.0)) <= delta:
            return 0.0
        low, high = 0.0, self._most()
        estimate = self._bisect(low, high, lambda at: self._chernoff(at)[1] <= log(delta))
        for _ in range(2):
            tilt = self._tilt(estimate)
            estimate = self._bisect(low, high, partial(self._below, delta, tilt))
        return estimate

    def _below(self, delta: float, tilt: float, epsilon: float) -> bool:
        return self._delta(epsilon, tilt) <= delta

    def _bisect(self, low: float, high: float, holds: Callable[[float], bool]) -> float:
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high if self.sign > 0 else low

    def _most(self) -> float:
        """An ε that no sum of finite losses exceeds."""
        largest = sum(count * max(float(part.positions.max(initial=0)) * self.step, 0.0) for part, count in self.parts)
        return nextafter(largest * SLACK, inf)

    def _chernoff(self, epsilon: float) -> tuple[float, float]:
        """The θ that minimises ln E e^(θ(ΣL − ε)), and that minimum: a bound on ln P(ΣL > ε)."""

        def exponent(log_tilt: float) -> float:
            tilt = exp(log_tilt)
            return self._log_moment(tilt) - tilt * epsilon

        best = minimize_scalar(exponent, bounds=(log(SMALLEST_TILT), log(LARGEST_TILT)), method="bounded")
        return exp(float(best.x)), min(float(best.fun), 0.0)

    def _tilt(self, epsilon: float) -> float:
        """The θ of Chernoff's bound, or a smaller one where its window would not fit into memory."""
        tilt = self._chernoff(epsilon)[0]
        while all(len(part.masses) for part, _ in self.parts):
            _, low, high, _ = self._window(tilt)
            if high - low <= LONGEST_WINDOW:
                break
            if tilt < SMALLEST_TILT:
                raise InvalidProblem("the step is too small for the losses of so many releases: double it a few times")
            tilt /= 2
        return tilt

    def _log_moment(self, tilt: float) -> float:
        return sum(count * part.log_moment(self.step, tilt) for part, count in self.parts if len(part.masses))

    def _delta(self, epsilon: float, tilt: float) -> float:
        """The bound on δ that a tilt gives: any is valid."""
        if any(not len(part.masses) for part, _ in self.parts):  # a release gives every secret away
            return min(self.infinite, 1.0)
        if self._last is None or self._last.tilt != tilt:
            self._last = self._convolved(tilt)
        window = self._last
        beyond = window.positions * self.step - epsilon
        used = slice(*np.searchsorted(beyond, [0.0, NEGLIGIBLE / tilt], side="right").tolist())
        gains = -np.expm1(-beyond[used]) * np.exp(-tilt * beyond[used])
        # The largest (1 − e^−y)·e^(−θy) is at e^y = 1 + 1/θ. The integral of its square is the quotient below, and it
        # rises and falls once, so that a sum exceeds the integral by no more than the largest.
        largest = exp(-tilt * log1p(1 / tilt)) / (1 + tilt)
        integral = 1 / (2 * tilt * (2 * tilt + 1) * (tilt + 1))
        squares = min(integral / self.step + largest**2, len(beyond) * largest**2)
        doubt = window.error * squares**0.5 + window.outside * largest + 2 * exp(-NEGLIGIBLE)
        total = max(float(window.masses[used] @ gains) + self.sign * doubt * SLACK, 0.0)
        exponent = self._log_moment(tilt) - tilt * epsilon
        # Exponents are rounded relative to themselves; sums and logarithms of masses, to the number of terms and to 43.
        rounding = 16 * UNIT * (tilt * epsilon + 1) + 16 * UNIT * sum(
            count * (tilt * self.step * float(np.abs(part.positions).max()) + len(part.masses) + 64)
            for part, count in self.parts
        )
        exponent += self.sign * rounding
        if exponent > LARGEST_EXPONENT:
            return 1.0 if self.sign > 0 else self.infinite
        finite = total * exp(exponent) * (SLACK if self.sign > 0 else 1 / SLACK)
        return float(min(finite + self.infinite, 1.0))

    def _window(self, tilt: float) -> tuple[list[TiltedLosses], int, int, float]:
        """Tilted losses, the range of their sums but for rare ones, and the probability of these, at most."""
        tilted = [(part, part.tilted(self.step, tilt), count) for part, count in self.parts]
        mean = sum(count * float(masses @ part.positions) for part, masses, count in tilted)
        variance = sum(count * _variance(masses, part.positions) for part, masses, count in tilted)
        lowest = sum(count * int(part.positions.min()) for part, _, count in tilted)
        highest = sum(count * int(part.positions.max()) for part, _, count in tilted)
        low, high = (_tail_position(tilted, mean, variance, direction) for direction in (-1, 1))
        outside = (TAIL if low > lowest else 0.0) + (TAIL if high < highest else 0.0)
        return tilted, max(low, lowest), min(high, highest), outside

    def _convolved(self, tilt: float) -> TiltedSum:
        tilted, low, high, outside = self._window(tilt)
        length = 1 << max(high - low, 1).bit_length()
        spectrum, error = np.ones(length // 2 + 1, dtype=np.complex128), 0.0
        per_transform = FFT_ERROR * log2(length)
        for part, masses, count in tilted:
            folded = np.bincount(part.positions % length, masses, length)
            spectrum = spectrum * _power(fft.rfft(folded), count)
            error += count * (per_transform * float(np.linalg.norm(folded)) + 16 * UNIT)
        values = fft.irfft(spectrum, length)
        error = SLACK * (error + 2 * per_transform * float(np.linalg.norm(values)))
        return TiltedSum(tilt, np.arange(low, low + length), np.roll(values, -(low % length)), error, outside)


def _variance(masses: FloatArray, positions: IntArray) -> float:
    return float(masses @ (positions - float(masses @ positions)) ** 2)


def _tail_position(tilted: list[TiltedLosses], mean: float, variance: float, direction: int) -> int:
    """A position beyond which, upwards or downwards, there is at most the mass TAIL: by Chernoff's bound."""
    reach = inf
    for relative in TAIL_TILTS:
        exponent = relative / max(variance, 1.0) ** 0.5
        log_moment = 0.0
        for part, masses, count in tilted:
            with np.errstate(divide="ignore"):
                logs = np.log(masses) + direction * exponent * part.positions
            log_moment += count * float(np.logaddexp.reduce(logs))
        reach = min(reach, (log_moment - log(TAIL)) / exponent)
    return direction * int(np.ceil(reach) + 1 + abs(mean) * 1e-9)


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """Powers by repeated squaring, whose relative error grows with the exponent only linearly."""
    result, square = np.ones_like(values), values
    while count:
        if count & 1:
            result = result * square
        square, count = square * square, count >> 1
    return result

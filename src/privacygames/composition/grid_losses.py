r"""Privacy losses moved to multiples of a step, so that δ can only grow, or only fall.

:math:`\delta(\varepsilon) = \mathbb{E}(1 - e^{\varepsilon - \sum L_t})^+` is convex and decreasing in every
:math:`x_t = e^{-L_t}`, where the losses :math:`L_t` are independent under P.

- **upper**: the mass of each loss is split between its two neighbours so that the mean of x is the same. By convexity δ
  can only grow (Doroshenko et al. 2022 call it connecting the dots). Doubtful digits go to the larger loss.
- **lower**: losses are rounded down, which increases x; and up where what x gained at larger losses outweighs what it
  loses, so that :math:`\mathbb{E}(\alpha - x)^+`, and with it δ, falls for every α.
"""

from dataclasses import dataclass
from math import expm1

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.composition.dominating_pairs import DominatingPair

UNIT = 2.0**-53
"""Unit roundoff of floating-point numbers."""

LOSS_ERROR = 400 * UNIT
"""Error of a computed privacy loss: four roundings of logarithms, none of which exceeds ln 2^62 = 43; twice that."""


@dataclass(frozen=True, eq=False)
class GridLosses:
    """Privacy losses moved to multiples of a step: the masses under P, and the mass of infinite loss.

    Attributes:
        positions: the losses in steps.
        masses: their probabilities.
        infinite: the probability that the loss is infinite.
    """

    positions: IntArray
    masses: FloatArray
    infinite: float

    def log_moment(self, step: float, tilt: float) -> float:
        """The logarithm of Σ mass·e^(tilt·loss)."""
        return float(np.logaddexp.reduce(np.log(self.masses) + tilt * step * self.positions))

    def tilted(self, step: float, tilt: float) -> FloatArray:
        """The masses times e^(tilt·loss), normalised."""
        exponents = np.log(self.masses) + tilt * step * self.positions
        return np.asarray(np.exp(exponents - np.logaddexp.reduce(exponents)))


def _finite_losses(pair: DominatingPair) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Finite losses in decreasing order, and their probabilities under P and Q."""
    finite = np.isfinite(pair.losses)
    first, second = (np.ldexp(each[finite].astype(np.float64), -pair.bits) for each in (pair.first, pair.second))
    return pair.losses[finite], first, second


def _infinite_loss(pair: DominatingPair) -> float:
    return float(np.ldexp(pair.first[np.isposinf(pair.losses)].astype(np.float64), -pair.bits).sum())


def spread_up(pair: DominatingPair, step: float) -> GridLosses:
    """Losses split between neighbouring multiples of the step so that the mean of e^−loss does not grow."""
    losses, masses, _ = _finite_losses(pair)
    losses = losses + LOSS_ERROR
    below = np.floor(losses / step)
    up = np.minimum(np.expm1(below * step - losses) / expm1(-step) * (1 + 8 * UNIT), 1.0)
    positions = below.astype(np.int64)
    return _merged(
        np.concatenate([positions, positions + 1]),
        np.concatenate([masses * (1 - up), masses * up]),
        _infinite_loss(pair),
        sign=1,
    )


def drawn_together(pair: DominatingPair, step: float) -> GridLosses:
    """Losses rounded down and, as far as larger losses have made up for it, up."""
    losses, first, second = _finite_losses(pair)
    losses = losses - LOSS_ERROR
    positions = np.floor(losses / step).astype(np.int64)
    gains = second * np.expm1(losses - positions * step) * (1 - 8 * UNIT)
    costs = -second * np.expm1(losses - (positions + 1) * step) * (1 + 8 * UNIT)
    cells, starts = np.unique(-positions, return_index=True)
    gain, cost = (np.add.reduceat(each, starts) if len(each) else each for each in (gains, costs))
    shares, credit = np.zeros(len(cells)), 0.0
    for cell in range(len(cells)):  # what a cell gains counts from the next one on
        shares[cell] = min(credit / cost[cell], 1.0) if cost[cell] > 0 else 0.0
        credit = max(credit - shares[cell] * cost[cell], 0.0) + (1 - shares[cell]) * gain[cell]
        credit *= 1 - len(losses) * 8 * UNIT
    up = np.repeat(shares, np.diff(np.append(starts, len(losses)))) * (1 - 8 * UNIT)
    return _merged(
        np.concatenate([positions, positions + 1]),
        np.concatenate([first * (1 - up), first * up]),
        _infinite_loss(pair),
        sign=-1,
    )


def _merged(positions: IntArray, masses: FloatArray, infinite: float, sign: int) -> GridLosses:
    """Equal positions added up, with the errors of all sums on the safe side."""
    margin = 1 + sign * (len(masses) + 8) * 2 * UNIT
    unique, place = np.unique(positions, return_inverse=True)
    sums = np.asarray(np.bincount(place, masses, len(unique)) * margin, dtype=np.float64)
    return GridLosses(unique[sums > 0], sums[sums > 0], infinite * margin)

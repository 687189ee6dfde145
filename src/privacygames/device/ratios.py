"""Every ratio of weights against what epsilon allows, decided in integers exactly as a device decides it.

The bound on a ratio is a whole number below 2^256·e^(ε·d), of which each step is rounded down. The verifier of
certificates (``certificates/verifier.py``) rounds differently in the last digit; here the result must be the device's.
"""

from collections.abc import Sequence

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import rough_enclosure
from privacygames.errors import GuaranteeViolated

PRECISION = 256
"""Bits after the binary point of exponentials."""

HALVINGS = 16
"""The exponent is halved so often before Taylor's series, and the result is squared as often."""

LARGEST_EXPONENT = 50.0
"""Exponent above which a ratio of 62-bit integers can only fail where one of them is 0: e^50 > 2^62."""

MOST_EXACT = 2_000_000
"""Maximum number of ratios that are decided by exact integers; only a hostile file needs more."""

ROUGH_MARGIN = 2.0**-50
"""Relative margin for the rounding of weights and bounds to floats."""


def exponential_below(integer: int, exponent: int) -> int:
    """A whole number below 2^256·e^x for x = integer·2^exponent, from 0 to some hundreds; exact for x = 0.

    >>> pg.device.exponential_below(1, 0) / 2**256
    2.718281828459045
    >>> pg.device.exponential_below(0, 0) == 2**256
    True
    """
    shift = exponent + PRECISION - HALVINGS
    x = integer << shift if shift >= 0 else integer >> -shift
    total = term = 1 << PRECISION
    number = 1
    while term:
        term = (term * x >> PRECISION) // number
        total += term
        number += 1
    for _ in range(HALVINGS):
        total = total * total >> PRECISION
    return total


def check_ratios(
    weights: IntArray, epsilon: float, distances: FloatArray, positions: IntArray, within: float | None
) -> None:
    """Refuse weights of which some ratio exceeds what epsilon allows.

    Args:
        weights: (secrets, outputs).
        epsilon: ε per unit of distance; in the threshold form, for the pairs that are near each other.
        distances: the distances that occur, in ascending order.
        positions: (secrets, secrets) positions in that list.
        within: the threshold, in the threshold form.

    Raises:
        GuaranteeViolated: the guarantee does not hold.
    """
    separations = _separations(distances, within)
    bounds: dict[float, int] = {}
    rough, _ = rough_enclosure(epsilon, np.array([np.inf if each is None else each for each in separations]))
    rough *= 1 - ROUGH_MARGIN
    approximate = weights.astype(np.float64)
    decided = 0
    for secret, row in enumerate(positions):
        others = np.flatnonzero(np.isfinite(rough[row]) & (np.arange(len(row)) != secret))
        limits = rough[row[others], None] * approximate[others]
        near = ~(approximate[secret] <= limits) & (weights[secret] > weights[others])
        for at, output in np.argwhere(near).tolist():
            other = int(others[at])
            separation = separations[int(row[other])]
            decided += 1
            if decided > MOST_EXACT:
                raise GuaranteeViolated("so many ratios are near their bounds that they cannot be decided")
            if separation is None:
                continue
            if separation not in bounds:
                bounds[separation] = _bound(epsilon, separation)
            if int(weights[secret, output]) << PRECISION > bounds[separation] * int(weights[other, output]):
                raise GuaranteeViolated("a ratio of two probabilities exceeds what epsilon allows")


def _separations(distances: FloatArray, within: float | None) -> Sequence[float | None]:
    """By how much epsilon is multiplied at each distance; None where nothing is bounded."""
    if within is not None:
        return [1.0 if distance <= within else None for distance in distances.tolist()]
    return [None if distance == np.inf else distance for distance in distances.tolist()]


def _bound(epsilon: float, separation: float) -> int:
    if epsilon * separation >= LARGEST_EXPONENT:
        return exponential_below(int(LARGEST_EXPONENT), 0)
    numerators, denominators = zip(epsilon.as_integer_ratio(), separation.as_integer_ratio(), strict=True)
    exponent = 2 - sum(denominator.bit_length() for denominator in denominators)  # both are powers of two
    return exponential_below(numerators[0] * numerators[1], exponent)

"""Rigorous lower and upper bounds on exponentials: a fast one for whole arrays, and a tight one for single values."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from math import inf, nextafter

import numpy as np

from privacygames.arrays import FloatArray

INTEGER_EXPONENT = 50.0
"""Exponent above which a ratio only means "not zero" between 64-bit weights: e^50 > 2^64."""

OVERFLOW = 700.0
"""Exponent above which the upper bound is ∞: floats end near e^709."""

DEGREE = 13
"""Degree of the Taylor polynomial."""

INVERSE_LN2, LN2_HIGH, LN2_LOW = 1.4426950408889634, float.fromhex("0x1.62e42feep-1"), 1.9082149292705877e-10
"""ln 2 = LN2_HIGH + LN2_LOW to within 2^-86; the first has 32 bits, so that its integer multiples are exact."""

ROUGH_ERROR = 2.0**-41
"""Relative error of the value in :func:`rough_enclosure`, twice the proved one."""


def rough_enclosure(epsilon: float, separation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Floats below and above exp(epsilon·separation), a relative 2^-40 apart; ∞ where the separation is.

    With k the integer nearest to x/ln 2 and r = x − k·ln 2, e^x = 2^k·e^r and |r| < 0.35. In IEEE arithmetic, whose
    sums and products are correctly rounded, the errors are, relative to e^x:

    - 2^-53·x ≤ 2^-43 from rounding x = epsilon·separation (x ≤ 700);
    - 2^-51 in r, since k·LN2_HIGH is exact and a difference is rounded relative to itself;
    - 0.35^14/14! < 2^-57 from cutting Taylor's series after the 13th power;
    - 40·2^-53·e^0.35 < 2^-46 from rounding in Horner's scheme (Higham §5.1).

    Scaling by 2^k is exact. Together that is less than 2^-42, half of ROUGH_ERROR.

    The lower bound is at most e^50, and the upper bound of anything above e^700 is ∞.
    """
    product = epsilon * separation
    finite = np.where(product <= OVERFLOW, product, 0.0)
    binary_exponents = np.rint(finite * INVERSE_LN2)
    remainder = (finite - binary_exponents * LN2_HIGH) - binary_exponents * LN2_LOW
    value = np.ones_like(remainder)
    for power in range(DEGREE, 0, -1):
        value *= remainder
        value /= power
        value += 1.0
    value = np.ldexp(value, binary_exponents.astype(np.int64))
    below = np.where(product <= INTEGER_EXPONENT, value * (1 - ROUGH_ERROR), LARGE_LOWER_BOUND)
    above = np.where(product <= OVERFLOW, value * (1 + ROUGH_ERROR), inf)
    return np.where(np.isinf(separation), inf, np.maximum(below, 1.0)), above


@lru_cache(maxsize=1 << 17)
def exact_enclosure(epsilon: float, separation: float) -> tuple[float, float]:
    """The floats next to exp(epsilon·separation), below and above.

    The exponent is the exact product of two floats, and ``decimal`` rounds its exponential correctly, so the
    neighbouring floats enclose the true value.
    """
    if separation == inf:
        return inf, inf
    lower = _decimals(40, ROUND_FLOOR).multiply(Decimal(epsilon), Decimal(separation))
    upper = _decimals(40, ROUND_CEILING).multiply(Decimal(epsilon), Decimal(separation))
    precise = _decimals(25, ROUND_HALF_EVEN)  # in which exp is correctly rounded
    if upper > OVERFLOW:
        return float(precise.exp(Decimal(INTEGER_EXPONENT))), inf
    lower = min(lower, Decimal(INTEGER_EXPONENT))  # smaller is stricter; between integers no stricter
    below = nextafter(float(precise.exp(lower)), 0.0)
    return max(below, 1.0), nextafter(float(precise.exp(upper)), inf)


def _decimals(digits: int, rounding: str) -> Context:
    """A decimal context that depends on no global setting."""
    return Context(prec=digits, rounding=rounding, Emin=-999999, Emax=999999, capitals=1, clamp=0, flags=[], traps=[])


LARGE_LOWER_BOUND = nextafter(float(_decimals(25, ROUND_HALF_EVEN).exp(Decimal(INTEGER_EXPONENT))), 0.0)
"""Lower bound on the exponential of every exponent from ``INTEGER_EXPONENT`` on."""

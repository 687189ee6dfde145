"""Floating-point products and sums that are rounded only in the last step, for large terms that cancel."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray

MAX_SPLITS = 4
"""Maximum number of passes that split leading digits off the terms: after four, the remainder is negligible."""


def exact_products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two arrays with a·b = high + low exactly, by the splitting of Dekker and Veltkamp.

    All values must lie within 10^±60, so that nothing overflows or underflows.
    """
    high = a * b
    heads = []
    for factor in (a, b):
        shifted = factor * (2.0**27 + 1)
        heads.append(shifted - (shifted - factor))
    (head_a, head_b), (tail_a, tail_b) = heads, (a - heads[0], b - heads[1])
    low = ((head_a * head_b - high) + head_a * tail_b + tail_a * head_b) + tail_a * tail_b
    return high, low


def exact_sums(indices: IntArray, terms: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """The sum of the terms with each index, and an upper bound on its error.

    Rump, Ogita and Oishi (2008): the digits of all terms above a common last digit are added without rounding, then
    those of the remainders, and so on. ``remainder`` bounds what is never added.
    """
    total, error = np.zeros(size), np.zeros(size)
    headroom = 2.0 ** np.ceil(np.log2(len(terms) + 2))
    for _ in range(MAX_SPLITS):
        largest = float(np.abs(terms).max(initial=0.0))
        if largest == 0:
            break
        shift = headroom * 2.0 ** np.ceil(np.log2(largest))
        digits = (terms + shift) - shift
        terms = terms - digits
        part = np.bincount(indices, digits, size)
        after = total + part
        added = after - total
        error += np.abs((total - (after - added)) + (part - added))  # the rounding error of that sum, exactly (Knuth)
        total = after
    remainder = len(terms) * float(np.abs(terms).max(initial=0.0))
    return total, (error + remainder) * (1 + 2.0**-48)

"""Products and sums of floating-point numbers without rounding until the last step: for large terms that cancel."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray

SPLITS = 4


def exact_products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a·b = high + low exactly, but for underflow: Dekker's and Veltkamp's splitting (all within 10^±60)."""
    high = a * b
    tops = []
    for each in (a, b):
        shifted = each * (2.0**27 + 1)
        tops.append(shifted - (shifted - each))
    (top_a, top_b), (rest_a, rest_b) = tops, (a - tops[0], b - tops[1])
    low = ((top_a * top_b - high) + top_a * rest_b + rest_a * top_b) + rest_a * rest_b
    return high, low


def exact_sums(places: IntArray, terms: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """What is added up at each place, and by how much that may be off.

    Rump, Ogita and Oishi (2008): of every term, the digits above a common last one add up without rounding; then those
    of what is left, and so on. What is never added is smaller than ``rest``.
    """
    total, unsure = np.zeros(size), np.zeros(size)
    room = 2.0 ** np.ceil(np.log2(len(terms) + 2))
    for _ in range(SPLITS):
        largest = float(np.abs(terms).max(initial=0.0))
        if largest == 0:
            break
        shift = room * 2.0 ** np.ceil(np.log2(largest))
        digits = (terms + shift) - shift
        terms = terms - digits
        part = np.bincount(places, digits, size)
        after = total + part
        added = after - total
        unsure += np.abs((total - (after - added)) + (part - added))  # what that sum lost, exactly (Knuth's)
        total = after
    rest = len(terms) * float(np.abs(terms).max(initial=0.0))
    return total, (unsure + rest) * (1 + 2.0**-48)

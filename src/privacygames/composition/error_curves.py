r"""Curves of false alarms and detections between two rows of integer weights, and the concave hull of many: exact.

A test that decides for the row :math:`w` against :math:`w'` when the output is in a set :math:`S` detects with the
weight :math:`A = w(S)` and raises a false alarm with :math:`B = w'(S)`. The best tests take the outputs in decreasing
order of :math:`w/w'`. Their points :math:`(B, A)` are sums of integers, so that nothing here is rounded.
"""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray

FILTER_PASSES = 40
"""Passes over all points that drop those below a neighbouring chord, before the exact hull is computed one by one."""

CLEARLY_BELOW = 2.0**-40
"""Relative distance below a chord at which floating point, whose error is below 2^-48, decides without doubt."""

HALF_BITS = np.uint64(31)
HALF = np.uint64(2**31 - 1)
"""Weights of at most 2^62 are multiplied in halves of 31 bits, whose products fit into 64 bits."""

Unsigned = NDArray[np.uint64]


def best_tests(row: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """False alarms and detections of the best tests of one row against each of the others.

    Args:
        row: (outputs,) weights.
        others: (rows, outputs) weights with the same sum.

    Returns:
        Two arrays (rows, outputs): after each output, in decreasing order of its likelihood ratio.
    """
    alarms, detections = np.array(others, dtype=np.int64), np.broadcast_to(row, others.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = detections.astype(np.float64) / alarms
    ratios[np.isnan(ratios)] = -1.0  # outputs that neither row gives come last
    order = np.argsort(-ratios, axis=1, kind="stable")
    alarms, detections = (np.take_along_axis(each, order, axis=1) for each in (alarms, detections))
    _sort_exactly(alarms, detections)
    return alarms.cumsum(axis=1), detections.cumsum(axis=1)


def concave_hull(alarms: IntArray, detections: IntArray, total: int) -> tuple[list[int], list[int]]:
    """The vertices of the least concave curve above all points, from (0, most detections there) to (total, total)."""
    alarms, detections = np.append(alarms, [0, total]), np.append(detections, [0, total])
    order = np.lexsort((-detections, alarms))
    alarms, detections = alarms[order], detections[order]
    highest = np.append(True, alarms[1:] != alarms[:-1])
    alarms, detections = _above_chords(alarms[highest], detections[highest])
    vertices: list[tuple[int, int]] = []
    for b, a in zip(alarms.tolist(), detections.tolist(), strict=True):
        while len(vertices) > 1 and not _turns_down(vertices[-2], vertices[-1], (b, a)):
            vertices.pop()
        vertices.append((b, a))
    return [b for b, _ in vertices], [a for _, a in vertices]


def _turns_down(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    """Whether the middle of three points, ordered by false alarms, lies above the chord of the others."""
    run, rise = middle[0] - first[0], middle[1] - first[1]
    return rise * (last[0] - first[0]) > (last[1] - first[1]) * run


def _above_chords(alarms: IntArray, detections: IntArray) -> tuple[IntArray, IntArray]:
    """Without points that are clearly below the chord of their neighbours: none of them is a vertex of the hull."""
    for _ in range(FILTER_PASSES):
        if len(alarms) < 3:
            break
        before_b, before_a = (np.diff(each)[:-1].astype(np.float64) for each in (alarms, detections))
        after_b, after_a = (np.diff(each)[1:].astype(np.float64) for each in (alarms, detections))
        left, right = before_a * after_b, after_a * before_b
        below = right - left > CLEARLY_BELOW * (np.abs(left) + np.abs(right))
        if not below.any():
            break
        keep = np.concatenate([[True], ~below, [True]])
        alarms, detections = alarms[keep], detections[keep]
    return alarms, detections


def _sort_exactly(alarms: IntArray, detections: IntArray) -> None:
    """Exchange neighbours until ratios decrease exactly, in place; sorting floats leaves few out of order."""
    moved = True
    while moved:
        moved = False
        for start in (0, 1):
            first, second = slice(start, alarms.shape[1] - 1, 2), slice(start + 1, None, 2)
            swap = _less(
                _product(detections[:, first], alarms[:, second]), _product(detections[:, second], alarms[:, first])
            )
            if swap.any():
                moved = True
                for each in (alarms, detections):
                    left, right = each[:, first].copy(), each[:, second].copy()
                    each[:, first], each[:, second] = np.where(swap, right, left), np.where(swap, left, right)


def _product(one: IntArray, other: IntArray) -> tuple[Unsigned, Unsigned]:
    """Exact products of weights, in digits of 62 bits: high and low."""
    a, b = one.astype(np.uint64), other.astype(np.uint64)
    a_high, a_low, b_high, b_low = a >> HALF_BITS, a & HALF, b >> HALF_BITS, b & HALF
    middle = a_high * b_low + a_low * b_high
    low = a_low * b_low + ((middle & HALF) << HALF_BITS)
    high = a_high * b_high + (middle >> HALF_BITS) + (low >> np.uint64(62))
    return high, low & np.uint64(2**62 - 1)


def _less(one: tuple[Unsigned, Unsigned], other: tuple[Unsigned, Unsigned]) -> NDArray[np.bool_]:
    """Whether one exact product is less than the other."""
    return np.asarray((one[0] < other[0]) | ((one[0] == other[0]) & (one[1] < other[1])))

"""Secrets nobody has: no prior, no cost, only ratios. They are left out until they limit the others.

Ratios bound ln v by a metric, so a column given for some secrets extends to one more, z, by anything between

    least: max_i e^{−e(i,z)} v(i)    and    most: min_j e^{e(z,j)} v(j).

What is left to ask is that z's row can sum to one: Σ_o least ≤ 1 ≤ Σ_o most. docs/theory/solver.md has the proof.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import HOST, Backend

TRIANGLE_TOLERANCE = 1e-12
MOST_ITERATIONS, ROUNDING = 100, 1e-14
UNBOUNDED = 600.0
"""The logarithm that stands for no bound: sums of its exponential are still finite."""


def may_be_left_out(exponents: FloatArray, absent: NDArray[np.bool_]) -> bool:
    """Whether no ratio between other secrets follows from two over an absent one: the triangle inequality there."""
    limit = exponents * (1 - TRIANGLE_TOLERANCE)
    limit[np.arange(len(limit)), np.arange(len(limit))] = 0.0
    return all((exponents[:, z, None] + exponents[None, z, :] >= limit).all() for z in np.flatnonzero(absent))


def between(exponents: FloatArray, logs: FloatArray, known: IntArray, secret: int) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the least and the most a secret's entries may be, by observable, given others' (m, known)."""
    least, most = (logs - exponents[known, secret]).max(axis=1), (logs + exponents[secret, known]).min(axis=1)
    return np.maximum(least, -UNBOUNDED), np.minimum(most, UNBOUNDED)


def margins(
    exponents: FloatArray, column: FloatArray, known: IntArray, others: IntArray, backend: Backend = HOST
) -> FloatArray:
    """How far each of the other secrets is from not being able to have a row: not positive where it cannot."""
    return margins_within(column, *exponents_between(exponents, known, others, backend), backend)


def widest_margins(exponents: FloatArray, known: IntArray, others: IntArray) -> FloatArray:
    """The margins of other secrets where nothing is revealed."""
    to, back = exponents[np.ix_(known, others)], exponents[np.ix_(others, known)]
    return np.asarray(-np.expm1(-np.minimum(to.min(axis=0), back.min(axis=1))))


def exponents_between(
    exponents: FloatArray, known: IntArray, others: IntArray, backend: Backend = HOST
) -> tuple[FloatArray, FloatArray]:
    """Exponents from some secrets to each of others, (others, known), and back."""
    to, back = np.ascontiguousarray(exponents[np.ix_(known, others)].T), exponents[np.ix_(others, known)]
    return backend.to_device(to), backend.to_device(back)


def margins_within(column: FloatArray, to: FloatArray, back: FloatArray, backend: Backend = HOST) -> FloatArray:
    """The same margins, from the exponents between the secrets of a column and the others."""
    logs = backend.log(backend.to_device(column))
    if backend.kernels is not None:
        sums = backend.kernels.bounds_between(logs, to, back, UNBOUNDED)
        return np.asarray(np.minimum(1 - sums[:, 0], sums[:, 1] - 1))
    at_once = max(1, backend.chunk_entries // prod(column.shape))
    found = np.empty(len(to))
    for start in range(0, len(to), at_once):
        some = slice(start, start + at_once)
        least = backend.max(logs - to[some, None, :], axis=2).clip(min=-UNBOUNDED)
        most = backend.min(logs + back[some, None, :], axis=2).clip(max=UNBOUNDED)
        sums = backend.stack_to_numpy([backend.exp(least).sum(axis=1), backend.exp(most).sum(axis=1)])
        found[some] = np.minimum(1 - sums[0], sums[1] - 1)
    return found


class Filled(NamedTuple):
    """Entries of secrets that were left out, (observables, …), whose they are, and for whom there are none."""

    columns: FloatArray
    whose: IntArray
    failed: IntArray


def fill_in(
    exponents: FloatArray, column: FloatArray, known: IntArray, others: IntArray, backend: Backend = HOST
) -> Filled:
    """Rows for other secrets, one after the other, each strictly between its bounds."""
    size, first = len(known) + len(others), len(known)
    logs, present = np.empty((len(column), size)), np.empty(size, dtype=np.int64)
    logs[:, :first], present[:first] = np.log(column), known
    count, failed = first, []
    tightness = margins(exponents, column, known, others, backend)
    for secret in others[np.argsort(tightness, kind="stable")]:  # the tightest choose first
        least, most = between(exponents, logs[:, :count], present[:count], int(secret))
        if np.exp(least).sum() >= 1 or np.exp(most).sum() <= 1:
            failed.append(secret)
            continue
        logs[:, count], present[count] = _summing_to_one(least, most), secret
        count += 1
    return Filled(np.exp(logs[:, first:count]), present[first:count], np.array(failed, dtype=np.int64))


def _summing_to_one(least: FloatArray, most: FloatArray) -> FloatArray:
    """Logarithms between two rows, the same share of the way for all, whose exponentials sum to one.

    By Newton's method for the logarithm of the sum, which is convex: from above it never goes too far.
    """
    share, apart = 1.0, most - least
    for _ in range(MOST_ITERATIONS):
        row = least + share * apart
        parts = np.exp(row)
        total = parts.sum()
        excess = float(np.log(total))
        if excess <= ROUNDING:
            break
        share -= excess * float(total) / float(parts @ apart)
    return np.asarray(row - excess)

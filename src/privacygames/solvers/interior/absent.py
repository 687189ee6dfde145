"""Secrets nobody has: no prior, no cost, only ratios. They are left out until they limit the others.

Ratios bound ln v by a metric, so a column given for some secrets extends to one more, z, by anything between

    least: max_i e^{−e(i,z)} v(i)    and    most: min_j e^{e(z,j)} v(j).

What is left to ask is that z's row can sum to one: Σ_o least ≤ 1 ≤ Σ_o most. docs/theory/solver.md has the proof.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import HOST, Backend

TRIANGLE_TOLERANCE = 1e-12
HALVINGS = 60
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
    logs = backend.log(backend.held(column))
    at_once = max(1, backend.entries_at_once // prod(column.shape))
    to = backend.held(np.ascontiguousarray(exponents[np.ix_(known, others)].T))[:, None, :]
    back = backend.held(exponents[np.ix_(others, known)])[:, None, :]
    if backend.kernels is not None:
        sums = backend.kernels.bounds_between(logs, to[:, 0], back[:, 0], UNBOUNDED)
        return np.asarray(np.minimum(1 - sums[:, 0], sums[:, 1] - 1))
    found = np.empty(len(others))
    for start in range(0, len(others), at_once):
        some = slice(start, start + at_once)
        least = backend.most(logs - to[some], axis=2).clip(min=-UNBOUNDED)
        most = backend.least(logs + back[some], axis=2).clip(max=UNBOUNDED)
        sums = backend.joined([1 - backend.exp(least).sum(axis=1), backend.exp(most).sum(axis=1) - 1])
        found[some] = backend.fetched(sums).reshape(2, -1).min(axis=0)
    return found


def fill_in(
    exponents: FloatArray, column: FloatArray, known: IntArray, others: IntArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows for other secrets, one after the other, each strictly between its bounds: columns, whose, and who failed."""
    logs = np.log(column)
    failed = []
    order = others[np.argsort(margins(exponents, column, known, others), kind="stable")]  # the tightest choose first
    for secret in order:
        least, most = between(exponents, logs, known, int(secret))
        if np.exp(least).sum() >= 1 or np.exp(most).sum() <= 1:
            failed.append(secret)
            continue
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            share = (low + high) / 2
            if np.exp((1 - share) * least + share * most).sum() < 1:
                low = share
            else:
                high = share
        row = (1 - low) * least + low * most
        logs = np.column_stack([logs, row - np.log(np.exp(row).sum())])
        known = np.append(known, secret)
    return np.exp(logs[:, column.shape[1] :]), known[column.shape[1] :], np.array(failed, dtype=np.int64)

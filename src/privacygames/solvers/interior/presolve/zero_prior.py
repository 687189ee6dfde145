"""Secrets without prior: deferred, that is left out of the program as long as a mechanism can be extended to them.

A deferred secret has no cost, only ratio bounds. With a metric's exponents, a column v given for some secrets extends
to one more secret z by any value between

    least: max_i e^{−e(i,z)} v(i)    and    most: min_j e^{e(z,j)} v(j)

(McShane's extension of the Lipschitz function ln v). So z's row can sum to one if and only if Σ_o least ≤ 1 ≤ Σ_o most;
the distance of these sums from one is z's *margin*. docs/theory/solver.md has the proof.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import HOST, Backend, Kernels, compiled_extension

TRIANGLE_TOLERANCE = 1e-12
"""Relative rounding error up to which the triangle inequality counts as satisfied."""

MAX_ROOT_ITERATIONS, ROOT_ACCURACY = 100, 1e-14
"""Newton iterations for a row that sums to one, and the rounding error of its logarithm."""

UNBOUNDED = 600.0
"""The logarithm that stands for no bound: sums of its exponential are still finite."""


def can_be_deferred(exponents: FloatArray, zero_prior: NDArray[np.bool_]) -> bool:
    """Whether exponents satisfy the triangle inequality over every zero-prior secret."""
    limit = exponents * (1 - TRIANGLE_TOLERANCE)
    limit[np.arange(len(limit)), np.arange(len(limit))] = 0.0
    extension = compiled_extension()
    if extension is not None:
        exponents = np.ascontiguousarray(exponents)
        return Kernels(extension).triangle_inequality_holds(exponents, limit, np.flatnonzero(zero_prior))
    return all((exponents[:, z, None] + exponents[None, z, :] >= limit).all() for z in np.flatnonzero(zero_prior))


def extension_bounds(
    exponents: FloatArray, logs: FloatArray, secrets: IntArray, other: int
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the least and most entries of another secret's row, given those of some secrets, (m, secrets)."""
    least, most = (logs - exponents[secrets, other]).max(axis=1), (logs + exponents[other, secrets]).min(axis=1)
    return np.maximum(least, -UNBOUNDED), np.minimum(most, UNBOUNDED)


def margins(
    exponents: FloatArray, columns: FloatArray, secrets: IntArray, others: IntArray, backend: Backend = HOST
) -> FloatArray:
    """The margins of other secrets, given the columns of some; not positive where a mechanism has no extension."""
    return margins_from(columns, *exponents_between(exponents, secrets, others, backend), backend)


def constant_margins(exponents: FloatArray, secrets: IntArray, others: IntArray) -> FloatArray:
    """The margins of other secrets in a mechanism that reveals nothing: the widest possible."""
    to, back = exponents[np.ix_(secrets, others)], exponents[np.ix_(others, secrets)]
    return np.asarray(-np.expm1(-np.minimum(to.min(axis=0), back.min(axis=1))))


def exponents_between(
    exponents: FloatArray, secrets: IntArray, others: IntArray, backend: Backend = HOST
) -> tuple[FloatArray, FloatArray]:
    """Exponents from some secrets to each of others, (others, secrets), and back; on the device."""
    to, back = np.ascontiguousarray(exponents[np.ix_(secrets, others)].T), exponents[np.ix_(others, secrets)]
    return backend.to_device(to), backend.to_device(back)


def margins_from(columns: FloatArray, to: FloatArray, back: FloatArray, backend: Backend = HOST) -> FloatArray:
    """The margins of other secrets, from columns and the exponents to these secrets and back."""
    if backend.kernels is not None:
        log_least, log_most = backend.kernels.extension_bounds(columns, to, back)
        least_sums, most_sums = np.exp(log_least).sum(axis=1), np.exp(log_most.clip(max=UNBOUNDED)).sum(axis=1)
        return np.asarray(np.minimum(1 - least_sums, most_sums - 1))
    logs = backend.log(backend.to_device(columns))
    chunk = max(1, backend.chunk_entries // prod(columns.shape))
    result = np.empty(len(to))
    for start in range(0, len(to), chunk):
        some = slice(start, start + chunk)
        least = backend.max(logs - to[some, None, :], axis=2).clip(min=-UNBOUNDED)
        most = backend.min(logs + back[some, None, :], axis=2).clip(max=UNBOUNDED)
        sums = backend.stack_to_numpy([backend.exp(least).sum(axis=1), backend.exp(most).sum(axis=1)])
        result[some] = np.minimum(1 - sums[0], sums[1] - 1)
    return result


class Extension(NamedTuple):
    """A mechanism's columns for further secrets, (observables, …), these secrets, and those that have no row."""

    columns: FloatArray
    secrets: IntArray
    failed: IntArray


def extend_mechanism(
    exponents: FloatArray, columns: FloatArray, secrets: IntArray, others: IntArray, backend: Backend = HOST
) -> Extension:
    """Rows for other secrets, one after the other, each strictly between its bounds."""
    size, first = len(secrets) + len(others), len(secrets)
    logs, known = np.empty((len(columns), size)), np.empty(size, dtype=np.int64)
    logs[:, :first], known[:first] = np.log(columns), secrets
    count, failed = first, []
    tightness = margins(exponents, columns, secrets, others, backend)
    for secret in others[np.argsort(tightness, kind="stable")]:  # the tightest first
        least, most = extension_bounds(exponents, logs[:, :count], known[:count], int(secret))
        if np.exp(least).sum() >= 1 or np.exp(most).sum() <= 1:
            failed.append(secret)
            continue
        logs[:, count], known[count] = _row_summing_to_one(least, most), secret
        count += 1
    return Extension(np.exp(logs[:, first:count]), known[first:count], np.array(failed, dtype=np.int64))


def _row_summing_to_one(least: FloatArray, most: FloatArray) -> FloatArray:
    """Logarithms of a row that sums to one, the same fraction of the way from ``least`` to ``most`` in every entry.

    By Newton's method for the logarithm of the sum, which is convex: from above it never overshoots.
    """
    fraction, difference = 1.0, most - least
    for _ in range(MAX_ROOT_ITERATIONS):
        row = least + fraction * difference
        entries = np.exp(row)
        total = entries.sum()
        excess = float(np.log(total))
        if excess <= ROOT_ACCURACY:
            break
        fraction -= excess * float(total) / float(entries @ difference)
    return np.asarray(row - excess)

"""Elementwise operations on slacks s, dual values z and their changes ds and dz, on any backend.

All arrays have one dimension.
"""

from typing import Any

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import Backend
from privacygames.solvers.predictor_corrector import centrality_correction

Pair = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""

Scalar = Any
"""A number, where the arrays are."""


def advance(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Value + step · change."""
    return backend.axpy(step, change, value)


def dual_change(
    backend: Backend, product_change: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray
) -> FloatArray:
    """The dual values' change with which products change as wanted, to first order: (product_change − z ds)/s."""
    return backend.multiply_subtract(product_change, z, ds) / s


def add_dual_response(backend: Backend, base: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """A base plus the dual values' change with which products stay as they are, to first order: base − z ds/s."""
    return backend.divide_subtract(base, z * ds, s)


def min_growth(value: FloatArray, change: FloatArray) -> Scalar:
    """Min change/value, which limits the step length; 0 for empty arrays."""
    growth = change / value
    return growth.min() if len(growth) else growth.sum()


def blocking_ratio(backend: Backend, s: FloatArray, ds: FloatArray, z: FloatArray, dz: FloatArray) -> FloatArray:
    """The larger of −ds/s and −dz/z for each inequality."""
    return -backend.minimum(ds / s, dz / z)


def complementarity_after(backend: Backend, slack_dual: Pair, change: Pair, steps: tuple[float, float]) -> Scalar:
    """Σ s z after a primal and a dual step of these lengths."""
    (s, z), (ds, dz) = slack_dual, change
    return backend.axpy(steps[0], ds, s) @ backend.axpy(steps[1], dz, z)


def mehrotra_change(backend: Backend, slack_dual: Pair, affine: Pair, target: float, limit: float) -> FloatArray:
    """Mehrotra's corrector: target − s z − ds dz, with the affine direction's second order ds dz cut off at ±limit."""
    (s, z), (ds, dz) = slack_dual, affine
    second_order: FloatArray = (ds * dz).clip(-limit, limit)
    return target - backend.multiply_add(second_order, s, z)


def gondzio_change(
    backend: Backend, slack_dual: Pair, change: Pair, steps: tuple[float, float], centre: tuple[float, float]
) -> FloatArray:
    """Gondzio's corrector: what brings products after trial steps back to the neighbourhood of the target.

    ``centre`` is the target and the factor within which products are in its neighbourhood.
    """
    (s, z), (ds, dz), (target, neighbourhood) = slack_dual, change, centre
    products = backend.axpy(steps[0], ds, s)
    products *= backend.axpy(steps[1], dz, z)
    return centrality_correction(products, target, neighbourhood)

"""Elementwise operations on slacks s, dual values z and their changes ds and dz, on any backend.

All arrays have one dimension. With compiled kernels, each operation reads every array once.
"""

from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import Backend
from privacygames.solvers.predictor_corrector import centrality_correction

Pair = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""

Scalar = Any
"""A number, where the arrays are."""


def divide(backend: Backend, first: FloatArray, second: FloatArray) -> FloatArray:
    """First / second."""
    kernels = backend.kernels
    return first / second if kernels is None else np.asarray(kernels.ratio(first, second))


def negative_product(backend: Backend, s: FloatArray, z: FloatArray) -> FloatArray:
    """−s z: the change of products that takes them to zero, as the affine direction wants."""
    kernels = backend.kernels
    return -(s * z) if kernels is None else np.asarray(kernels.undone(s, z))


def step_ratio(backend: Backend, value: FloatArray, change: FloatArray) -> FloatArray:
    """−change/value: a step of one over this takes a value to zero."""
    kernels = backend.kernels
    return -(change / value) if kernels is None else np.asarray(kernels.used_up(value, change))


def advance(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Value + step · change."""
    kernels = backend.kernels
    return backend.axpy(step, change, value) if kernels is None else np.asarray(kernels.moved(value, step, change))


def dual_change(
    backend: Backend, product_change: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray
) -> FloatArray:
    """The dual values' change with which products change as wanted, to first order: (product_change − z ds)/s."""
    kernels = backend.kernels
    if kernels is None:
        return backend.multiply_subtract(product_change, z, ds) / s
    return np.asarray(kernels.dual_change(product_change, z, ds, s))


def add_dual_response(backend: Backend, base: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """A base plus the dual values' change with which products stay as they are, to first order: base − z ds/s."""
    kernels = backend.kernels
    return backend.divide_subtract(base, z * ds, s) if kernels is None else np.asarray(kernels.answered(base, z, ds, s))


def min_growth(backend: Backend, value: FloatArray, change: FloatArray) -> Scalar:
    """Min change/value, which limits the step length; 0 for empty arrays."""
    kernels = backend.kernels
    if kernels is not None and len(value):
        return kernels.least_growth(value, change)
    growth = change / value
    return growth.min() if len(growth) else growth.sum()


def blocking_ratio(backend: Backend, s: FloatArray, ds: FloatArray, z: FloatArray, dz: FloatArray) -> FloatArray:
    """The larger of −ds/s and −dz/z for each inequality."""
    kernels = backend.kernels
    return -backend.minimum(ds / s, dz / z) if kernels is None else np.asarray(kernels.speeds(s, ds, z, dz))


def complementarity_after(backend: Backend, now: Pair, change: Pair, steps: tuple[float, float]) -> Scalar:
    """Σ s z after a primal and a dual step of these lengths."""
    (s, z), (ds, dz), kernels = now, change, backend.kernels
    if kernels is None:
        return backend.axpy(steps[0], ds, s) @ backend.axpy(steps[1], dz, z)
    return kernels.product_total(s, ds, z, dz, *steps)


def mehrotra_change(backend: Backend, now: Pair, affine: Pair, target: float, limit: float) -> FloatArray:
    """Mehrotra's corrector: target − s z − ds dz, with the affine direction's second order ds dz cut off at ±limit."""
    (s, z), (ds, dz), kernels = now, affine, backend.kernels
    if kernels is None:
        second_order: FloatArray = (ds * dz).clip(-limit, limit)
        return target - backend.multiply_add(second_order, s, z)
    return np.asarray(kernels.central(s, ds, z, dz, target, limit))


def gondzio_change(
    backend: Backend, now: Pair, change: Pair, steps: tuple[float, float], centre: tuple[float, float]
) -> FloatArray:
    """Gondzio's corrector: what brings products after trial steps back to the neighbourhood of the target.

    ``centre`` is the target and the factor within which products are in its neighbourhood.
    """
    (s, z), (ds, dz), kernels = now, change, backend.kernels
    target, neighbourhood = centre
    if kernels is None:
        products = backend.axpy(steps[0], ds, s)
        products *= backend.axpy(steps[1], dz, z)
        return centrality_correction(products, target, neighbourhood)
    bounds = target / neighbourhood, target * neighbourhood
    return np.asarray(kernels.outlying(s, ds, z, dz, *steps, *bounds))

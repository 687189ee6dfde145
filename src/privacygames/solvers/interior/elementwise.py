"""What is done to slacks s, dual values z and their changes ds and dz, entry by entry, wherever they are.

All are arrays of one dimension. Compiled loops, where there are any, read each once.
"""

from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import Backend
from privacygames.solvers.predictor_corrector import CENTRAL_NEIGHBOURHOOD, centrality_correction

Both = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""

SECOND_ORDER = 100.0
"""The second-order change of a product counts up to so many times the target: beyond, no step goes as far as it is."""

Number = Any
"""A single number, where the arrays are."""


def ratio(backend: Backend, first: FloatArray, second: FloatArray) -> FloatArray:
    """One over the other."""
    loops = backend.kernels
    return first / second if loops is None else np.asarray(loops.ratio(first, second))


def undone(backend: Backend, s: FloatArray, z: FloatArray) -> FloatArray:
    """What takes products to zero: −s z."""
    loops = backend.kernels
    return -(s * z) if loops is None else np.asarray(loops.undone(s, z))


def used_up(backend: Backend, value: FloatArray, change: FloatArray) -> FloatArray:
    """The shares of values that changes use up."""
    loops = backend.kernels
    return -(change / value) if loops is None else np.asarray(loops.used_up(value, change))


def moved(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Where a step of this length along a change leads."""
    loops = backend.kernels
    return backend.axpy(step, change, value) if loops is None else np.asarray(loops.moved(value, step, change))


def dual_change(backend: Backend, wanted: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """How dual values change with their slacks so that, to first order, products change by what is wanted."""
    loops = backend.kernels
    return (
        backend.multiply_subtract(wanted, z, ds) / s
        if loops is None
        else np.asarray(loops.dual_change(wanted, z, ds, s))
    )


def answered(backend: Backend, base: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """A base and how dual values change with their slacks so that, to first order, products do not: base − z ds/s."""
    loops = backend.kernels
    return backend.divide_subtract(base, z * ds, s) if loops is None else np.asarray(loops.answered(base, z, ds, s))


def least_growth(backend: Backend, value: FloatArray, change: FloatArray) -> Number:
    """The least of change/value; 0 of none."""
    loops = backend.kernels
    if loops is not None and len(value):
        return loops.least_growth(value, change)
    growth = change / value
    return growth.min() if len(growth) else growth.sum()


def speeds(backend: Backend, s: FloatArray, ds: FloatArray, z: FloatArray, dz: FloatArray) -> FloatArray:
    """The larger of the shares of slacks and of dual values that their changes use up."""
    loops = backend.kernels
    return -backend.minimum(ds / s, dz / z) if loops is None else np.asarray(loops.speeds(s, ds, z, dz))


def product_total(backend: Backend, now: Both, change: Both, steps: tuple[float, float]) -> Number:
    """Σ s z after steps of these lengths along a change."""
    (s, z), (ds, dz), loops = now, change, backend.kernels
    if loops is None:
        return backend.axpy(steps[0], ds, s) @ backend.axpy(steps[1], dz, z)
    return loops.product_total(s, ds, z, dz, *steps)


def central(backend: Backend, now: Both, change: Both, target: float) -> FloatArray:
    """What makes products the target, to second order along a change."""
    (s, z), (ds, dz), loops, most = now, change, backend.kernels, SECOND_ORDER * target
    if loops is None:
        second: FloatArray = (ds * dz).clip(-most, most)
        return target - backend.multiply_add(second, s, z)
    return np.asarray(loops.central(s, ds, z, dz, target, most))


def outlying(backend: Backend, now: Both, change: Both, steps: tuple[float, float], target: float) -> FloatArray:
    """What Gondzio's correctors want of products after steps along a change."""
    (s, z), (ds, dz), loops = now, change, backend.kernels
    if loops is None:
        products = backend.axpy(steps[0], ds, s)
        products *= backend.axpy(steps[1], dz, z)
        return centrality_correction(products, target)
    bounds = target / CENTRAL_NEIGHBOURHOOD, target * CENTRAL_NEIGHBOURHOOD
    return np.asarray(loops.outlying(s, ds, z, dz, *steps, *bounds))

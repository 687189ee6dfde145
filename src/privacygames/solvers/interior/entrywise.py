"""What is done to slacks s, dual values z and their changes ds and dz, entry by entry, wherever they are.

Most of them belong to pairs, in long arrays of one dimension: compiled loops, where there are any, read each once.
"""

from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import Backend
from privacygames.solvers.predictor_corrector import NEIGHBOURHOOD, centrality

Both = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""

SECOND_ORDER = 100.0
"""The second-order change of a product counts up to so many times the target: beyond, no step goes as far as it is."""

Number = Any
"""A single number, where the arrays are."""


def _loops(backend: Backend, array: FloatArray) -> Any:
    """The compiled loops that there are for an array."""
    return backend.kernels if array.ndim == 1 else None


def moved(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Where a step of this length along a change leads."""
    return backend.plus(value, step, change)


def dual_change(backend: Backend, wanted: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """How dual values change with their slacks so that, to first order, products change by what is wanted."""
    loops = _loops(backend, s)
    return (
        backend.minus_products(wanted, z, ds) / s if loops is None else np.asarray(loops.dual_change(wanted, z, ds, s))
    )


def least_growth(backend: Backend, value: FloatArray, change: FloatArray) -> Number:
    """The least of change/value; 0 of none."""
    loops = _loops(backend, value)
    if loops is not None and len(value):
        return loops.least_growth(value, change)
    growth = change / value
    return growth.min() if all(growth.shape) else growth.sum()


def speeds(backend: Backend, s: FloatArray, ds: FloatArray, z: FloatArray, dz: FloatArray) -> FloatArray:
    """The larger of the shares of slacks and of dual values that their changes use up."""
    loops = _loops(backend, s)
    return -backend.smaller(ds / s, dz / z) if loops is None else np.asarray(loops.speeds(s, ds, z, dz))


def _products_after(backend: Backend, now: Both, change: Both, steps: tuple[float, float]) -> FloatArray:
    """S z after steps of these lengths along a change."""
    products = backend.plus(now[0], steps[0], change[0])
    products *= backend.plus(now[1], steps[1], change[1])
    return products


def product_total(backend: Backend, now: Both, change: Both, steps: tuple[float, float]) -> Number:
    """Σ s z after steps of these lengths along a change."""
    (s, z), (ds, dz), loops = now, change, _loops(backend, now[0])
    if loops is None:
        return backend.plus(s, steps[0], ds).ravel() @ backend.plus(z, steps[1], dz).ravel()
    return loops.product_total(s, ds, z, dz, *steps)


def central(backend: Backend, now: Both, change: Both, target: float) -> FloatArray:
    """What makes products the target, to second order along a change."""
    (s, z), (ds, dz), loops, most = now, change, _loops(backend, now[0]), SECOND_ORDER * target
    if loops is None:
        second: FloatArray = (ds * dz).clip(-most, most)
        return target - backend.plus_products(second, s, z)
    return np.asarray(loops.central(s, ds, z, dz, target, most))


def outlying(backend: Backend, now: Both, change: Both, steps: tuple[float, float], target: float) -> FloatArray:
    """What Gondzio's correctors want of products after steps along a change."""
    (s, z), (ds, dz), loops = now, change, _loops(backend, now[0])
    if loops is None:
        return centrality(_products_after(backend, now, change, steps), target)
    return np.asarray(loops.outlying(s, ds, z, dz, steps, (target / NEIGHBOURHOOD, target * NEIGHBOURHOOD)))

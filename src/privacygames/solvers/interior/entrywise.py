"""What is done to slacks s, dual values z and their changes ds and dz, entry by entry, wherever they are.

Compiled loops, where there are any, read each array once.
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


def _flat(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Arrays as loops take them."""
    return tuple(np.ascontiguousarray(array).reshape(-1) for array in arrays)


def _shaped(found: Any, like: FloatArray) -> FloatArray:
    """What a loop gave, in the shape of another array."""
    return np.asarray(found).reshape(like.shape)


def ratio(backend: Backend, first: FloatArray, second: FloatArray) -> FloatArray:
    """One over the other."""
    loops = backend.kernels
    return first / second if loops is None else _shaped(loops.ratio(*_flat(first, second)), first)


def undone(backend: Backend, s: FloatArray, z: FloatArray) -> FloatArray:
    """What takes products to zero: −s z."""
    loops = backend.kernels
    return -s * z if loops is None else _shaped(loops.undone(*_flat(s, z)), s)


def used_up(backend: Backend, value: FloatArray, change: FloatArray) -> FloatArray:
    """The shares of values that changes use up."""
    loops = backend.kernels
    return -change / value if loops is None else _shaped(loops.used_up(*_flat(value, change)), value)


def moved(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Where a step of this length along a change leads."""
    loops = backend.kernels
    if loops is None:
        return value + step * change
    value_, change_ = _flat(value, change)
    return _shaped(loops.moved(value_, step, change_), value)


def answered(backend: Backend, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """How dual values change with their slacks so that, to first order, products do not."""
    loops = backend.kernels
    return -z * ds / s if loops is None else _shaped(loops.answered(*_flat(z, ds, s)), s)


def dual_change(backend: Backend, wanted: FloatArray, z: FloatArray, ds: FloatArray, s: FloatArray) -> FloatArray:
    """How dual values change with their slacks so that, to first order, products change by what is wanted."""
    loops = backend.kernels
    return (wanted - z * ds) / s if loops is None else _shaped(loops.dual_change(*_flat(wanted, z, ds, s)), s)


def least_growth(backend: Backend, value: FloatArray, change: FloatArray) -> Number:
    """The least of change/value; 0 of none."""
    loops = backend.kernels
    if loops is not None and value.size:
        return loops.least_growth(*_flat(value, change))
    growth = change / value
    return growth.min() if all(growth.shape) else growth.sum()


def speeds(backend: Backend, s: FloatArray, ds: FloatArray, z: FloatArray, dz: FloatArray) -> FloatArray:
    """The larger of the shares of slacks and of dual values that their changes use up."""
    loops = backend.kernels
    return backend.larger(-ds / s, -dz / z) if loops is None else _shaped(loops.speeds(*_flat(s, ds, z, dz)), s)


def product_total(backend: Backend, now: Both, change: Both, steps: tuple[float, float]) -> Number:
    """Σ s z after steps of these lengths along a change."""
    (s, z), (ds, dz), loops = now, change, backend.kernels
    if loops is None:
        return ((s + steps[0] * ds) * (z + steps[1] * dz)).sum()
    return loops.product_total(*_flat(s, ds, z, dz), *steps)


def central(backend: Backend, now: Both, change: Both, target: float) -> FloatArray:
    """What makes products the target, to second order along a change."""
    (s, z), (ds, dz), loops, most = now, change, backend.kernels, SECOND_ORDER * target
    if loops is None:
        second: FloatArray = (ds * dz).clip(-most, most)
        return target - s * z - second
    return _shaped(loops.central(*_flat(s, ds, z, dz), target, most), s)


def outlying(backend: Backend, now: Both, change: Both, steps: tuple[float, float], target: float) -> FloatArray:
    """What Gondzio's correctors want of products after steps along a change."""
    (s, z), (ds, dz), loops = now, change, backend.kernels
    if loops is None:
        return centrality((s + steps[0] * ds) * (z + steps[1] * dz), target)
    bounds = target / NEIGHBOURHOOD, target * NEIGHBOURHOOD
    return _shaped(loops.outlying(*_flat(s, ds, z, dz), *steps, *bounds), s)

"""Elementwise operations on slacks s, dual values z and their changes ds and dz, on any backend.

All arrays have one dimension. Where there are compiled loops, each operation is one pass over its arrays.
"""

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend
from privacygames.solvers.predictor_corrector import centrality_correction

Pair = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""


def advance(backend: Backend, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
    """Value + step · change."""
    if backend.kernels is not None:
        return backend.kernels.axpy(step, change, value)
    return backend.axpy(step, change, value)


def quotient(backend: Backend, numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Numerator / denominator."""
    if backend.kernels is not None:
        return backend.kernels.divide(numerator, denominator)
    return numerator / denominator


def direction_change(
    backend: Backend, product_change: FloatArray, slack_dual: Pair, ds: FloatArray, base: Pair | None
) -> tuple[Pair, tuple[FloatArray, FloatArray]]:
    """The change with which products change as wanted, to first order, given that of slacks; and its least growth.

    The dual values change by (product_change − z ds)/s. A base's change is added to both; ``ds`` is overwritten.
    """
    s, z = slack_dual
    if backend.kernels is not None:
        dz, growth = backend.kernels.direction_change(product_change, slack_dual, ds, base)
        return (ds, dz), (growth[0], growth[1])
    change = ds, backend.multiply_subtract(product_change, z, ds) / s
    if base is not None:
        change = advance(backend, base[0], 1.0, change[0]), advance(backend, base[1], 1.0, change[1])
    return change, least_growth(backend, slack_dual, change)


def shifted_change(backend: Backend, base: Pair, slack_dual: Pair, ds: FloatArray) -> Pair:
    """A base's change plus one of slacks by ds, and of dual values by −z ds/s, as leaves products as they are.

    ``ds`` is overwritten.
    """
    s, z = slack_dual
    if backend.kernels is not None:
        dz = backend.kernels.shifted_change(base, slack_dual, ds)
        return ds, dz
    return advance(backend, base[0], 1.0, ds), backend.divide_subtract(base[1], z * ds, s)


def least_growth(backend: Backend, slack_dual: Pair, change: Pair) -> tuple[FloatArray, FloatArray]:
    """Min ds/s and min dz/z, which limit the step lengths; −1, which allows a full step, if none is less."""
    if backend.kernels is not None:
        growth = backend.kernels.least_growth(slack_dual, change)
        return growth[0], growth[1]
    slack_growth, dual_growth = (changes / values for values, changes in zip(slack_dual, change, strict=True))
    if not len(slack_growth):
        return slack_growth.sum() - 1, dual_growth.sum() - 1
    return slack_growth.min().clip(max=-1.0), dual_growth.min().clip(max=-1.0)


def blocking_ratios(
    backend: Backend, slack_dual: Pair, change: Pair, threshold: float, count: int
) -> tuple[FloatArray, IntArray]:
    """The ``count`` largest of the larger of −ds/s and −dz/z above a threshold, and the indices of the inequalities."""
    if backend.kernels is not None:
        ratios, indices = backend.kernels.blocking_ratios(slack_dual, change, threshold)
        largest, which = backend.top_k(ratios, threshold, count)
        return largest, indices[which]
    (s, z), (ds, dz) = slack_dual, change
    return backend.top_k(-backend.minimum(ds / s, dz / z), threshold, count)


def step_ratios(backend: Backend, slack_dual: Pair, change: Pair, count: int) -> list[FloatArray]:
    """The largest −ds/s and the largest −dz/z, at most ``count`` each, all above one; NumPy arrays."""
    pairs = zip(slack_dual, change, strict=True)
    kernels = backend.kernels
    if kernels is not None:
        ratios = [kernels.step_ratios(values, changes, 1.0) for values, changes in pairs]
    else:
        ratios = [-(changes / values) for values, changes in pairs]
    return backend.top_k_values(ratios, 1.0, count)


def complementarity_after(backend: Backend, slack_dual: Pair, change: Pair, steps: tuple[float, float]) -> float:
    """Σ s z after a primal and a dual step of these lengths."""
    if backend.kernels is not None:
        return backend.kernels.complementarity_after(slack_dual, change, steps)
    (s, z), (ds, dz) = slack_dual, change
    return float(backend.axpy(steps[0], ds, s) @ backend.axpy(steps[1], dz, z))


def mehrotra_change(backend: Backend, slack_dual: Pair, affine: Pair, target: float, limit: float) -> FloatArray:
    """Mehrotra's corrector: target − s z − ds dz, with the affine direction's second order ds dz cut off at ±limit."""
    if backend.kernels is not None:
        return backend.kernels.mehrotra_change(slack_dual, affine, target, limit)
    (s, z), (ds, dz) = slack_dual, affine
    second_order: FloatArray = (ds * dz).clip(-limit, limit)
    return target - backend.multiply_add(second_order, s, z)


def gondzio_change(
    backend: Backend, slack_dual: Pair, change: Pair, steps: tuple[float, float], centre: tuple[float, float]
) -> FloatArray:
    """Gondzio's corrector: what brings products after trial steps back to the neighbourhood of the target.

    ``centre`` is the target and the factor within which products are in its neighbourhood.
    """
    if backend.kernels is not None:
        return backend.kernels.gondzio_change(slack_dual, change, steps, centre)
    (s, z), (ds, dz), (target, neighbourhood) = slack_dual, change, centre
    products = backend.axpy(steps[0], ds, s)
    products *= backend.axpy(steps[1], dz, z)
    return centrality_correction(products, target, neighbourhood)

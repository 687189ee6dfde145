"""Masses of the planar Laplace distribution in rectangles of the first quadrant, to nearly full relative accuracy.

In polar coordinates the integral over the radius has a closed form: the mass between radii a and b, at ε = 1, is
(1+a)e^−a − (1+b)e^−b, which without cancellation reads e^−a·(a(1−e^−h) + P(2,h)) with h = b − a and P the
regularised incomplete gamma function. The integral over the angle uses the double-exponential rule (Takahasi and Mori
1974), which is accurate whatever the integrand does at the ends; its step is halved until nothing changes.
"""

from itertools import pairwise

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import SolveFailed

RELATIVE_ACCURACY = 1e-12
"""Relative change of a mass at the last halving of the step."""

MAX_NODE = 3.4
"""Largest node of the rule: its weights are below 10⁻²⁰ beyond."""

MAX_HALVINGS = 8
"""Halvings of the step after which the integrals count as not converging."""

NEGLIGIBLE_MASS = 1e-250
"""Mass below which no accuracy is required: it is far below what a weight can represent."""


def quadrant_masses(across: FloatArray, up: FloatArray) -> FloatArray:
    """The mass in every rectangle across[i] × up[j] of non-negative intervals, for e^−r/2π around the origin.

    Args:
        across: intervals (start, end) in x, in units of 1/ε; an end may be ∞.
        up: intervals in y.
    """
    total = _sum_of_nodes(across, up, np.arange(-MAX_NODE, MAX_NODE + 0.25, 0.5))
    step = 0.5
    for _ in range(MAX_HALVINGS):
        between = np.arange(-MAX_NODE + step / 2, MAX_NODE + step / 2, step)
        refined = total + _sum_of_nodes(across, up, between)
        converged = np.abs(refined / 2 - total) <= RELATIVE_ACCURACY * np.maximum(refined / 2, NEGLIGIBLE_MASS)
        total, step = refined, step / 2
        if converged.all():
            return total * step
    raise SolveFailed("the planar Laplace integrals did not settle: use another epsilon or size of cells")


def _sum_of_nodes(across: FloatArray, up: FloatArray, nodes: FloatArray) -> FloatArray:
    """The sum over nodes for all angles: those below the diagonal, and those above it with the axes exchanged.

    So angles are always measured from the nearer axis: a strip along the other one spans angles of about 10⁻⁹, which
    a difference from π/2 would lose to rounding.
    """
    return _below_diagonal(across, up, nodes) + _below_diagonal(up, across, nodes).T


def _below_diagonal(across: FloatArray, up: FloatArray, nodes: FloatArray) -> FloatArray:
    """Σ over nodes t of the integrand at the relative angle 1/(1+e^(−π sinh t)), times its derivative."""
    x0, x1 = (across[:, None, side] for side in (0, 1))
    y0, y1 = (up[None, :, side] for side in (0, 1))
    corners = [np.arctan2(y, x) for y, x in ((y0, x1), (y0, x0), (y1, x1), (y1, x0))]
    corners = [np.minimum(corner, np.pi / 4) for corner in corners]
    breaks = np.sort(np.stack(np.broadcast_arrays(*corners)), axis=0)
    total = np.zeros(breaks.shape[1:])
    fractions = 1 / (1 + np.exp(-np.pi * np.sinh(nodes)))
    weights = np.pi * np.cosh(nodes) * fractions / (1 + np.exp(np.pi * np.sinh(nodes)))
    for low, high in pairwise(breaks):  # between corners the radii are smooth in the angle
        for fraction, weight in zip(fractions, weights, strict=True):
            total += weight * (high - low) * _mass_along_ray(low + fraction * (high - low), (x0, x1), (y0, y1))
    return total / (2 * np.pi)


def _mass_along_ray(
    angle: FloatArray, x: tuple[FloatArray, FloatArray], y: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """The mass per unit of angle along a ray between its entry into a rectangle and its exit."""
    from scipy.special import gammainc

    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 along an axis: the ray does not cross that side
        sides = [edge / np.cos(angle) for edge in x] + [edge / np.sin(angle) for edge in y]
    enter = np.fmax(sides[0], sides[2])
    leave = np.fmin(sides[1], sides[3])
    length = np.maximum(leave - np.where(np.isfinite(enter), enter, 0.0), 0.0)
    inside = np.exp(-enter) * (np.where(enter < np.inf, enter, 0.0) * -np.expm1(-length) + gammainc(2, length))
    return np.where(leave > enter, inside, 0.0)

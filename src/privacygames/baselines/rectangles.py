"""How much of a planar Laplace distribution lies in rectangles of the first quadrant, to nearly full relative accuracy.

In polar coordinates the radius can be integrated by hand: the mass between radii a and b, at ε = 1, is (1+a)e^−a −
(1+b)e^−b, which without cancellation reads e^−a·(a(1−e^−h) + P(2,h)) with h = b − a and P the regularised incomplete
gamma function. The angle is left to the double-exponential rule (Takahasi and Mori 1974), which does not mind how the
integrand behaves at the ends; its step is halved until nothing changes.
"""

from itertools import pairwise

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import SolveFailed

ACCURACY = 1e-12
FARTHEST = 3.4  # where the rule's weights have fallen below 10^-20
MOST_HALVINGS = 8
NEGLIGIBLE = 1e-250  # masses below this are not asked to be accurate: no weight can hold them


def quadrant_masses(across: FloatArray, up: FloatArray) -> FloatArray:
    """The mass in every rectangle across[i] × up[j] of non-negative intervals, for e^−r/2π around the origin.

    Args:
        across: intervals (start, end) in x, in units of 1/ε; an end may be ∞.
        up: intervals in y.
    """
    total = _sum_of_nodes(across, up, np.arange(-FARTHEST, FARTHEST + 0.25, 0.5))
    step = 0.5
    for _ in range(MOST_HALVINGS):
        between = np.arange(-FARTHEST + step / 2, FARTHEST + step / 2, step)
        refined = total + _sum_of_nodes(across, up, between)
        settled = np.abs(refined / 2 - total) <= ACCURACY * np.maximum(refined / 2, NEGLIGIBLE)
        total, step = refined, step / 2
        if settled.all():
            return total * step
    raise SolveFailed("the planar Laplace integrals did not settle: use another epsilon or size of cells")


def _sum_of_nodes(across: FloatArray, up: FloatArray, nodes: FloatArray) -> FloatArray:
    """The sum over nodes for all angles: those below the diagonal, and those above it with the axes exchanged.

    So angles are always measured from the nearer axis: a strip along the other one lies within angles of 10^-9 of it,
    which a difference from π/2 could not tell apart.
    """
    return _below_diagonal(across, up, nodes) + _below_diagonal(up, across, nodes).T


def _below_diagonal(across: FloatArray, up: FloatArray, nodes: FloatArray) -> FloatArray:
    """Σ over nodes t of the integrand at the angle of share 1/(1+e^(−π sinh t)), times that share's derivative."""
    x0, x1 = (across[:, None, side] for side in (0, 1))
    y0, y1 = (up[None, :, side] for side in (0, 1))
    corners = [np.arctan2(y, x) for y, x in ((y0, x1), (y0, x0), (y1, x1), (y1, x0))]
    corners = [np.minimum(corner, np.pi / 4) for corner in corners]
    breaks = np.sort(np.stack(np.broadcast_arrays(*corners)), axis=0)
    total = np.zeros(breaks.shape[1:])
    shares = 1 / (1 + np.exp(-np.pi * np.sinh(nodes)))
    weights = np.pi * np.cosh(nodes) * shares / (1 + np.exp(np.pi * np.sinh(nodes)))
    for low, high in pairwise(breaks):  # between corners the radii are smooth in the angle
        for share, weight in zip(shares, weights, strict=True):
            total += weight * (high - low) * _ring(low + share * (high - low), (x0, x1), (y0, y1))
    return total / (2 * np.pi)


def _ring(angle: FloatArray, x: tuple[FloatArray, FloatArray], y: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The mass per angle between where a ray enters a rectangle and where it leaves it."""
    from scipy.special import gammainc

    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 along an axis: that side does not stop the ray
        sides = [edge / np.cos(angle) for edge in x] + [edge / np.sin(angle) for edge in y]
    enter = np.fmax(sides[0], sides[2])
    leave = np.fmin(sides[1], sides[3])
    length = np.maximum(leave - np.where(np.isfinite(enter), enter, 0.0), 0.0)
    inside = np.exp(-enter) * (np.where(enter < np.inf, enter, 0.0) * -np.expm1(-length) + gammainc(2, length))
    return np.where(leave > enter, inside, 0.0)

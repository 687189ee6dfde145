r"""The adversary's best guess for every output of a mechanism for points, where any point may be guessed.

The input are the masses :math:`a_x = \pi(x)\,p(o \mid x)` of finitely many points x, one row for each output o. The
adversary chooses the point :math:`s` that minimises :math:`F(s) = \sum_x a_x\,d(s, x)`. Each function returns the
error of a guess, an upper bound on the minimum of F, and a number that F exceeds nowhere, a lower bound. Let
:math:`M = \sum_x a_x`, and n the number of points.

**Squared distance.** With any point g, :math:`v_x = g - x` and :math:`q = \sum_x a_x v_x`,

.. math:: F(s) = F(g) + 2\,q \cdot (s - g) + M \|s - g\|^2 \ge F(g) - \|q\|^2 / M.

The mean makes q zero.

**Euclidean distance in the plane: the geometric median** (the Fermat–Weber problem). F is convex. It is differentiable
except at the points. With :math:`R_k = \sum_{x \ne k} a_x (k - x)/\|k - x\|`, the point k is optimal if and only if
:math:`\|R_k\| \le a_k`. Otherwise :math:`(1 - a_k/\|R_k\|)\,R_k` is a subgradient at k, so no point x with
:math:`R_k \cdot (x - k) \ge 0` is better than k: the points themselves are searched by cutting planes, each through
the point nearest the centroid of those that remain. If none is optimal, the step of Vardi and Zhang (2000) leads from
the best of them to a lower value of F. Newton's method with a line search continues from there; all later values are
lower too, so it never meets a point where F is not differentiable.

**Euclidean distance on a line: the weighted median.** It is one of the points.

**Lower bound for the Euclidean distance.** Let :math:`\|y_x\| \le 1` for each x, and :math:`r = \sum_x a_x y_x`. With
any guess g and :math:`v_x = g - x`,

.. math:: F(s) \ge \sum_x a_x\, y_x \cdot (s - x) = \sum_x a_x\, y_x \cdot v_x + r \cdot (s - g).

A point s that is further than :math:`2F(g)/M` from g is no better than g, because
:math:`M\|s - g\| \le \sum_x a_x (\|s - x\| + \|x - g\|) = F(s) + F(g)`. So for all s

.. math:: F(s) \ge \sum_x a_x\, y_x \cdot v_x - \|r\| \cdot 2F(g)/M.

This holds for any g and y. Both terms scale with F(g), so the relative gap is small wherever :math:`\|r\|/M` is. The
vectors are :math:`y_x = v_x/\|v_x\|`, for which the first term is F(g) and r is the gradient; except that the points N
within a tiny distance of g share one vector, :math:`y = -R/\max(\|R\|, A)`, where R is the sum over the other points
and A the mass of N. So r = 0 if :math:`\|R\| \le A`: this is the test of optimality above. The first term is then at
least the sum of :math:`a_x \|v_x\|` over the others less that over N.

**Any other distance** with :math:`|d(s, x) - d(s', x)| \le L \|s - s'\|`. If each possible guess lies within
:math:`\rho` of a candidate, no guess has a smaller error than the best candidate's less :math:`L \rho M`.

**Rounding.** Let u = 2^-53. A sum of n non-negative products with factors of relative error at most 8u has a relative
error of at most (n + 9)u up to second order, in any order of summation; each component of a sum of vectors
:math:`a_x y_x` has an absolute error of at most (n + 9)u·M, and of :math:`a_x v_x` at most (n + 9)u·Σ a‖v‖. Every such
sum is moved against the result by (n + 32)·2^-52, more than twice that. Masses below 2^-500 of the largest mass of
their output are left out of lower bounds, which only lowers F; so no product underflows there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, IntArray, as_floats, freeze_floats, in_range
from privacygames.errors import InvalidProblem
from privacygames.validation import is_number, require_choice

ULP = 2.0**-52
DISTANCES = ("euclidean", "squared")

BLOCK_ENTRIES = 2**17
"""Most masses that are processed at once: 1 MiB an array, so that temporary arrays stay in the cache."""

NEAR = (0.0, 1e-11, 1e-9)
"""Points nearer to the guess than this share of 2F/M count as the guess itself in a lower bound, tried in turn."""

LOOSE = 1e-10
"""Relative gap above which the next share of ``NEAR`` is tried."""

SETTLED = 1e-13
"""Length of the gradient, as a share of the mass, at which a guess counts as optimal: the gap is twice that."""

MOST_STEPS = 200
"""Most evaluations of Newton's method for an output; some ten are needed."""

MOST_BACKTRACKS = 8
"""Shortenings of a Newton step before a step of Weiszfeld's method, which always descends, replaces it."""

SMALLEST_SHARE = 2.0**-500
"""Masses below this share of the largest one of their output are left out of lower bounds."""


@dataclass(frozen=True)
class BestGuesses:
    """The best guess for each output, its error, and a proved lower bound on the error of every guess.

    >>> from privacygames.points.guesses import best_guesses
    >>> best = best_guesses([[0.25, 0.25], [0.4, 0.1]], [(0.0, 0.0), (2.0, 0.0)])
    >>> best.guesses[1].tolist(), round(best.total_error, 6), round(best.total_lower, 6)
    ([0.0, 0.0], 0.7, 0.7)

    Attributes:
        guesses: (outputs, dimension), in the unit of the points.
        errors: (outputs,) the error of each guess, rounded up: Σ_x mass · distance, not divided by the mass.
        lower: (outputs,) no point has a smaller error as a guess; rounded down.
    """

    guesses: FloatArray
    errors: FloatArray
    lower: FloatArray

    @property
    def total_error(self) -> float:
        """The adversary's expected error with these guesses, rounded up."""
        return _up(fsum(self.errors))

    @property
    def total_lower(self) -> float:
        """No adversary has a smaller expected error, rounded down."""
        return max(0.0, _down(fsum(self.lower)))

    @property
    def gap(self) -> float:
        """(total_error − total_lower) / total_error; 0 where there is no error."""
        return (self.total_error - self.total_lower) / self.total_error if self.errors.any() else 0.0


def best_guesses(masses: ArrayLike, xy: ArrayLike, distance: str = "euclidean") -> BestGuesses:
    """The optimal attack on a mechanism for points, where any point of the plane or the line may be guessed.

    >>> from privacygames.points.guesses import best_guesses
    >>> square = [(0.0, 0.0), (2.0, 0.0), (0.0, 2.0), (2.0, 2.0)]
    >>> best = best_guesses([[0.25, 0.25, 0.25, 0.25]], square)
    >>> best.guesses.round(6).tolist(), round(best.total_error, 6)
    ([[1.0, 1.0]], 1.414214)

    Args:
        masses: (outputs, points) π(x) p(o|x), 0 or more.
        xy: (points, 1) or (points, 2) coordinates.
        distance: ``"euclidean"``, or ``"squared"`` for its square.

    Raises:
        InvalidProblem: an array has the wrong shape, or entries that are negative, infinite or NaN. The message shows
            none of them.
    """
    require_choice(distance, DISTANCES, "distance")
    table, places = _checked(masses, xy)
    blocks = []
    for rows in _row_blocks(*table.shape):
        scaled, exponent = _scale_up(table[rows])
        guesses, errors, lower = (_means if distance == "squared" else _medians)(scaled, places)
        blocks.append((guesses, np.ldexp(errors, -exponent), np.ldexp(lower, -exponent)))
    guesses, errors, lower = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return _result(guesses, errors, lower)


def best_candidates(
    masses: ArrayLike,
    xy: ArrayLike,
    distance: Callable[[FloatArray, FloatArray], FloatArray],
    candidates: ArrayLike,
    *,
    lipschitz: float,
    covering_radius: float,
) -> BestGuesses:
    """The best guesses among candidates, and a lower bound for all guesses near a candidate, for any distance.

    >>> from privacygames.points.guesses import best_candidates, covering_lattice
    >>> candidates, radius = covering_lattice((0.0, 0.0), (1.0, 1.0), spacing=0.01)
    >>> def taxi(guesses, points):
    ...     return np.abs(guesses[:, None] - points).sum(axis=2)
    >>> masses, points = [[0.5, 0.5]], [(0.0, 0.0), (1.0, 1.0)]
    >>> best = best_candidates(masses, points, taxi, candidates, lipschitz=2**0.5, covering_radius=radius)
    >>> round(best.total_error, 6), bool(0.98 < best.total_lower < 1.0)
    (1.0, True)

    Args:
        masses: (outputs, points) π(x) p(o|x), 0 or more.
        xy: (points, dimension) coordinates.
        distance: called with the candidates (m, dimension) and the points; returns the distances (m, points). They are
            taken as they are: their own rounding is the caller's matter.
        candidates: (m, dimension).
        lipschitz: how much the distance to any point changes per unit of length of the guess, at most.
        covering_radius: every guess that the lower bound is for lies within this of a candidate.
    """
    for value, name in ((lipschitz, "lipschitz"), (covering_radius, "covering_radius")):
        if not (is_number(value) and 0 <= value < np.inf):
            raise InvalidProblem(f"{name} must be a number, 0 or more")
    table, places = _checked(masses, xy)
    guesses = as_floats(candidates, "the candidates")
    if guesses.ndim != 2 or guesses.shape[1] != places.shape[1] or not len(guesses) or not np.isfinite(guesses).all():
        raise InvalidProblem(f"the candidates need shape (many, {places.shape[1]}) and finite coordinates")
    distances = as_floats(distance(guesses, places), "the distances")
    if distances.shape != (len(guesses), len(places)) or not ((distances >= 0) & (distances < np.inf)).all():
        raise InvalidProblem("the distances must be finite, 0 or more, of shape (candidates, points)")
    scaled, exponent = _scale_up(table)
    errors = scaled @ distances.T
    best = errors.argmin(axis=1)
    error, slack = errors[np.arange(len(errors)), best], _slack(len(places))
    upper = error * (1 + slack) + len(places) * 2.0**-1074
    loss = scaled.sum(axis=1) * (1 + slack) * lipschitz * covering_radius * (1 + slack)
    lower = error * (1 - slack) - loss - len(places) * 2.0**-1074
    return _result(guesses[best], np.ldexp(upper, -exponent), np.ldexp(lower, -exponent))


def covering_lattice(low: ArrayLike, high: ArrayLike, *, spacing: float) -> tuple[FloatArray, float]:
    """A lattice of candidates over a rectangle or an interval, and its covering radius, rounded up.

    >>> from privacygames.points.guesses import covering_lattice
    >>> candidates, radius = covering_lattice([0.0], [1.0], spacing=0.25)
    >>> candidates.ravel().tolist(), round(radius, 6)
    ([0.125, 0.375, 0.625, 0.875], 0.125)

    Args:
        low: the corner with the smallest coordinates.
        high: the opposite corner.
        spacing: the largest distance between neighbours along an axis.
    """
    start, end = as_floats(low, "low"), as_floats(high, "high")
    if start.ndim != 1 or start.shape != end.shape or not len(start) or not np.isfinite([start, end]).all():
        raise InvalidProblem("low and high must be corners with finite coordinates, (dimension,) each")
    if not (is_number(spacing) and 0 < spacing < np.inf) or not (start <= end).all():
        raise InvalidProblem("a lattice needs a positive spacing, and low ≤ high")
    sides = end - start
    counts = np.maximum(np.ceil(sides / spacing), 1.0)
    axes = [
        corner + side * (np.arange(int(count)) + 0.5) / count
        for corner, side, count in zip(start, sides, counts, strict=True)
    ]
    lattice = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    rounding = 8 * ULP * float(np.abs([start, end]).max()) * len(sides)
    return lattice, float(np.sqrt(((sides / counts / 2) ** 2).sum())) * (1 + 8 * ULP) + rounding


def _checked(masses: ArrayLike, xy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The masses and the coordinates as arrays, or an error that shows none of them."""
    table, places = as_floats(masses, "the masses"), as_floats(xy, "the points")
    if places.ndim != 2 or places.shape[1] not in (1, 2) or not len(places):
        raise InvalidProblem(f"the points need shape (points, 1) or (points, 2); got {places.shape}")
    if table.ndim != 2 or table.shape[1] != len(places) or not len(table):
        raise InvalidProblem(f"the masses need shape (outputs, {len(places)}); got {table.shape}")
    if not ((table >= 0) & (table <= 1e60)).all():
        raise InvalidProblem("the masses must be finite numbers, 0 or more")
    if not in_range(np.abs(places)):
        raise InvalidProblem("the coordinates must be finite numbers of ordinary size")
    return table, places


def _row_blocks(rows: int, columns: int) -> list[slice]:
    """Slices of rows that hold at most ``BLOCK_ENTRIES`` entries, at least one row each."""
    size = max(1, BLOCK_ENTRIES // columns)
    return [slice(start, start + size) for start in range(0, rows, size)]


def _scale_up(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Rows times the power of two that brings their largest mass to at least ½: exact, since none is scaled down."""
    exponent = np.maximum(-np.frexp(table.max(axis=1))[1], 0).astype(np.int64)
    return np.ldexp(table, exponent[:, None]), exponent


def _slack(points: int) -> float:
    """How much each sum over the points is moved against the result; see the module's docstring."""
    return (points + 32) * ULP


def _down(value: float) -> float:
    """The next smaller float."""
    return float(np.nextafter(value, -np.inf))


def _up(value: float) -> float:
    """The next larger float; 0 stays."""
    return float(np.nextafter(value, np.inf)) if value else 0.0


def _result(guesses: FloatArray, errors: FloatArray, lower: FloatArray) -> BestGuesses:
    """The result, with each lower bound clipped at 0 and both bounds moved by one float for the last product."""
    rounded_up = np.where(errors > 0, np.nextafter(errors, np.inf), 0.0)
    rounded_down = np.maximum(np.nextafter(lower, -np.inf), 0.0)
    return BestGuesses(*(freeze_floats(array) for array in (guesses, rounded_up, np.minimum(rounded_down, errors))))


def _lengths(vectors: list[FloatArray]) -> FloatArray:
    """Euclidean lengths, without underflow."""
    return np.asarray(np.hypot(*vectors) if len(vectors) == 2 else np.abs(vectors[0]))


def _means(masses: FloatArray, xy: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Guesses, errors and lower bounds for the squared distance."""
    total = masses.sum(axis=1)
    given = total > 0
    weights = masses / np.where(given, total, 1.0)[:, None]
    guesses = np.where(given[:, None], weights @ xy, xy[:1])
    drift = [(weights * (g[:, None] - x)).sum(axis=1) for g, x in zip(guesses.T, xy.T, strict=True)]
    guesses -= np.stack(drift, axis=1)  # the mean, once more, without cancellation
    exact = given & ((masses > 0).sum(axis=1) == 1)
    guesses[exact] = xy[masses[exact].argmax(axis=1)]
    offsets = [g[:, None] - x for g, x in zip(guesses.T, xy.T, strict=True)]
    slack = _slack(len(xy))
    squares = np.sum([offset**2 for offset in offsets], axis=0)
    error = np.einsum("op,op->o", masses, squares)
    floor = len(xy) * 2.0**-1074
    away = (masses > 0) & np.any([offset != 0 for offset in offsets], axis=0)
    errors = np.where(away.any(axis=1), error * (1 + slack) + floor, 0.0)
    significant = _significant(masses)
    above = np.einsum("op,op->o", significant, squares)
    mass = significant.sum(axis=1)
    rounding = slack * np.sqrt(mass * above) * (1 + slack)  # Σ a‖v‖ ≤ √(M·Σ a‖v‖²)
    moment = _lengths([np.abs(np.einsum("op,op->o", significant, offset)) + rounding for offset in offsets])
    lower = above * (1 - slack) - moment**2 / np.where(given, mass, 1.0) * (1 + 2 * slack)
    return guesses, errors, lower


def _significant(masses: FloatArray) -> FloatArray:
    """The masses, with those that could underflow replaced by 0."""
    return np.where(masses >= SMALLEST_SHARE * masses.max(axis=1, keepdims=True), masses, 0.0)


def _medians(masses: FloatArray, xy: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Guesses, errors and lower bounds for the Euclidean distance."""
    guesses = _weighted_medians(masses, xy) if xy.shape[1] == 1 else _geometric_medians(masses, xy)
    errors, lower = _euclidean_bounds(masses, xy, guesses)
    loose = np.flatnonzero(errors - lower > 1e-9 * errors)
    if len(loose):  # the optimum may be a point that rounding excluded
        offsets = [g[:, None] - x for g, x in zip(guesses[loose].T, xy.T, strict=True)]
        beyond = np.where(masses[loose] > 0, _lengths(offsets), np.inf)
        nearest = xy[beyond.argmin(axis=1)]
        other_errors, other_lower = _euclidean_bounds(masses[loose], xy, nearest)
        better = other_errors < errors[loose]
        guesses[loose[better]], errors[loose[better]] = nearest[better], other_errors[better]
        lower[loose] = np.maximum(lower[loose], other_lower)
    return guesses, errors, lower


def _euclidean_bounds(masses: FloatArray, xy: FloatArray, guesses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The errors of any guesses, rounded up, and the lower bounds that they prove, rounded down."""
    slack = _slack(len(xy))
    offsets = [g[:, None] - x for g, x in zip(guesses.T, xy.T, strict=True)]
    lengths = _lengths(offsets)
    error = np.einsum("op,op->o", masses, lengths)
    away = ((masses > 0) & (lengths > 0)).any(axis=1)
    errors = np.where(away, error * (1 + slack) + len(xy) * 2.0**-1074, 0.0)
    masses = _significant(masses)
    mass = masses.sum(axis=1)
    divisor = np.where(mass > 0, mass, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(lengths > 0, masses / lengths, 0.0)
    significant_error = np.einsum("op,op->o", masses, lengths)
    radius = significant_error * (1 + slack) * 2 / divisor * (1 + slack)
    lower = np.full(len(masses), -np.inf)
    for share in NEAR:
        rows = np.flatnonzero(significant_error - lower > LOOSE * significant_error)
        near = lengths[rows] <= share * radius[rows, None]
        moments = [np.einsum("op,op->o", np.where(near, 0.0, weights[rows]), offset[rows]) for offset in offsets]
        inside = np.where(near, masses[rows], 0.0)
        residual = np.maximum(_lengths(moments) - inside.sum(axis=1), 0.0) * (1 + slack) + 4 * slack * mass[rows]
        others = np.einsum("op,op->o", np.where(near, 0.0, masses[rows]), lengths[rows]) * (1 - slack)
        these = np.einsum("op,op->o", inside, lengths[rows]) * (1 + slack)
        proved = others * (1 - 4 * ULP) - these - residual * radius[rows] * (1 + slack)
        lower[rows] = np.maximum(lower[rows], proved)
    return errors, lower


def _weighted_medians(masses: FloatArray, xy: FloatArray) -> FloatArray:
    """The smallest coordinate that has half of the mass at or below it."""
    order = np.argsort(xy[:, 0], kind="stable")
    below = np.cumsum(masses[:, order], axis=1)
    position = np.minimum((below < below[:, -1:] / 2).sum(axis=1), len(xy) - 1)
    return np.asarray(xy[order[position]])


def _geometric_medians(masses: FloatArray, xy: FloatArray) -> FloatArray:
    """Guesses that minimise the error in the plane; nothing is proved here."""
    used = masses.any(axis=0)
    if not used.any():
        return np.repeat(xy[:1], len(masses), axis=0)
    masses, xy = masses[:, used], xy[used]
    points = np.unique(xy, axis=0)
    if len(points) < len(xy):  # equal points are one point with all their mass
        order = np.lexsort(xy.T[::-1])
        first = np.flatnonzero(np.r_[True, (np.diff(xy[order], axis=0) != 0).any(axis=1)])
        masses = np.add.reduceat(masses[:, order], first, axis=1)
    else:
        points = xy
    total = masses.sum(axis=1)
    shares = masses / np.where(total > 0, total, 1.0)[:, None]
    origin = points.mean(axis=0)
    extent = float(np.abs(points - origin).max()) or 1.0
    local = (points - origin) / extent
    best, optimal = _best_points(shares, local)
    guesses = points[best]
    moving = np.flatnonzero((total > 0) & ~optimal)
    if len(moving):
        guesses[moving] = origin + extent * _newton(shares[moving], local, best[moving])
    return guesses


@dataclass(frozen=True)
class Derivatives:
    """F, its gradient and its Hessian at one place for each output, without the points that lie there."""

    value: FloatArray
    gradient: FloatArray
    curvature: FloatArray
    """Σ a/‖v‖, the trace of the Hessian."""
    hessian: FloatArray
    """(outputs, 3): its entries xx, xy and yy."""

    def take(self, rows: IntArray) -> "Derivatives":
        """Those of some outputs."""
        return Derivatives(self.value[rows], self.gradient[rows], self.curvature[rows], self.hessian[rows])

    def put(self, rows: IntArray, other: "Derivatives") -> None:
        """Replace those of some outputs."""
        self.value[rows], self.gradient[rows] = other.value, other.gradient
        self.curvature[rows], self.hessian[rows] = other.curvature, other.hessian


def _derivatives(shares: FloatArray, points: FloatArray, places: FloatArray, *, second: bool = True) -> Derivatives:
    """Derivatives at one place for each output; the Hessian only if ``second``."""
    dx, dy = (place[:, None] - point for place, point in zip(places.T, points.T, strict=True))
    squares = dx * dx
    squares += dy * dy
    np.maximum(squares, 1e-300, out=squares)
    lengths = np.sqrt(squares)
    weights = shares / lengths
    weights[squares <= 1e-300] = 0.0
    value = np.einsum("op,op->o", shares, lengths)
    gradient = np.stack([np.einsum("op,op->o", weights, dx), np.einsum("op,op->o", weights, dy)], axis=1)
    curvature = weights.sum(axis=1)
    hessian = np.zeros((len(shares), 3))
    if second:
        weights /= squares
        dx *= weights
        hessian[:, 2] = np.einsum("op,op->o", dx, places[:, :1] - points[:, 0])
        hessian[:, 1] = -np.einsum("op,op->o", dx, dy)
        dy *= dy
        hessian[:, 0] = np.einsum("op,op->o", weights, dy)
    return Derivatives(value, gradient, curvature, hessian)


def _best_points(shares: FloatArray, points: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """The best guess among the points themselves, and whether it is the best of all."""
    rows = np.arange(len(shares))
    best, optimal = shares.argmax(axis=1), shares.sum(axis=1) <= 0
    least = np.full(len(shares), np.inf)
    remaining = np.ones(shares.shape, dtype=bool)
    active, chosen = rows[~optimal], best[~optimal]  # the heaviest point first: it is often optimal
    while len(active):
        at = _derivatives(shares[active], points, points[chosen], second=False)
        better = at.value < least[active]
        best[active[better]], least[active[better]] = chosen[better], at.value[better]
        length = np.hypot(*at.gradient.T)
        done = length <= shares[active, chosen] + SETTLED
        best[active[done]], optimal[active[done]] = chosen[done], True
        slopes = at.gradient @ points.T
        slopes -= slopes[np.arange(len(active)), chosen][:, None]
        alive = remaining[active] & (slopes < 0)
        alive[np.arange(len(active)), chosen] = False
        remaining[active] = alive
        count = alive.sum(axis=1)
        keep = ~done & (count > 0)
        active, alive, count = active[keep], alive[keep], count[keep]
        centroid = (alive @ points) / count[:, None]
        away = np.hypot(centroid[:, :1] - points[:, 0], centroid[:, 1:] - points[:, 1])
        chosen = np.where(alive, away, np.inf).argmin(axis=1)
    return best, optimal


def _newton(shares: FloatArray, points: FloatArray, start: IntArray) -> FloatArray:
    """Minimisers of F by Newton's method, from points that are not optimal but better than all other points."""
    own = shares[np.arange(len(shares)), start]
    at = _derivatives(shares, points, points[start], second=False)
    length = np.maximum(np.hypot(*at.gradient.T), 1e-300)
    places = points[start] - (np.maximum(1 - own / length, 0.0) / at.curvature)[:, None] * at.gradient
    current = _derivatives(shares, points, places)
    step, backtracks = _newton_step(current), np.zeros(len(shares), dtype=np.int64)
    for _ in range(MOST_STEPS):
        unsettled = (np.hypot(*current.gradient.T) > SETTLED) & (backtracks <= MOST_BACKTRACKS + 1)
        active = np.flatnonzero(unsettled & (np.abs(step).max(axis=1) > 0))
        if not len(active):
            break
        trial = _derivatives(shares[active], points, places[active] + step[active])
        slope = (current.gradient[active] * step[active]).sum(axis=1)
        ahead = (trial.gradient * step[active]).sum(axis=1)
        not_worse = trial.value <= current.value[active] * (1 + 4 * ULP)
        accepted = not_worse & (np.abs(ahead) <= 0.9 * np.abs(slope)) | (ahead <= 0)  # F is convex
        moved, short = active[accepted], active[~accepted]
        places[moved] += step[moved]
        current.put(moved, trial.take(np.flatnonzero(accepted)))
        step[moved], backtracks[moved] = _newton_step(current.take(moved)), 0
        backtracks[short] += 1
        share = np.clip(slope / np.minimum(slope - ahead, -1e-300), 0.05, 0.5)[~accepted]
        step[short] *= share[:, None]
        last = short[backtracks[short] == MOST_BACKTRACKS + 1]
        step[last] = -current.gradient[last] / current.curvature[last][:, None]
    return np.asarray(places)


def _newton_step(at: Derivatives) -> FloatArray:
    """The Newton step, no longer than the distance within which the minimiser lies."""
    (xx, xy, yy), (gx, gy) = at.hessian.T, at.gradient.T
    ridge = 1e-14 * at.curvature
    xx, yy = xx + ridge, yy + ridge
    determinant = np.maximum(xx * yy - xy * xy, ridge * at.curvature)
    step = -np.stack([yy * gx - xy * gy, xx * gy - xy * gx], axis=1) / determinant[:, None]
    length = np.maximum(np.hypot(*step.T), 1e-300)
    return np.asarray(step * np.minimum(1.0, 2 * at.value / length)[:, None])

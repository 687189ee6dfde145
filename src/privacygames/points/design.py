"""Design of mechanisms for points: the cheapest on a mesh, rounded to integers and verified."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, freeze_floats, require_nonnegative
from privacygames.beliefs import Prior
from privacygames.certificates import BITS, to_weights
from privacygames.designer import design_bounds
from privacygames.errors import GuaranteeViolated, InvalidProblem
from privacygames.points.bernstein import Mesh
from privacygames.points.mechanism import PointMechanism
from privacygames.points.prior import PointPrior
from privacygames.problem import Bounds, Problem
from privacygames.progress import ProgressCallback
from privacygames.solvers import ConeProgram, solve_cone_program
from privacygames.spaces import Categories
from privacygames.validation import is_number, require_instance

Cost = str | Callable[[FloatArray, FloatArray], FloatArray]
"""``"euclidean"``, ``"squared"``, or a function of points (many, 2) and outputs (m, 2) in km that returns (many, m)."""

COSTS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "euclidean": lambda points, outputs: np.hypot(*(points[:, None] - outputs).transpose(2, 0, 1)),
    "squared": lambda points, outputs: ((points[:, None] - outputs) ** 2).sum(axis=2),
}

MIXED = 2.0**-50
"""Least share of a constant mechanism in the result: it absorbs the rounding of probabilities to integers."""


def design(
    prior: PointPrior,
    outputs: ArrayLike,
    *,
    epsilon: float,
    cost: Cost = "euclidean",
    mesh: Mesh | None = None,
    bound: bool = True,
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> PointMechanism:
    """The mechanism of least expected cost on a mesh, with ε-differential privacy between any two points of the plane.

    >>> town = pg.Area(2.0, 2.0)
    >>> prior = pg.points.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.points.design(prior, [(0.5, 0.5), (1.5, 1.2)], epsilon=1.0)
    >>> mechanism.sample((0.51, 0.48)) in [(0.5, 0.5), (1.5, 1.2)]
    True

    Args:
        prior: weighted points of an area.
        outputs: the points that may be released, (outputs, 2), as the area counts them.
        epsilon: per kilometre: p(o|x) ≤ exp(epsilon·‖x − x'‖)·p(o|x') for every output and any two points.
        cost: what an output costs at a point.
        mesh: where the control points are; by default :meth:`Mesh.for_epsilon`. Finer meshes cost less and take longer.
        bound: also prove how much less any mechanism whatever could cost.
        tolerance: relative gap to the best mechanism on the mesh.
        progress: called with a :class:`privacygames.Progress` now and then.
    """
    require_instance(prior, PointPrior, "the prior")
    if not (is_number(epsilon) and 0 < epsilon < np.inf):
        raise InvalidProblem("epsilon must be a positive number")
    mesh = Mesh.for_epsilon(prior.area, epsilon) if mesh is None else mesh
    if mesh.area != prior.area:
        raise InvalidProblem("the mesh and the prior are over different areas")
    released = freeze_floats(as_floats(outputs, "the outputs"))
    places = prior.area.project(released)
    losses = _costs(cost, prior.xy, places)
    basis = mesh.basis(prior.xy)
    value, along_x, along_y = mesh.gradients
    program = ConeProgram(
        np.ascontiguousarray((basis.T @ (prior.probabilities[:, None] * losses)).T),
        (epsilon * value, along_x, along_y),
    )
    solution = solve_cone_program(program, tolerance=tolerance, progress=progress)
    proved = lower_bound(prior, released, epsilon=epsilon, cost=cost) if bound else None
    probabilities = solution.v.T
    share = max(MIXED, _needed_share(program, solution.v))
    for _ in range(8):
        mixed = (1 - share) * probabilities + share / len(places)
        weights = to_weights(np.maximum(mixed, 0) / np.maximum(mixed, 0).sum(axis=1, keepdims=True), BITS)
        rows = np.ldexp(weights.astype(np.float64), -BITS)
        expected = float((prior.probabilities @ ((basis @ rows) * losses)).sum()) * (1 + 1e-12)
        try:
            return PointMechanism(mesh, released, weights, BITS, epsilon=epsilon, cost=expected, bound=proved)
        except GuaranteeViolated:
            share *= 16
    raise GuaranteeViolated("rounding to integers could not be repaired; use a larger epsilon or a coarser mesh")


def lower_bound(
    prior: PointPrior, outputs: ArrayLike, *, epsilon: float, cost: Cost = "euclidean", lattice: int = 12
) -> float:
    """A proved lower bound on the cost of every mechanism with this guarantee, whatever its form.

    Any mechanism for points satisfies the ratio constraints between finitely many of them, so the certified bound of
    the finite program on the prior's points and a lattice is one for every mechanism.

    Args:
        prior: as in :func:`design`.
        outputs: as in :func:`design`.
        epsilon: as in :func:`design`.
        cost: as in :func:`design`.
        lattice: points along the longer side of the lattice of points with prior 0.

    >>> town = pg.Area(2.0, 2.0)
    >>> prior = pg.points.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)])
    >>> round(pg.points.lower_bound(prior, [(0.5, 0.5), (1.5, 1.2)], epsilon=1.0, lattice=2), 2)
    0.28
    """
    area = prior.area
    places = area.project(outputs)
    spacing = max(area.width, area.height) / lattice
    counts = [max(2, round(length / spacing)) for length in (area.width, area.height)]
    sides = (np.linspace(0, length, count) for length, count in zip((area.width, area.height), counts, strict=True))
    x, y = np.meshgrid(*sides)
    points = np.concatenate([prior.xy, np.stack([x.ravel(), y.ravel()], axis=1)])
    weights = np.concatenate([prior.probabilities, np.zeros(x.size)])
    points, first = np.unique(points, axis=0, return_index=True)
    space = Categories(f"point {number}" for number in range(len(points)))
    problem = Problem(
        Prior(space, weights[first]),
        cost=_costs(cost, points, places).T,
        distance="hamming",
        distinguishability=COSTS["euclidean"](points, points),
        observables=Categories(f"output {number}" for number in range(len(places))),
    )
    return design_bounds(problem, Bounds(epsilon=epsilon)).certificate.bound or 0.0


def _needed_share(program: ConeProgram, v: FloatArray) -> float:
    """The share of the uniform mechanism that satisfies every cone, at which the gradient is too long."""
    slack = program.slacks(v)
    excess = float((np.hypot(slack[..., 1], slack[..., 2]) - slack[..., 0]).max())
    if excess <= 0:
        return 0.0
    room = float(program.rows[0].max()) / len(v)  # epsilon times the uniform probability
    return 2 * excess / (room + excess)


def _costs(cost: Cost, points: FloatArray, outputs: FloatArray) -> FloatArray:
    """c(o, x) for every point and output, checked."""
    if isinstance(cost, str) and cost not in COSTS:
        raise InvalidProblem(f"the cost {cost!r} is not known; choose from {', '.join(COSTS)}, or give a function")
    values = (COSTS[cost] if isinstance(cost, str) else cost)(points, outputs)
    return require_nonnegative(values, what="the cost", shape=(len(points), len(outputs)), meaning="(points, outputs)")

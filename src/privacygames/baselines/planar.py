"""The planar Laplace mechanism (Andrés et al. 2013): exact on a grid, sampled in the plane."""

import os

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.baselines.certify_baseline import certify_baseline, require_same_labels
from privacygames.baselines.rectangles import quadrant_masses
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Problem, Scale, require_epsilon
from privacygames.spaces import Grid
from privacygames.validation import require_instance

DOUBLE_BITS = 53
"""Bits of a float64's significand."""


def planar_laplace(problem: Problem, epsilon: float) -> Mechanism:
    r"""Planar Laplace noise on the cells of a grid, with exact probabilities instead of sampled points.

    The density around the centre of the true cell is :math:`\frac{ε^2}{2π} e^{-ε r}`. The output is the cell that
    contains the noisy point; a point outside the window counts for the nearest cell inside, so border cells get all
    probability beyond them. Probabilities are integrals over cells, accurate to a relative 10⁻¹².

    Taking the cell of a point, or the nearest cell of a point outside, is post-processing: ε per kilometre of the
    Euclidean distance between centres holds after discretisation. The certificate states the ε *realised* in the
    problem's own distinguishability: at most ε for the Euclidean one, and somewhat less where cells are large.

    Args:
        problem: its secrets and outputs are the cells of one grid.
        epsilon: ε per kilometre.

    >>> grid = pg.Grid(columns=3, rows=1, width=3.0, height=1.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.baselines.planar_laplace(problem, 1.0)
    >>> bool(0.5 < mechanism.certificate.bounds.epsilon <= 1.0)
    True
    """
    require_instance(problem, Problem, "the problem")
    epsilon = require_epsilon(epsilon)
    grid = problem.space
    if not isinstance(grid, Grid):
        raise InvalidProblem("the planar Laplace mechanism needs secrets that are the cells of a Grid")
    require_same_labels(problem, "planar Laplace")
    cell_width, cell_height = epsilon * grid.width / grid.columns, epsilon * grid.height / grid.rows
    masses = quadrant_masses(_intervals(cell_width, grid.columns), _intervals(cell_height, grid.rows))
    counts_x, counts_y = _interval_counts(grid.columns), _interval_counts(grid.rows)
    table = np.einsum("kcu,lrv,uv->lkrc", counts_x, counts_y, masses, optimize=True)
    log_ratio_bounds = epsilon * grid.distance("euclidean")
    description = Scale("euclidean", grid.distance_unit("euclidean")).epsilon(f"{epsilon:g}")
    origin = f"planar Laplace, ε = {description} in the plane"
    return certify_baseline(problem, table.reshape(len(grid), len(grid)), log_ratio_bounds, origin=origin)


def planar_laplace_noise(epsilon: float, count: int, generator: "np.random.Generator | None" = None) -> FloatArray:
    r"""Noise (east, north) of the planar Laplace distribution in the continuous plane, shape (count, 2).

    Polar sampling: the angle is uniform, the radius :math:`-\frac{1}{ε}(W_{-1}((u-1)/e)+1)` for a uniform u, which
    inverts its distribution function :math:`1-(1+εr)e^{-εr}` (W₋₁: the lower branch of Lambert's function).

    Floating-point noise is not exact: its last digits can reveal what they were added to (Mironov 2012), so nothing is
    certified about it. Round it to cells, or release outputs of :func:`planar_laplace`, which are cells.

    Args:
        epsilon: ε per unit of length.
        count: number of points.
        generator: a seeded generator for reproducible experiments; by default the operating system's randomness.

    >>> pg.baselines.planar_laplace_noise(1.0, 1000).shape
    (1000, 2)
    """
    from scipy.special import lambertw

    epsilon = require_epsilon(epsilon)
    quantile, turn = random_uniforms(count, generator), random_uniforms(count, generator)
    radius = np.maximum(-(lambertw((quantile - 1) / np.e, -1).real + 1), 0.0) / epsilon
    angle = 2 * np.pi * turn
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def random_uniforms(count: int, generator: "np.random.Generator | None") -> FloatArray:
    """Uniform numbers strictly between 0 and 1: odd multiples of 2^-54."""
    if generator is None:
        integers = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(64 - DOUBLE_BITS)
    else:
        integers = generator.integers(0, 2**DOUBLE_BITS, size=count, dtype=np.uint64)
    return np.asarray((integers.astype(np.float64) + 0.5) * 2.0**-DOUBLE_BITS)


def _intervals(step: float, count: int) -> FloatArray:
    """Intervals of distances from a centre: the cells (0 to ½, ½ to 1½, …), then all beyond each cell's far edge."""
    ends = (np.arange(count) + 0.5) * step
    starts = np.concatenate([[0.0], ends[:-1]])
    cells = np.stack([starts, ends], axis=1)
    beyond = np.stack([ends, np.full(count, np.inf)], axis=1)
    return np.concatenate([cells, beyond])


def _interval_counts(count: int) -> FloatArray:
    """How often each interval of ``_intervals`` occurs in column c as seen from column k, (k, c, interval)."""
    counts = np.zeros((count, count, 2 * count))
    for true in range(count):
        for output in range(count):
            difference = abs(output - true)
            counts[true, output, difference] += 1 if difference else 2  # a cell lies on both sides of its own centre
        counts[true, count - 1, count + count - 1 - true] += 1
        counts[true, 0, count + true] += 1
    return counts

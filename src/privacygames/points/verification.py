r"""The verifier of guarantees for points, in exact arithmetic on the integers that are sampled.

Let :math:`f = p(o \mid \cdot)` have the Bernstein coefficients c on a cell with sides :math:`h_x, h_y`. Its gradient,
raised to the degree of f, has the coefficients :math:`g_{ij} = (g^x_{ij}/h_x,\ g^y_{ij}/h_y)` with

.. math:: g^x_{ij} = -i\,c_{i-1,j} + (2i-d)\,c_{ij} + (d-i)\,c_{i+1,j}

and likewise for y. Suppose that :math:`\|g_{ij}\| \le \varepsilon\,c_{ij}` for all i and j. Bernstein polynomials are
non-negative, so :math:`\|\nabla f\| \le \sum B_i B_j \|g_{ij}\| \le \varepsilon \sum B_i B_j c_{ij} = \varepsilon f`,
and :math:`f(x) \le e^{\varepsilon\|x-x'\|} f(x')` along every segment (Grönwall); a rectangle is convex. The full
proof is in docs/theory/points.md. Nothing of a solver is used here.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import GuaranteeViolated
from privacygames.points.bernstein import Mesh

ULP = 2.0**-52
MOST_EXACT = 2_000_000
"""Most inequalities that are decided by exact integers; more would take minutes, and only a hostile file needs them."""


@dataclass(frozen=True)
class Neighbours:
    """The control values that a gradient coefficient is made of, one row for each control value of each cell.

    Attributes:
        centre: the index of c[i, j].
        x: (rows, 3) indices of c[i−1, j], c[i, j], c[i+1, j].
        y: (rows, 3) indices of c[i, j−1], c[i, j], c[i, j+1].
        factors_x: (rows, 3) integers that the x-neighbours are multiplied by.
        factors_y: (rows, 3) integers that the y-neighbours are multiplied by.
        side_x: h_x of each row's cell.
        side_y: h_y of each row's cell.
    """

    centre: IntArray
    x: IntArray
    y: IntArray
    factors_x: IntArray
    factors_y: IntArray
    side_x: FloatArray
    side_y: FloatArray

    @classmethod
    def of(cls, mesh: Mesh) -> "Neighbours":
        """Those of a mesh."""
        along_x, along_y = mesh.x.stencil, mesh.y.stencil
        row, column = (index.ravel() for index in np.indices((len(along_y.position), len(along_x.position))))
        px, py = along_x.neighbours[column], along_y.neighbours[row]
        width = mesh.x.controls
        centre = along_y.position[row] * width + along_x.position[column]
        return cls(
            centre,
            along_y.position[row][:, None] * width + px,
            py * width + along_x.position[column][:, None],
            along_x.factors[column],
            along_y.factors[row],
            along_x.side[column],
            along_y.side[row],
        )


def check_weights(weights: IntArray, bits: int, mesh: Mesh) -> None:
    """Refuse weights that are not a distribution for each control point.

    Raises:
        GuaranteeViolated: a weight is negative, or a row does not sum to 2^bits.
    """
    if weights.dtype != np.int64 or weights.ndim != 2 or len(weights) != mesh.controls or not weights.size:
        raise GuaranteeViolated("the weights must be 64-bit integers, one row for each control point of the mesh")
    if not 52 <= bits <= 62 or (weights < 0).any() or (weights > 2**bits).any():
        raise GuaranteeViolated("weights must lie between 0 and the power of two that their rows sum to")
    high = (weights >> 31).sum(axis=1, dtype=np.int64)  # two halves cannot overflow
    low = (weights & (2**31 - 1)).sum(axis=1, dtype=np.int64)
    if any((int(h) << 31) + int(lo) != 2**bits for h, lo in zip(high, low, strict=True)):
        raise GuaranteeViolated(f"a row of weights does not sum to 2^{bits}")


def check_epsilon(weights: IntArray, mesh: Mesh, epsilon: float) -> None:
    """Check every gradient coefficient of every output against epsilon times the value.

    Floats decide where rounding cannot matter; exact integers decide the rest.

    Raises:
        GuaranteeViolated: the guarantee does not hold for some pair of points.
    """
    near = Neighbours.of(mesh)
    values = weights.astype(np.float64)  # each within a relative 2^-53
    excess = np.full((len(near.centre), weights.shape[1]), -np.inf)
    for output in range(weights.shape[1]):
        column = values[:, output]
        terms_x = near.factors_x * column[near.x] / near.side_x[:, None]
        terms_y = near.factors_y * column[near.y] / near.side_y[:, None]
        rounding = 8 * ULP * (np.abs(terms_x).sum(axis=1) + np.abs(terms_y).sum(axis=1))
        length = np.hypot(terms_x.sum(axis=1), terms_y.sum(axis=1)) + rounding
        excess[:, output] = length - epsilon * column[near.centre] * (1 - 8 * ULP)
    rows, outputs = np.nonzero(~(excess <= 0))
    if len(rows) > MOST_EXACT:
        raise GuaranteeViolated(
            f"over {MOST_EXACT} inequalities are so near equality that only exact integers can tell"
        )
    for row, output in zip(rows.tolist(), outputs.tolist(), strict=True):
        if not _holds_exactly(weights[:, output], near, row, epsilon):
            raise GuaranteeViolated("an output's probability changes faster between points than epsilon allows")


def _holds_exactly(column: IntArray, near: Neighbours, row: int, epsilon: float) -> bool:
    """‖g‖² ≤ ε² c² in exact fractions."""
    gx, gy = (
        sum(int(factor) * int(column[place]) for factor, place in zip(factors[row], places[row], strict=True))
        for factors, places in ((near.factors_x, near.x), (near.factors_y, near.y))
    )
    slope = Fraction(gx) ** 2 / Fraction(float(near.side_x[row])) ** 2
    slope += Fraction(gy) ** 2 / Fraction(float(near.side_y[row])) ** 2
    return slope <= Fraction(epsilon) ** 2 * int(column[near.centre[row]]) ** 2

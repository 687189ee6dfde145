r"""The verifier of guarantees for points, on the integers that are sampled.

Let :math:`f = p(o \mid \cdot)` have the Bernstein coefficients c on a cell with sides :math:`h_x, h_y`. Its gradient,
raised to the degree of f, has the coefficients :math:`g_{ij} = (g^x_{ij}/h_x,\ g^y_{ij}/h_y)` with

.. math:: g^x_{ij} = -i\,c_{i-1,j} + (2i-d)\,c_{ij} + (d-i)\,c_{i+1,j}

and likewise for y. Suppose that :math:`\|g_{ij}\| \le \varepsilon\,c_{ij}` for all i and j. Bernstein polynomials are
non-negative, so :math:`\|\nabla f\| \le \sum B_i B_j \|g_{ij}\| \le \varepsilon \sum B_i B_j c_{ij} = \varepsilon f`,
and :math:`f(x) \le e^{\varepsilon\|x-x'\|} f(x')` along every segment (Grönwall); a rectangle is convex. The full
proof is in docs/theory/points.md. Nothing of a solver is used here.

Epsilon is decided by exact integers wherever floating-point numbers are too close to tell. Costs and errors are sums of
products of non-negative numbers, so in floating point a sum of N terms is within a relative N·2^-52 of the exact one;
they are rounded against the mechanism by that much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import GuaranteeViolated
from privacygames.points import bernstein
from privacygames.points.guesses import best_guesses
from privacygames.points.mesh import Mesh
from privacygames.points.problem import PointAdversary, PointProblem
from privacygames.points.worst_cost import largest_cost
from privacygames.problem import PROBLEM_ADVERSARY, Bounds

ULP = 2.0**-52
MOST_EXACT = 2_000_000
"""Most inequalities that are decided by exact integers; more would take minutes, and only a hostile file needs them."""


@dataclass(frozen=True)
class PointVerification:
    """What was verified, each number rounded to the safe side.

    Attributes:
        expected_cost: the expected cost under the prior, at most this.
        worst_cost: the cost at every point of the region, at most this; None for a cost that is a function.
        distortion: the expected error of every attack by the problem's own adversary, whose guesses may be any point:
            at least this.
        adversary_distortions: the same against each adversary of the bounds, in their order.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> verified = mechanism.certificate.verification
    >>> verified.expected_cost <= verified.worst_cost
    True
    """

    expected_cost: float
    worst_cost: float | None
    distortion: float
    adversary_distortions: tuple[float, ...] = ()

    def cost(self, *, worst_case: bool) -> float:
        """The cost that counts: the largest at any point, or the average."""
        return self.worst_cost if worst_case and self.worst_cost is not None else self.expected_cost


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
    combinations, sides = mesh.shared.weights, mesh.sides
    slopes = bernstein.slopes(mesh.degree, mesh.axes)
    relative = (8 + mesh.shared.most_terms) * ULP
    values = weights.astype(np.float64)  # each within a relative 2^-53
    suspects = []
    for output in range(weights.shape[1]):
        local = (combinations @ values[:, output]).reshape(mesh.cells, -1)
        lengths, rounding = [], np.zeros(local.shape)
        for axis, table in enumerate(slopes):
            lengths.append(local @ table.T / sides[:, axis, None])
            rounding += relative * (local @ np.abs(table).T) / sides[:, axis, None]
        excess = np.hypot.reduce(lengths) + rounding - epsilon * local * (1 - relative)
        suspects += [(row, output) for row in np.flatnonzero(~(excess <= 0)).tolist()]
        if len(suspects) > MOST_EXACT:
            raise GuaranteeViolated(
                f"over {MOST_EXACT} inequalities are so near equality that only exact integers can tell"
            )
    for row, output in suspects:
        if not _holds_exactly(weights[:, output], mesh, row, epsilon):
            raise GuaranteeViolated("an output's probability changes faster between points than epsilon allows")


def _holds_exactly(column: IntArray, mesh: Mesh, row: int, epsilon: float) -> bool:
    """‖g‖² ≤ ε² c² in exact fractions, for one control value of a cell."""
    each = (mesh.degree + 1) ** mesh.axes
    cell, place = divmod(row, each)
    local = [_exact_value(column, mesh, cell * each + other) for other in range(each)]
    total = Fraction(0)
    for axis, table in enumerate(bernstein.slopes(mesh.degree, mesh.axes)):
        slope = sum(factor * value for factor, value in zip(table[place].tolist(), local, strict=True))
        total += (slope / Fraction(float(mesh.sides[cell, axis]))) ** 2
    return bool(total <= (Fraction(epsilon) * local[place]) ** 2)


def _exact_value(column: IntArray, mesh: Mesh, row: int) -> Fraction:
    """A control value of a cell: a mean of integers, with weights that are integers over a power of two."""
    combinations = mesh.shared.weights
    terms = slice(combinations.indptr[row], combinations.indptr[row + 1])
    pairs = zip(combinations.indices[terms].tolist(), combinations.data[terms].tolist(), strict=True)
    return sum((Fraction(weight) * int(column[control]) for control, weight in pairs), Fraction(0))


def check(
    problem: PointProblem,
    bounds: Bounds,
    adversaries: Sequence[PointAdversary],
    *,
    mesh: Mesh,
    weights: IntArray,
    bits: int,
) -> PointVerification:
    """Check every guarantee; raise :class:`GuaranteeViolated` at the first that does not hold.

    Args:
        problem: the prior, cost and distance that the guarantees are about.
        bounds: what is guaranteed.
        adversaries: those of the bounds, as arrays.
        mesh: the mesh.
        weights: (control points, outputs).
        bits: what the rows sum to, as a power of two.
    """
    check_weights(weights, bits, mesh)
    if bounds.epsilon is not None:
        check_epsilon(weights, mesh, bounds.epsilon)
    rows = np.ldexp(weights.astype(np.float64), -bits)
    rounding = basis_rounding(mesh)
    own = joint_masses(mesh, rows, problem.prior.xy, problem.prior.probabilities)
    terms = own.size + rounding
    expected = float((own.T * problem.costs).sum()) * (1 + terms * ULP)
    worst = None
    if problem.cost.is_convex:
        worst = largest_cost(mesh, rows, problem.outputs, problem.cost).upper
    distortion = error_below(problem, own, problem.prior.xy, None, rounding)
    distortions = []
    for adversary in adversaries:
        if adversary.name == PROBLEM_ADVERSARY.name and adversary.errors is None and adversary.xy is problem.prior.xy:
            distortions.append(distortion)
            continue
        masses = joint_masses(mesh, rows, adversary.xy, adversary.probabilities)
        distortions.append(error_below(problem, masses, adversary.xy, adversary.errors, rounding))
    verification = PointVerification(expected, worst, distortion, tuple(distortions))
    _check_bounds(bounds, adversaries, verification)
    return verification


def _check_bounds(bounds: Bounds, adversaries: Sequence[PointAdversary], verified: PointVerification) -> None:
    for adversary, distortion in zip(adversaries, verified.adversary_distortions, strict=True):
        if adversary.distortion is not None and not distortion >= adversary.distortion:
            whom = f" against {adversary.name!r}" if bounds.named_adversaries else ""
            raise GuaranteeViolated(
                f"distortion privacy{whom} is only shown to be {distortion!r}, "
                f"below the {adversary.distortion!r} guaranteed"
            )
    for worst_case, limit in bounds.cost_limits:
        if worst_case and verified.worst_cost is None:
            raise GuaranteeViolated("the largest cost of a cost that is a function is not known")
        cost = verified.cost(worst_case=worst_case)
        if not cost <= limit:
            which = "largest cost at a point" if worst_case else "expected cost"
            raise GuaranteeViolated(f"the {which} is only shown to be {cost!r}, above the limit of {limit!r}")


def joint_masses(mesh: Mesh, rows: FloatArray, xy: FloatArray, probabilities: FloatArray) -> FloatArray:
    """π(x) p(o|x), (outputs, points), from rows of probabilities at control points."""
    return np.ascontiguousarray((mesh.basis_at(xy) @ rows).T * probabilities)


def basis_rounding(mesh: Mesh) -> int:
    """Units in the last place by which p(o|x) may be off: products of the basis, and the sum over control points."""
    terms = (mesh.degree + 1) ** mesh.axes * mesh.shared.most_terms
    return mesh.axes * 4 * (mesh.degree + 4) + int(terms)


def error_below(
    problem: PointProblem, masses: FloatArray, xy: FloatArray, errors: FloatArray | None, rounding: int
) -> float:
    """The expected error of the best attack, rounded down."""
    if errors is not None:
        error = float((masses @ errors.T).min(axis=1).sum())
        return error * (1 - (masses.size + rounding) * ULP)
    return best_guesses(masses, xy, problem.distance).total_lower * (1 - (len(masses) + rounding) * ULP)

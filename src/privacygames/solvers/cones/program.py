r"""Programs with one block of unknowns for each output, second-order cones, and rows that couple the blocks.

.. math:: \min_{v,x,\tau} \sum_o \langle c_o, v_o \rangle - \sum_o x_{1o} + \tau \quad\text{s.t.}\quad A v_o \in K;\quad
    D_k v_o \ge x_{ko} \mathbf 1;\quad \sum_o v_o = 1;\quad \sum_o x_{ko} \ge d_k;\quad
    \sum_o \langle r_o, v_o \rangle \le C;\quad \sum_o w_{oj} \langle B_j, v_o \rangle \le \tau

where the second and third term of the objective are there if the first adversary's distortion is maximised or the
worst cost minimised; where the worst cost is limited, a number stands instead of τ.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.cones.hessian import HessianPattern


@dataclass(frozen=True)
class CostLimit:
    """A limit on an average cost: Σ_o ⟨r_o, v_o⟩ ≤ C.

    >>> import numpy as np
    >>> pg.solvers.CostLimit(np.eye(2), at_most=0.5).at_most
    0.5

    Attributes:
        costs: r_o, (blocks, unknowns).
        at_most: C.
    """

    costs: FloatArray
    at_most: float


@dataclass(frozen=True)
class WorstCost:
    """The expected cost at each of some points, Σ_o w_oj ⟨B_j, v_o⟩, the largest of which is limited or minimised.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> pg.solvers.WorstCost(csr_array(np.eye(2)), costs=1 - np.eye(2)).at_most is None
    True

    Attributes:
        basis: B, sparse (points, unknowns).
        costs: w, (blocks, points).
        at_most: the limit; None to minimise it.
    """

    basis: Any
    costs: FloatArray
    at_most: float | None = None


@dataclass(frozen=True)
class ConeProgram:
    """The costs of each block, the cones that all blocks share, and what couples the blocks.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> empty = csr_array((2, 2))
    >>> program = pg.solvers.ConeProgram(1 - np.eye(2), (csr_array(np.eye(2)), empty, empty))
    >>> bool(pg.solvers.solve_cone_program(program, tolerance=1e-6).value < 1e-6)
    True

    Attributes:
        costs: c_o, (blocks, unknowns).
        rows: three sparse matrices (cones, unknowns): the first, second and third coordinate of each cone. The first
            has non-negative entries; equal v_o are in the interior of the cones, and the cones imply v ≥ 0.
        errors: D_k of each adversary, (guesses, unknowns).
        distortions: d_k of each adversary; of all but the first if the first one's is maximised.
        maximises_distortion: maximise Σ_o x_1o − Σ_o ⟨c_o, v_o⟩.
        cost_limit: a limit on an average cost.
        worst_cost: a limit on the largest cost of some points; or it is minimised, in addition to ⟨c, v⟩.
    """

    costs: FloatArray
    rows: tuple[Any, Any, Any]
    errors: tuple[FloatArray, ...] = ()
    distortions: tuple[float, ...] = ()
    maximises_distortion: bool = False
    cost_limit: CostLimit | None = None
    worst_cost: WorstCost | None = None

    @property
    def unknowns(self) -> int:
        """The number of unknowns v of a block."""
        return int(self.costs.shape[1])

    @property
    def minimises_worst_cost(self) -> bool:
        """Whether there is a τ."""
        return self.worst_cost is not None and self.worst_cost.at_most is None

    def slacks(self, v: FloatArray) -> FloatArray:
        """A v_o, (blocks, cones, 3)."""
        return np.stack([(rows @ v.T).T for rows in self.rows], axis=-1)

    @cached_property
    def coordinates(self) -> tuple[Any, ...]:
        """The coordinates of cones that are not zero throughout: three in the plane, two on a line, one for v ≥ 0."""
        rows = [self.rows[0].tocsr(), *(part.tocsr() for part in self.rows[1:] if part.count_nonzero())]
        return tuple(rows)

    @cached_property
    def _stacked(self) -> tuple[Any, Any]:
        from scipy.sparse import vstack

        rows = vstack(self.coordinates).tocsr()
        return rows, rows.T.tocsr()

    def cone_slacks(self, v: FloatArray) -> FloatArray:
        """A v_o, (coordinates, cones, blocks)."""
        shape = len(self.coordinates), self.coordinates[0].shape[0], len(v)
        return np.asarray(self._stacked[0] @ np.ascontiguousarray(v.T)).reshape(shape)

    def adjoint(self, z: FloatArray) -> FloatArray:
        """Aᵀ z_o, (blocks, unknowns)."""
        return np.asarray(self._stacked[1] @ z.reshape(-1, z.shape[-1])).T

    @cached_property
    def guesses(self) -> FloatArray:
        """The rows D_k v − x_k of all adversaries, one below the other, (guesses, unknowns + adversaries)."""
        count = len(self.errors)
        empty = np.zeros((0, self.unknowns + count))
        return np.concatenate(
            [empty, *(np.hstack([table, -np.eye(count)[[k] * len(table)]]) for k, table in enumerate(self.errors))]
        )

    @cached_property
    def guess_counts(self) -> list[int]:
        """The number of guesses of each adversary."""
        return [len(table) for table in self.errors]

    @cached_property
    def first_guess(self) -> IntArray:
        """Where the rows of each adversary start."""
        return np.cumsum([0, *self.guess_counts])[:-1]

    @cached_property
    def bounded(self) -> IntArray:
        """The adversaries with a bound on their distortion."""
        return np.arange(int(self.maximises_distortion), len(self.errors))

    @cached_property
    def hessian(self) -> HessianPattern:
        """Where the entries of H_o are, and what they are made of."""
        return HessianPattern.of(self.coordinates, len(self.costs))

    @cached_property
    def objective(self) -> FloatArray:
        """The objective's coefficients of v_o and x_o, (blocks, unknowns + adversaries)."""
        more = np.zeros((len(self.costs), len(self.errors)))
        if self.maximises_distortion:
            more[:, 0] = -1.0
        return np.hstack([self.costs, more])

    @cached_property
    def limits(self) -> "LimitRows":
        """The rows of the cost limit and of the worst cost."""
        return LimitRows.of(self)

    @cached_property
    def required(self) -> FloatArray:
        """Right-hand sides of the rows that couple blocks: 1 for each unknown, d_k, and those of the limits."""
        return np.concatenate([np.ones(self.unknowns), np.array(self.distortions, dtype=float), self.limits.required])

    def couple(self, u: FloatArray, tau: float) -> FloatArray:
        """The rows that couple blocks, Σ_o J_o u_o + t τ: Σ_o v_o, Σ_o x_ko, and the limits."""
        sums = u.sum(axis=0)
        limits = self.limits.apply(u[:, : self.unknowns]) + tau * self.limits.tau
        return np.concatenate([sums[: self.unknowns], sums[self.unknowns + self.bounded], limits])

    def couple_adjoint(self, y: FloatArray) -> FloatArray:
        """J_oᵀ y of every block, (blocks, unknowns + adversaries)."""
        out = np.zeros(self.objective.shape)
        first = self.unknowns + len(self.bounded)
        out[:, : self.unknowns] = y[: self.unknowns]
        if len(self.limits.tau):
            out[:, : self.unknowns] += self.limits.adjoint(y[first:])
        out[:, self.unknowns + self.bounded] = y[self.unknowns : first]
        return out


@dataclass(frozen=True)
class LimitRows:
    """Rows Σ_o ⟨R_oi, v_o⟩ + t_i τ ≥ h_i: minus the limited average cost, then minus the cost at each point.

    Attributes:
        average: r_o of the cost limit, or None.
        basis: B of the worst cost, sparse (points, unknowns).
        weights: w of the worst cost, (blocks, points).
        required: h.
        tau: t, 1 for the worst cost where it is minimised and 0 elsewhere.
    """

    average: FloatArray | None
    basis: Any
    weights: FloatArray
    required: FloatArray
    tau: FloatArray

    @classmethod
    def of(cls, program: ConeProgram) -> "LimitRows":
        """The rows of a program."""
        from scipy.sparse import csr_array

        limit, worst = program.cost_limit, program.worst_cost
        basis, weights = csr_array((0, program.unknowns)), np.zeros((len(program.costs), 0))
        first = [] if limit is None else [-limit.at_most]
        if worst is not None:
            basis, weights = csr_array(worst.basis), worst.costs
        at_most = 0.0 if worst is None or worst.at_most is None else worst.at_most
        required = np.array(first + [-at_most] * weights.shape[1], dtype=float)
        tau = np.zeros(len(required))
        tau[len(first) :] = program.minimises_worst_cost
        return cls(None if limit is None else limit.costs, basis, weights, required, tau)

    @property
    def averages(self) -> int:
        """The number of rows, 0 or 1, of the limit on an average cost."""
        return int(self.average is not None)

    def apply(self, v: FloatArray) -> FloatArray:
        """Σ_o ⟨R_oi, v_o⟩ for every row."""
        first = [] if self.average is None else [-np.vdot(self.average, v)]
        return np.concatenate([first, -(self.weights.T * (self.basis @ v.T)).sum(axis=1)])

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Σ_i y_i R_oi, (blocks, unknowns)."""
        total = -np.asarray((self.weights * y[self.averages :]) @ self.basis)
        if self.average is not None:
            total -= y[0] * self.average
        return total

    def dense(self, part: slice) -> FloatArray:
        """Some of the rows written out, (blocks, rows, unknowns)."""
        rows = np.arange(len(self.required))[part]
        points = rows[rows >= self.averages] - self.averages
        basis = self.basis[points].toarray()
        out = -self.weights[:, points, None] * basis
        if self.average is not None and part.start == 0:
            out = np.concatenate([-self.average[:, None], out], axis=1)
        return np.asarray(out)


@dataclass(frozen=True)
class ConeSolution:
    """A feasible point, and a bound on the optimum.

    Attributes:
        v: (blocks, unknowns).
        value: the objective at v: ⟨c, v⟩, plus the largest cost of a point where that is minimised; where the first
            adversary's distortion is maximised, that minus ⟨c, v⟩.
        bound: no feasible point has a smaller value (where a distortion is maximised: a larger one), up to rounding.
        iterations: how many were needed.
        finished: whether the tolerance was reached, before the time limit and before rounding stopped the method.
        alpha: the dual value of each adversary's distortion; 1 where it is maximised.
        cost_dual: the dual value of the cost limit; 0 without.
        point_duals: the dual value of each point's cost, (points,).
        sensitivities: Σ_o z₀ (A v)₀ of each cone: by how much the value would fall, to first order, for a relative
            increase of its first coordinate.
    """

    v: FloatArray
    value: float
    bound: float
    iterations: int
    finished: bool
    alpha: FloatArray
    cost_dual: float
    point_duals: FloatArray
    sensitivities: FloatArray

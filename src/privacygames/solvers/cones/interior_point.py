r"""A block interior-point method for second-order cones: one block of unknowns for each output.

.. math:: \min_{v,x} \sum_o \langle c_o, v_o \rangle \quad\text{s.t.}\quad A v_o \in K;\quad
    D_k v_o \ge x_{ko} \mathbf 1;\quad \sum_o v_o = 1;\quad \sum_o x_{ko} \ge d_k

with the same sparse A for every block, K a product of second-order cones of dimension three, and for each adversary k
their expected errors :math:`D_k`, one row for each guess. The dual maximises
:math:`\langle 1, \mu\rangle + \langle\alpha, d\rangle` subject to
:math:`c_o - \mu - A^\top z_o - \sum_k D_k^\top w_{ko} = 0`, :math:`\langle 1, w_{ko}\rangle = \alpha_k`,
:math:`z_o \in K` and :math:`w \ge 0`.

Mehrotra's predictor–corrector method with Nesterov–Todd scaling W: block o has the Hessian
:math:`H_o = A^\top W_o^{-2} A` plus a Gram term for the guesses, and the blocks meet in the Schur complement
:math:`\sum_o J H_o^{-1} J^\top`. The method starts at v = 1/m, which is feasible, and every iterate stays feasible.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import SolveFailed
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers.cones.second_order import TINY, Scaling, max_step, product, quotient
from privacygames.solvers.linalg import (
    BlockAlgebra,
    CouplingRows,
    FactorisationFailed,
    Gram,
    OffDiagonal,
    SymmetricBlocks,
    factorise_in_batches,
    host_algebra,
)

MOST_ITERATIONS = 100
"""Iterations before the method gives up; problems of points take 10 to 40."""

TO_BOUNDARY = 0.99
"""Share of the longest step that is taken, so that the next point is in the interior."""

ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""The entries of a symmetric 3×3 matrix, in the order of :attr:`Scaling.inverse_square`."""


@dataclass(frozen=True)
class ConeProgram:
    """The costs of each block, and the rows that all blocks share.

    Attributes:
        costs: c_o, (blocks, unknowns).
        rows: three sparse matrices (cones, unknowns): the first, second and third coordinate of each cone.
        errors: D_k of each adversary, (guesses, unknowns).
        distortions: d_k of each adversary.
    """

    costs: FloatArray
    rows: tuple[Any, Any, Any]
    errors: tuple[FloatArray, ...] = ()
    distortions: tuple[float, ...] = ()

    def slacks(self, v: FloatArray) -> FloatArray:
        """A v_o, (blocks, cones, 3)."""
        return np.stack([(rows @ v.T).T for rows in self.rows], axis=-1)

    def adjoint(self, z: FloatArray) -> FloatArray:
        """Aᵀ z_o, (blocks, unknowns)."""
        total = np.zeros(self.costs.shape)
        for place, rows in enumerate(self.rows):
            total += (rows.T @ z[..., place].T).T
        return total

    @cached_property
    def guesses(self) -> FloatArray:
        """The rows D_k v − x_k of all adversaries, one below the other, (guesses, unknowns + adversaries)."""
        count = len(self.errors)
        empty = np.zeros((0, self.costs.shape[1] + count))
        return np.concatenate(
            [empty, *(np.hstack([table, -np.eye(count)[[k] * len(table)]]) for k, table in enumerate(self.errors))]
        )

    @cached_property
    def first_guess(self) -> IntArray:
        """Where the rows of each adversary start."""
        return np.cumsum([0, *(len(table) for table in self.errors)])[:-1]

    @cached_property
    def hessian(self) -> "HessianPattern":
        """Where the entries of H_o are, and what they are made of."""
        return HessianPattern.of(self.rows)


@dataclass(frozen=True)
class HessianPattern:
    """The entries of Aᵀ M A on and above the diagonal, linear in the six entries of each cone's symmetric M.

    Attributes:
        diagonal: sparse (unknowns, 6·cones).
        beside: sparse (entries above the diagonal, 6·cones).
        row: the row of each of those.
        column: and its column.
    """

    diagonal: Any
    beside: Any
    row: IntArray
    column: IntArray

    @classmethod
    def of(cls, rows: tuple[Any, Any, Any]) -> "HessianPattern":
        """The pattern of one block."""
        from scipy.sparse import csr_array

        cones, unknowns = rows[0].shape
        places, sources, values = [], [], []
        for entry, (first, second) in enumerate(ENTRIES):
            cone, left, right, value = _outer_products(rows[first], rows[second])
            if first != second:  # the entry stands at (first, second) and at (second, first)
                left, right = np.concatenate([left, right]), np.concatenate([right, left])
                cone, value = np.tile(cone, 2), np.tile(value, 2)
            above = left <= right
            places.append((left * unknowns + right)[above])
            sources.append((6 * cone + entry)[above])
            values.append(value[above])
        key, position = np.unique(np.concatenate(places), return_inverse=True)
        table = csr_array((np.concatenate(values), (position, np.concatenate(sources))), shape=(len(key), 6 * cones))
        row, column = np.divmod(key, unknowns)
        on = row == column
        return cls(table[np.flatnonzero(on)], table[np.flatnonzero(~on)], row[~on], column[~on])

    def blocks(self, entries: FloatArray, more: int) -> SymmetricBlocks:
        """The Hessians for the matrices M of every block, (blocks, cones, 6), with so many unknowns added."""
        count = len(entries)
        flat = entries.reshape(count, -1).T
        beside = np.ascontiguousarray((self.beside @ flat).T)
        starts = np.arange(count + 1) * len(self.row)
        off = OffDiagonal(starts, np.tile(self.row, count), np.tile(self.column, count), beside.ravel())
        return SymmetricBlocks(np.hstack([(self.diagonal @ flat).T, np.zeros((count, more))]), off)


def _outer_products(first: Any, second: Any) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """For each cone, the products of the entries of two sparse rows: cone, both columns, value."""
    first, second = first.tocsr(), second.tocsr()
    lengths = np.diff(first.indptr), np.diff(second.indptr)
    count = lengths[0] * lengths[1]
    cone = np.repeat(np.arange(first.shape[0]), count)
    inside = np.arange(len(cone)) - np.repeat(np.cumsum(count) - count, count)
    left = first.indptr[cone] + inside // lengths[1][cone]
    right = second.indptr[cone] + inside % lengths[1][cone]
    columns = (each.astype(np.int64) for each in (first.indices[left], second.indices[right]))
    return cone, *columns, first.data[left] * second.data[right]


@dataclass(frozen=True)
class ConeSolution:
    """A point within the tolerance of the optimum, and a lower bound on that.

    Attributes:
        v: (blocks, unknowns).
        value: its cost.
        bound: no feasible point costs less, up to rounding.
        iterations: how many were needed.
    """

    v: FloatArray
    value: float
    bound: float
    iterations: int


@dataclass(frozen=True)
class State:
    """A primal and dual point, or a change of one.

    Attributes:
        u: v_o and x_o, (blocks, unknowns + adversaries).
        cones: the slacks A v_o, (blocks, cones, 3).
        guesses: the slacks D_k v_o − x_ko, (blocks, guesses).
        surplus: Σ_o x_ko − d_k, for each adversary.
        z: dual values of the cones.
        w: dual values of the guesses.
        y: μ and α, one for each coupling row.
    """

    u: FloatArray
    cones: FloatArray
    guesses: FloatArray
    surplus: FloatArray
    z: FloatArray
    w: FloatArray
    y: FloatArray

    @property
    def gap(self) -> float:
        """Total complementarity: cost minus dual value, once the dual equations hold."""
        alpha = self.y[len(self.y) - len(self.surplus) :]
        return float((self.cones * self.z).sum() + (self.guesses * self.w).sum() + self.surplus @ alpha)

    def moved(self, change: "State", primal: float, dual: float) -> "State":
        """This, moved along a change by a primal and a dual step."""
        return State(
            self.u + primal * change.u,
            self.cones + primal * change.cones,
            self.guesses + primal * change.guesses,
            self.surplus + primal * change.surplus,
            self.z + dual * change.z,
            self.w + dual * change.w,
            self.y + dual * change.y,
        )


def solve_cone_program(
    program: ConeProgram, *, tolerance: float, threads: int | None = None, progress: ProgressCallback | None = None
) -> ConeSolution:
    """Solve to a relative gap, or raise.

    Raises:
        SolveFailed: the gap stays wider.
    """
    with host_algebra(threads, compiled=True) as algebra:
        at, best = start(program), -np.inf
        for iteration in range(MOST_ITERATIONS):
            value = float((program.costs * at.u[:, : program.costs.shape[1]]).sum())
            best = max(best, dual_bound(program, at))
            if progress is not None:
                message = f"gap {(value - best) / max(abs(value), TINY):.1e}"
                progress(Progress(job="points", done=iteration, message=message))
            if value - best <= tolerance * value:
                return ConeSolution(at.u[:, : program.costs.shape[1]], value, best, iteration)
            try:
                at = next_point(program, at, algebra)
            except FactorisationFailed:
                break
    raise SolveFailed(
        f"the mechanism for points was not solved to a relative gap of {tolerance:g}; it ended at "
        f"{(value - best) / max(abs(value), TINY):.1e}. Loosen tolerance, or choose a coarser mesh"
    )


def start(program: ConeProgram) -> State:
    """The uniform mechanism, with dual values that are central for a constant cost."""
    blocks, unknowns = program.costs.shape
    adversaries = len(program.errors)
    v = np.full((blocks, unknowns), 1 / blocks)
    cones = program.slacks(v)
    least = np.array([float((table @ v[0]).min()) for table in program.errors])
    asked = np.array(program.distortions)
    x = np.broadcast_to((least + asked / blocks) / 2, (blocks, adversaries))
    u = np.hstack([v, x])
    guesses = u @ program.guesses.T
    surplus = x.sum(axis=0) - asked
    mean = float(np.abs(program.costs).mean()) / cones.shape[1]
    z = np.zeros_like(cones)
    z[..., 0] = mean / cones[..., 0]
    w = mean / guesses
    missed = program.costs - program.adjoint(z) - (w @ program.guesses)[:, :unknowns]
    return State(u, cones, guesses, surplus, z, w, np.concatenate([missed.min(axis=0), mean / surplus]))


def dual_bound(program: ConeProgram, at: State) -> float:
    """A lower bound from any dual point: guesses are scaled to sum to α, and μ lowered until nothing is missed.

    Lowering μ by the least missed entry of each unknown makes c_o − μ − … ≥ 0, and v ≥ 0 with Σ_o v_o = 1.
    """
    unknowns = program.costs.shape[1]
    mu, alpha = at.y[:unknowns], at.y[unknowns:]
    w = at.w
    if len(alpha):
        sums = np.add.reduceat(w, program.first_guess, axis=1)
        w = w * np.repeat(alpha / sums, [len(table) for table in program.errors], axis=1)
    missed = program.costs - program.adjoint(at.z) - (w @ program.guesses)[:, :unknowns] - mu
    return float(mu.sum() + alpha @ np.array(program.distortions) + missed.min(axis=0).sum())


def next_point(program: ConeProgram, at: State, algebra: BlockAlgebra) -> State:
    """One predictor–corrector step."""
    newton = Newton(program, at, algebra)
    squares = product(newton.scaled, newton.scaled)
    affine = newton.direction(-squares, -at.guesses * at.w, -at.surplus * newton.alpha)
    primal, dual = max_steps(at, affine)
    degree = at.cones.shape[0] * at.cones.shape[1] + at.guesses.size + at.surplus.size
    target = max(at.moved(affine, min(1.0, primal), min(1.0, dual)).gap / at.gap, 0.0) ** 3 * at.gap / degree
    second_order = product(newton.scaling.apply_inverse(affine.cones), newton.scaling.apply(affine.z))
    change = newton.direction(
        target * np.array([1.0, 0.0, 0.0]) - squares - second_order,
        target - at.guesses * at.w - affine.guesses * affine.w,
        target - at.surplus * newton.alpha - affine.surplus * affine.y[newton.unknowns :],
    )
    primal, dual = max_steps(at, change)
    return at.moved(change, min(1.0, TO_BOUNDARY * primal), min(1.0, TO_BOUNDARY * dual))


def max_steps(at: State, change: State) -> tuple[float, float]:
    """The longest primal and dual steps that stay in the cones."""
    first = len(at.y) - len(at.surplus)
    primal = ((at.guesses, change.guesses), (at.surplus, change.surplus))
    dual = ((at.w, change.w), (at.y[first:], change.y[first:]))
    return (
        min(max_step(at.cones, change.cones), *(_max_step(*pair) for pair in primal)),
        min(max_step(at.z, change.z), *(_max_step(*pair) for pair in dual)),
    )


def _max_step(value: FloatArray, change: FloatArray) -> float:
    """The largest t for which value + t·change ≥ 0."""
    fastest = float((-change / value).max(initial=0.0))
    return 1 / fastest if fastest > 0 else float("inf")


class Newton:
    """The Newton system at a point: factors of every block, and the Schur complement in which they meet."""

    def __init__(self, program: ConeProgram, at: State, algebra: BlockAlgebra) -> None:
        self.program, self.at = program, at
        self.unknowns, adversaries = program.costs.shape[1], len(program.errors)
        self.alpha = at.y[self.unknowns :]
        self.scaling = Scaling.of(at.cones, at.z)
        self.scaled = self.scaling.apply(at.z)
        width = self.unknowns + adversaries
        blocks = program.hessian.blocks(self.scaling.inverse_square, adversaries)
        links = CouplingRows(self.unknowns)
        if adversaries:
            blocks = replace(blocks, grams=(Gram(program.guesses, np.arange(width), at.w / at.guesses),))
            links = CouplingRows(self.unknowns, -np.ones((len(at.u), adversaries)), np.arange(self.unknowns, width))
        self.factors, schur = factorise_in_batches(algebra, blocks, links)
        rows = np.arange(self.unknowns, width)
        schur[rows, rows] += at.surplus / self.alpha
        self.schur = algebra.schur(schur)
        missed = np.zeros_like(at.u)
        missed[:, : self.unknowns] = program.costs
        self.missed = missed - self._adjoint(at.z, at.w) - at.y
        asked = np.concatenate([np.ones(self.unknowns), np.array(program.distortions)])
        self.missed_sums = asked - at.u.sum(axis=0)
        self.missed_sums[self.unknowns :] += at.surplus

    def direction(self, cones: FloatArray, guesses: FloatArray, surplus: FloatArray) -> State:
        """The change that linearises all equations, with these changes wanted of the products."""
        at, program = self.at, self.program
        change = quotient(self.scaled, cones)
        alone = self.factors.solve(
            self._adjoint(self.scaling.apply_inverse(change), guesses / at.guesses) - self.missed
        )
        right = self.missed_sums - alone.sum(axis=0)
        right[self.unknowns :] += surplus / self.alpha
        d_y = self.schur.solve(right)
        d_u = alone + self.factors.solve(np.tile(d_y, (len(at.u), 1)))
        d_cones = program.slacks(d_u[:, : self.unknowns])
        d_guesses = d_u @ program.guesses.T
        d_alpha = d_y[self.unknowns :]
        return State(
            d_u,
            d_cones,
            d_guesses,
            (surplus - at.surplus * d_alpha) / self.alpha,
            self.scaling.apply_inverse(change - self.scaling.apply_inverse(d_cones)),
            (guesses - at.w * d_guesses) / at.guesses,
            d_y,
        )

    def _adjoint(self, z: FloatArray, w: FloatArray) -> FloatArray:
        """The transpose of all rows of a block, applied to dual values."""
        total = w @ self.program.guesses
        total[:, : self.unknowns] += self.program.adjoint(z)
        return total

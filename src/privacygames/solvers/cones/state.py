"""Primal and dual points of a program, and the one at which the method starts."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import Infeasible
from privacygames.solvers.cones.program import ConeProgram

SPREAD = 0.3
"""Least reduced cost at the start, in units of the mean spread of an unknown's costs over blocks."""

LEAST_SPREAD = 0.01
"""Least spread of costs that is assumed, as a fraction of their mean size."""

FIRST_SLACK = 0.1
"""Least slack of a limit at the start, as a fraction of the size of its terms."""


@dataclass(frozen=True)
class State:
    """A primal and dual point, or a change of one.

    Attributes:
        u: v_o and x_o, (blocks, unknowns + adversaries).
        tau: τ.
        cones: the slacks A v_o, (coordinates, cones, blocks).
        guesses: the slacks D_k v_o − x_ko, (blocks, guesses).
        surplus: slacks of the coupling inequalities: Σ_o x_ko − d_k, then those of the limits.
        z: dual values of the cones.
        w: dual values of the guesses.
        y: μ, α and the dual values of limits, one for each coupling row.
    """

    u: FloatArray
    tau: float
    cones: FloatArray
    guesses: FloatArray
    surplus: FloatArray
    z: FloatArray
    w: FloatArray
    y: FloatArray

    @property
    def prices(self) -> FloatArray:
        """Dual values of the coupling inequalities: α, then those of the limits."""
        return self.y[len(self.y) - len(self.surplus) :]

    @property
    def gap(self) -> float:
        """Total complementarity: cost minus dual value, once all equations hold."""
        return float(np.vdot(self.cones, self.z) + np.vdot(self.guesses, self.w) + self.surplus @ self.prices)

    @property
    def degree(self) -> int:
        """The number of complementarity products."""
        return int(np.prod(self.cones.shape[1:])) + self.guesses.size + self.surplus.size

    def moved(self, change: "State", primal: float, dual: float) -> "State":
        """This, moved along a change by a primal and a dual step."""
        return State(
            self.u + primal * change.u,
            self.tau + primal * change.tau,
            self.cones + primal * change.cones,
            self.guesses + primal * change.guesses,
            self.surplus + primal * change.surplus,
            self.z + dual * change.z,
            self.w + dual * change.w,
            self.y + dual * change.y,
        )


def start(program: ConeProgram) -> State:
    """The uniform mechanism, and dual values that satisfy the dual equations.

    The uniform mechanism is in the interior of the cones. It may violate limits, whose slacks then start as residuals.

    Raises:
        Infeasible: it has too little distortion, and no mechanism has more.
    """
    blocks, unknowns = program.costs.shape
    v = np.full((blocks, unknowns), 1 / blocks)
    least = np.array([float(blocks * (table @ v[0]).min()) for table in program.errors])
    required = np.array(program.distortions)
    x = least - 0.1 * np.array([float((blocks * (table @ v[0])).mean()) for table in program.errors])
    for adversary, distortion in zip(program.bounded, required, strict=True):
        if distortion >= least[adversary]:
            raise Infeasible(
                f"no mechanism has a distortion above {least[adversary]:.9g}, which revealing nothing has; "
                f"{distortion:.9g} is required",
                limit=float(least[adversary]),
                bound="distortion",
            )
        x[adversary] = (least[adversary] + distortion) / 2
    u = np.hstack([v, np.broadcast_to(x / blocks, (blocks, len(x)))])
    cones, guesses = program.cone_slacks(v), u @ program.guesses.T
    limits, bounded = program.limits, len(program.bounded)
    sums = limits.apply(v)
    size = float(np.abs(sums[limits.tau > 0]).max(initial=0.0))
    tau = (float((-sums[limits.tau > 0]).max(initial=0.0)) + FIRST_SLACK * size) if size else float(limits.tau.any())
    left = sums + tau * limits.tau - limits.required
    surplus = np.concatenate(
        [x[program.bounded] - required, np.maximum(left, FIRST_SLACK * (np.abs(sums) + np.abs(limits.required)))]
    )
    prices = np.zeros(len(surplus))
    if program.minimises_worst_cost:
        prices[bounded:] = limits.tau / limits.tau.sum()
    alpha = np.zeros(len(x))
    alpha[: int(program.maximises_distortion)] = 1.0
    spread = _spread(_reduced(program, guesses, alpha, prices))
    target = spread / blocks / (cones.shape[1] / unknowns)
    prices = np.where(prices > 0, prices, target / np.maximum(surplus, 1e-12 * np.abs(surplus).max(initial=1.0)))
    alpha[program.bounded] = prices[:bounded]
    missed = _reduced(program, guesses, alpha, prices)
    mu = missed.min(axis=0) - SPREAD * _spread(missed)
    z = np.zeros_like(cones)
    first = program.coordinates[0]
    sums_of_columns, sums_of_rows = first.sum(axis=0), first.sum(axis=1)
    z[0] = (first @ ((missed - mu) / sums_of_columns).T) / sums_of_rows[:, None]
    return State(u, tau, cones, guesses, surplus, z, _shares(program, guesses, alpha), np.concatenate([mu, prices]))


def _shares(program: ConeProgram, guesses: FloatArray, alpha: FloatArray) -> FloatArray:
    """Dual values of guesses that are inverse to their slacks and sum to α in every block."""
    inverse = 1 / guesses
    if not guesses.shape[1]:
        return inverse
    sums = np.add.reduceat(inverse, program.first_guess, axis=1)
    return np.asarray(inverse * np.repeat(alpha / sums, program.guess_counts, axis=1))


def _reduced(program: ConeProgram, guesses: FloatArray, alpha: FloatArray, prices: FloatArray) -> FloatArray:
    """The costs minus what the dual values of guesses and of limits pay, (blocks, unknowns)."""
    paid = (_shares(program, guesses, alpha) @ program.guesses)[:, : program.unknowns]
    return program.costs - paid - program.limits.adjoint(prices[len(program.bounded) :])


def _spread(costs: FloatArray) -> float:
    """The mean excess over the least entry of an unknown, or a share of the mean size where that is much larger."""
    return float(max((costs - costs.min(axis=0)).mean(), LEAST_SPREAD * np.abs(costs).mean())) or 1.0

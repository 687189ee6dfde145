"""``State``: one primal-dual point of the method, as an immutable value."""

from dataclasses import dataclass
from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.elementwise import advance
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.linalg import Backend

LIMIT_TOLERANCE = 1e-9
"""Relative violation of a limit on the cost up to which it counts as satisfied: rounding errors."""


@dataclass(frozen=True)
class SlackDual:
    """Slacks and dual values of all inequalities of a batch, family after family."""

    slacks: FloatArray
    duals: FloatArray

    @property
    def both(self) -> tuple[FloatArray, FloatArray]:
        """Slacks and dual values."""
        return self.slacks, self.duals

    def duals_after(self, change: "SlackDualChange", step: float, backend: Backend) -> FloatArray:
        """The dual values after a step of this length."""
        return advance(backend, self.duals, step, change.duals)


@dataclass(frozen=True)
class SlackDualChange:
    """Changes of the slacks and dual values of all inequalities of a batch, family after family."""

    slacks: FloatArray
    duals: FloatArray

    @property
    def both(self) -> tuple[FloatArray, FloatArray]:
        """The changes of slacks and of dual values."""
        return self.slacks, self.duals


@dataclass(frozen=True)
class State:
    """A primal-dual point, strictly inside every inequality.

    Attributes:
        u: the unknowns of all blocks, (m, k): the mechanism's columns, and x last where distortion plays a part.
        device_u: the same on the device.
        slack_duals: slacks and dual values of the inequalities within the blocks, batch by batch.
        coupling_slack: slacks of the inequalities among the coupling rows.
        coupling_dual: dual values of all coupling rows, the equalities first.
        worst_cost: y, where the worst secret's cost is minimised.
    """

    u: FloatArray
    device_u: FloatArray
    slack_duals: tuple[SlackDual, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst_cost: float

    @property
    def inequality_dual(self) -> FloatArray:
        """Dual values of the inequalities among the coupling rows."""
        return self.coupling_dual[len(self.coupling_dual) - len(self.coupling_slack) :]

    @property
    def block_duals(self) -> list[FloatArray]:
        """Dual values within the blocks, batch by batch."""
        return [slack_dual.duals for slack_dual in self.slack_duals]

    @property
    def inequality_count(self) -> int:
        """Number of inequalities."""
        return sum(len(slack_dual.slacks) for slack_dual in self.slack_duals) + len(self.coupling_slack)

    @property
    def mean_product(self) -> float:
        """The mean of slack·dual over all inequalities."""
        within = sum(float(slack_dual.slacks @ slack_dual.duals) for slack_dual in self.slack_duals)
        return (float(self.coupling_slack @ self.inequality_dual) + within) / self.inequality_count


def objective_value(restricted: RestrictedProgram, u: FloatArray, worst_cost: float) -> float:
    """The value that is minimised, for the mechanism as it is; ∞ while it exceeds a limit on the cost."""
    program, columns = restricted.program, u[:, : restricted.secret_count]
    if program.cost_at_most is not None:
        slack = restricted.coupling_slack(u, worst_cost)[restricted.coupling.distortion_count :]
        if float(slack.min()) < -LIMIT_TOLERANCE * program.cost_at_most:
            return inf
    if program.maximises_distortion:
        return -program.adversary_error(program.adversary_count - 1, columns)
    if program.minimises_worst_cost:
        return float((program.limited_cost * columns[:, program.cost_secret]).sum(axis=0).max())
    return program.cost(columns)

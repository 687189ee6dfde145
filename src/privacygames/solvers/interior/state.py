"""The state of the method: one primal-dual point (or a change of one), a value. Steps take one and return another."""

from dataclasses import dataclass
from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.elementwise import moved
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.linalg import Backend

LIMIT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class SlackDual:
    """The slacks of the inequalities inside a batch's blocks, and their dual values: one family after the other."""

    slacks: FloatArray
    duals: FloatArray

    @property
    def both(self) -> tuple[FloatArray, FloatArray]:
        """Slacks and dual values."""
        return self.slacks, self.duals

    def plus(self, change: "SlackDual", backend: Backend) -> "SlackDual":
        """This and a change."""
        return SlackDual(moved(backend, self.slacks, 1.0, change.slacks), self.duals_after(change, 1.0, backend))

    def duals_after(self, change: "SlackDual", dual: float, backend: Backend) -> FloatArray:
        """The dual values after a step of this length."""
        return moved(backend, self.duals, dual, change.duals)


@dataclass(frozen=True)
class State:
    """A point, strictly inside every inequality.

    Attributes:
        u: the unknowns of all blocks, (m, k): the mechanism's columns, and x last where distortion plays a part.
        there: the same, where the work is done.
        inside: slacks and dual values of the inequalities inside the blocks, batch by batch.
        coupling_slack: the slacks of the inequalities among the coupling rows.
        coupling_dual: the dual values of all coupling rows, the equalities first.
        worst: y, where the worst secret's cost is minimised.
    """

    u: FloatArray
    there: FloatArray
    inside: tuple[SlackDual, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst: float

    @property
    def limit_dual(self) -> FloatArray:
        """The dual values of the inequalities among the coupling rows."""
        return self.coupling_dual[len(self.coupling_dual) - len(self.coupling_slack) :]

    @property
    def duals(self) -> list[FloatArray]:
        """The dual values inside the blocks, batch by batch."""
        return [each.duals for each in self.inside]

    @property
    def count(self) -> int:
        """How many inequalities there are."""
        return sum(len(each.slacks) for each in self.inside) + len(self.coupling_slack)

    @property
    def complementarity(self) -> float:
        """The mean of slack·dual over all inequalities."""
        inside = sum(float(each.slacks @ each.duals) for each in self.inside)
        return (float(self.coupling_slack @ self.limit_dual) + inside) / self.count


def objective_value(formulation: Formulation, u: FloatArray, worst: float) -> float:
    """What is minimised, for the mechanism as it is: ∞ while it does not keep its limits."""
    program, column = formulation.program, u[:, : formulation.size]
    if program.cost_at_most is not None:
        left = float(formulation.coupling_slack(u, worst)[formulation.coupling.totals :].min())
        if left < -LIMIT_TOLERANCE * program.cost_at_most:
            return inf
    if program.reverse:
        return -program.least_error(program.adversaries - 1, column)
    if program.minimises_worst:
        return float((program.limited * column[:, program.whose]).sum(axis=0).max())
    return program.cost(column)

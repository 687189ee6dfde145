"""The state of the method: one primal-dual point (or a change of one), a value. Steps take one and return another."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.formulation import Formulation

LIMIT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class State:
    """A point, strictly inside every inequality.

    Attributes:
        u: the unknowns of all blocks, (m, k): the mechanism's columns, and x last where distortion plays a part.
        slacks: of the inequalities inside the blocks, one array per family.
        duals: their dual values.
        coupling_slack: the slacks of the inequalities among the coupling rows.
        coupling_dual: the dual values of all coupling rows, the equalities first.
        worst: y, where the worst secret's cost is minimised.
    """

    u: FloatArray
    slacks: tuple[FloatArray, ...]
    duals: tuple[FloatArray, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst: float

    def plus(self, change: "State", primal: float, dual: float) -> "State":
        """This, moved along a change."""
        return State(
            self.u + primal * change.u,
            tuple(slack + primal * each for slack, each in zip(self.slacks, change.slacks, strict=True)),
            tuple(value + dual * each for value, each in zip(self.duals, change.duals, strict=True)),
            self.coupling_slack + primal * change.coupling_slack,
            self.coupling_dual + dual * change.coupling_dual,
            self.worst + primal * change.worst,
        )

    @property
    def limit_dual(self) -> FloatArray:
        """The dual values of the inequalities among the coupling rows."""
        return self.coupling_dual[len(self.coupling_dual) - len(self.coupling_slack) :]

    @property
    def products(self) -> list[FloatArray]:
        """slack·dual inside the blocks."""
        return [slack * dual for slack, dual in zip(self.slacks, self.duals, strict=True)]

    @property
    def count(self) -> int:
        """How many inequalities there are."""
        return sum(slack.size for slack in self.slacks) + len(self.coupling_slack)

    @property
    def complementarity(self) -> float:
        """The mean of slack·dual over all inequalities."""
        total = sum(float(product.sum()) for product in self.products)
        return (total + float((self.coupling_slack * self.limit_dual).sum())) / self.count


def dual_residual(formulation: Formulation, coupling_dual: FloatArray, duals: Sequence[FloatArray]) -> FloatArray:
    """What dual values leave of the objective: zero at a dual feasible point."""
    return formulation.objective - formulation.coupling.spread(coupling_dual) - formulation.adjoint(duals)


def objective_value(formulation: Formulation, u: FloatArray, worst: float) -> float:
    """What is minimised, for the mechanism as it is: ∞ while it does not keep its limits."""
    program, column = formulation.program, u[:, : formulation.size]
    if program.cost_at_most is not None:
        left = float(formulation.coupling_slack(u, worst)[formulation.coupling.totals :].min())
        if left < -LIMIT_TOLERANCE * program.cost_at_most:
            return inf
    if program.reverse:
        return -float((column @ program.sought.T).min(axis=1).sum())
    if program.minimises_worst:
        return float((program.limited * column[:, program.whose]).sum(axis=0).max())
    return float((program.objective * column).sum())

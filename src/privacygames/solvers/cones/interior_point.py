r"""A primal-dual interior-point method for programs of second-order cones, with one block for each output.

The dual maximises :math:`\langle 1, \mu\rangle + \langle\alpha, d\rangle - \lambda C` subject to
:math:`c_o - \mu - A^\top z_o - \sum_k D_k^\top w_{ko} + \lambda r_o + \dots = 0`,
:math:`\langle 1, w_{ko}\rangle = \alpha_k`, :math:`z_o \in K`, :math:`w \ge 0` and :math:`\lambda \ge 0`.

Mehrotra's predictor–corrector method with Nesterov–Todd scaling W: block o has the Hessian
:math:`H_o = A^\top W_o^{-2} A` plus a Gram term for the guesses, and the blocks meet in the Schur complement
:math:`\sum_o J_o H_o^{-1} J_o^\top`. The method starts at v = 1/m, which satisfies all but the limits, and every
iterate satisfies all that one before it did.
"""

from contextlib import AbstractContextManager
from time import monotonic

import numpy as np

from privacygames.errors import Infeasible, SolveFailed, Status
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers.cones.lower_bound import dual_bound, excess, largest_value, magnitude, objective
from privacygames.solvers.cones.program import ConeProgram, ConeSolution
from privacygames.solvers.cones.repair import repair
from privacygames.solvers.cones.state import State, start
from privacygames.solvers.cones.steps import next_point
from privacygames.solvers.linalg import BlockAlgebra, FactorisationFailed, device_algebra, host_algebra

MOST_ITERATIONS = 150
"""Iterations before the method gives up; problems of points take 10 to 40."""

STALLED, NARROWER = 12, 0.9
"""The method gives up after so many iterations in which the absolute gap did not fall by this factor.
The relative one stays where it is while the value and the bound fall together."""

ROUNDED_GAP = 1e-4
"""Relative gap that is good enough where rounding stops the method above the tolerance."""

NEGLIGIBLE = 1e-6
"""Fraction of the uniform mechanism's costs; the gap of a smaller value is measured in units of that."""

ROUNDING = 1e-9
"""Fraction of a limit by which rounding may violate it in the result."""


def solve_cone_program(
    program: ConeProgram,
    *,
    tolerance: float,
    time_limit: float | None = None,
    threads: int | None = None,
    device: str = "host",
    progress: ProgressCallback | None = None,
) -> ConeSolution:
    """Solve to a relative gap, or to the time limit.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> empty = csr_array((2, 2))
    >>> program = pg.solvers.ConeProgram(1 - np.eye(2), (csr_array(np.eye(2)), empty, empty))
    >>> pg.solvers.solve_cone_program(program, tolerance=1e-6).v.round(3)
    array([[1., 0.],
           [0., 1.]])

    Args:
        program: what to solve.
        tolerance: the relative gap to stop at; where rounding stops the method earlier, 1e-4 is accepted.
        time_limit: seconds after which the best point so far is returned.
        threads: the number of threads; by default one per processor.
        device: "host", or one of PyTorch's devices for the factorisations.
        progress: called with a :class:`privacygames.Progress` in every iteration.

    Raises:
        Infeasible: the limits cannot be met, with a proof; its ``limit`` is proved to be too low itself.
        SolveFailed: the gap stays wider than both, or the time limit is reached before all limits are met.
    """
    algebra: AbstractContextManager[BlockAlgebra]
    algebra = host_algebra(threads) if device == "host" else device_algebra(device, threads=threads)
    began = monotonic()
    with algebra as opened, np.errstate(all="ignore"):
        return _Solve(program, tolerance, progress).run(opened, None if time_limit is None else began + time_limit)


class _Solve:
    """One run of the method: the best feasible point and the best bound so far."""

    def __init__(self, program: ConeProgram, tolerance: float, progress: ProgressCallback | None) -> None:
        self._program, self._tolerance, self._progress = program, tolerance, progress
        self._largest, self._negligible = largest_value(program), NEGLIGIBLE * magnitude(program)
        self._value, self._bound = np.inf, -np.inf
        self._v = self._prices = np.zeros(0)

    def run(self, algebra: BlockAlgebra, deadline: float | None) -> ConeSolution:
        """Iterate until the gap is narrow enough, time is up or nothing improves."""
        at, narrowest, last = start(self._program), np.inf, 0
        for iteration in range(MOST_ITERATIONS):
            self._update(at, iteration)
            if self._gap <= self._tolerance:
                return self._solution(at, iteration, finished=True)
            width = self._value - self._bound
            if width < NARROWER * narrowest or width == np.inf:
                narrowest, last = width, iteration
            if iteration - last > STALLED or not np.isfinite(at.gap):
                break
            if deadline is not None and monotonic() >= deadline:
                if self._value == np.inf:
                    message = "the time limit was reached before a mechanism met the limits"
                    raise SolveFailed(message, status=Status.TIME_LIMIT)
                return self._solution(at, iteration, finished=False)
            try:
                at = next_point(self._program, at, algebra)
            except FactorisationFailed:
                break
        if self._gap <= ROUNDED_GAP:
            return self._solution(at, iteration, finished=False)
        raise SolveFailed(
            f"the mechanism for points was not solved to a relative gap of {self._tolerance:g}; it ended at "
            f"{self._gap:.1e}. Loosen tolerance, or choose a coarser mesh"
        )

    def _update(self, at: State, iteration: int) -> None:
        """Take the value and the bound of an iterate into account."""
        v = repair(self._program, at.u[:, : self._program.unknowns])
        if excess(self._program, v) <= ROUNDING:
            value = objective(self._program, v)
            if value <= self._value:
                self._value, self._v, self._prices = value, v, at.prices
        self._bound = max(self._bound, dual_bound(self._program, at))
        if self._progress is not None:
            feasible = self._value < np.inf
            message = f"gap {self._gap:.1e}" if feasible else "looking for a mechanism within the limits"
            best, gap = (self._sign * self._value, self._gap) if feasible else (None, None)
            self._progress(Progress(job="points", done=iteration, value=best, gap=gap, message=message))
        if self._bound > self._largest + ROUNDING * abs(self._largest):
            raise self._infeasible(at)

    @property
    def _sign(self) -> float:
        return -1.0 if self._program.maximises_distortion else 1.0

    @property
    def _gap(self) -> float:
        """The relative gap; ∞ without a feasible point."""
        return (self._value - self._bound) / max(abs(self._value), self._negligible) if self._value < np.inf else np.inf

    def _solution(self, at: State, iterations: int, *, finished: bool) -> ConeSolution:
        program, bounded, averages = self._program, len(self._program.bounded), self._program.limits.averages
        alpha = np.ones(len(program.errors))
        alpha[program.bounded] = self._prices[:bounded]
        return ConeSolution(
            v=self._v,
            value=self._sign * self._value,
            bound=self._sign * self._bound,
            iterations=iterations,
            finished=finished,
            alpha=alpha,
            cost_dual=float(self._prices[bounded]) if averages else 0.0,
            point_duals=self._prices[bounded + averages :],
            sensitivities=(at.z[0] * at.cones[0]).sum(axis=-1),
        )

    def _infeasible(self, at: State) -> Infeasible:
        """The error for limits that no mechanism meets: the dual value exceeds every possible objective."""
        program, prices = self._program, at.prices[len(self._program.bounded) :]
        averages = program.limits.averages
        average, worst = float(prices[:averages].sum()), float(prices[averages:].sum())
        beyond = dual_bound(program, at) - self._largest
        if program.cost_limit is not None and (average >= worst or program.minimises_worst_cost):
            name, at_most, price = "cost limit", program.cost_limit.at_most, average
        else:
            name, at_most, price = "worst cost", -float(program.limits.required[-1]), worst
        limit = at_most + beyond / price
        return Infeasible(
            f"no mechanism with these guarantees meets the {name} of {at_most:.9g}: it must be above {limit:.9g}",
            limit=limit,
            bound=name,
        )

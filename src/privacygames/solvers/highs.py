"""``Highs``: HiGHS on the program as the paper writes it out, the reference for other solvers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals
from privacygames.errors import InvalidProblem, SolveFailed, Status
from privacygames.problem import Bounds, Problem
from privacygames.programs import LinearProgram, design_program, numbered, ratio_pairs, tie_break
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers.memory import require_memory
from privacygames.solvers.protocol import Solution, SolveOptions

TOLERANCE = 1e-9
"""HiGHS' primal and dual feasibility tolerance: near the smallest it accepts."""

POLL_SECONDS = 0.2
"""Seconds between two progress reports, and checks for an interruption."""

PATIENCE, PATIENCE_PER_ENTRY = 60.0, 1e-3
"""Seconds for one method, and more for each entry of the matrix: ten times what ordinary programs take on a busy
machine. After that the other method is tried, for both may never end where numbers are extreme."""

MAX_IPM_ITERATIONS = 1000
"""Iterations of HiGHS' interior-point method, ten times what ordinary programs take: without progress it never ends."""

GRACE_SECONDS = 1.0
"""Seconds that HiGHS may exceed its time limit by before it is cancelled."""

BYTES_PER_ENTRY = 320
"""Bytes per entry of the matrix: the program and HiGHS' own copies (measured at 8×8 with the Euclidean cost)."""


@dataclass(frozen=True)
class LinearSolution:
    """Values of a linear program's variables and dual values of its rows, by name of block and family."""

    program: LinearProgram
    values: FloatArray
    duals: FloatArray
    status: Status
    method: str

    def block(self, name: str) -> FloatArray:
        """The values of one block of variables."""
        return self.values[self.program.columns[name]]

    def family(self, name: str) -> FloatArray | None:
        """The dual values of one family of rows; None if the program has no such family."""
        return self.duals[self.program.rows[name]] if name in self.program.rows else None

    def bound(self, boxes: Mapping[str, tuple[float, float]]) -> float:
        """A lower bound on the minimum, by weak duality, whatever the solver's accuracy: off by rounding only.

        For any dual values y with the right signs, objective·v ≥ y·(rows' limits) + (objective − Aᵀy)·v, and the last
        term is least at a corner of the box that v lies in.

        Args:
            boxes: the least and greatest value of each block of variables at an optimum; names that are not the
                program's are ignored.
        """
        program = self.program
        above = np.where(np.isfinite(program.row_lower), np.maximum(self.duals, 0.0), 0.0)
        below = np.where(np.isfinite(program.row_upper), np.maximum(-self.duals, 0.0), 0.0)
        lower, upper = (np.where(np.isfinite(rows), rows, 0.0) for rows in (program.row_lower, program.row_upper))
        limits = above @ lower - below @ upper
        reduced = program.objective - program.matrix.T @ (above - below)
        corners = 0.0
        for name, place in program.columns.items():
            least, most = boxes[name]  # every block needs one, or nothing is proved
            own = reduced[place]
            corners += float(np.minimum(own * least, own * most).sum())
        return float(limits) + corners


@dataclass(frozen=True)
class Highs:
    """HiGHS, by its interior-point method with crossover to a vertex, or by the simplex method.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(3))), cost="absolute")
    >>> round(pg.design(problem, epsilon=1.0, solver=pg.Highs("simplex")).certificate.cost, 4)
    0.4245
    """

    method: Literal["ipm", "simplex"] = "ipm"

    def __post_init__(self) -> None:
        if self.method not in ("ipm", "simplex"):
            raise InvalidProblem(f"HiGHS' method is {self.method!r}; choose 'ipm' or 'simplex'")

    @property
    def fallbacks(self) -> tuple["Highs", ...]:
        """The other method: a second opinion where rounding spoils the first."""
        return (self.other(),)

    def other(self) -> "Highs":
        """HiGHS by the other method."""
        return Highs("simplex" if self.method == "ipm" else "ipm")

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """Solve the design program for these bounds, written out in full, to a vertex: as exactly as HiGHS can.

        HiGHS' own tolerances are tighter than any asked for, and it starts by itself.
        """
        refuse_too_large(problem, bounds)
        started = monotonic()
        program = design_program(problem, bounds)
        _ = program.matrix
        limit = options.time_limit
        remaining = None if limit is None else max(limit - (monotonic() - started), 1e-3)
        solution = self.solve_program(program, time_limit=remaining, progress=options.progress)
        probabilities = solution.block("p").reshape(problem.shape)
        dual_solution = read_dual_solution(solution, problem, bounds)
        return Solution(probabilities, dual_solution, solution.status, solution.method)

    def solve_program(
        self, program: LinearProgram, *, time_limit: float | None = None, progress: ProgressCallback | None = None
    ) -> LinearSolution:
        """Solve any linear program to optimality, or raise :class:`SolveFailed` saying why not.

        When this method does not end at an optimum, the other one is tried.
        """
        deadline = inf if time_limit is None else monotonic() + time_limit
        patience = PATIENCE + PATIENCE_PER_ENTRY * program.matrix.nnz
        for method in (self.method, self.other().method):
            result = _run(program, method, min(deadline, monotonic() + patience), progress)
            if result.status is Status.TIME_LIMIT and monotonic() < deadline:
                result = replace(result, status=Status.NUMERICAL)
            if result.status is not Status.NUMERICAL or monotonic() >= deadline:
                break
        if result.status is not Status.OPTIMAL:
            raise SolveFailed(f"HiGHS found no optimum: {result.status.advice}", status=result.status)
        return result


def refuse_too_large(problem: Problem, bounds: Bounds) -> None:
    """Raise :class:`TooLarge` where the program written out, about 3n²m + 3nm entries, will not fit into memory."""
    n, m = problem.shape
    ratios = 0 if bounds.epsilon is None else 2 * n * n * m
    guesses = sum(adversary.errors.size * m for adversary in bounds.adversaries(problem))
    gigabytes = (ratios + guesses + 3 * n * m) * BYTES_PER_ENTRY / 2**30
    require_memory(gigabytes, n, m, "HiGHS on the program written out")


def _run(program: LinearProgram, method: str, deadline: float, progress: ProgressCallback | None) -> LinearSolution:
    """Run HiGHS until a deadline. Infeasibility that it reports is no proof: the status is NUMERICAL then."""
    import highspy

    engine: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    engine.silent()
    engine.setOptionValue("solver", method)
    engine.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    engine.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    engine.setOptionValue("ipm_iteration_limit", MAX_IPM_ITERATIONS)
    engine.passModel(_model(program))
    if deadline < inf:
        engine.setOptionValue("time_limit", max(deadline - monotonic(), 1e-3))
    if not _run_interruptibly(engine, method, deadline, progress):
        nothing = np.zeros(0)
        return LinearSolution(program, nothing, nothing, Status.TIME_LIMIT, f"HiGHS {method}")
    statuses = {
        highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
        highspy.HighsModelStatus.kTimeLimit: Status.TIME_LIMIT,
    }
    solution = engine.getSolution()
    return LinearSolution(
        program,
        np.array(solution.col_value),
        np.array(solution.row_dual),
        statuses.get(engine.getModelStatus(), Status.NUMERICAL),
        f"HiGHS {engine.version()} {method}",
    )


def _model(program: LinearProgram) -> Any:
    import highspy

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_ = program.objective
    model.col_lower_ = program.variable_lower
    model.col_upper_ = program.variable_upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.matrix.indptr
    model.a_matrix_.index_ = program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    return model


def _run_interruptibly(engine: Any, method: str, deadline: float, progress: ProgressCallback | None) -> bool:
    """Run HiGHS in a thread, so that Ctrl-C or a progress callback can stop it.

    HiGHS checks its time limit between steps that may take long. Where it is late, it is cancelled and left to end by
    itself: its result is not used.

    Returns:
        Whether it ended in time.
    """
    done = Event()
    started = monotonic()

    def report() -> None:
        if progress is not None:
            seconds = monotonic() - started
            progress(Progress(job="design", done=0, seconds=seconds, message=f"HiGHS {method}, {seconds:.0f} s"))

    def work() -> None:
        try:
            engine.run()
        finally:
            done.set()

    report()
    engine.HandleUserInterrupt = True
    Thread(target=work).start()
    try:
        while not done.wait(POLL_SECONDS):  # not Thread.join, which an interrupt leaves in a broken state
            report()
            if monotonic() > deadline + GRACE_SECONDS:
                engine.cancelSolve()
                return False
    except BaseException:
        engine.cancelSolve()
        done.wait()
        raise
    return True


def read_dual_solution(solution: LinearSolution, problem: Problem, bounds: Bounds) -> DualSolution:
    """The dual solution that proves a bound, from HiGHS' dual values (≥ 0 for rows with a lower bound)."""
    adversaries = bounds.adversaries(problem)
    adversary_duals = [
        _read_attack(solution, len(adversary.errors), problem, place) for place, adversary in enumerate(adversaries)
    ]
    if bounds.maximises_distortion:
        adversary_duals[0] = replace(adversary_duals[0], dual=1.0)
    weights, cost_dual = _read_costs(solution, problem, bounds)
    limit_duals = solution.family("worst")
    return DualSolution(
        ratios=_read_ratios(solution, problem, bounds),
        output_rows=np.arange(problem.shape[1]),
        adversaries=tuple(adversary_duals),
        cost_dual=cost_dual,
        secret_weights=weights,
        worst_cost_duals=None if limit_duals is None else np.maximum(-limit_duals, 0.0),
    )


def _read_attack(solution: LinearSolution, guesses: int, problem: Problem, place: int) -> AdversaryDuals:
    """The dual values of the guarantee against one adversary: of their total error, and of each guess."""
    _, observables = problem.shape
    rows, total = solution.family(numbered("guesses", place)), solution.family(numbered("distortion", place))
    attack = np.ones((observables, guesses)) if rows is None else np.maximum(rows.reshape(observables, -1), 0.0)
    attack[attack.sum(axis=1) <= 0] = 1.0
    return AdversaryDuals(0.0 if total is None else max(float(total[0]), 0.0), attack)


def _read_costs(solution: LinearSolution, problem: Problem, bounds: Bounds) -> tuple[FloatArray | None, float]:
    """Each secret's weight in the worst case (None for the average), and the dual value of the cost as a whole."""
    duals = solution.family("costs")
    if duals is None:
        return None, 1.0
    weights = np.maximum(-duals, 0.0)
    if not bounds.maximises_distortion:
        return (weights if weights.sum() > 0 else np.ones_like(weights)), 1.0
    extra = tie_break(problem, bounds) * problem.prior.probabilities  # the cost is in the objective, too
    total = float(weights.sum() + extra.sum())
    return (weights + extra + (total == 0) if bounds.worst_case else None), total


def _read_ratios(solution: LinearSolution, problem: Problem, bounds: Bounds) -> RatioDuals:
    duals = solution.family("ratios")
    if duals is None:
        return RatioDuals.none()
    _, observables = problem.shape
    secret, other, exponent = ratio_pairs(problem, bounds)
    row = np.flatnonzero(duals < 0)
    pair, observable = np.divmod(row, observables)
    return RatioDuals(
        observable.astype(np.int32),
        secret[pair].astype(np.int32),
        other[pair].astype(np.int32),
        -duals[row] * np.exp(-exponent[pair] / 2),  # undo the balancing by √γ
    )

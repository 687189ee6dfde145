r"""Design of mechanisms for points: the cheapest on a mesh, rounded to integers and verified.

Costs, errors and the prior are folded into the control points: with :math:`\bar c(o, \alpha) = \sum_x \pi(x)
B_\alpha(x) c(o, x)` the expected cost is :math:`\sum_{o,\alpha} \bar c(o,\alpha)\,p(o \mid \alpha)`, and likewise for
errors. So each program of the paper keeps its form, with control points in the place of secrets and second-order cones
in the place of ratios. Two families have infinitely many rows, one for each guess (any point) and one for each point
(of the largest cost): rows are added where the last solution needs them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal, cast

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import BITS, Provenance, to_weights
from privacygames.errors import Field, GuaranteeViolated, Infeasible, InvalidProblem, SolveFailed, Status
from privacygames.points.guesses import best_guesses
from privacygames.points.mechanism import PointMechanism, certify_points
from privacygames.points.mesh import Mesh
from privacygames.points.problem import FEASIBLE, PointAdversary, PointProblem, adversary_arrays, largest_distortion
from privacygames.points.refinement import refine, refinement_sizes
from privacygames.points.relaxation import RelaxedPart, solve_relaxation
from privacygames.points.verification import joint_masses
from privacygames.points.worst_cost import largest_cost
from privacygames.problem import Bounds, Distortion
from privacygames.progress import ProgressCallback
from privacygames.solvers import ConeProgram, ConeSolution, CostLimit, SolveOptions, WorstCost, solve_cone_program
from privacygames.validation import require_instance
from privacygames.version import VERSION

MIXED = 2.0**-50
"""Least share of a constant mechanism in the result: it absorbs the rounding of probabilities to integers."""

MOST_ROUNDS = 12
"""Most times that guesses or points of the largest cost are added and the program is solved again."""

REPAIRED = 1e-6
"""Relative shortfall of a distortion that is left to the repair, which mixes in a constant mechanism."""

LIMIT_MARGIN = 1e-7
"""Relative margin of limits on costs, which leaves room for the repair."""

WORST_TOLERANCE = 3e-4
"""Relative amount by which the largest cost at any point may exceed that at the points of the program."""

SMALL_EXCESS = 1e-3
"""Relative excess over a limit on the largest cost that is met by a tighter limit at the points of the program."""

LARGEST_SHARE = 1e-3
"""Largest share of a constant mechanism that the repair may mix in."""

ROUGH_TOLERANCE = 3e-3
"""Relative gap to which programs on coarser meshes are solved."""

NEGLIGIBLE_MASS = 0.02
"""Probability of an output in a rough solution, times the number of outputs, below which a finer mesh does without it:
on GeoLife that costs less than 0.02 %, and saves up to nine tenths of the time."""

FIRST_GUESSES = 150
"""Most points of a belief that are guesses from the start."""

GUESS_LATTICE = 8
"""Points along the longest axis of the lattice of guesses from the start."""

MOST_NEW_POINTS = 60
"""Most points of the largest cost that are added in a round: each costs a solution with every block's factors."""


@dataclass(frozen=True)
class _Rows:
    """The rows of the program that are chosen: guesses of each adversary, and points where the cost is bounded."""

    guesses: tuple[FloatArray, ...]
    points: FloatArray
    tightening: float = 0.0


@dataclass
class PointDesign:
    """One design for points.

    Attributes:
        problem: the problem.
        bounds: what is guaranteed.
        options: tolerance, time limit and progress.
        prove_bound: whether to bound what any mechanism, of whatever form, could achieve.
        device: ``"host"`` or one of PyTorch's devices.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> pg.points.PointDesign(problem, pg.Bounds(epsilon=0.5)).mechanism().bounds.epsilon
    0.5
    """

    problem: PointProblem
    bounds: Bounds
    options: SolveOptions = field(default_factory=SolveOptions)
    prove_bound: bool = True
    device: str = "host"

    def __post_init__(self) -> None:
        require_instance(self.problem, PointProblem, "the problem")
        if self.bounds.within is not None:
            raise InvalidProblem(
                Field("within"),
                " is for secrets that are cells or labels; between points give ",
                Field("epsilon"),
                " per unit of distance: epsilon / within bounds the same ratio at that distance",
            )
        limits_worst = self.bounds.worst_case or self.bounds.worst_cost_at_most is not None
        if limits_worst and not self.problem.cost.is_convex:
            raise InvalidProblem("the largest cost at any point is bounded for named costs only, not for a function")
        self.deadline = None if self.options.time_limit is None else monotonic() + self.options.time_limit
        self.adversaries = tuple(
            adversary_arrays(self.problem, each.adversary, each.distortion) for each in self.bounds.distortion
        )
        self._require_feasible()
        self._outputs = np.arange(len(self.problem.outputs))
        self._rough: tuple[Mesh, IntArray, ConeSolution] | None = None
        self._use(self.problem.first_mesh(self.bounds.epsilon))

    def _use(self, mesh: Mesh) -> None:
        """Fold the prior into the control points of a mesh."""
        prior = self.problem.prior
        self.mesh, basis = mesh, mesh.basis_at(prior.xy)
        self._adversary_bases = tuple(mesh.basis_at(adversary.xy) for adversary in self.adversaries)
        self._folded_costs = self._fold(basis, prior.probabilities[:, None] * self.problem.costs)
        averages = [basis.T @ prior.probabilities]
        for basis, adversary in zip(self._adversary_bases, self.adversaries, strict=True):
            averages.append(basis.T @ adversary.probabilities)
        self._averages = np.stack(averages)

    def mechanism(self) -> PointMechanism:
        """The mechanism of least cost, or of most distortion, within the bounds; certified."""
        rows = self._refine(self._first_rows())
        solution: ConeSolution | None = None
        for _ in range(MOST_ROUNDS):
            try:
                solution = self._solve(rows, self.options.tolerance)
            except (SolveFailed, Infeasible) as error:
                if len(self._outputs) < len(self.problem.outputs):
                    self._outputs = np.arange(len(self.problem.outputs))
                    continue
                if self.bounds.cost_limits:
                    self._require_affordable()
                raise SolveFailed(f"on this mesh: {error}", status=Status.NUMERICAL) from None
            probabilities = self._probabilities(solution)
            more = self._missing_rows(rows, probabilities)
            if more is None or self._time_left() == 0.0:
                break
            rows = more
        if solution is not None and not solution.finished and self._rough is not None:
            mesh, outputs, rough = self._rough
            if self._is_better(rough, solution):  # the time limit left a finer mesh no chance
                self._use(mesh)
                self._outputs, solution = outputs, rough
                probabilities = self._probabilities(solution)
        if solution is None:
            raise SolveFailed("no round of the design was begun", status=Status.NUMERICAL)
        relaxation: tuple[RelaxedPart, ...] = ()
        if self.prove_bound:
            left = self._time_left()
            if left is None or left > 0:
                limits = replace(self.options, time_limit=left)
                relaxation = solve_relaxation(self.problem, self.bounds, self.adversaries, limits)
        return self._repair(probabilities, solution, relaxation)

    def _refine(self, rows: _Rows) -> _Rows:
        """Refine the mesh where the problem leaves it to the design; the rows, with what coarser meshes needed added.

        On each mesh the program is solved to a loose tolerance, and cells where ε costs most are halved. Outputs that
        are hardly ever released are left to the share of a constant mechanism: of 300 some 10 to 100 remain.
        """
        if self.bounds.epsilon is None:
            return rows
        for most in refinement_sizes(self.mesh, self.problem.most_controls(self.mesh)):
            try:
                solution = self._solve(rows, ROUGH_TOLERANCE)
            except (SolveFailed, Infeasible):
                sensitivities = np.ones(self.mesh.cells)  # a finer mesh may meet limits that this one does not
            else:
                sensitivities = solution.sensitivities.reshape(self.mesh.cells, -1).sum(axis=1)
                probabilities = self._probabilities(solution)
                if self._rough is None or self._is_better(solution, self._rough[2]):
                    self._rough = self.mesh, self._outputs, solution
                rows = self._missing_rows(rows, probabilities) or rows
                if not self._bounds_worst:  # where the prior is 0, an output may still bound the worst cost
                    masses = (self._averages @ probabilities).max(axis=0)
                    self._outputs = np.flatnonzero(masses > NEGLIGIBLE_MASS / len(masses))
            self._use(refine(self.mesh, sensitivities, most))
            if self._time_left() == 0.0:
                break
        return rows

    def _is_better(self, solution: ConeSolution, other: ConeSolution) -> bool:
        """Whether a solution costs less than another, or has more distortion where that is maximised."""
        return solution.value > other.value if self.bounds.maximises_distortion else solution.value < other.value

    def _probabilities(self, solution: ConeSolution) -> FloatArray:
        """The probabilities of all outputs, (control points, outputs), none negative and each row with the sum one."""
        rows = np.zeros((self.mesh.controls, len(self.problem.outputs)))
        rows[:, self._outputs] = np.maximum(solution.v.T, 0.0)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _require_feasible(self) -> None:
        """Raise where more distortion is asked for than revealing nothing gives."""
        for adversary in self.adversaries:
            limit = largest_distortion(self.problem, adversary) * FEASIBLE
            if adversary.distortion is not None and adversary.distortion > limit:
                whom = f" against {adversary.name!r}" if self.bounds.named_adversaries else ""
                raise Infeasible(
                    f"no mechanism can be certified to have distortion privacy {adversary.distortion:.9g}{whom}: the "
                    f"most is {limit!r} (d_m^max, with room for rounding), attained by revealing nothing",
                    limit=limit,
                    bound="distortion",
                )

    def _time_left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - monotonic(), 0.0)

    def _fold(self, basis: Any, values: FloatArray) -> FloatArray:
        """Σ_x B_α(x) value(x, ·), (columns of values, control points)."""
        return np.ascontiguousarray((basis.T @ values).T)

    def _first_rows(self) -> _Rows:
        region = self.problem.region
        lattice = region.lattice(region.lattice_counts(GUESS_LATTICE))
        guesses = []
        for adversary in self.adversaries:
            step = -(-len(adversary.xy) // FIRST_GUESSES)
            guesses.append(np.unique(np.concatenate([adversary.xy[::step], lattice]), axis=0))
        low, high = self.mesh.bounds
        corners = [np.where(upper, high, low) for upper in np.ndindex(*[2] * self.mesh.axes)]
        nodes = np.unique(np.concatenate([*corners, (low + high) / 2]), axis=0)
        return _Rows(tuple(guesses), nodes if self._bounds_worst else nodes[:0])

    @property
    def _bounds_worst(self) -> bool:
        return self.bounds.worst_case or self.bounds.worst_cost_at_most is not None

    def _program(self, rows: _Rows) -> ConeProgram:
        """The program with these guesses and points."""
        bounds, problem = self.bounds, self.problem
        value, *slopes = self.mesh.gradients
        if bounds.epsilon is None:
            from scipy.sparse import eye_array

            value, slopes = eye_array(self.mesh.controls, format="csr"), []
        else:
            value = bounds.epsilon * value
        empty = value * 0.0
        empty.eliminate_zeros()
        cones = (value, *slopes, *[empty] * (2 - len(slopes)))
        costs, cost_limit, worst = self._folded_costs[self._outputs], None, None
        if bounds.maximises_distortion:
            if not bounds.worst_case:
                cost_limit = CostLimit(costs, self._tightened(cast("float", bounds.cost_at_most), rows))
            costs = np.zeros_like(costs)
        if self._bounds_worst:
            limit = bounds.cost_at_most if bounds.worst_case else bounds.worst_cost_at_most
            at_most = None if limit is None else self._tightened(limit, rows)
            table = problem.cost.matrix(rows.points, problem.outputs[self._outputs])
            worst = WorstCost(self.mesh.basis_at(rows.points), np.ascontiguousarray(table.T), at_most)
            if bounds.worst_case and not bounds.maximises_distortion:
                costs = np.zeros_like(costs)
        return ConeProgram(
            costs,
            cast("tuple[Any, Any, Any]", cones),
            errors=tuple(self._error_tables(rows)),
            distortions=tuple(adversary.distortion or 0.0 for adversary in self._bounded),
            maximises_distortion=bounds.maximises_distortion,
            cost_limit=cost_limit,
            worst_cost=worst,
        )

    @property
    def _bounded(self) -> Sequence[PointAdversary]:
        """The adversaries whose distortion has a lower bound: all but the first where its distortion is maximised."""
        return self.adversaries[1:] if self.bounds.maximises_distortion else self.adversaries

    def _tightened(self, limit: float, rows: _Rows) -> float:
        return limit * (1 - LIMIT_MARGIN - rows.tightening)

    def _error_tables(self, rows: _Rows) -> list[FloatArray]:
        """For each adversary their expected error for each guess and control point, (guesses, control points)."""
        tables = []
        for adversary, basis, guesses in zip(self.adversaries, self._adversary_bases, rows.guesses, strict=True):
            errors = adversary.errors
            if errors is None:
                errors = self.problem.distances(guesses, adversary.xy)
            tables.append(self._fold(basis, (errors * adversary.probabilities).T))
        return tables

    def _solve(self, rows: _Rows, tolerance: float) -> ConeSolution:
        return solve_cone_program(
            self._program(rows),
            tolerance=tolerance,
            time_limit=self._time_left() or (None if self.deadline is None else 1e-3),
            device=self.device,
            progress=self.options.progress,
        )

    def _require_affordable(self) -> None:
        """Raise where a limit on the cost lies below what any mechanism must cost, or any on this mesh."""
        without = [
            each
            for each in self.bounds.distortion
            if not (self.bounds.maximises_distortion and each is self.bounds.distortion[0])
        ]
        for worst_case, limit in self.bounds.cost_limits:
            if not without and self.bounds.epsilon is None:
                continue
            name = "worst_cost_at_most" if self.bounds.cost_at_most is None else "cost_at_most"
            bounds = Bounds(epsilon=self.bounds.epsilon, distortion=tuple(without) or None, worst_case=worst_case)
            cheapest = replace(
                self, bounds=bounds, options=replace(self.options, time_limit=self._time_left())
            ).mechanism()
            certificate = cheapest.certificate
            if certificate.bound is not None and certificate.bound > limit:
                raise Infeasible(
                    f"no mechanism with these guarantees costs at most {limit:.9g}: {name} must be at least "
                    f"{certificate.bound!r}; {certificate.cost!r} is enough on this mesh",
                    limit=certificate.cost,
                    bound=name,
                )
            if certificate.cost > limit:
                raise SolveFailed(
                    f"no mechanism on this mesh costs at most {limit:.9g}: the least is {certificate.cost!r}. Raise "
                    f"{name}, or choose a finer mesh",
                    status=Status.NUMERICAL,
                )

    def _missing_rows(self, rows: _Rows, probabilities: FloatArray) -> _Rows | None:
        """The rows with the guesses and points that a solution needs added; None where it needs none."""
        needed = False
        guesses = list(rows.guesses)
        for number, adversary in enumerate(self.adversaries):
            if adversary.errors is not None:
                continue
            masses = joint_masses(self.mesh, probabilities, adversary.xy, adversary.probabilities)
            best = best_guesses(masses, adversary.xy, self.problem.distance)
            assumed = float((masses @ self.problem.distances(guesses[number], adversary.xy).T).min(axis=1).sum())
            maximised = self.bounds.maximises_distortion and number == 0
            wanted = assumed if maximised else (adversary.distortion or 0.0)
            if best.total_lower < wanted * (1 - REPAIRED):
                needed = True
                guesses[number] = _merged(guesses[number], best.guesses, self.problem.region.lengths)
        points, tightening = rows.points, rows.tightening
        if self._bounds_worst:
            largest = largest_cost(self.mesh, probabilities, self.problem.outputs, self.problem.cost)
            table = self.problem.cost.matrix(points, self.problem.outputs)
            assumed = float(((self.mesh.basis_at(points) @ probabilities) * table).sum(axis=1).max())
            limit = self.bounds.cost_at_most if self.bounds.worst_case else self.bounds.worst_cost_at_most
            allowed = assumed * (1 + WORST_TOLERANCE) if limit is None else limit
            if largest.upper > allowed:
                needed = True
                dearest = np.argsort(-largest.costs)[:MOST_NEW_POINTS]
                new = largest.points[dearest[largest.costs[dearest] > assumed]]
                points = _merged(points, new, self.problem.region.lengths)
                excess = 0.0 if limit is None else largest.upper / limit - 1
                if excess < SMALL_EXCESS:
                    tightening += 1.2 * excess
        return _Rows(tuple(guesses), points, tightening) if needed else None

    def _repair(
        self, probabilities: FloatArray, solution: ConeSolution, relaxation: tuple[RelaxedPart, ...]
    ) -> PointMechanism:
        """Weights near the solution with every guarantee, by mixing in a small share of a constant mechanism."""
        share = max(MIXED, self._needed_share(probabilities))
        size = f"{self.mesh.controls} control points, {len(self._outputs)} of {len(self.problem.outputs)} outputs"
        name = f"cones on {size}, {solution.iterations} iterations"
        while True:
            mixed = (1 - share) * probabilities + share / probabilities.shape[1]
            weights = to_weights(mixed / mixed.sum(axis=1, keepdims=True), BITS)
            try:
                return certify_points(
                    self.problem,
                    self.bounds,
                    self.mesh,
                    weights,
                    BITS,
                    relaxation=relaxation,
                    provenance=Provenance(name, VERSION),
                )
            except GuaranteeViolated:
                share *= 16
                if share > LARGEST_SHARE:
                    raise

    def _needed_share(self, probabilities: FloatArray) -> float:
        """The share of the uniform mechanism that repairs cones and distortions."""
        share = 0.0
        if self.bounds.epsilon is not None:
            value, *slopes = (np.asarray(rows @ probabilities) for rows in self.mesh.gradients)
            excess = float((np.hypot.reduce(slopes) - self.bounds.epsilon * value).max())
            if excess > 0:
                room = self.bounds.epsilon / probabilities.shape[1]
                share = 2 * excess / (room + excess)
        for adversary in self._bounded:
            masses = joint_masses(self.mesh, probabilities, adversary.xy, adversary.probabilities)
            if adversary.errors is None:
                error = best_guesses(masses, adversary.xy, self.problem.distance).total_lower
            else:
                error = float((masses @ adversary.errors.T).min(axis=1).sum())
            missing = (adversary.distortion or 0.0) * (1 + 1e-12) - error
            if missing > 0:
                largest = largest_distortion(self.problem, adversary)
                share = max(share, min(2 * missing / max(largest - error, missing), 1.0))
        return share


def design(
    problem: PointProblem,
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    worst_case: bool = False,
    cost_at_most: float | None = None,
    worst_cost_at_most: float | None = None,
    prove_bound: bool = True,
    device: Literal["host"] | str = "host",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> PointMechanism:
    """The mechanism of least cost on a mesh whose guarantees hold for any points; as :func:`privacygames.design`.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.points.design(problem, epsilon=1.0, distortion=0.3, prove_bound=False)
    >>> mechanism.sample((0.51, 0.48)) in [(0.5, 0.5), (1.5, 1.2)]
    True

    Args:
        problem: prior, outputs, cost, distance and mesh.
        epsilon: per unit of distance: p(o|x) ≤ exp(epsilon·‖x − x'‖)·p(o|x') for every output and any two points.
        distortion: lower bound on the expected error of the optimal attack, whose guesses may be any point; a mapping
            from :class:`privacygames.Adversary` to numbers gives a guarantee against each of them.
        worst_case: minimise (or limit) the largest cost at any point of the region, rather than the expected one.
        cost_at_most: maximise distortion privacy for at most this cost, instead of minimising the cost.
        worst_cost_at_most: upper limit on the cost at every point, while the expected cost is minimised.
        prove_bound: also prove how much better any mechanism whatever could be, which takes about as long again.
        device: ``"host"``, or one of PyTorch's devices.
        time_limit: seconds after which to stop with the best mechanism so far.
        tolerance: relative gap to the best mechanism on the mesh, with the outputs that are in use; 1e-4 is accepted
            where rounding prevents a smaller one. The gap of the certificate is to all mechanisms, and includes it.
        progress: called with a :class:`privacygames.Progress` now and then.

    Raises:
        InvalidProblem: an argument is invalid.
        Infeasible: no mechanism satisfies these bounds.
        SolveFailed: the solver did not get within tolerance, or no mechanism on this mesh satisfies the bounds.
    """
    bounds = Bounds(
        epsilon=epsilon,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
        worst_cost_at_most=worst_cost_at_most,
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    return PointDesign(problem, bounds, options, prove_bound, device).mechanism()


def _merged(points: FloatArray, more: FloatArray, lengths: tuple[float, ...]) -> FloatArray:
    """Points and those others that are not within a thousandth of the region of one another."""
    grid = max(lengths) * 1e-3
    clipped = np.clip(more, 0.0, lengths)
    _, first = np.unique(np.rint(clipped / grid), axis=0, return_index=True)
    return np.unique(np.concatenate([points, clipped[first]]), axis=0)

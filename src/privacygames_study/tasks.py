"""Tasks of a study: each designs and measures one mechanism for one person, independently of all others."""

from dataclasses import dataclass, fields
from functools import cached_property
from time import perf_counter, process_time
from typing import Literal

from privacygames import approximations, attacks
from privacygames.analysis import evaluate
from privacygames.arrays import content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.designer import design_bounds
from privacygames.errors import PrivacyGamesError, SolveFailed
from privacygames.jobs import Measurements
from privacygames.mechanism import Mechanism
from privacygames.problem import Adversary, Bounds, Problem
from privacygames.solvers import Highs
from privacygames.spaces import Grid, space_digest
from privacygames_study.people import informed_prior

FORMAT = 2
"""Version of tasks and measurements. It is part of every key, so that results of other versions are not reused."""

DONE = "done"
"""Status of a measured design; any other status is that of a failure."""


@dataclass(frozen=True, eq=False)
class Task:
    """One mechanism to design and measure.

    Attributes:
        prior: the person's.
        epsilon: largest ε, per km; None: no bound.
        distortion: least distortion d_m, in km; None: no bound.
        radius: in km; constraints between secrets farther apart are left out (appendix C); None: exact design.
        reach: whether constraints on an output and a secret farther apart than ``radius`` are left out, too.
        all_guesses: with ``reach``, whether only ratio constraints are left out, and every guess constraint stays.
        solver: of an exact design: the default for its size; or HiGHS on the full program, as the baseline for
            approximations that only HiGHS can solve.
        strengths: of the better informed adversaries that attack the mechanism.
        places: number of places on which these adversaries have more evidence.
        promised: pairs of a strength and the distortion in km that is guaranteed against that adversary, besides d_m.
    """

    prior: Prior
    epsilon: float | None = None
    distortion: float | None = None
    radius: float | None = None
    reach: bool = False
    all_guesses: bool = False
    solver: Literal["auto", "highs"] = "auto"
    strengths: tuple[float, ...] = ()
    places: int = 2
    promised: tuple[tuple[float, float], ...] = ()

    @cached_property
    def key(self) -> str:
        """Digest of the task, the key of its stored result; the names of the attributes are part of it."""
        grid = self.prior.space
        shape = (grid.columns, grid.rows, grid.width, grid.height) if isinstance(grid, Grid) else space_digest(grid)
        settings = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "prior"}
        return digest_of("study task", FORMAT, shape, settings, content_hash(self.prior.probabilities))[:32]

    def run(self) -> Measurements:
        """Design the task's mechanism and measure it."""
        return measure(self)


def measure(task: Task) -> Measurements:
    """Design the task's mechanism and measure it; a failed design gives a result with its status."""
    problem = Problem(task.prior, cost="hamming", distance="euclidean")
    start, worked = perf_counter(), process_time()
    try:
        mechanism = _mechanism(task, problem)
    except PrivacyGamesError as error:
        reason = error.status.name if isinstance(error, SolveFailed) else type(error).__name__
        return {"status": f"failed: {reason}", "seconds": perf_counter() - start}
    seconds, worked = perf_counter() - start, process_time() - worked
    report = evaluate(mechanism, problem)
    return {
        "status": DONE,
        "cost": report.cost,
        "worst_cost": report.worst_cost,
        "privacy_km": report.distortion,
        "bayesian_km": report.distortion_bayesian,
        "realised_epsilon": report.epsilon,
        "entropy_bits": report.posterior_entropy,
        "gap": mechanism.certificate.gap,
        "seconds": seconds,
        "processor_seconds": worked,
        "solver": _solver(mechanism),
        **{
            privacy_column(strength): attacks.optimal(
                mechanism, problem, prior=informed_prior(task.prior, strength, task.places)
            ).error
            for strength in task.strengths
        },
    }


def privacy_column(strength: float) -> str:
    """The column of the distortion privacy against a better informed adversary."""
    return f"privacy_km against {strength:g}"


def _solver(mechanism: Mechanism) -> str:
    """The name of the solver that designed a mechanism; it says so if another solver failed before."""
    origin = mechanism.certificate.provenance.solver.split(";")[0]
    name = origin.partition(":")[0].partition(",")[0]
    return f"{name} after another" if ", after " in origin else name


def _mechanism(task: Task, problem: Problem) -> Mechanism:
    if task.promised:
        guaranteed: dict[Adversary, float | None] = {Adversary("no more evidence"): task.distortion or 0.0}
        for strength, distortion in task.promised:
            belief = informed_prior(task.prior, strength, task.places)
            guaranteed[Adversary(f"{strength:g} times the evidence", prior=belief)] = distortion
        return design_bounds(problem, Bounds(epsilon=task.epsilon, distortion=guaranteed))
    if task.radius is None:
        bounds = Bounds(epsilon=task.epsilon, distortion=task.distortion)
        return (
            design_bounds(problem, bounds) if task.solver == "auto" else design_bounds(problem, bounds, solver=Highs())
        )
    return approximations.prune(
        problem,
        task.epsilon or 0.0,
        task.radius,
        output_radius=task.radius if task.reach else None,
        all_estimates=task.all_guesses,
        distortion=task.distortion,
        repair=False,
    )

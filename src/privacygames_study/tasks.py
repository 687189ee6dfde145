"""A task of a study: one mechanism for one person, designed and measured. Tasks know nothing of each other."""

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
from privacygames.jobs import Measured
from privacygames.mechanism import Mechanism
from privacygames.problem import Adversary, Bounds, Problem
from privacygames.solvers import Highs
from privacygames.spaces import Grid, space_digest
from privacygames_study.people import informed

FORMAT = 2
"""Raise when what a task means or what is measured changes: older results are then not used again."""

DONE = "done"


@dataclass(frozen=True, eq=False)
class Task:
    """What to design, and for whom.

    Attributes:
        prior: the person's.
        epsilon: ε per km; None: no differential privacy.
        distortion: d_m in km; None: no distortion privacy.
        radius: in km: leave out constraints between secrets further apart (appendix C); None: exact.
        reach: leave out constraints about observables and secrets further apart than ``radius``, too.
        all_guesses: with ``reach``, leave out ratio constraints only.
        solver: of an exact design: the one that is chosen for its size, or HiGHS on the program written out, with which
            approximations that only HiGHS can solve are compared.
        strengths: the better informed adversaries to try it against.
        places: about how many places these know more.
        promised: of some of these, the strength and what is promised against each, in km, beside d_m.
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
        """The same for the same work, whoever asks for it and whenever."""
        grid = self.prior.space
        shape = (grid.columns, grid.rows, grid.width, grid.height) if isinstance(grid, Grid) else space_digest(grid)
        asked = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "prior"}
        return digest_of("study task", FORMAT, shape, asked, content_hash(self.prior.probabilities))[:32]

    def run(self) -> Measured:
        """Design the task's mechanism and measure it."""
        return measure(self)


def measure(task: Task) -> Measured:
    """Design the task's mechanism and measure it; a design that fails is a result, too."""
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
            against(strength): attacks.optimal(
                mechanism, problem, prior=informed(task.prior, strength, task.places)
            ).error
            for strength in task.strengths
        },
    }


def against(strength: float) -> str:
    """The name of the privacy against an adversary with so much more evidence, who is right about it."""
    return f"privacy_km against {strength:g}"


def _solver(mechanism: Mechanism) -> str:
    """The name of the solver that designed a mechanism, and whether another one had failed before it."""
    origin = mechanism.certificate.provenance.solver.split(";")[0]
    name = origin.partition(":")[0].partition(",")[0]
    return f"{name} after another" if ", after " in origin else name


def _mechanism(task: Task, problem: Problem) -> Mechanism:
    if task.promised:
        crowd: dict[Adversary, float | None] = {Adversary("no more evidence"): task.distortion or 0.0}
        for strength, least in task.promised:
            belief = informed(task.prior, strength, task.places)
            crowd[Adversary(f"{strength:g} times the evidence", prior=belief)] = least
        return design_bounds(problem, Bounds.asked(epsilon=task.epsilon, distortion=crowd))
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

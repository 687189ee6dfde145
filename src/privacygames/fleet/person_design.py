"""Designing people's mechanisms: the job for one person, and the distribution of such jobs over an executor."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np

from privacygames.beliefs import PointPrior, Prior
from privacygames.canonical import digest_of
from privacygames.designer import design_bounds
from privacygames.errors import GuaranteeViolated, Infeasible, PrivacyGamesError, SolveFailed
from privacygames.fleet.packed_weights import round_weights
from privacygames.fleet.people_input import Member
from privacygames.fleet.person_record import encode_person, name_hash, require_owner
from privacygames.fleet.point_record import encode_point_person
from privacygames.fleet.records import prior_digest, require_cells, require_points
from privacygames.fleet.shared_problem import AnyShared, load_shared
from privacygames.fleet.snapshot import RecordLocation
from privacygames.fleet.writer import FleetWriter
from privacygames.jobs import Executor, remaining_tasks
from privacygames.mechanism import Mechanism, certify
from privacygames.points import Mesh, PointDesign, PointMechanism, PointProblem, certify_points
from privacygames.problem import Bounds, Problem, max_distortion
from privacygames.progress import Progress, ProgressCallback

ROUNDING_MARGIN = 2.0**-15
"""Relative margin between the ratios designed for and those allowed, for rounding to 17 bits to use up: the two
weights of a ratio are each rounded by at most 2^-17, and so is what the larger one carries over."""

MAX_EPSILON_LOSS = 0.01
"""Largest share of ε given up for that margin. Where more would be needed, weights are stored with all their bits."""


@dataclass(frozen=True, eq=False)
class PersonJob:
    """The job of designing one person's mechanism, on any machine that sees the fleet's folder.

    Attributes:
        folder: the folder that the shared file is read from.
        shared_hash: SHA-256 of the shared file: a worker that sees another one designs nothing.
        member: the person.
    """

    folder: str
    shared_hash: str
    member: Member

    @cached_property
    def key(self) -> str:
        """The same for the same person, prior and shared file."""
        return digest_of("person", self.shared_hash, self.member.name, prior_digest(self.member.prior))[:32]

    def run(self) -> bytes | str:
        """The record, or why there is none."""
        try:
            return _design_record(self.member, load_shared(self.shared_hash, Path(self.folder)))
        except PrivacyGamesError as error:
            return f"{type(error).__name__}: {error}"


def _design_record(member: Member, shared: AnyShared) -> bytes:
    details = {"visits": member.visits, "prior_from": member.prior_from}
    if isinstance(member.prior, PointPrior):
        points = require_points(shared)
        for_points = design_packable_points(points.problem.with_prior(member.prior), points.bounds)
        return encode_point_person(member.name, for_points, details, points)
    cells = require_cells(shared)
    prior = Prior(cells.problem.space, member.prior)
    return encode_person(member.name, design_packable(cells.problem.with_prior(prior), cells.bounds), details)


def design_packable(problem: Problem, bounds: Bounds) -> Mechanism:
    """An optimal mechanism rounded to 17 significant bits; with all bits, where rounding would break a guarantee."""
    for margin in (ROUNDING_MARGIN, 4 * ROUNDING_MARGIN):
        tighter = _tighten(problem, bounds, margin)
        if tighter is None:
            break
        optimal = design_bounds(problem, tighter)
        try:
            weights = round_weights(optimal.weights)
            return certify(problem, bounds, weights, origin=f"{optimal.certificate.provenance.solver}, in 17 bits")
        except GuaranteeViolated:
            continue
    return design_bounds(problem, bounds)


def design_packable_points(problem: PointProblem, bounds: Bounds) -> PointMechanism:
    """An optimal mechanism for points rounded to 17 significant bits; with all bits, where that would cost too much.

    Slopes are differences of neighbouring control values, so the smaller a cell, the more of ε rounding can use up. The
    mesh is chosen by the first design, and a second one on the same mesh has the margin that its cells need.
    """
    margin = 0.0 if bounds.epsilon is None else _slope_margin(problem.first_mesh(bounds.epsilon), bounds.epsilon)
    for _ in range(2):
        if margin > MAX_EPSILON_LOSS:
            break
        tighter = bounds.tightened(epsilon=margin, distortion=2 * ROUNDING_MARGIN, cost=2 * ROUNDING_MARGIN)
        try:
            optimal = PointDesign(problem, tighter, prove_bound=False).mechanism()
        except Infeasible:  # only the margin may be too much
            break
        mesh, provenance = optimal.mesh, optimal.certificate.provenance
        try:
            return certify_points(
                problem,
                bounds,
                mesh,
                round_weights(optimal.weights),
                optimal.bits,
                provenance=replace(provenance, solver=f"{provenance.solver}, in 17 bits"),
            )
        except GuaranteeViolated:
            problem = problem.with_mesh(mesh)
            margin = 2 * margin if bounds.epsilon is None else 2 * max(margin, _slope_margin(mesh, bounds.epsilon))
    return PointDesign(problem, bounds, prove_bound=False).mechanism()


def _slope_margin(mesh: Mesh, epsilon: float) -> float:
    """The share of ε that rounding control values by a relative 2^-16 each can use up, where neighbours are like them.

    A slope is a sum of neighbours with factors that add up to at most twice the degree along each axis, divided by the
    side of the cell.
    """
    steepest = 2 * mesh.degree * float(np.hypot.reduce(1 / mesh.sides, axis=1).max())
    return 2 * ROUNDING_MARGIN * steepest / epsilon


def _tighten(problem: Problem, bounds: Bounds, margin: float) -> Bounds | None:
    """Bounds tightened by a relative margin; None where that costs too much, or is impossible."""
    epsilon_loss = 0.0
    if bounds.epsilon is not None:
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        positive = exponents[(exponents > 0) & np.isfinite(exponents)]
        epsilon_loss = margin / float(positive.min()) if positive.size else 0.0
        if epsilon_loss > MAX_EPSILON_LOSS:
            return None
    tighter = bounds.tightened(epsilon=epsilon_loss, distortion=2 * margin, cost=2 * margin)
    return None if (tighter.problem_distortion or 0.0) > max_distortion(problem) else tighter


def design_records(
    writer: FleetWriter, members: Iterable[Member], executor: Executor, progress: ProgressCallback | None
) -> dict[bytes, RecordLocation]:
    """The locations of these people's records, by the hash of the name; those that do not exist yet are designed.

    Raises:
        SolveFailed: there is no mechanism for some people; the records of the others are kept for the next call.
    """
    listed = list(members)
    locations = {member.name: writer.find(member.name, member.prior) for member in listed}
    jobs = {
        job.key: job
        for job in (PersonJob(str(writer.folder), writer.shared_hash, member) for member in listed)
        if locations[job.member.name] is None
    }
    done, total, started = len(locations) - len(jobs), len(locations), monotonic()
    failures: list[str] = []
    with closing(executor.run(remaining_tasks(jobs.values(), ()))) as results:
        for key, result in results:
            name = jobs[key].member.name
            if isinstance(result, str):
                failures.append(result)
            else:
                require_owner(result, name_hash(name))
                locations[name] = writer.append(result)
            done += 1
            if progress is not None:
                seconds, message = monotonic() - started, f"{done} of {total} people"
                progress(Progress(job="fleet", done=done, total=total, seconds=seconds, message=message))
    if failures:
        raise SolveFailed(
            f"{len(failures)} of {total} people have no mechanism; for the first: {failures[0]}. "
            "The others are kept in the folder: change the bounds, or leave those people out"
        )
    return {name_hash(name): location for name, location in locations.items() if location is not None}

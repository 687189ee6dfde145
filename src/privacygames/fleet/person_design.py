"""Designing people's mechanisms: the job for a few people, and the distribution of such jobs over an executor."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import cast

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import PointPrior, Prior
from privacygames.canonical import digest_of
from privacygames.designer import design_bounds
from privacygames.errors import GuaranteeViolated, Infeasible, PrivacyGamesError, SolveFailed
from privacygames.fleet.packed_weights import round_weights
from privacygames.fleet.people_input import Member
from privacygames.fleet.person_record import encode_person, name_hash, relabel_record, statement_of
from privacygames.fleet.point_record import encode_point_person
from privacygames.fleet.records import prior_digest, require_cells
from privacygames.fleet.shared_problem import SharedPoints, SharedProblem, load_shared
from privacygames.fleet.snapshot import RecordLocation
from privacygames.fleet.writer import FleetWriter
from privacygames.jobs import ENTRIES_PER_BATCH, Executor, ProcessExecutor, SerialExecutor, batches, remaining_tasks
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
class PeopleJob:
    """The job of designing mechanisms for a few people, on any machine that sees the fleet's folder.

    Attributes:
        folder: the folder that the shared file is read from.
        shared_hash: SHA-256 of the shared file: a worker that sees another one designs nothing.
        members: the people.
    """

    folder: str
    shared_hash: str
    members: tuple[Member, ...]

    @cached_property
    def key(self) -> str:
        """The same for the same people, priors and shared file."""
        priors = [(member.name, prior_digest(member.prior)) for member in self.members]
        return digest_of("people", self.shared_hash, priors)[:32]

    def run(self) -> list[bytes | str]:
        """For each person the record, or why there is none."""
        try:
            shared = load_shared(self.shared_hash, Path(self.folder))
        except PrivacyGamesError as error:
            return [_reason(error)] * len(self.members)
        if isinstance(shared, SharedPoints):
            return [_design_points(member, shared) for member in self.members]
        return _design_cells(self.members, require_cells(shared))


def _reason(error: PrivacyGamesError) -> str:
    return f"{type(error).__name__}: {error}"


def _design_points(member: Member, shared: SharedPoints) -> bytes | str:
    prior = cast("PointPrior", member.prior)
    try:
        mechanism = design_packable_points(shared.problem.with_prior(prior), shared.bounds)
        return encode_point_person(member.name, mechanism, member.details, shared)
    except PrivacyGamesError as error:
        return _reason(error)


def _design_cells(members: Sequence[Member], shared: SharedProblem) -> list[bytes | str]:
    space = shared.problem.space
    problems = [shared.problem.with_prior(Prior(space, cast("FloatArray", member.prior))) for member in members]
    results: list[bytes | str] = []
    for member, problem, mechanism in zip(members, problems, design_packable(problems, shared.bounds), strict=True):
        if isinstance(mechanism, PrivacyGamesError):
            results.append(_reason(mechanism))
            continue
        record = encode_person(member.name, mechanism, member.details)
        stored = statement_of(record, shared)
        same = np.array_equal(stored.weights, mechanism.weights) and np.array_equal(
            stored.prior, problem.prior.probabilities
        )
        results.append(record if same else "GuaranteeViolated: a record is not of the mechanism that was certified")
    return results


def design_packable(problems: Sequence[Problem], bounds: Bounds) -> list[Mechanism | PrivacyGamesError]:
    """Optimal mechanisms rounded to 17 significant bits; with all bits, where rounding would break a guarantee.

    Args:
        problems: problems that differ in the prior only.
        bounds: what each mechanism guarantees.

    Returns:
        For each problem the mechanism, or why there is none.
    """
    designs: dict[int, Mechanism | PrivacyGamesError] = {}
    for margin in (ROUNDING_MARGIN, 4 * ROUNDING_MARGIN):
        optimal: dict[int, Mechanism] = {}
        tighter = _tighten(problems[0], bounds, margin)
        for number, problem in enumerate(problems):
            if tighter is None or number in designs or not _is_possible(problem, tighter):
                continue
            design = _design(problem, tighter)
            if isinstance(design, Mechanism):
                optimal[number] = design
            else:
                designs[number] = design
        designs |= _certify_rounded(problems, bounds, optimal)
    return [designs.get(number) or _design(problem, bounds) for number, problem in enumerate(problems)]


def _design(problem: Problem, bounds: Bounds) -> Mechanism | PrivacyGamesError:
    try:
        return design_bounds(problem, bounds)
    except PrivacyGamesError as error:
        return error


def _certify_rounded(
    problems: Sequence[Problem], bounds: Bounds, optimal: dict[int, Mechanism]
) -> dict[int, Mechanism]:
    """The rounded mechanisms that keep the guarantees, by the numbers of their problems; all are rounded together."""
    if not optimal:
        return {}
    rounded = round_weights(np.concatenate([mechanism.weights for mechanism in optimal.values()]))
    certified = {}
    for (number, mechanism), weights in zip(optimal.items(), np.split(rounded, len(optimal)), strict=True):
        origin = f"{mechanism.provenance.solver}, in 17 bits"
        with suppress(GuaranteeViolated):
            certified[number] = certify(problems[number], bounds, weights, origin=origin)
    return certified


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
    """Bounds tightened by a relative margin, whatever the prior; None where that costs too much."""
    epsilon_loss = 0.0
    if bounds.epsilon is not None:
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        positive = exponents[(exponents > 0) & np.isfinite(exponents)]
        epsilon_loss = margin / float(positive.min()) if positive.size else 0.0
        if epsilon_loss > MAX_EPSILON_LOSS:
            return None
    return bounds.tightened(epsilon=epsilon_loss, distortion=2 * margin, cost=2 * margin)


def _is_possible(problem: Problem, bounds: Bounds) -> bool:
    """Whether the bounds, with their margin, ask for no more distortion than there can be."""
    return bounds.problem_distortion is None or bounds.problem_distortion <= max_distortion(problem)


def design_records(
    writer: FleetWriter, members: Iterable[Member], executor: Executor, progress: ProgressCallback | None
) -> dict[bytes, RecordLocation]:
    """The locations of these people's records, by the hash of the name; those that do not exist yet are designed.

    People with equal priors get the same mechanism, which is designed once.

    Raises:
        SolveFailed: there is no mechanism for some people; the records of the others are kept for the next call.
    """
    listed = list(members)
    locations = {member.name: writer.find(member.name, member.prior) for member in listed}
    by_prior: dict[str, list[Member]] = {}
    for member in listed:
        if locations[member.name] is None:
            by_prior.setdefault(prior_digest(member.prior), []).append(member)
    groups = {group[0].name: group for group in by_prior.values()}
    jobs = {job.key: job for job in _divide(writer, [group[0] for group in groups.values()])}
    # Processes of this machine run this very release; what others return, and meshes, are checked on the record.
    own = isinstance(executor, SerialExecutor | ProcessExecutor) and isinstance(writer.shared, SharedProblem)
    total = len(locations)
    done, started = total - sum(map(len, groups.values())), monotonic()
    failures: list[str] = []
    with closing(executor.run(remaining_tasks(jobs.values(), ()))) as results:
        for key, designed in results:
            for first, result in zip(jobs[key].members, designed, strict=True):
                for member in groups[first.name]:
                    if isinstance(result, str):
                        failures.append(result)
                    elif member is first:
                        locations[member.name] = writer.append(result, member.name, certified=own)
                    else:
                        record = relabel_record(result, member.name, member.details)
                        locations[member.name] = writer.append(record, member.name, certified=True)
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


def _divide(writer: FleetWriter, members: Sequence[Member]) -> Iterator[PeopleJob]:
    """Jobs for these people: several in one where their designs take little time."""
    shared = writer.shared
    entries = ENTRIES_PER_BATCH  # a design for points, whose meshes are refined, fills a batch
    if not isinstance(shared, SharedPoints):
        n, m = require_cells(shared).problem.shape
        entries = n * n * m
    for batch in batches([entries] * len(members)):
        yield PeopleJob(str(writer.folder), writer.shared_hash, tuple(members[batch]))

"""Designing people's mechanisms: the job for one person, and the distribution of such jobs over an executor."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np

from privacygames.arrays import content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.designer import design_bounds
from privacygames.errors import GuaranteeViolated, PrivacyGamesError, SolveFailed
from privacygames.fleet.packed_weights import round_weights
from privacygames.fleet.people_input import Member
from privacygames.fleet.person_record import encode_person, name_hash, require_owner
from privacygames.fleet.shared_problem import load_shared
from privacygames.fleet.snapshot import RecordLocation
from privacygames.fleet.writer import FleetWriter
from privacygames.jobs import Executor, remaining_tasks
from privacygames.mechanism import Mechanism, certify
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
        probabilities = content_hash(self.member.probabilities)
        return digest_of("person", self.shared_hash, self.member.name, probabilities)[:32]

    def run(self) -> bytes | str:
        """The record, or why there is none."""
        try:
            shared = load_shared(self.shared_hash, Path(self.folder))
            prior = Prior(shared.problem.space, self.member.probabilities)
            mechanism = design_packable(shared.problem.with_prior(prior), shared.bounds)
        except PrivacyGamesError as error:
            return f"{type(error).__name__}: {error}"
        details = {"visits": self.member.visits, "prior_from": self.member.prior_from}
        return encode_person(self.member.name, mechanism, details)


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
    locations = {member.name: writer.find(member.name, member.probabilities) for member in listed}
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

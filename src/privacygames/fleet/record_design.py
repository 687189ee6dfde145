"""The work of designing one person's mechanism, and handing it out for many."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np

from privacygames.arrays import content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.designer import design_bounds
from privacygames.errors import GuaranteeViolated, PrivacyGamesError, SolveFailed
from privacygames.fleet.generation import Place
from privacygames.fleet.packing import rounded
from privacygames.fleet.people_input import Member
from privacygames.fleet.person_record import record_of, require_owner
from privacygames.fleet.record_log import RecordLog
from privacygames.fleet.records import name_hash
from privacygames.fleet.shared_data import shared_with
from privacygames.jobs import Executor, unfinished
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, max_distortion
from privacygames.progress import Progress, ProgressCallback

ROOM = 2.0**-15
"""By how much, relatively, ratios are designed below their bounds, so that they survive being rounded to 17 bits."""

MOST_ROOM = 0.01
"""Where more than this share of ε would have to be given up, weights are kept in full instead."""


@dataclass(frozen=True, eq=False)
class PersonTask:
    """The work of designing one person's mechanism.

    Attributes:
        folder: where the shared part is read.
        shared_hash: SHA-256 of its bytes: a worker that sees others designs nothing.
        member: for whom.
    """

    folder: str
    shared_hash: str
    member: Member

    @cached_property
    def key(self) -> str:
        """The same for the same person, prior and promises."""
        probabilities = content_hash(self.member.probabilities)
        return digest_of("person", self.shared_hash, self.member.name, probabilities)[:32]

    def run(self) -> bytes | str:
        """The record, or why there is none."""
        try:
            shared = shared_with(self.shared_hash, Path(self.folder))
            prior = Prior(shared.problem.space, self.member.probabilities)
            mechanism = packable(shared.problem.with_prior(prior), shared.bounds)
        except PrivacyGamesError as error:
            return f"{type(error).__name__}: {error}"
        about = {"visits": self.member.visits, "prior_from": self.member.prior_from}
        return record_of(self.member.name, mechanism, about)


def packable(problem: Problem, bounds: Bounds) -> Mechanism:
    """A mechanism whose weights have 17 significant bits, if one near the best one keeps the bounds; else the best."""
    for room in (ROOM, 4 * ROOM):
        tighter = _with_room(problem, bounds, room)
        if tighter is None:
            break
        best = design_bounds(problem, tighter)
        try:
            weights = rounded(best.weights)
            return certify(problem, bounds, weights, origin=f"{best.certificate.provenance.solver}, in 17 bits")
        except GuaranteeViolated:
            continue
    return design_bounds(problem, bounds)


def _with_room(problem: Problem, bounds: Bounds, room: float) -> Bounds | None:
    """Bounds a little tighter; None where that would cost too much, or is not possible."""
    epsilon, distortion, limit = bounds.epsilon, bounds.distortion, bounds.cost_at_most
    if epsilon is not None:
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        positive = exponents[(exponents > 0) & np.isfinite(exponents)]
        share = room / float(positive.min()) if positive.size else 0.0
        if share > MOST_ROOM:
            return None
        epsilon *= 1 - share
    if distortion is not None:
        distortion *= 1 + 2 * room
        if distortion > max_distortion(problem):
            return None
    if limit is not None:
        limit *= 1 - 2 * room
    return replace(bounds, epsilon=epsilon, distortion=distortion, cost_at_most=limit)


def design_records(
    log: RecordLog, members: Iterable[Member], workers: Executor, progress: ProgressCallback | None
) -> dict[bytes, Place]:
    """Where the records of these people are, by the hash of the name; those that are not there are designed.

    Raises:
        SolveFailed: somebody has no mechanism; the records of the others stay, for the next call.
    """
    places = {each.name: log.place_of(each.name, each.probabilities) for each in members}
    tasks = {
        each.key: each
        for each in (PersonTask(str(log.folder), log.shared_hash, member) for member in members)
        if places[each.member.name] is None
    }
    done, started, troubles = len(places) - len(tasks), monotonic(), []
    with closing(workers.work(unfinished(tasks.values(), ()))) as results:
        for key, result in results:
            name = tasks[key].member.name
            if isinstance(result, str):
                troubles.append(result)
            else:
                require_owner(result, name_hash(name))
                places[name] = log.add(result)
            done += 1
            if progress is not None:
                message = f"{done} of {len(places)} people"
                progress(
                    Progress(job="fleet", done=done, total=len(places), seconds=monotonic() - started, message=message)
                )
    if troubles:
        raise SolveFailed(
            f"{len(troubles)} of {len(places)} people have no mechanism; for the first: {troubles[0]}. "
            "The others are kept in the folder: change the bounds, or leave those people out"
        )
    return {name_hash(name): place for name, place in places.items() if place is not None}

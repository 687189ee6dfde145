"""Designing a fleet: one task for each person, handed out, kept as soon as it is done, and gone on with."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from privacygames.arguments import is_whole, one_of
from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.designer import designed
from privacygames.errors import BrokenPromise, InvalidProblem, PrivacyGamesError, SolveFailed
from privacygames.events import Progress, Watcher
from privacygames.fleet.fleet import Fleet
from privacygames.fleet.packing import rounded
from privacygames.fleet.person_record import record_of
from privacygames.fleet.records import RecordLog
from privacygames.fleet.shared_part import DEFAULT, INDEX, RECORDS, Shared, shared_in
from privacygames.jobs import unfinished, workers_for
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Measure, Problem, max_distortion
from privacygames.spaces import Grid, Space
from privacygames.storage import held
from privacygames.traces import Visited

ROOM = 2.0**-15
"""By how much, relatively, ratios are designed below their bounds, so that they survive being rounded to 17 bits."""

MOST_ROOM = 0.01
"""Where more than this share of ε would have to be given up, weights are kept in full instead."""

LittleData = Literal["refuse", "pooled"]
"""What becomes of people with too few visits: an error, or everybody's prior."""


def design(
    people: Visited | Mapping[str, Problem] | Mapping[str, Prior],
    *,
    out: str | os.PathLike[str],
    grid: Grid | None = None,
    cost: Measure = "hamming",
    distance: Measure | None = None,
    distinguishability: Measure | None = None,
    observables: Space | None = None,
    epsilon: float | None = None,
    within: float | None = None,
    distortion: float | None = None,
    cost_at_most: float | None = None,
    worst_case: bool = False,
    smoothing: float = 0.0,
    fewest_visits: int = 1,
    little_data: LittleData = "refuse",
    default: Literal["none", "pooled"] = "none",
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Watcher | None = None,
) -> Fleet:
    """A mechanism for each of many people over one space, in a folder. Interrupted, the same call goes on.

    Args:
        people: visits (with ``grid``), or by each person's name her problem or her prior. Problems may differ in the
            prior only.
        out: the folder; people who are in it already, with the same prior and promises, are not designed again.
        grid: the cells, for visits.
        cost: as in :class:`privacygames.Problem`, for visits and priors.
        distance: likewise.
        distinguishability: likewise.
        observables: likewise.
        epsilon: as in :func:`privacygames.design`, for everybody.
        within: likewise.
        distortion: likewise.
        cost_at_most: likewise.
        worst_case: likewise.
        smoothing: added to every count, for visits.
        fewest_visits: how many visits somebody needs for a prior of her own.
        little_data: what becomes of people with fewer: ``"refuse"``, or the ``"pooled"`` prior of everybody.
        default: ``"pooled"`` designs one mechanism more, from the pooled prior, for people the fleet does not know.
        jobs: processes; by default one for each processor.
        scheduler: a Dask scheduler's address; its workers must see the same folder.
        progress: called after every design.

    Raises:
        SolveFailed: somebody has no mechanism; the others are kept.
    """
    bounds = Bounds(
        epsilon=epsilon, within=within, distortion=distortion, cost_at_most=cost_at_most, worst_case=worst_case
    )
    measures = {"cost": cost, "distance": distance, "distinguishability": distinguishability}
    given = _Given(people, grid, {**measures, "observables": observables}, smoothing)
    members = given.members(fewest_visits, little_data, default)
    folder = Path(out).absolute()  # workers may have another one
    shared = Shared(given.template(), bounds)
    shared.write(folder)
    tasks = {each.name: each for each in _tasks(members, folder, shared)}
    with held(folder / ".lock") as ours, RecordLog(folder / RECORDS) as log:
        if not ours:
            raise InvalidProblem(f"another process is designing the fleet in {folder}: wait for it")
        log.recover()
        _finish(tasks, log, workers_for(jobs, scheduler), progress)
        log.write_index(folder / INDEX, set(tasks))
    return Fleet(folder)


@dataclass(frozen=True)
class Member:
    """One person: her prior, how many visits it is from, and whether it is her own."""

    name: str
    probabilities: FloatArray
    visits: int | None
    prior_from: str


class _Given:
    """What the caller gave, as members and the problem they share."""

    def __init__(self, people: Any, grid: Grid | None, measures: dict[str, Any], smoothing: float) -> None:
        self.people, self.grid, self.measures, self.smoothing = people, grid, measures, smoothing
        if isinstance(people, Visited):
            if not isinstance(grid, Grid):
                raise InvalidProblem("visits need grid: the cells that people share")
        elif not isinstance(people, Mapping) or not people:
            raise InvalidProblem("a fleet is designed from visits, or from a mapping of names to problems or priors")
        elif not all(isinstance(name, str) and name for name in people):
            raise InvalidProblem("people of a fleet are called by texts that are not empty")
        if isinstance(people, Visited) and not people.users:
            raise InvalidProblem("there is nobody in the visits")

    def template(self) -> Problem:
        """The problem everybody has, but for the prior."""
        if isinstance(self.people, Visited):
            return Problem(Prior.uniform(self.grid or Grid(1, 1)), **self.measures)
        first: Problem | Prior = next(iter(self.people.values()))
        if isinstance(first, Prior):
            return Problem(Prior.uniform(first.space), **self.measures)
        return first.with_prior(Prior.uniform(first.space))

    def members(self, fewest: int, little_data: str, default: str) -> list[Member]:
        """Everybody, and the default if one is wanted."""
        one_of(little_data, ("refuse", "pooled"), "little_data")
        one_of(default, ("none", "pooled"), "default")
        if not is_whole(fewest):
            raise InvalidProblem("fewest_visits must be a whole number, 1 or more")
        found = list(
            self._from_visits(fewest, little_data) if isinstance(self.people, Visited) else self._from_mapping()
        )
        if default == "pooled":
            own = [each.probabilities for each in found if each.prior_from == "own"]
            if not own:
                raise InvalidProblem("nobody has a prior of her own: there is nobody to pool")
            pooled = np.mean(own, axis=0)
            found.append(Member(DEFAULT, pooled / pooled.sum(), None, "pooled"))
        return found

    def _from_visits(self, fewest: int, little_data: str) -> Iterator[Member]:
        grid = self.grid or Grid(1, 1)
        counts = {user: self.people.counts(grid, user) for user in self.people.users}
        few = [user for user, seen in counts.items() if seen.sum() < fewest]
        if few and little_data == "refuse":
            raise InvalidProblem(
                f"{len(few)} of {len(counts)} people have fewer than {fewest} visits in the grid: leave them out, or "
                "say little_data='pooled' to give them everybody's prior"
            )
        pooled = self.people.pooled(grid).probabilities if few else None
        for user, seen in counts.items():
            visits = int(seen.sum())
            if visits < fewest and pooled is not None:
                yield Member(user, pooled, visits, "pooled")
            else:
                prior = Prior.from_counts(grid, seen, smoothing=self.smoothing)
                yield Member(user, prior.probabilities, visits, "own")

    def _from_mapping(self) -> Iterator[Member]:
        template: Problem | None = None
        for name, each in self.people.items():
            if not isinstance(each, Prior | Problem):
                raise InvalidProblem("people must be given as problems or as priors")
            prior = each.prior if isinstance(each, Problem) else each
            if template is None:
                template, kind = self.template(), type(each)
            if type(each) is not kind or prior.space != template.space:
                raise InvalidProblem("people of a fleet must share one space: all problems, or all priors, over it")
            if isinstance(each, Problem) and each.with_prior(template.prior) != template:
                raise InvalidProblem("problems of a fleet may differ in the prior only")
            yield Member(name, prior.probabilities, None, "own")


@dataclass(frozen=True, eq=False)
class PersonTask:
    """The work of designing one person's mechanism; what everybody shares is read from the folder."""

    folder: str
    shared: str
    member: Member

    @property
    def name(self) -> str:
        """Whose."""
        return self.member.name

    @cached_property
    def key(self) -> str:
        """The same for the same prior and promises."""
        digest = sha256(repr((self.shared, self.name)).encode())
        digest.update(np.ascontiguousarray(self.member.probabilities).tobytes())
        return digest.hexdigest()[:32]

    def run(self) -> bytes | str:
        """The record, or why there is none."""
        shared = shared_in(self.folder)
        problem = shared.problem.with_prior(Prior(shared.problem.space, self.member.probabilities))
        try:
            mechanism = packable(problem, shared.bounds)
        except PrivacyGamesError as error:
            return f"{type(error).__name__}: {error}"
        about = {"visits": self.member.visits, "prior_from": self.member.prior_from}
        return record_of(self.name, self.key, mechanism, about)


def packable(problem: Problem, bounds: Bounds) -> Mechanism:
    """A mechanism whose weights have 17 significant bits, if one near the best one keeps the bounds; else the best."""
    for room in (ROOM, 4 * ROOM):
        tighter = _with_room(problem, bounds, room)
        if tighter is None:
            break
        found = designed(problem, tighter)
        try:
            weights = rounded(found.weights)
            return certify(problem, bounds, weights, origin=f"{found.certificate.provenance.solver}, in 17 bits")
        except BrokenPromise:
            continue
    return designed(problem, bounds)


def _with_room(problem: Problem, bounds: Bounds, room: float) -> Bounds | None:
    """Bounds a little tighter; None where that would cost too much, or is not possible."""
    epsilon, distortion, limit = bounds.epsilon, bounds.distortion, bounds.cost_at_most
    if epsilon is not None:
        exponents = bounds.exponents(problem.distinguishability)
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


def _tasks(members: list[Member], folder: Path, shared: Shared) -> Iterator[PersonTask]:
    for member in members:
        yield PersonTask(str(folder), shared.digest, member)


def _finish(tasks: dict[str, PersonTask], log: RecordLog, workers: Any, progress: Watcher | None) -> None:
    """Do what is left; whoever cannot be served is told of at the end, when the others are kept."""
    known = [str(header.get("key")) for header, _, _ in log.found.values()]
    left = unfinished(tasks.values(), known)
    done, started, troubles = len(tasks) - len(left), monotonic(), []
    with closing(workers.work(left)) as finished:
        for _, result in finished:
            if isinstance(result, str):
                troubles.append(result)
            else:
                log.add(result)
            done += 1
            if progress is not None:
                message = f"{done} of {len(tasks)} people"
                progress(
                    Progress(job="fleet", done=done, total=len(tasks), seconds=monotonic() - started, message=message)
                )
    if troubles:
        raise SolveFailed(
            f"{len(troubles)} of {len(tasks)} people have no mechanism; for the first: {troubles[0]}. "
            "The others are kept in the folder: change the bounds, or leave those people out"
        )

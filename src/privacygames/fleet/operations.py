"""Who is in a fleet: people are designed for, added, updated and removed, each by its own verb; nobody is lost.

Each verb holds the folder's lock, appends or rewrites records, and replaces the index last. Interrupted, the fleet is
what it was; the same call goes on.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from privacygames.errors import InvalidProblem, UnknownLabel
from privacygames.fleet.fleet import Fleet
from privacygames.fleet.generation import Place, Places
from privacygames.fleet.people_input import LittleData, Member, PeopleGiven, PeopleInput, pooled, template_of
from privacygames.fleet.person_record import about_in, prior_in
from privacygames.fleet.record_design import design_records
from privacygames.fleet.record_log import RecordLog, changing
from privacygames.fleet.records import header_in, name_hash
from privacygames.fleet.shared_data import DEFAULT, Shared
from privacygames.jobs import executor_for
from privacygames.problem import Bounds, Measure
from privacygames.progress import ProgressCallback
from privacygames.solvers import solving_on
from privacygames.spaces import Grid, Space
from privacygames.validation import as_list, require_choice

Folder = str | os.PathLike[str]
"""A fleet, or the path of its folder."""


def design(
    people: PeopleInput,
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
    device: str | None = None,
    progress: ProgressCallback | None = None,
) -> Fleet:
    """A mechanism for each of many people over one space, in a folder. Interrupted, the same call goes on.

    Args:
        people: visits (with ``grid``), or by each person's name a problem or a prior. Problems may differ in the
            prior only.
        out: the folder. Of a fleet that is there already, with the same promises, whoever has the same prior is not
            designed again; new people are added and others updated, and nobody may be missing (:func:`remove`).
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
        fewest_visits: how many visits somebody needs for a prior of their own.
        little_data: what becomes of people with fewer: ``"refuse"``, or the ``"pooled"`` prior of everybody.
        default: ``"pooled"`` designs one mechanism more, from the pooled prior, for people the fleet does not know;
            ``"none"`` designs none, and leaves one that is there.
        jobs: processes; by default one for each processor.
        scheduler: a Dask scheduler's address; its workers must see the same folder.
        device: where this machine's processes solve: "host", or "cuda" for a GPU that they share; by default a GPU
            where there is one and it pays.
        progress: called after every design.

    Raises:
        SolveFailed: somebody has no mechanism; the others are kept.
        InvalidProblem: the fleet that is there has people who are not given, and would be lost.
    """
    bounds = Bounds(
        epsilon=epsilon, within=within, distortion=distortion, cost_at_most=cost_at_most, worst_case=worst_case
    )
    measures = {"cost": cost, "distance": distance, "distinguishability": distinguishability}
    template = template_of(people, grid, {**measures, "observables": observables})
    members = PeopleGiven(people, template, smoothing).members(fewest_visits, little_data, default)
    workers = executor_for(jobs, scheduler)
    folder = Path(out).absolute()  # workers may have another one
    folder.mkdir(parents=True, exist_ok=True)
    with solving_on(device), changing(folder) as log:
        log.share(Shared(template, bounds))
        lost = len(set(log.places) - {name_hash(each.name) for each in members} - {name_hash(DEFAULT)})
        if lost:
            raise InvalidProblem(
                f"{lost} of the {_people(log.places)} people of the fleet in {folder} are not among those given, and "
                "would be lost: use fleet.add for new people, fleet.remove for those who are to go, or another folder"
            )
        log.commit({**log.places, **design_records(log, members, workers, progress)})
    return Fleet(folder)


def add(
    fleet: Folder,
    people: PeopleInput,
    *,
    smoothing: float = 0.0,
    fewest_visits: int = 1,
    little_data: LittleData = "refuse",
    jobs: int | None = None,
    scheduler: str | None = None,
    device: str | None = None,
    progress: ProgressCallback | None = None,
) -> Fleet:
    """The fleet with more people. Nobody else's mechanism changes; interrupted, the same call goes on.

    Args:
        fleet: the fleet, or its folder.
        people: who is new, as in :func:`design`.
        smoothing: as in :func:`design`.
        fewest_visits: as in :func:`design`.
        little_data: as in :func:`design`; pooled are the people given.
        jobs: as in :func:`design`.
        scheduler: as in :func:`design`.
        device: as in :func:`design`.
        progress: as in :func:`design`.

    Raises:
        InvalidProblem: somebody is in the fleet already, with another prior.
    """
    workers = executor_for(jobs, scheduler)
    with solving_on(device), changing(_folder(fleet)) as log:
        members = _members(log, people, smoothing, fewest_visits, little_data)
        known = [each for each in members if name_hash(each.name) in log.places]
        other = sum(log.place_of(each.name, each.probabilities) is None for each in known)
        if other:
            raise InvalidProblem(
                f"{other} of {len(members)} people are in the fleet already, with another prior: use fleet.update"
            )
        log.commit({**log.places, **design_records(log, members, workers, progress)})
    return Fleet(log.folder)


def update(
    fleet: Folder,
    people: PeopleInput,
    *,
    smoothing: float = 0.0,
    fewest_visits: int = 1,
    little_data: LittleData = "refuse",
    jobs: int | None = None,
    scheduler: str | None = None,
    device: str | None = None,
    progress: ProgressCallback | None = None,
) -> Fleet:
    """The fleet with other priors of some people, whose mechanisms are designed anew. Nobody else's changes.

    The previous records are not counted any more; :func:`compact` takes them out of the file.

    Args:
        fleet: the fleet, or its folder.
        people: who is in the fleet and has another prior now, as in :func:`design`.
        smoothing: as in :func:`design`.
        fewest_visits: as in :func:`design`.
        little_data: as in :func:`design`; pooled are the people given.
        jobs: as in :func:`design`.
        scheduler: as in :func:`design`.
        device: as in :func:`design`.
        progress: as in :func:`design`.

    Raises:
        UnknownLabel: somebody is not in the fleet.
    """
    workers = executor_for(jobs, scheduler)
    with solving_on(device), changing(_folder(fleet)) as log:
        members = _members(log, people, smoothing, fewest_visits, little_data)
        _require_known(log.places, [each.name for each in members], "use fleet.add")
        log.commit({**log.places, **design_records(log, members, workers, progress)})
    return Fleet(log.folder)


def remove(
    fleet: Folder,
    names: Iterable[str],
    *,
    pooled_priors: Literal["redesign", "keep"] = "redesign",
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Fleet:
    """The fleet without some people: no byte of its folder is theirs any more.

    The folder's files are written anew; killed meanwhile, the same call finishes that. What a file system, a backup or
    another copy still has of the old ones is beyond this library.

    Args:
        fleet: the fleet, or its folder.
        names: who is to go.
        pooled_priors: the pooled prior (of the default, and of people with little data) has a share of everybody's.
            ``"redesign"`` pools the own priors of those who stay, and designs these mechanisms anew; ``"keep"`` keeps
            them, and with them that share.
        jobs: as in :func:`design`.
        progress: called after every design.

    Raises:
        UnknownLabel: somebody is not in the fleet; then nobody is removed.
    """
    require_choice(pooled_priors, ("redesign", "keep"), "pooled_priors")
    leaving = [names] if isinstance(names, str) else as_list(names, "names")
    workers = executor_for(jobs, None)
    with changing(_folder(fleet)) as log:
        _require_fleet(log)
        left = [name for name in leaving if not (isinstance(name, str) and name_hash(name) in log.left_out)]
        _require_known(log.places, left, "nobody was removed")
        hashes = {name_hash(name) for name in left}
        staying = {hashed: place for hashed, place in log.places.items() if hashed not in hashes}
        members = _pooled_again(log, staying) if pooled_priors == "redesign" and hashes else []
        log.rewrite({**staying, **design_records(log, members, workers, progress)})
    return Fleet(log.folder)


def compact(fleet: Folder) -> Fleet:
    """The fleet as it is, in files with nothing else: without records that were updated, or never counted."""
    with changing(_folder(fleet)) as log:
        _require_fleet(log)
        log.rewrite(log.places)
    return Fleet(log.folder)


def _folder(fleet: Folder) -> Path:
    return Path(fleet).absolute()


def _members(log: RecordLog, people: PeopleInput, smoothing: float, fewest: int, little_data: str) -> list[Member]:
    _require_fleet(log)
    return PeopleGiven(people, log.shared.problem, smoothing).members(fewest, little_data)


def _require_fleet(log: RecordLog) -> None:
    if log.committed is None:
        raise InvalidProblem(f"there is no finished fleet in {log.folder}: design it first")


def _require_known(places: Places, names: Iterable[str], advice: str) -> None:
    asked = list(names)
    strangers = sum(not isinstance(name, str) or name == DEFAULT or name_hash(name) not in places for name in asked)
    if strangers:
        raise UnknownLabel(f"{strangers} of {len(asked)} people are not in this fleet: {advice}")


def _people(places: Places) -> int:
    return len(places) - (name_hash(DEFAULT) in places)


def _pooled_again(log: RecordLog, staying: dict[bytes, Place]) -> list[Member]:
    """Whoever has the pooled prior, with that of those who stay."""
    own, others = [], []
    for place in staying.values():
        payload = log.read(place)
        visits, prior_from = about_in(payload)
        if prior_from == "pooled":
            others.append((str(header_in(payload)[0]["name"]), visits))
        else:
            own.append(prior_in(payload, log.shared))
    if not others:
        return []
    if not own:
        raise InvalidProblem(
            "nobody with a prior of their own would be left to pool: remove the whole folder, or say "
            "pooled_priors='keep', which keeps the share of those who go"
        )
    prior = pooled(own)
    return [Member(name, prior, visits, "pooled") for name, visits in others]

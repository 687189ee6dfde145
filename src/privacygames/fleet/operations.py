"""Creating and changing a fleet: design, add, update, remove, compact.

Each function locks the folder, appends or rewrites records, and replaces the index last. Interrupted, it leaves the
fleet as it was; calling it again continues with the records that were finished.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Required, TypedDict, Unpack, overload

from numpy.typing import ArrayLike

from privacygames.beliefs import PointPrior, Prior
from privacygames.errors import Field, InvalidProblem, UnknownLabel
from privacygames.fleet.fleet import Fleet
from privacygames.fleet.opening import AnyFleet, open_fleet
from privacygames.fleet.people_input import LittleData, Member, PeopleInput, members_from, pool_priors, shared_from
from privacygames.fleet.person_design import design_records
from privacygames.fleet.person_record import header_of, name_hash, prior_source_of
from privacygames.fleet.point_fleet import PointFleet
from privacygames.fleet.records import AnyPrior, prior_in
from privacygames.fleet.shared_problem import DEFAULT_NAME, SharedPoints
from privacygames.fleet.snapshot import RecordLocation, RecordLocations
from privacygames.fleet.writer import FleetWriter, open_writer
from privacygames.jobs import Scheduler, executor_for
from privacygames.points import Mesh, PointProblem
from privacygames.problem import Bounds, BoundsArguments, Measure, Problem
from privacygames.progress import ProgressCallback
from privacygames.solvers import temporary_device
from privacygames.spaces import Area, Grid, Space
from privacygames.traces import VisitData, Visits
from privacygames.validation import as_list, require_choice

Folder = str | os.PathLike[str]
"""A fleet, or the path of its folder; a fleet whose secrets are points is given as a :class:`PointFleet`."""

CellFolder = Fleet | str | Path
"""A fleet whose secrets are cells or labels, or the path of its folder."""

PointPeople = Mapping[str, PointPrior] | Mapping[str, PointProblem]
CellPeople = VisitData | Mapping[str, Prior] | Mapping[str, Problem]


class MemberArguments(TypedDict, total=False):
    """The keyword arguments of :func:`add` and :func:`update`."""

    smoothing: float
    min_visits: int
    little_data: LittleData
    jobs: int | None
    scheduler: Scheduler | None
    device: str | None
    progress: ProgressCallback | None


class FleetArguments(MemberArguments, BoundsArguments, total=False):
    """The keyword arguments of :func:`design`."""

    out: Required[str | os.PathLike[str]]
    grid: Grid | None
    cost: Measure | None
    distance: Measure | None
    distinguishability: Measure | None
    observables: Space | ArrayLike | None
    mesh: Mesh | int | None
    default: Literal["none", "pooled"]


@overload
def design(people: PointPeople, **arguments: Unpack[FleetArguments]) -> PointFleet: ...
@overload
def design(people: Visits, *, area: Area, **arguments: Unpack[FleetArguments]) -> PointFleet: ...
@overload
def design(people: CellPeople, **arguments: Unpack[FleetArguments]) -> Fleet: ...
def design(
    people: PeopleInput,
    *,
    out: str | os.PathLike[str],
    grid: Grid | None = None,
    area: Area | None = None,
    cost: Measure | None = None,
    distance: Measure | None = None,
    distinguishability: Measure | None = None,
    observables: Space | ArrayLike | None = None,
    mesh: Mesh | int | None = None,
    smoothing: float = 0.0,
    min_visits: int = 1,
    little_data: LittleData = "refuse",
    default: Literal["none", "pooled"] = "none",
    jobs: int | None = None,
    scheduler: Scheduler | None = None,
    device: str | None = None,
    progress: ProgressCallback | None = None,
    **bounds: Unpack[BoundsArguments],
) -> AnyFleet:
    """Design a mechanism for each of many people over one space, and store them in a folder.

    If it is interrupted, the same call continues.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> priors = {"ann": pg.Prior(ages, [0.5, 0.25, 0.25]), "bob": pg.Prior.uniform(ages)}
    >>> pg.fleet.design(priors, out="fleet", epsilon=0.1, jobs=1)
    Fleet(2 people, 3 secrets, 3 observables)
    >>> line = pg.Interval(0.0, 4.0)
    >>> visits = {"ann": pg.PointPrior(line, [1.0, 3.0]), "bob": pg.PointPrior(line, [2.0])}
    >>> pg.fleet.design(visits, out="point fleet", observables=[1.0, 2.0, 3.0], epsilon=0.5, jobs=1)
    PointFleet(2 people, Interval(0 to 4), 3 outputs)

    Args:
        people: visits (with ``grid`` or ``area``), or problems or priors by name, between cells and labels or between
            points. Problems may differ in the prior only.
        out: the folder. If it holds a fleet with the same guarantees, people whose prior is unchanged are not designed
            again, new people are added and others updated. Nobody in it may be missing from ``people``
            (:func:`remove`).
        grid: the cells, for visits.
        area: the area whose points are secrets, for visits; visits outside are left out.
        cost: as in :class:`privacygames.Problem` (``"hamming"`` by default) or, by name, in
            :class:`privacygames.PointProblem`, for visits and priors.
        distance: as in :class:`privacygames.Problem` or :class:`privacygames.PointProblem`, for visits and priors.
        distinguishability: as in :class:`privacygames.Problem`, for visits and priors.
        observables: as in :class:`privacygames.Problem`, for visits and priors; for points, what may be released, as
            ``outputs`` of :class:`privacygames.PointProblem`.
        mesh: for points: the mesh of everybody, or the number of control points up to which each person's own is
            refined.
        smoothing: added to every count, for visits to cells.
        min_visits: the number of visits that a person needs for a prior of their own.
        little_data: what to do about people with fewer visits: ``"refuse"`` raises an error, ``"pooled"`` gives them
            the mean of everybody's priors.
        default: ``"pooled"`` designs one more mechanism from the pooled prior, for people who are not in the fleet;
            ``"none"`` designs none, and keeps one that exists.
        jobs: number of processes; by default one for each processor.
        scheduler: a Dask cluster whose workers see the same folder: the address of its scheduler, a
            ``dask.distributed.Client``, or a cluster such as ``LocalCluster``. ``jobs`` does not count then.
        device: where this machine's processes solve: ``"host"``, or ``"cuda"`` for a GPU that they share. By default a
            GPU is used where there is one and it is faster.
        progress: called after every design.
        **bounds: ``epsilon``, ``distortion`` (a number) and the others, as in :func:`privacygames.design`, for
            everybody.

    Raises:
        SolveFailed: there is no mechanism for some people; the records of the others are kept.
        InvalidProblem: the folder holds a fleet with people who were not given, and would be lost.
    """
    guarantees = Bounds(**bounds)
    if guarantees.named_adversaries:
        raise InvalidProblem(
            Field("distortion"),
            " is one number here: the guarantees of a fleet are about each person's own prior",
        )
    if grid is not None and area is not None:
        raise InvalidProblem("give grid, for secrets that are cells, or area, for secrets that are points: not both")
    measures = {"cost": cost, "distance": distance, "distinguishability": distinguishability}
    shared = shared_from(
        people, grid if area is None else area, guarantees, {**measures, "observables": observables, "mesh": mesh}
    )
    members = members_from(
        people, shared, smoothing=smoothing, min_visits=min_visits, little_data=little_data, default=default
    )
    executor = executor_for(jobs, scheduler)
    folder = Path(out).absolute()  # workers may have another working directory
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_device(device), open_writer(folder) as writer:
        writer.set_shared(shared)
        given = {name_hash(member.name) for member in members} | {name_hash(DEFAULT_NAME)}
        lost = len(set(writer.locations) - given)
        if lost:
            raise InvalidProblem(
                f"{lost} of the {_count_people(writer.locations)} people of the fleet in {folder} are not among those "
                "given, and would be lost: use fleet.add for new people, fleet.remove for those who are to go, or "
                "another folder"
            )
        writer.commit({**writer.locations, **design_records(writer, members, executor, progress)})
    return open_fleet(folder)


@overload
def add(fleet: PointFleet, people: PointPeople | Visits, **arguments: Unpack[MemberArguments]) -> PointFleet: ...
@overload
def add(fleet: CellFolder, people: CellPeople, **arguments: Unpack[MemberArguments]) -> Fleet: ...
def add(
    fleet: Folder,
    people: PeopleInput,
    *,
    smoothing: float = 0.0,
    min_visits: int = 1,
    little_data: LittleData = "refuse",
    jobs: int | None = None,
    scheduler: Scheduler | None = None,
    device: str | None = None,
    progress: ProgressCallback | None = None,
) -> AnyFleet:
    """Add people to a fleet. Nobody else's mechanism changes; if it is interrupted, the same call continues.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> fleet = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="grown", epsilon=0.1, jobs=1)
    >>> fleet = pg.fleet.add(fleet, {"bob": pg.Prior(ages, [0.5, 0.25, 0.25])}, jobs=1)
    >>> "bob" in fleet
    True

    Args:
        fleet: the fleet, or its folder.
        people: the new people, as in :func:`design`.
        smoothing: as in :func:`design`.
        min_visits: as in :func:`design`.
        little_data: as in :func:`design`; the people given are pooled.
        jobs: as in :func:`design`.
        scheduler: as in :func:`design`.
        device: as in :func:`design`.
        progress: as in :func:`design`.

    Raises:
        InvalidProblem: somebody is in the fleet already, with another prior.
    """
    executor = executor_for(jobs, scheduler)
    with temporary_device(device), _writer(fleet) as writer:
        members = _members(writer, people, smoothing, min_visits, little_data)
        known = [member for member in members if name_hash(member.name) in writer.locations]
        changed = sum(writer.find(member.name, member.prior) is None for member in known)
        if changed:
            raise InvalidProblem(
                f"{changed} of {len(members)} people are in the fleet already, with another prior: use fleet.update"
            )
        writer.commit({**writer.locations, **design_records(writer, members, executor, progress)})
    return open_fleet(writer.folder)


@overload
def update(fleet: PointFleet, people: PointPeople | Visits, **arguments: Unpack[MemberArguments]) -> PointFleet: ...
@overload
def update(fleet: CellFolder, people: CellPeople, **arguments: Unpack[MemberArguments]) -> Fleet: ...
def update(
    fleet: Folder,
    people: PeopleInput,
    *,
    smoothing: float = 0.0,
    min_visits: int = 1,
    little_data: LittleData = "refuse",
    jobs: int | None = None,
    scheduler: Scheduler | None = None,
    device: str | None = None,
    progress: ProgressCallback | None = None,
) -> AnyFleet:
    """Give some people of a fleet other priors, and design their mechanisms again. Nobody else's mechanism changes.

    The previous records stay in the file, where nothing refers to them, until :func:`compact` is called.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> fleet = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="updated", epsilon=0.1, jobs=1)
    >>> fleet = pg.fleet.update(fleet, {"ann": pg.Prior(ages, [0.5, 0.25, 0.25])}, jobs=1)
    >>> fleet["ann"].problem.prior.probabilities
    array([0.5 , 0.25, 0.25])

    Args:
        fleet: the fleet, or its folder.
        people: people who are in the fleet, with their new priors, as in :func:`design`.
        smoothing: as in :func:`design`.
        min_visits: as in :func:`design`.
        little_data: as in :func:`design`; the people given are pooled.
        jobs: as in :func:`design`.
        scheduler: as in :func:`design`.
        device: as in :func:`design`.
        progress: as in :func:`design`.

    Raises:
        UnknownLabel: somebody is not in the fleet.
    """
    executor = executor_for(jobs, scheduler)
    with temporary_device(device), _writer(fleet) as writer:
        members = _members(writer, people, smoothing, min_visits, little_data)
        _require_known(writer.locations, [member.name for member in members], "use fleet.add")
        writer.commit({**writer.locations, **design_records(writer, members, executor, progress)})
    return open_fleet(writer.folder)


class RemoveArguments(TypedDict, total=False):
    """The keyword arguments of :func:`remove`."""

    pooled_priors: Literal["redesign", "keep"]
    jobs: int | None
    progress: ProgressCallback | None


@overload
def remove(fleet: PointFleet, names: Iterable[str], **arguments: Unpack[RemoveArguments]) -> PointFleet: ...
@overload
def remove(fleet: CellFolder, names: Iterable[str], **arguments: Unpack[RemoveArguments]) -> Fleet: ...
def remove(
    fleet: Folder,
    names: Iterable[str],
    *,
    pooled_priors: Literal["redesign", "keep"] = "redesign",
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
) -> AnyFleet:
    """Remove people from a fleet: afterwards no byte of its folder is about them.

    The folder's files are written anew. If that is interrupted, the same call finishes it. Old bytes that a file
    system, a backup or another copy still holds are beyond this library.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> priors = {name: pg.Prior.uniform(ages) for name in ("ann", "bob")}
    >>> fleet = pg.fleet.design(priors, out="reduced", epsilon=0.1, jobs=1)
    >>> list(pg.fleet.remove(fleet, ["bob"], jobs=1))
    ['ann']

    Args:
        fleet: the fleet, or its folder.
        names: the people to remove.
        pooled_priors: the pooled prior (of the default mechanism, and of people with little data) depends on
            everybody's prior. ``"redesign"`` pools the priors of those who stay and designs these mechanisms again;
            ``"keep"`` keeps them, and with them the share of those who are removed.
        jobs: as in :func:`design`.
        progress: called after every design.

    Raises:
        UnknownLabel: somebody is not in the fleet; then nobody is removed.
    """
    require_choice(pooled_priors, ("redesign", "keep"), "pooled_priors")
    leaving = [names] if isinstance(names, str) else as_list(names, "names")
    executor = executor_for(jobs, None)
    with _writer(fleet) as writer:
        left = [name for name in leaving if not (isinstance(name, str) and name_hash(name) in writer.removed_before)]
        _require_known(writer.locations, left, "nobody was removed")
        hashes = {name_hash(name) for name in left}
        staying = {hashed: location for hashed, location in writer.locations.items() if hashed not in hashes}
        members = _pool_again(writer, staying) if pooled_priors == "redesign" and hashes else []
        writer.rewrite({**staying, **design_records(writer, members, executor, progress)})
    return open_fleet(writer.folder)


@overload
def compact(fleet: PointFleet) -> PointFleet: ...
@overload
def compact(fleet: CellFolder) -> Fleet: ...
def compact(fleet: Folder) -> AnyFleet:
    """Rewrite a fleet's files without records that were updated or never committed. Nobody's mechanism changes.

    >>> prior = pg.Prior.uniform(pg.Numbers([20, 30, 40]))
    >>> fleet = pg.fleet.design({"ann": prior}, out="compacted", epsilon=0.1, jobs=1)
    >>> pg.fleet.compact(fleet).digest == fleet.digest
    True

    Args:
        fleet: the fleet, or its folder.
    """
    with _writer(fleet) as writer:
        writer.rewrite(writer.locations)
    return open_fleet(writer.folder)


@contextmanager
def _writer(fleet: Folder) -> Iterator[FleetWriter]:
    """A writer for the folder of a finished fleet."""
    with open_writer(Path(fleet).absolute()) as writer:
        if writer.committed is None:
            raise InvalidProblem(f"there is no finished fleet in {writer.folder}: design it first")
        if isinstance(writer.shared, SharedPoints) and not isinstance(fleet, PointFleet):
            raise InvalidProblem(
                f"the secrets of the fleet in {writer.folder} are points: give PointFleet(folder), not its path"
            )
        yield writer


def _members(
    writer: FleetWriter, people: PeopleInput, smoothing: float, min_visits: int, little_data: str
) -> list[Member]:
    return members_from(people, writer.shared, smoothing=smoothing, min_visits=min_visits, little_data=little_data)


def _require_known(locations: RecordLocations, names: Iterable[str], advice: str) -> None:
    listed = list(names)
    unknown = sum(
        not isinstance(name, str) or name == DEFAULT_NAME or name_hash(name) not in locations for name in listed
    )
    if unknown:
        raise UnknownLabel(f"{unknown} of {len(listed)} people are not in this fleet: {advice}")


def _count_people(locations: RecordLocations) -> int:
    return len(locations) - (name_hash(DEFAULT_NAME) in locations)


def _pool_again(writer: FleetWriter, staying: dict[bytes, RecordLocation]) -> list[Member]:
    """The people with the pooled prior, among those who stay, with the pooled prior of those who stay."""
    own_priors: list[AnyPrior] = []
    with_pooled_prior: list[tuple[str, int | None]] = []
    for location in staying.values():
        record = writer.read(location)
        visits, source = prior_source_of(record)
        if source == "pooled":
            with_pooled_prior.append((str(header_of(record)["name"]), visits))
        else:
            own_priors.append(prior_in(record, writer.shared))
    if not with_pooled_prior:
        return []
    if not own_priors:
        raise InvalidProblem(
            "nobody with a prior of their own would be left to pool: remove the whole folder, or say "
            "pooled_priors='keep', which keeps the share of those who go"
        )
    prior = pool_priors(own_priors)
    return [Member(name, prior, visits, "pooled") for name, visits in with_pooled_prior]

"""The people of a fleet, from what the caller gives: visits, or problems or priors by name."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privacygames.beliefs import PointPrior, Prior
from privacygames.errors import Field, InvalidProblem
from privacygames.fleet.records import AnyPrior, require_cells, require_points
from privacygames.fleet.shared_problem import DEFAULT_NAME, AnyShared, SharedPoints, SharedProblem
from privacygames.points import PointProblem
from privacygames.problem import Bounds, Problem
from privacygames.spaces import Area, Grid, Region, Space
from privacygames.traces import VisitData, Visits
from privacygames.validation import is_integer, require_choice

LittleData = Literal["refuse", "pooled"]
"""What to do about people with too few visits: raise an error, or give them the pooled prior."""

PeopleInput = (
    VisitData | Mapping[str, Problem] | Mapping[str, Prior] | Mapping[str, PointProblem] | Mapping[str, PointPrior]
)
"""The people to design a fleet for."""


@dataclass(frozen=True)
class Member:
    """One person and their prior.

    Attributes:
        name: the person; empty for the default mechanism.
        prior: the probabilities of cells or labels, or weighted points.
        visits: the number of visits it is from; None where it is not from visits.
        prior_from: ``"own"`` or ``"pooled"``.
    """

    name: str
    prior: AnyPrior
    visits: int | None
    prior_from: str

    @property
    def details(self) -> dict[str, Any]:
        """Where the prior is from, as plain values for the header of a record."""
        return {"visits": self.visits, "prior_from": self.prior_from}


def members_from(
    people: PeopleInput,
    shared: AnyShared,
    *,
    smoothing: float = 0.0,
    min_visits: int = 1,
    little_data: str = "refuse",
    default: str = "none",
) -> list[Member]:
    """The people given, as members.

    Args:
        people: visits, or problems or priors by name.
        shared: what all of them share.
        smoothing: added to every count, for visits to the cells of a grid.
        min_visits: the number of visits that a person needs for a prior of their own.
        little_data: what to do about people with fewer visits.
        default: ``"pooled"`` adds a member with the pooled prior, for unknown people; ``"none"`` adds nobody.
    """
    require_people_input(people)
    require_choice(little_data, ("refuse", "pooled"), "little_data")
    require_choice(default, ("none", "pooled"), "default")
    if not is_integer(min_visits):
        raise InvalidProblem("min_visits must be a whole number, 1 or more")
    if isinstance(people, VisitData) and isinstance(shared, SharedPoints):
        if smoothing:
            raise InvalidProblem(Field("smoothing"), " is added to the counts of cells; visits as they are have none")
        priors = list(_points_of(people, shared.problem.region))
        own_points = [each.prior for each in priors if each.prior is not None]
        members = _with_pooled(priors, lambda: pool_priors(own_points), min_visits, little_data, "area")
    elif isinstance(people, VisitData):
        grid = require_cells(shared).problem.space
        if not isinstance(grid, Grid):
            raise InvalidProblem("the secrets of this fleet are not the cells of a grid: give priors, not visits")
        priors = list(_counts_of(people, grid, smoothing))
        members = _with_pooled(priors, lambda: people.pooled_prior(grid).probabilities, min_visits, little_data, "grid")
    else:
        members = list(_members_from_mapping(people, shared))
    if default == "pooled":
        own = [member.prior for member in members if member.prior_from == "own"]
        members.append(Member(DEFAULT_NAME, pool_priors(own), None, "pooled"))
    return members


def require_people_input(people: Any) -> None:
    """Raise unless these are people, at least one of them, with usable names."""
    if isinstance(people, VisitData):
        if not people.users:
            raise InvalidProblem("there is nobody in the visits")
    elif not isinstance(people, Mapping) or not people:
        raise InvalidProblem("a fleet is designed from visits, or from a mapping of names to problems or priors")
    names = people.users if isinstance(people, VisitData) else people
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidProblem("people of a fleet are called by texts that are not empty")


def shared_from(people: Any, places: Grid | Region | None, bounds: Bounds, measures: dict[str, Any]) -> AnyShared:
    """What the people of a new fleet share.

    Args:
        people: visits, or problems or priors by name.
        places: for visits, the cells of a grid, or the area whose points are secrets.
        bounds: the guarantees of every mechanism.
        measures: the arguments of a problem besides the prior, by name; None where they were not given.
    """
    require_people_input(people)
    given = {name: value for name, value in measures.items() if value is not None}
    if isinstance(people, VisitData):
        if isinstance(places, Grid):
            return SharedProblem(Problem(Prior.uniform(places), **_for_cells(given)), bounds)
        if isinstance(places, Area):
            return _shared_points(places, given, bounds)
        raise InvalidProblem("visits need grid, the cells that people share, or area, whose points are secrets")
    first = next(iter(people.values()))
    if isinstance(first, PointPrior):
        return _shared_points(first.region, given, bounds)
    if isinstance(first, PointProblem):
        return SharedPoints.of(first, bounds)
    if isinstance(first, Prior):
        return SharedProblem(Problem(Prior.uniform(first.space), **_for_cells(given)), bounds)
    if isinstance(first, Problem):
        return SharedProblem(first.with_prior(Prior.uniform(first.space)), bounds)
    raise InvalidProblem("people must be given as problems or as priors")


def pool_priors(own: list[AnyPrior]) -> AnyPrior:
    """The mean of people's own priors: the prior for people of whom nothing is known."""
    if not own:
        raise InvalidProblem("nobody has a prior of their own: there is nobody to pool")
    points = [prior for prior in own if isinstance(prior, PointPrior)]
    if points:
        xy, shares = (np.concatenate([getattr(prior, name) for prior in points]) for name in ("xy", "probabilities"))
        return PointPrior.from_projected(points[0].region, xy, shares)
    mean = np.mean(np.array(own), axis=0)
    return np.asarray(mean / mean.sum())


def _for_cells(given: dict[str, Any]) -> dict[str, Any]:
    if "mesh" in given:
        raise InvalidProblem(Field("mesh"), " is for secrets that are points")
    observables = given.get("observables")
    if observables is not None and not isinstance(observables, Space):
        raise InvalidProblem(Field("observables"), " must be a Space where secrets are cells or labels")
    return {"cost": "hamming", **given}


def _shared_points(region: Region, given: dict[str, Any], bounds: Bounds) -> SharedPoints:
    """What people share who are given by their points."""
    if "distinguishability" in given:
        raise InvalidProblem(Field("distinguishability"), " is the distance between points: leave it out")
    measures = dict(given)
    outputs = measures.pop("observables", None)
    if outputs is None:
        raise InvalidProblem(
            Field("observables"), " must say what may be released for points: an array of points, Places or a Grid"
        )
    return SharedPoints.of(PointProblem(PointPrior.uniform(region, points=1), outputs, **measures), bounds)


@dataclass(frozen=True)
class _VisitPrior:
    """A person's prior from visits: None where there are none."""

    name: str
    visits: int
    prior: AnyPrior | None


def _with_pooled(
    priors: list[_VisitPrior], pooled: Callable[[], AnyPrior], min_visits: int, little_data: str, where: str
) -> list[Member]:
    """People as members: those with too few visits are refused, or get the mean of all people's priors."""
    below_minimum = sum(each.visits < min_visits for each in priors)
    if below_minimum and little_data == "refuse":
        raise InvalidProblem(
            f"{below_minimum} of {len(priors)} people have fewer than {min_visits} visits in the {where}: leave them "
            "out, or say little_data='pooled' to give them the pooled prior"
        )
    shared_prior = pooled() if below_minimum else None
    members = []
    for each in priors:
        if each.prior is not None and each.visits >= min_visits:
            members.append(Member(each.name, each.prior, each.visits, "own"))
        elif shared_prior is not None:
            members.append(Member(each.name, shared_prior, each.visits, "pooled"))
    return members


def _points_of(people: VisitData, region: Region) -> Iterator[_VisitPrior]:
    """Everybody's visits as they are."""
    if not isinstance(people, Visits):
        raise InvalidProblem("visits that are counted per cell have no points: give visits with positions, or priors")
    if not isinstance(region, Area):
        raise InvalidProblem("the secrets of this fleet are not the points of an area: give priors, not visits")
    for user in people.users:
        points = people.points(user, region)
        yield _VisitPrior(user, len(points), PointPrior(region, points) if len(points) else None)


def _counts_of(people: VisitData, grid: Grid, smoothing: float) -> Iterator[_VisitPrior]:
    """Everybody's visits to the cells of a grid."""
    for user in people.users:
        counts = people.counts(grid, user)
        prior = Prior.from_counts(grid, counts, smoothing=smoothing).probabilities if counts.any() else None
        yield _VisitPrior(user, int(counts.sum()), prior)


def _members_from_mapping(people: Mapping[str, Any], shared: AnyShared) -> Iterator[Member]:
    kind = type(next(iter(people.values())))
    expected = (PointProblem, PointPrior) if isinstance(shared, SharedPoints) else (Problem, Prior)
    for name, person in people.items():
        if not isinstance(person, (Problem, Prior, PointProblem, PointPrior)):
            raise InvalidProblem("people must be given as problems or as priors")
        if type(person) is not kind or not isinstance(person, expected):
            raise InvalidProblem("people of a fleet must share one space: all problems, or all priors, over it")
        yield Member(name, _prior_of(person, shared), None, "own")


def _prior_of(person: Problem | Prior | PointProblem | PointPrior, shared: AnyShared) -> AnyPrior:
    """The prior of a person, whose problem may differ from what all share in the prior only."""
    apart = InvalidProblem("people of a fleet must share one space: all problems, or all priors, over it")
    differs = InvalidProblem("problems of a fleet may differ in the prior only")
    if isinstance(person, PointProblem | PointPrior):
        points = require_points(shared).problem
        prior = person.prior if isinstance(person, PointProblem) else person
        if prior.region != points.region:
            raise apart
        if isinstance(person, PointProblem) and person.with_prior(points.prior) != points:
            raise differs
        return prior
    cells = require_cells(shared).problem
    given = person.prior if isinstance(person, Problem) else person
    if given.space != cells.space:
        raise apart
    if isinstance(person, Problem) and person.with_prior(cells.prior) != cells:
        raise differs
    return given.probabilities

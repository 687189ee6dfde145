"""The people of a fleet, from what the caller gives: visits, or problems or priors by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.fleet.shared_problem import DEFAULT_NAME
from privacygames.problem import Problem
from privacygames.spaces import Grid
from privacygames.traces import VisitData
from privacygames.validation import is_integer, require_choice

LittleData = Literal["refuse", "pooled"]
"""What to do about people with too few visits: raise an error, or give them the pooled prior."""

PeopleInput = VisitData | Mapping[str, Problem] | Mapping[str, Prior]
"""The people to design a fleet for."""


@dataclass(frozen=True)
class Member:
    """One person and their prior.

    Attributes:
        name: the person; empty for the default mechanism.
        probabilities: the prior.
        visits: the number of visits it is from; None where it is not from visits.
        prior_from: ``"own"`` or ``"pooled"``.
    """

    name: str
    probabilities: FloatArray
    visits: int | None
    prior_from: str


def members_from(
    people: PeopleInput,
    problem: Problem,
    *,
    smoothing: float = 0.0,
    min_visits: int = 1,
    little_data: str = "refuse",
    default: str = "none",
) -> list[Member]:
    """The people given, as members.

    Args:
        people: visits, or problems or priors by name.
        problem: what all of them share; its prior is ignored.
        smoothing: added to every count, for visits.
        min_visits: the number of visits that a person needs for a prior of their own.
        little_data: what to do about people with fewer visits.
        default: ``"pooled"`` adds a member with the pooled prior, for unknown people; ``"none"`` adds nobody.
    """
    require_people_input(people)
    if isinstance(people, VisitData) and not isinstance(problem.space, Grid):
        raise InvalidProblem("the secrets of this fleet are not the cells of a grid: give priors, not visits")
    require_choice(little_data, ("refuse", "pooled"), "little_data")
    require_choice(default, ("none", "pooled"), "default")
    if not is_integer(min_visits):
        raise InvalidProblem("min_visits must be a whole number, 1 or more")
    if isinstance(people, VisitData):
        members = list(_members_from_visits(people, problem.space, smoothing, min_visits, little_data))
    else:
        members = list(_members_from_mapping(people, problem))
    if default == "pooled":
        own = [member.probabilities for member in members if member.prior_from == "own"]
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


def problem_from(people: Any, grid: Grid | None, measures: dict[str, Any]) -> Problem:
    """The problem that the people of a new fleet share, with a uniform prior."""
    require_people_input(people)
    if isinstance(people, VisitData):
        if not isinstance(grid, Grid):
            raise InvalidProblem("visits need grid: the cells that people share")
        return Problem(Prior.uniform(grid), **measures)
    first = next(iter(people.values()))
    if isinstance(first, Prior):
        return Problem(Prior.uniform(first.space), **measures)
    if isinstance(first, Problem):
        return first.with_prior(Prior.uniform(first.space))
    raise InvalidProblem("people must be given as problems or as priors")


def pool_priors(own: list[FloatArray]) -> FloatArray:
    """The mean of people's own priors: the prior for people of whom nothing is known."""
    if not own:
        raise InvalidProblem("nobody has a prior of their own: there is nobody to pool")
    mean = np.mean(own, axis=0)
    return np.asarray(mean / mean.sum())


def _members_from_visits(
    people: VisitData, grid: Any, smoothing: float, min_visits: int, little_data: str
) -> Iterator[Member]:
    counts = {user: people.counts(grid, user) for user in people.users}
    below_minimum = sum(own_counts.sum() < min_visits for own_counts in counts.values())
    if below_minimum and little_data == "refuse":
        raise InvalidProblem(
            f"{below_minimum} of {len(counts)} people have fewer than {min_visits} visits in the grid: leave them out, "
            "or say little_data='pooled' to give them the pooled prior"
        )
    pooled = people.pooled_prior(grid).probabilities if below_minimum else None
    for user, own_counts in counts.items():
        visits = int(own_counts.sum())
        if visits < min_visits and pooled is not None:
            yield Member(user, pooled, visits, "pooled")
        else:
            prior = Prior.from_counts(grid, own_counts, smoothing=smoothing)
            yield Member(user, prior.probabilities, visits, "own")


def _members_from_mapping(people: Mapping[str, Problem] | Mapping[str, Prior], shared: Problem) -> Iterator[Member]:
    kind = type(next(iter(people.values())))
    for name, person in people.items():
        if not isinstance(person, Prior | Problem):
            raise InvalidProblem("people must be given as problems or as priors")
        prior = person.prior if isinstance(person, Problem) else person
        if type(person) is not kind or prior.space != shared.space:
            raise InvalidProblem("people of a fleet must share one space: all problems, or all priors, over it")
        if isinstance(person, Problem) and person.with_prior(shared.prior) != shared:
            raise InvalidProblem("problems of a fleet may differ in the prior only")
        yield Member(name, prior.probabilities, None, "own")

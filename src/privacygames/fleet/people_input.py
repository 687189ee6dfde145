"""Who is to be in a fleet, from what the caller gave: visits, problems or priors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.fleet.shared_data import DEFAULT
from privacygames.problem import Problem
from privacygames.spaces import Grid
from privacygames.traces import VisitData
from privacygames.validation import is_integer, require_choice

LittleData = Literal["refuse", "pooled"]
"""What becomes of people with too few visits: an error, or everybody's prior."""

PeopleInput = VisitData | Mapping[str, Problem] | Mapping[str, Prior]
"""Whom a fleet is designed for."""


@dataclass(frozen=True)
class Member:
    """One person: the prior, how many visits it is from, and whether it is their own."""

    name: str
    probabilities: FloatArray
    visits: int | None
    prior_from: str


class PeopleGiven:
    """What the caller gave, as members over the problem they share.

    Args:
        people: visits, or problems or priors by name.
        template: the problem everybody has, but for the prior.
        smoothing: added to every count, for visits.
    """

    def __init__(self, people: Any, template: Problem, smoothing: float = 0.0) -> None:
        check_people(people)
        self.people, self.template, self.smoothing = people, template, smoothing
        if isinstance(people, VisitData) and not isinstance(template.space, Grid):
            raise InvalidProblem("the secrets of this fleet are not the cells of a grid: give priors, not visits")

    def members(self, fewest: int, little_data: str, default: str = "none") -> list[Member]:
        """Everybody, and the default if one is wanted."""
        require_choice(little_data, ("refuse", "pooled"), "little_data")
        require_choice(default, ("none", "pooled"), "default")
        if not is_integer(fewest):
            raise InvalidProblem("fewest_visits must be a whole number, 1 or more")
        members = list(
            self._from_visits(fewest, little_data) if isinstance(self.people, VisitData) else self._from_mapping()
        )
        if default == "pooled":
            own = [each.probabilities for each in members if each.prior_from == "own"]
            members.append(Member(DEFAULT, pooled(own), None, "pooled"))
        return members

    def _from_visits(self, fewest: int, little_data: str) -> Iterator[Member]:
        grid = self.template.space
        counts = {user: self.people.counts(grid, user) for user in self.people.users}
        few = [user for user, seen in counts.items() if seen.sum() < fewest]
        if few and little_data == "refuse":
            raise InvalidProblem(
                f"{len(few)} of {len(counts)} people have fewer than {fewest} visits in the grid: leave them out, or "
                "say little_data='pooled' to give them everybody's prior"
            )
        everybody = self.people.pooled_prior(grid).probabilities if few else None
        for user, seen in counts.items():
            visits = int(seen.sum())
            if visits < fewest and everybody is not None:
                yield Member(user, everybody, visits, "pooled")
            else:
                prior = Prior.from_counts(grid, seen, smoothing=self.smoothing)
                yield Member(user, prior.probabilities, visits, "own")

    def _from_mapping(self) -> Iterator[Member]:
        kind = type(next(iter(self.people.values())))
        for name, each in self.people.items():
            if not isinstance(each, Prior | Problem):
                raise InvalidProblem("people must be given as problems or as priors")
            prior = each.prior if isinstance(each, Problem) else each
            if type(each) is not kind or prior.space != self.template.space:
                raise InvalidProblem("people of a fleet must share one space: all problems, or all priors, over it")
            if isinstance(each, Problem) and each.with_prior(self.template.prior) != self.template:
                raise InvalidProblem("problems of a fleet may differ in the prior only")
            yield Member(name, prior.probabilities, None, "own")


def check_people(people: Any) -> None:
    """Refuse what nobody can be designed for."""
    if isinstance(people, VisitData):
        if not people.users:
            raise InvalidProblem("there is nobody in the visits")
    elif not isinstance(people, Mapping) or not people:
        raise InvalidProblem("a fleet is designed from visits, or from a mapping of names to problems or priors")
    names = people.users if isinstance(people, VisitData) else people
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidProblem("people of a fleet are called by texts that are not empty")


def template_of(people: Any, grid: Grid | None, measures: dict[str, Any]) -> Problem:
    """The problem that people of a new fleet have, but for the prior."""
    check_people(people)
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


def pooled(own: list[FloatArray]) -> FloatArray:
    """The prior for people of whom nothing is known: the mean of everybody's own."""
    if not own:
        raise InvalidProblem("nobody has a prior of their own: there is nobody to pool")
    mean = np.mean(own, axis=0)
    return np.asarray(mean / mean.sum())

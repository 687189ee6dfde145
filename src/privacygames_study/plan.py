"""The plan of a study: the tasks that one person needs.

Scenarios 1 and 2 and appendix C set d_m by the distortion privacy of a differential mechanism. If that mechanism has
a d_m already, it *is* an optimal joint mechanism, since it satisfies both bounds at the least cost that ε alone
allows, and none is designed. A plan therefore names further tasks once the first ones are finished.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TypedDict

from privacygames.beliefs import Prior
from privacygames.jobs import Measurements, number
from privacygames.problem import Problem, max_distortion
from privacygames_study.people import Person, coarsen, informed_prior
from privacygames_study.settings import Settings
from privacygames_study.tasks import DONE, Task, privacy_column

Results = Mapping[str, Measurements]
"""Finished results by the key of their task."""

MAX_DISTORTION_SHARE = 1 - 1e-5
"""Largest d_m of a task, as a share of the largest possible: one centimetre per kilometre below it.

At the maximum the program has no interior, and only the reference solver, slow at the paper's size, can solve it.
"""


class Adversaries(TypedDict):
    """The better informed adversaries that attack every mechanism of a study."""

    strengths: tuple[float, ...]
    places: int


@dataclass(frozen=True)
class Comparison:
    """The bounds under which three mechanisms are compared: ε alone, d_m alone, and both.

    Attributes:
        epsilon: ε.
        distortion: d_m.
        share: position of d_m between the differential mechanism's privacy (0) and the largest possible (1); None if it
            was not chosen so.
        differential: the task of the mechanism for ε alone.
        reused: whether that is also the joint mechanism.
    """

    epsilon: float
    distortion: float
    share: float | None
    differential: Task
    reused: bool

    def tasks(self) -> dict[str, Task]:
        """The task of each kind of mechanism."""
        both = replace(self.differential, distortion=self.distortion)
        return {
            "differential": self.differential,
            "distortion": replace(both, epsilon=None),
            "joint": self.differential if self.reused else both,
        }


@dataclass(frozen=True)
class Plan:
    """The tasks of one person in a study."""

    person: Person
    settings: Settings

    @cached_property
    def most(self) -> float:
        """d_m^max, the largest distortion privacy of any mechanism."""
        return max_distortion(Problem(self.person.prior))

    @cached_property
    def coarse(self) -> Prior:
        """The prior on the grid of the approximations."""
        return coarsen(self.person.prior, most=self.settings.coarse_cells)

    def tasks(self, results: Results) -> Iterator[Task]:
        """Every task whose bounds follow from the results so far."""
        for part in self.settings.parts:
            yield from (self._differential_task(part, epsilon) for epsilon in self._epsilons(part))
            if part == "scenario-3":
                yield from (Task(self.person.prior, distortion=d_m, **self._adversaries()) for d_m in self.thresholds())
            for comparison in self.comparisons(part, results):
                if part == "approximation":
                    yield from (comparison.tasks()["joint"], self.exact_highs_task(comparison))
                    yield from (task for tasks in self.approximation_tasks(comparison).values() for task in tasks)
                elif part == "robust":
                    yield from (comparison.tasks()["distortion"], self.robust(comparison, results))
                else:
                    yield from comparison.tasks().values()

    def comparisons(self, part: str, results: Results) -> list[Comparison]:
        """The comparisons of a part that follow from the results so far."""
        comparisons = []
        for epsilon in self._epsilons(part):
            task = self._differential_task(part, epsilon)
            reached = _privacy(task, results)
            if reached is not None:
                comparisons += [
                    Comparison(epsilon, distortion, share, task, reused=reached >= distortion)
                    for distortion, share in self._distortions(part, reached)
                ]
        return comparisons

    def failed(self, part: str, results: Results) -> list[tuple[float, Measurements]]:
        """Each ε for which the design of the differential mechanism failed, so that there is no comparison."""
        designs = [(epsilon, results[self._differential_task(part, epsilon).key]) for epsilon in self._epsilons(part)]
        return [(epsilon, measured) for epsilon, measured in designs if measured["status"] != DONE]

    def thresholds(self) -> list[float]:
        """Scenario 3's d_m: multiples of the step, and last the largest possible."""
        step, last = self.settings.step, self.most * MAX_DISTORTION_SHARE
        return [*(step * count for count in range(1, ceil(last / step))), last] if last > 0 else []

    def exact_highs_task(self, comparison: Comparison) -> Task:
        """The exact joint design by HiGHS, to compare approximations with that only HiGHS can solve."""
        return replace(comparison.differential, distortion=comparison.distortion, solver="highs")

    def approximation_tasks(self, comparison: Comparison) -> dict[str, list[Task]]:
        """The approximations of a joint design: for each reading of appendix C, one with each radius.

        "secrets" leaves out ratio constraints between far secrets; "ratios" also those on an output and a far secret;
        "both" also the guess constraints on an output and a far estimate.
        """
        exact = replace(comparison.differential, distortion=comparison.distortion)
        readings = {
            "secrets": exact,
            "ratios": replace(exact, reach=True, all_guesses=True),
            "both": replace(exact, reach=True),
        }
        return {
            kind: [replace(task, radius=radius) for radius in self.settings.radii] for kind, task in readings.items()
        }

    def robust(self, comparison: Comparison, results: Results) -> Task:
        """The distortion mechanism that guarantees the differential mechanism's privacy against every adversary.

        The guarantees are feasible, at no more than the cost of the differential mechanism, which has them all.
        """
        measured = results[comparison.differential.key]
        guaranteed = tuple(
            (
                strength,
                min(
                    number(measured, privacy_column(strength)),
                    self._largest_distortion_against(strength) * MAX_DISTORTION_SHARE,
                ),
            )
            for strength in self.settings.strengths
        )
        return replace(comparison.tasks()["distortion"], promised=guaranteed)

    def _largest_distortion_against(self, strength: float) -> float:
        prior = informed_prior(self.person.prior, strength, self.settings.places)
        return max_distortion(Problem(prior))

    def expected(self) -> int:
        """An upper bound on the number of tasks."""
        settings, parts = self.settings, self.settings.parts
        count = len({epsilon for part in parts if part != "approximation" for epsilon in self._epsilons(part)})
        if {"scenario-1", "prior", "robust"} & set(parts):
            count += len(settings.epsilons)
        if "robust" in parts:
            count += len(settings.epsilons)
        if "scenario-2" in parts:
            count += 2 * len(settings.epsilons_2) * len(settings.shares)
        if "scenario-3" in parts:
            count += (1 + len(settings.epsilons_3)) * len(self.thresholds())
        if "approximation" in parts:
            count += 3 * (1 + len(settings.radii)) * len(settings.epsilons_approximation)
        return count

    def _epsilons(self, part: str) -> tuple[float, ...]:
        return {
            "scenario-1": self.settings.epsilons,
            "scenario-2": self.settings.epsilons_2,
            "scenario-3": self.settings.epsilons_3,
            "prior": self.settings.epsilons,
            "robust": self.settings.epsilons,
            "approximation": self.settings.epsilons_approximation,
        }[part]

    def _differential_task(self, part: str, epsilon: float) -> Task:
        if part == "approximation":
            return Task(self.coarse, epsilon=epsilon)
        return Task(self.person.prior, epsilon=epsilon, **self._adversaries())

    def _adversaries(self) -> Adversaries:
        return {"strengths": self.settings.strengths, "places": self.settings.places}

    def _distortions(self, part: str, reached: float) -> list[tuple[float, float | None]]:
        """The values of d_m with their shares, from the distortion privacy of the differential mechanism."""
        if part == "scenario-3":
            return [(distortion, None) for distortion in self.thresholds()]
        most = max_distortion(Problem(self.coarse)) if part == "approximation" else self.most
        shares = {"scenario-2": self.settings.shares, "approximation": (self.settings.share_approximation,)}
        between = [(share, reached + share * (most - reached)) for share in shares.get(part, (0.0,))]
        return [(min(distortion, most * MAX_DISTORTION_SHARE), share) for share, distortion in between]


def _privacy(task: Task, results: Results) -> float | None:
    measured = results.get(task.key)
    return number(measured, "privacy_km") if measured is not None and measured["status"] == DONE else None

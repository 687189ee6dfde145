"""The plan: which tasks a person's part in a study needs.

What a differential mechanism was found to give decides about others: scenarios 1 and 2 and appendix C set d_m by it.
And where it gives a d_m already, it *is* an optimal joint mechanism (it keeps both bounds, and costs the least that
keeping one of them can), so none is designed. A plan is therefore asked again once the tasks it named are finished.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TypedDict

from privacygames.beliefs import Prior
from privacygames.jobs import Measured, number
from privacygames.problem import Problem, max_distortion
from privacygames_study.people import Person, coarser, informed
from privacygames_study.settings import Settings
from privacygames_study.tasks import DONE, Task, against

Results = Mapping[str, Measured]
"""What is known so far, by the key of the task."""

TOP = 1 - 1e-5
"""How much of the largest distortion possible is asked for at most: a centimetre less than a kilometre.

At the very top the program has no inside, and only the reference solver, slow at the paper's size, can take it.
"""


class Adversaries(TypedDict):
    """The better informed adversaries every mechanism of a study is tried against."""

    strengths: tuple[float, ...]
    places: int


@dataclass(frozen=True)
class Setting:
    """Bounds to compare mechanisms under: ε alone, d_m alone, and both.

    Attributes:
        epsilon: ε.
        distortion: d_m.
        share: how far d_m is on the way from the differential mechanism's privacy to the largest, where that chose it.
        differential: the task of the mechanism for ε alone.
        reused: whether that is the joint mechanism, too.
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
    """What a person's part in a study takes."""

    person: Person
    settings: Settings

    @cached_property
    def most(self) -> float:
        """d_m^max: no mechanism gives more distortion privacy."""
        return max_distortion(Problem(self.person.prior))

    @cached_property
    def coarse(self) -> Prior:
        """The prior on the grid of the approximations."""
        return coarser(self.person.prior, most=self.settings.coarse_cells)

    def tasks(self, results: Results) -> Iterator[Task]:
        """Every task whose bounds are known, given what is known so far."""
        for part in self.settings.parts:
            yield from (self._differential(part, epsilon) for epsilon in self._epsilons(part))
            if part == "scenario-3":
                yield from (Task(self.person.prior, distortion=d_m, **self._adversaries()) for d_m in self.thresholds())
            for setting in self.compared(part, results):
                if part == "approximation":
                    yield from (setting.tasks()["joint"], self.written_out(setting))
                    yield from (task for tasks in self.pruned(setting).values() for task in tasks)
                elif part == "robust":
                    yield from (setting.tasks()["distortion"], self.robust(setting, results))
                else:
                    yield from setting.tasks().values()

    def compared(self, part: str, results: Results) -> list[Setting]:
        """The settings in which a part compares mechanisms, as far as they are known."""
        found = []
        for epsilon in self._epsilons(part):
            task = self._differential(part, epsilon)
            reached = _privacy(task, results)
            if reached is not None:
                found += [
                    Setting(epsilon, distortion, share, task, reused=reached >= distortion)
                    for distortion, share in self._distortions(part, reached)
                ]
        return found

    def failed(self, part: str, results: Results) -> list[tuple[float, Measured]]:
        """Each ε for which not even the differential mechanism was found, so that nothing can be compared with it."""
        found = [(epsilon, results[self._differential(part, epsilon).key]) for epsilon in self._epsilons(part)]
        return [(epsilon, measured) for epsilon, measured in found if measured["status"] != DONE]

    def thresholds(self) -> list[float]:
        """Scenario 3's d_m: multiples of the step, and last the largest possible."""
        step, last = self.settings.step, self.most * TOP
        return [*(step * count for count in range(1, ceil(last / step))), last] if last > 0 else []

    def written_out(self, setting: Setting) -> Task:
        """The exact joint design by HiGHS: what approximations that only HiGHS can solve are compared with."""
        return replace(setting.differential, distortion=setting.distortion, solver="highs")

    def pruned(self, setting: Setting) -> dict[str, list[Task]]:
        """The approximations of a joint design: for each reading of appendix C, one with each radius.

        Left out are ratio constraints between far secrets ("secrets"); also those about an observable and a far secret
        ("ratios"); and then also the guess constraints about an observable and a far estimate ("both").
        """
        exact = replace(setting.differential, distortion=setting.distortion)
        readings = {
            "secrets": exact,
            "ratios": replace(exact, reach=True, all_guesses=True),
            "both": replace(exact, reach=True),
        }
        return {
            kind: [replace(task, radius=radius) for radius in self.settings.radii] for kind, task in readings.items()
        }

    def robust(self, setting: Setting, results: Results) -> Task:
        """The distortion mechanism that promises every adversary what the differential one turned out to leave her.

        The differential mechanism keeps these promises, so they can be kept, and at no more than its cost.
        """
        found = results[setting.differential.key]
        promised = tuple(
            (strength, min(number(found, against(strength)), self._most_against(strength) * TOP))
            for strength in self.settings.strengths
        )
        return replace(setting.tasks()["distortion"], promised=promised)

    def _most_against(self, strength: float) -> float:
        prior = informed(self.person.prior, strength, self.settings.places)
        return max_distortion(Problem(prior))

    def expected(self) -> int:
        """At most so many tasks there will be."""
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

    def _differential(self, part: str, epsilon: float) -> Task:
        if part == "approximation":
            return Task(self.coarse, epsilon=epsilon)
        return Task(self.person.prior, epsilon=epsilon, **self._adversaries())

    def _adversaries(self) -> Adversaries:
        return {"strengths": self.settings.strengths, "places": self.settings.places}

    def _distortions(self, part: str, reached: float) -> list[tuple[float, float | None]]:
        """Which d_m to compare under, given what the differential mechanism gives; and which share of the way up."""
        if part == "scenario-3":
            return [(distortion, None) for distortion in self.thresholds()]
        most = max_distortion(Problem(self.coarse)) if part == "approximation" else self.most
        shares = {"scenario-2": self.settings.shares, "approximation": (self.settings.share_approximation,)}
        between = [(share, reached + share * (most - reached)) for share in shares.get(part, (0.0,))]
        return [(min(distortion, most * TOP), share) for share, distortion in between]


def _privacy(task: Task, results: Results) -> float | None:
    found = results.get(task.key)
    return number(found, "privacy_km") if found is not None and found["status"] == DONE else None

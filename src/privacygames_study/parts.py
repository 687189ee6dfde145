"""Each part of the paper's evaluation as a function from people to a table (columns: docs/how-to/study.md)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privacygames.jobs import Executor, Store, Table
from privacygames_study.people import Person
from privacygames_study.runner import compute
from privacygames_study.settings import Settings

PAPER = Settings()


def scenario_1(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """Differential mechanisms at each ε, and distortion and joint ones with the distortion privacy of these.

    >>> import privacygames_study as study
    >>> town = pg.Grid(columns=2, rows=1, width=2.0, height=1.0)
    >>> ada = study.Person("user 1", pg.Prior(town, [0.75, 0.25]), visits=4)
    >>> [row["reused"] for row in study.scenario_1([ada], epsilons=[0.6])]
    [False, False, True]
    """
    return _part("scenario-1", people, store, workers, epsilons=tuple(epsilons))


def scenario_2(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons_2,
    shares: Sequence[float] = PAPER.shares,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """The same with larger d_m, at shares of the way to the largest possible."""
    return _part("scenario-2", people, store, workers, epsilons_2=tuple(epsilons), shares=tuple(shares))


def scenario_3(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons_3,
    step: float = PAPER.step,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """ε and d_m chosen independently: each ε with each multiple of ``step`` km, and the largest d_m possible."""
    return _part("scenario-3", people, store, workers, epsilons_3=tuple(epsilons), step=step)


def effect_of_the_prior(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons,
    strengths: Sequence[float] = PAPER.strengths,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """Scenario 1's mechanisms against adversaries with more evidence on the most visited places."""
    return _part("prior", people, store, workers, epsilons=tuple(epsilons), strengths=tuple(strengths))


def approximation(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons_approximation,
    radii: Sequence[float] = PAPER.radii,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """Appendix C: constraints left out by distance; error, realised ε and time."""
    return _part("approximation", people, store, workers, epsilons_approximation=tuple(epsilons), radii=tuple(radii))


def robust(
    people: list[Person],
    *,
    epsilons: Sequence[float] = PAPER.epsilons,
    strengths: Sequence[float] = PAPER.strengths,
    store: Store | None = None,
    workers: Executor | None = None,
) -> Table:
    """Distortion mechanisms with guarantees against adversaries with more evidence: not in the paper.

    The guarantees are the differential mechanism's privacy against each of them; the table has their extra cost.
    """
    return _part("robust", people, store, workers, epsilons=tuple(epsilons), strengths=tuple(strengths))


def _part(name: str, people: list[Person], store: Store | None, workers: Executor | None, **values: Any) -> Table:
    settings = replace(PAPER, parts=(name,), **values)
    return compute(people, settings, store=store, workers=workers)[name]

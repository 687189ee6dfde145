"""What tests of releases share: a small street, a line of points, draws that are forced, and all that can come out."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

import privacygames as pg
from privacygames.releases import Budget, PointReleases, Preview, Releases
from privacygames.releases.policies import KEEP, RENEW
from support import Array, priors

STREET = pg.Grid(3, 1, 3.0, 1.0)
PROBLEM = pg.Problem(pg.Prior(STREET, [0.5, 0.3, 0.2]), cost="euclidean")
WALK = pg.Mobility(STREET, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
FIXED = pg.design(PROBLEM, epsilon=0.7)

LINE = pg.Interval(0.0, 4.0, unit="hours")
POINT_PROBLEM = pg.PointProblem(pg.PointPrior(LINE, [1.0, 3.0]), [1.0, 2.0, 3.0])
ON_LINE = pg.points.design(POINT_PROBLEM, epsilon=0.7, prove_bound=False)

KINDS = ["cells", "points"]
"""Sessions of a fixed mechanism with ε = 0.7: between cells, and between points."""


WITH_DELTA = ["cells with a delta", "points with a delta"]
"""The same, where a number as the budget is one with a delta, within the distance 1."""


def session(kind: str, **options: Any) -> Any:
    """A session of a kind, about a secret that does not change."""
    if kind in WITH_DELTA and "budget" in options:
        options["budget"] = Budget(options["budget"], delta=1e-6, within=1.0)
    if kind.startswith("cells"):
        return Releases(PROBLEM, pg.Mobility.still(STREET), **{"mechanism": FIXED, **options})
    return PointReleases(ON_LINE, **options)


SECRETS: dict[str, list[Any]] = {"cells": ["cell-0", "cell-1"], "points": [1.2345678, 2.7182818]}
SECRETS |= {kind: SECRETS[kind.partition(" ")[0]] for kind in WITH_DELTA}
"""Two secrets of each kind."""

ANSWERS: dict[str, list[Any]] = {"cells": list(STREET.labels), "points": [1.0, 2.0, 3.0]}
ANSWERS |= {kind: ANSWERS[kind.partition(" ")[0]] for kind in WITH_DELTA}
"""The outputs of each kind, by their indices."""


@st.composite
def chains(draw: st.DrawFn, size: int) -> Array:
    """Transition matrices, zeros included."""
    return np.array([draw(priors(size)) for _ in range(size)])


class Scripted:
    """A generator whose draws are chosen beforehand."""

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:
        assert size == 1
        value = self.values.pop(0)
        assert low <= value < high
        return np.array([value], dtype=dtype)


def scripted(*values: int) -> np.random.Generator:
    return cast("np.random.Generator", Scripted(*values))


def first_draw(mechanism: pg.Mechanism, secret: int, outcome: int) -> tuple[Fraction, int]:
    """The exact probability of an outcome, and the least draw that gives it."""
    row = [int(weight) for weight in mechanism.weights[secret]]
    return Fraction(row[outcome], 2**mechanism.bits), sum(row[:outcome])


def outcomes(preview: Preview, secret: int) -> Iterator[tuple[tuple[int, ...], Fraction, list[int]]]:
    """All that can come out of the next release: a name, its exact probability, and the draws that give it."""
    choice = preview.choice
    if choice is None:
        yield (-1,), Fraction(1), []
        return
    answers = range(choice.mechanism.weights.shape[1])
    if choice.test is None:
        for answer in answers:
            chance, draw = first_draw(choice.mechanism, secret, answer)
            yield (answer,), chance, [draw]
        return
    keep, kept_draw = first_draw(choice.test, secret, KEEP)
    yield (-2,), keep, [kept_draw]
    renew, renew_draw = first_draw(choice.test, secret, RENEW)
    for answer in answers:
        chance, draw = first_draw(choice.mechanism, secret, answer)
        yield (answer, -3), renew * chance, [renew_draw, draw]


def two_steps(
    make: Callable[[np.random.Generator], Releases], trace: tuple[int, int]
) -> dict[tuple[tuple[int, ...], ...], tuple[Fraction, tuple[Fraction, ...]]]:
    """Every sequence of two outcomes for a trace: its exact probability, and what was charged along it."""
    labels = [STREET.labels[place] for place in trace]
    found: dict[tuple[tuple[int, ...], ...], tuple[Fraction, tuple[Fraction, ...]]] = {}
    for first, chance, draws in outcomes(make(scripted()).preview(), trace[0]):
        if chance == 0:
            continue
        start = make(scripted(*draws))
        charged = start.release(labels[0])
        for second, then, more in outcomes(start.preview(), trace[1]):
            if then == 0:
                continue
            whole = make(scripted(*draws, *more))
            whole.release(labels[0])
            last = whole.release(labels[1])
            amounts = tuple(Fraction(whole.ledger.records()[at].charges[0]) for at in (0, 1))
            assert float(amounts[0]) == charged.epsilon
            assert float(amounts[1]) == last.epsilon
            found[first, second] = chance * then, amounts
    return found

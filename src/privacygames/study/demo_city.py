"""The demo: a small made-up city and one made-up resident, from visits to a certified, attacked mechanism."""

from dataclasses import dataclass

import numpy as np

from privacygames import attacks
from privacygames.analysis import Report, evaluate
from privacygames.attacks import Attack
from privacygames.beliefs import Prior
from privacygames.designer import design
from privacygames.mechanism import Mechanism
from privacygames.problem import Problem
from privacygames.spaces import Grid, Label

EPSILON = 1.2
DISTORTION = 1.3

# SYNTHETIC: places of an invented resident (km east, km north), how many visits, and how far they scatter.
PLACES = (
    (3.2, 1.5, 160, 0.35),
    (2.4, 3.9, 110, 0.35),
    (5.1, 2.6, 45, 0.7),
    (0.8, 0.9, 18, 0.5),
    (3.0, 2.6, 40, 1.4),
)


@dataclass(frozen=True)
class Demo:
    """Everything the demo made."""

    problem: Problem
    mechanism: Mechanism
    attack: Attack
    report: Report
    secret: Label


def synthetic_city() -> tuple[Grid, list[Label]]:
    """A 6.3 × 4.5 km city of 7 × 5 cells and the visits of one resident, the same every time."""
    city = Grid(columns=7, rows=5, width=6.3, height=4.5)
    random = np.random.default_rng(2015)
    points = np.concatenate([random.normal((x, y), spread, (count, 2)) for x, y, count, spread in PLACES])
    return city, city.cells(points, outside="drop")


def run() -> Demo:
    """Estimate the prior, design the joint mechanism, attack and measure it."""
    city, visits = synthetic_city()
    problem = Problem(Prior.from_visits(city, visits), cost="hamming", distance="euclidean")
    mechanism = design(problem, epsilon=EPSILON, distortion=DISTORTION)
    second = city.labels[int(problem.prior.probabilities.argsort()[-2])]  # where the resident works
    return Demo(problem, mechanism, attacks.optimal(mechanism, problem), evaluate(mechanism, problem), second)

"""What numbers count in: kilometres, years, shares of answers; known where a measure is one the space knows by name."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.problem import Problem
from privacygames.spaces import Space

UNTRUE, WRONG = "share of untrue answers", "share of wrong guesses"


@dataclass(frozen=True)
class Scale:
    """The scale of a measure: its name and unit, each empty where there is none."""

    name: str
    unit: str

    def amount(self, number: str, shares: str = "") -> str:
        """A number with its unit; where the measure is Hamming's, with what it is the share of."""
        if self.name == "hamming" and shares:
            return f"{number} ({shares})"
        return f"{number} {self.unit}".rstrip()

    def rate(self, number: str) -> str:
        """A number per unit of the measure."""
        return f"{number} per {self.one}" if self.unit else number

    @property
    def one(self) -> str:
        """The name of a single unit: ``"year"`` where it counts in years."""
        return self.unit.removesuffix("s") if len(self.unit) > 2 else self.unit


def cost_scale(problem: Problem) -> Scale:
    """The scale of the cost."""
    return scale_of(problem.cost, problem.space, problem.observables)


def distance_scale(problem: Problem) -> Scale:
    """The scale of the distance, and so of distortion privacy."""
    return scale_of(problem.distance, problem.space)


def distinguishability_scale(problem: Problem) -> Scale:
    """The scale of the distinguishability, per unit of which ε counts."""
    return scale_of(problem.distinguishability, problem.space)


def scale_of(matrix: FloatArray, space: Space, rows: Space | None = None) -> Scale:
    """The scale of the measure that a matrix is."""
    for name in space.distance_names:
        try:
            if np.array_equal(matrix, space.distance(name, rows)):
                return Scale(name, space.unit(name))
        except InvalidProblem:  # not defined between these spaces
            continue
    return Scale("", "")

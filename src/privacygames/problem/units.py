"""Units of costs, distances and ε, such as kilometres or years, where the space knows the measure by name."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.problem.problem import Problem
from privacygames.spaces import Space

HAMMING_COST, HAMMING_DISTANCE = "share of untrue outputs", "share of wrong guesses"
"""What the average Hamming cost and the average Hamming distance measure."""

ANY_PAIR = "between any two secrets"
"""The pairs of secrets that the largest log-ratio of a mechanism refers to; it has no unit."""


BETWEEN_COORDINATES = (
    "between coordinates",
    "infinite: close points on two sides of a border differ like their cells (privacygames.points)",
)
"""The row about ε between coordinates, where secrets are the cells of a grid: its name and its value."""


@dataclass(frozen=True)
class Scale:
    """The scale of a measure: its name and unit, each empty where there is none."""

    name: str
    unit: str

    def amount(self, number: str, shares: str = "") -> str:
        """A number with its unit, or with ``shares`` in parentheses where the measure is Hamming's."""
        if self.name == "hamming" and shares:
            return f"{number} ({shares})"
        return f"{number} {self.unit}".rstrip()

    def per(self, within: float | None = None) -> str:
        """The unit of ε in words: ``"per km"``, ``"per year"``, ``"between secrets at most 2 km apart"``."""
        if within is not None:
            return f"between secrets at most {self.amount(f'{within:g}')} apart"
        if self.unit:
            return f"per {self.singular_unit}"
        return f"per unit of {f'the {self.name} distance' if self.name else 'distinguishability'}"

    def epsilon(self, number: str, any_pair: float | None = None, *, within: float | None = None) -> str:
        """ε in words: with its unit, and the largest log-ratio between any two secrets.

        Args:
            number: ε, as text.
            any_pair: the largest log-ratio between any two secrets; None leaves it out.
            within: the threshold, in the threshold form.

        >>> Scale("euclidean", "km").epsilon("0.6", 4.2)
        '0.6 per km; 4.2 between any two secrets'
        """
        return format_epsilon(number, self.per(within), any_pair)

    @property
    def singular_unit(self) -> str:
        """The unit in the singular: ``"year"`` for years."""
        return self.unit.removesuffix("s") if len(self.unit) > 2 else self.unit


def format_epsilon(number: str, unit: str, any_pair: float | None = None) -> str:
    """ε with its unit, and the largest log-ratio between any two secrets; as :meth:`Scale.epsilon`."""
    return f"{number} {unit}" if any_pair is None else f"{number} {unit}; {any_pair:.6g} {ANY_PAIR}"


def cost_scale(problem: Problem) -> Scale:
    """The scale of the cost."""
    return measure_scale(problem.cost, problem.space, problem.observables)


def distance_scale(problem: Problem) -> Scale:
    """The scale of the distance, and so of distortion privacy."""
    return measure_scale(problem.distance, problem.space)


def distinguishability_scale(problem: Problem) -> Scale:
    """The scale of the distinguishability, in whose units ε is counted."""
    return measure_scale(problem.distinguishability, problem.space)


def measure_scale(matrix: FloatArray, space: Space, rows: Space | None = None) -> Scale:
    """The scale of the named measure that a matrix equals; empty where it equals none."""
    for name in space.distance_names:
        try:
            if np.array_equal(matrix, space.distance(name, rows)):
                return Scale(name, space.distance_unit(name))
        except InvalidProblem:  # not defined between these spaces
            continue
    return Scale("", "")

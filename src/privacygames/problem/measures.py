"""Costs and distances: a name the space knows, a matrix, or a function of two labels, as a checked matrix."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, require_nonnegative
from privacygames.errors import InvalidProblem
from privacygames.spaces import Space

Measure = str | ArrayLike | Callable[[Any, Any], float]
"""A cost or distance: a name the space knows, a matrix, or a function of two labels."""


def matrix_of(measure: Measure, what: str, space: Space, rows: Space | None = None) -> FloatArray:
    """A named, given or computed measure as a matrix (rows, space), checked to be non-negative."""
    other = space if rows is None else rows
    if isinstance(measure, str):
        values: ArrayLike = space.distance(measure, other)
    elif callable(measure):
        values = [[measure(row, secret) for secret in space.elements] for row in other.elements]
    else:
        values = measure
    shape = (len(other), len(space))
    return require_nonnegative(values, what=what, shape=shape, meaning="(rows, secrets)", infinite=True)


def distance_matrix(measure: Measure, what: str, space: Space) -> FloatArray:
    """A measure between secrets: non-negative, zero on the diagonal."""
    matrix = matrix_of(measure, what, space)
    if np.diagonal(matrix).any():
        raise InvalidProblem(f"{what} must have a zero diagonal: every secret is at distance 0 from itself")
    return matrix


def finite(matrix: FloatArray, what: str) -> FloatArray:
    """The matrix itself, if it has no infinite entry."""
    if np.isinf(matrix).any():
        raise InvalidProblem(
            f"{what} is infinite for some pairs (unconnected places, perhaps); only the distinguishability may be"
        )
    return matrix

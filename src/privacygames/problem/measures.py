"""Costs and distances as validated matrices, from a name the space knows, a matrix, or a function of two labels."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, require_nonnegative
from privacygames.errors import InvalidProblem
from privacygames.spaces import Space

Measure = str | ArrayLike | Callable[[Any, Any], float]
"""A cost or distance: a name the space knows, a matrix, or a function of two labels."""


def measure_matrix(measure: Measure, name: str, space: Space, rows: Space | None = None) -> FloatArray:
    """A measure as a matrix (rows, secrets), validated to be non-negative."""
    other = space if rows is None else rows
    if isinstance(measure, str):
        values: ArrayLike = space.distance(measure, other)
    elif callable(measure):
        values = [[measure(row, secret) for secret in space.elements] for row in other.elements]
    else:
        values = measure
    shape = (len(other), len(space))
    return require_nonnegative(values, what=name, shape=shape, meaning="(rows, secrets)", infinite=True)


def distance_matrix(measure: Measure, name: str, space: Space) -> FloatArray:
    """A measure between secrets as a matrix, validated to be non-negative and zero on the diagonal."""
    matrix = measure_matrix(measure, name, space)
    if np.diagonal(matrix).any():
        raise InvalidProblem(f"{name} must have a zero diagonal: every secret is at distance 0 from itself")
    return matrix


def require_finite(matrix: FloatArray, name: str) -> FloatArray:
    """Return the matrix, or raise if an entry is infinite."""
    if np.isinf(matrix).any():
        raise InvalidProblem(
            f"{name} is infinite for some pairs (unconnected places, perhaps); only the distinguishability may be"
        )
    return matrix

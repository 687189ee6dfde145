"""An invented city: a centre and suburbs, and venues around them. In kilometres, 15 × 8, as the paper's window."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray

WIDTH, HEIGHT = 15.0, 8.0
MARGIN = 0.2
SUBURBS, VENUES = 4, 120
SCATTERED = 0.2


@dataclass(frozen=True)
class City:
    """Where things are: ``centres`` (the first is the largest) and ``venues``, as (x, y) rows."""

    centres: FloatArray
    venues: FloatArray


def build_city(rng: np.random.Generator) -> City:
    """A centre near the middle, suburbs around it, and venues near these, some of them anywhere."""
    middle = np.array([[WIDTH, HEIGHT]]) * rng.uniform(0.4, 0.6, size=(1, 2))
    suburbs = anywhere(rng, SUBURBS)
    centres = np.concatenate([middle, suburbs])
    weights = np.array([2.0] + [1.0] * SUBURBS)
    near = around(rng, centres[rng.choice(len(centres), size=VENUES, p=weights / weights.sum())], 0.7)
    scattered = rng.random((VENUES, 1)) < SCATTERED
    return City(centres, np.where(scattered, anywhere(rng, VENUES), near))


def anywhere(rng: np.random.Generator, many: int) -> FloatArray:
    """Points all over the city."""
    return MARGIN + rng.random((many, 2)) * (WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)


def around(rng: np.random.Generator, points: FloatArray, spread: float) -> FloatArray:
    """Points scattered about others by some kilometres, kept in the city."""
    moved = points + rng.normal(0.0, spread, size=points.shape)
    return np.clip(moved, MARGIN, (WIDTH - MARGIN, HEIGHT - MARGIN))

"""Read-only arrays: checked once when they come in, never changed afterwards, identified by their content."""

import hashlib
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.errors import InvalidProblem

SMALLEST, LARGEST = 1e-60, 1e60
"""What numbers other than 0 may be: far from where floating point under- or overflows, so that proofs are short."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(values: ArrayLike) -> FloatArray:
    """A contiguous float64 copy of ``values`` that nobody can write to, with −0.0 written as 0.0."""
    return sealed(np.array(values, dtype=np.float64, order="C") + 0.0)


def sealed(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A copy over bytes: unlike the read-only flag of an array with memory of its own, that cannot be undone."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def floats(values: ArrayLike, what: str) -> FloatArray:
    """``values`` as an array of floats, or an error that does not show them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidProblem(f"{what} is not an array of numbers") from None


def checked(
    values: ArrayLike, *, what: str, shape: tuple[int, ...], meaning: str, infinite: bool = False
) -> FloatArray:
    """Return ``values`` frozen, or say why they are not a non-negative array of that shape.

    Args:
        values: what the caller gave.
        what: its name in messages.
        shape: the shape it must have.
        meaning: what the axes are, for the message.
        infinite: whether +∞ is allowed.
    """
    try:
        array = frozen(values)
    except (TypeError, ValueError, OverflowError):  # not chained: the original may show what was given
        raise InvalidProblem(f"{what} is not an array of numbers; give shape {shape}: {meaning}") from None
    if array.shape != shape:
        raise InvalidProblem(f"{what} has shape {array.shape}, but {shape} is needed: {meaning}")
    if np.isnan(array).any():
        raise InvalidProblem(f"{what} contains NaN; every entry must be a number")
    if (array < 0).any():
        raise InvalidProblem(f"{what} contains negative entries; every entry must be 0 or more")
    if not infinite and np.isinf(array).any():
        raise InvalidProblem(f"{what} contains infinite entries; every entry must be finite")
    if not in_range(array, infinite=infinite):
        raise InvalidProblem(
            f"{what} contains entries that are neither 0 nor between {SMALLEST:g} and {LARGEST:g}: rescale it"
        )
    return array


def in_range(array: NDArray[np.float64], *, infinite: bool = False) -> bool:
    """Whether every entry is 0, or between the smallest and largest number allowed (or ∞, where that is)."""
    fits = (array == 0) | ((array >= SMALLEST) & (array <= LARGEST))
    return bool((fits | np.isposinf(array)).all() if infinite else fits.all())


def row_losses(probabilities: FloatArray, losses: FloatArray) -> FloatArray:
    """Σ_o p(o|s) L(o,s) for every s, where 0·∞ = 0: what never happens is never lost.

    Args:
        probabilities: (secrets, outputs).
        losses: (outputs, secrets), possibly ∞.
    """
    if np.isfinite(losses).all():
        return np.asarray((probabilities * losses.T).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(probabilities > 0, probabilities * losses.T, 0.0).sum(axis=1))


def expected_losses(losses: FloatArray, weights: FloatArray) -> FloatArray:
    """The matrix product L w where 0·∞ = 0.

    Args:
        losses: (outputs, secrets), possibly ∞.
        weights: (secrets,) or (secrets, columns), 0 or more.
    """
    infinite = np.isinf(losses)
    if not infinite.any():
        return np.asarray(losses @ weights)
    total = np.where(infinite, 0.0, losses) @ weights
    return np.where(infinite.astype(np.float64) @ (weights > 0) > 0, np.inf, total)


def content_hash(array: NDArray[Any]) -> str:
    """SHA-256 of an array's type, shape and little-endian bytes: equal exactly when the content is."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    head = f"{little.dtype.str}{list(little.shape)}".encode()
    return hashlib.sha256(head + little.tobytes()).hexdigest()

"""Read-only arrays: validated once when they come in, never changed afterwards, identified by their content."""

import hashlib
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.errors import InvalidProblem

SMALLEST_POSITIVE, LARGEST_FINITE = 1e-60, 1e60
"""The range of nonzero finite entries. Products of two neither under- nor overflow, which keeps proofs short."""

KEPT_BYTES = 1 << 24
"""Size in bytes of the mapping that :func:`keep_freed_memory` frees: many times what a block of rows takes."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


def freeze_floats(values: ArrayLike) -> FloatArray:
    """A read-only, contiguous float64 copy of ``values``, with −0.0 written as 0.0."""
    return freeze(np.array(values, dtype=np.float64, order="C") + 0.0)


def freeze(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only copy of an array. Its memory is a bytes object, so ``setflags(write=True)`` cannot undo it."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def as_floats(values: ArrayLike, what: str) -> FloatArray:
    """``values`` as a float64 array; the error for other values does not show them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidProblem(f"{what} is not an array of numbers") from None


def require_nonnegative(
    values: ArrayLike, *, what: str, shape: tuple[int, ...], meaning: str, infinite: bool = False
) -> FloatArray:
    """``values`` as a read-only array, or an error that says why it is not non-negative and of this shape.

    Args:
        values: what the caller passed.
        what: the name of the array in messages.
        shape: the required shape.
        meaning: what the axes stand for, in messages.
        infinite: whether +∞ is allowed.
    """
    try:
        array = freeze_floats(values)
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
            f"{what} contains entries that are neither 0 nor between {SMALLEST_POSITIVE:g} and {LARGEST_FINITE:g}: "
            "rescale it"
        )
    return array


def in_range(array: NDArray[np.float64], *, infinite: bool = False) -> bool:
    """Whether every entry is 0 or between ``SMALLEST_POSITIVE`` and ``LARGEST_FINITE``, or ∞ where that is allowed."""
    fits = (array == 0) | ((array >= SMALLEST_POSITIVE) & (array <= LARGEST_FINITE))
    return bool((fits | np.isposinf(array)).all() if infinite else fits.all())


def loss_per_secret(probabilities: FloatArray, losses: FloatArray) -> FloatArray:
    """The expected loss Σ_o p(o|s) L(o,s) for every secret s, where 0·∞ = 0: an output that never occurs costs nothing.

    Args:
        probabilities: (secrets, outputs).
        losses: (outputs, secrets), possibly ∞.
    """
    if np.isfinite(losses).all():
        return np.asarray((probabilities * losses.T).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(probabilities > 0, probabilities * losses.T, 0.0).sum(axis=1))


def loss_matmul(losses: FloatArray, weights: FloatArray) -> FloatArray:
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


def distinct_indices(indices: IntArray, count: int) -> IntArray:
    """The indices below a count that occur among some, sorted; several times as fast as ``np.unique``.

    >>> from privacygames.arrays import distinct_indices
    >>> distinct_indices(np.array([3, 1, 3]), 5)
    array([1, 3])
    """
    return np.flatnonzero(np.bincount(indices, minlength=count))


def missing_indices(indices: IntArray, count: int) -> IntArray:
    """The indices below a count that do not occur among some, sorted.

    >>> from privacygames.arrays import missing_indices
    >>> missing_indices(np.array([3, 1, 3]), 5)
    array([0, 2, 4])
    """
    return np.flatnonzero(np.bincount(indices, minlength=count) == 0)


def content_hash(array: NDArray[Any]) -> str:
    """SHA-256 of an array's type, shape and little-endian bytes: equal exactly when the content is."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    head = f"{little.dtype.str}{list(little.shape)}".encode()
    return hashlib.sha256(head + little.tobytes()).hexdigest()


def keep_freed_memory() -> None:
    """Have the C library keep the memory of freed arrays for the next ones, rather than return it to the system.

    GNU's returns what exceeds twice the largest mapping that was freed so far, at first after almost every array: its
    pages then come back one fault at a time, which takes longer than the arithmetic. This frees a large mapping that
    was never written to, in a few microseconds; other libraries are not affected.

    >>> keep_freed_memory()
    """
    np.empty(KEPT_BYTES, dtype=np.uint8)

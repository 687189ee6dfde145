"""Array backends: the array operations that NumPy and PyTorch spell differently, under NumPy's and BLAS's names.

Code that works on batches of blocks is written once, for either kind of array. It uses operators, indexing and the
methods that both have (``sum(axis=…)``, ``clip``, ``ravel``, ``reshape``), and calls the backend for everything else.
Annotations say ``FloatArray`` for either kind.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.kernels import Kernels
from privacygames.solvers.linalg.lapack import BlockRoutines

Array = TypeVar("Array", FloatArray, IntArray)
Kind = TypeVar("Kind", bound=np.generic)


class FactorisationFailed(Exception):
    """A matrix is not positive definite in floating point: the iterate is as accurate as it gets."""


class Backend(Protocol):
    """Array operations on one device: this machine's processor, or one of PyTorch's devices."""

    @property
    def chunk_entries(self) -> int:
        """Recommended number of entries of a temporary array, where it can be chosen."""
        ...

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether few large operations are faster than more and smaller ones with less arithmetic."""
        ...

    @property
    def kernels(self) -> Kernels | None:
        """The compiled loops for this backend's arrays, or None."""
        ...

    def to_device(self, array: FloatArray) -> FloatArray:
        """A float array on this backend's device; an array that is there already is returned as it is."""
        ...

    def indices_to_device(self, array: IntArray) -> IntArray:
        """An index array on this backend's device."""
        ...

    def mask_to_device(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A boolean array on this backend's device."""
        ...

    def to_numpy(self, array: FloatArray) -> FloatArray:
        """A float array as a NumPy array."""
        ...

    def indices_to_numpy(self, array: IntArray) -> IntArray:
        """An index array as a NumPy array."""
        ...

    def mask_to_numpy(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A boolean array as a NumPy array."""
        ...

    def to_floats(self, parts: Sequence[FloatArray]) -> list[float]:
        """Scalars as Python floats, in one transfer."""
        ...

    def stack_to_numpy(self, parts: Sequence[FloatArray | IntArray]) -> FloatArray:
        """Arrays of one shape, stacked along a new first axis, as one NumPy array of floats, in one transfer."""
        ...

    def all_to_numpy(self, parts: Sequence[FloatArray]) -> list[FloatArray]:
        """Several arrays or scalars as NumPy arrays, in one transfer."""
        ...

    def zeros(self, shape: tuple[int, ...]) -> FloatArray:
        """A float array of zeros."""
        ...

    def empty(self, count: int) -> FloatArray:
        """A float vector of this length, not initialised."""
        ...

    def broadcast_rows(self, row: FloatArray, count: int) -> FloatArray:
        """A matrix with ``count`` copies of a row; it must not be written to."""
        ...

    def log(self, array: FloatArray) -> FloatArray:
        """Natural logarithm, elementwise."""
        ...

    def exp(self, array: FloatArray) -> FloatArray:
        """Exponential, elementwise."""
        ...

    def to_float32(self, array: FloatArray) -> NDArray[np.float32]:
        """The array in single precision."""
        ...

    def take(self, array: NDArray[Kind], indices: IntArray) -> NDArray[Kind]:
        """The entries, or rows, of an array at these indices."""
        ...

    def where(self, condition: NDArray[np.bool_], first: FloatArray, second: FloatArray) -> FloatArray:
        """``first`` where the condition holds and ``second`` elsewhere."""
        ...

    def scatter_add(self, indices: IntArray, values: FloatArray, count: int) -> FloatArray:
        """A new array of ``count`` zeros, with ``values`` (or rows) added at ``indices``, which may repeat."""
        ...

    def index_subtract(self, total: FloatArray, indices: IntArray, values: FloatArray) -> None:
        """Subtract ``values`` from ``total`` at ``indices``, which may repeat, in place."""
        ...

    def index_add(self, total: FloatArray, indices: IntArray, values: FloatArray) -> None:
        """Add ``values`` to ``total`` at ``indices``, which must differ, in place."""
        ...

    def index_add_columns(self, total: FloatArray, indices: IntArray, columns: FloatArray) -> None:
        """Add ``columns`` to the columns of ``total`` at ``indices``, which may repeat, in place."""
        ...

    def axpy(self, a: float, x: FloatArray, y: FloatArray) -> FloatArray:
        """``a*x + y``, as a new array."""
        ...

    def gemm(self, alpha: float, a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
        """``alpha*(a @ b) + c``, as a new array, for a matrix ``a`` and matrices or vectors ``b`` and ``c``."""
        ...

    def inverse_cholesky_factor(self, matrix: FloatArray) -> FloatArray | None:
        """L⁻¹ for Cholesky's factor L of a symmetric matrix; None if it is not positive definite."""
        ...

    def multiply_add(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total + first*second``, elementwise."""
        ...

    def multiply_subtract(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total - first*second``, elementwise."""
        ...

    def divide_subtract(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total - first/second``, elementwise."""
        ...

    def flatnonzero(self, mask: NDArray[np.bool_]) -> IntArray:
        """The flat indices at which a mask is true, ascending."""
        ...

    def top_k(self, array: FloatArray, threshold: float, k: int) -> tuple[FloatArray, IntArray]:
        """The k largest entries and their indices; where fewer are above the threshold, others may be missing."""
        ...

    def top_k_values(self, arrays: Sequence[FloatArray], threshold: float, k: int) -> list[FloatArray]:
        """Of each of several arrays of one length, the k largest entries above the threshold, as NumPy arrays."""
        ...

    def matmul(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The product of two matrices, the first of which has one row per block."""
        ...

    def searchsorted(self, keys: IntArray, values: IntArray) -> IntArray:
        """For each value, the first index in sorted keys whose key is not smaller."""
        ...

    def union1d(self, first: IntArray, second: IntArray) -> IntArray:
        """The union of two sorted arrays without duplicates, sorted."""
        ...

    def tile_indices(self, indices: IntArray, repeats: int, stride: int) -> IntArray:
        """``indices + r*stride`` for r = 0, …, ``repeats`` − 1, one after the other."""
        ...

    def minimum(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The smaller of two arrays, elementwise."""
        ...

    def min(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The smallest entries along an axis."""
        ...

    def max(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The largest entries along an axis."""
        ...

    def concatenate(self, parts: Sequence[Array]) -> Array:
        """Arrays one after the other; a single one is returned as it is."""
        ...


class HostBackend:
    """NumPy arrays in this machine's memory, and compiled loops where they are given."""

    chunk_entries = 1 << 15  # fits a processor's cache

    prefer_fused_operations = False

    def __init__(self, kernels: Kernels | None = None) -> None:
        self.kernels = kernels

    def to_device(self, array: FloatArray) -> FloatArray:
        """The array itself."""
        return array

    def indices_to_device(self, array: IntArray) -> IntArray:
        """The array itself."""
        return array

    def mask_to_device(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The array itself."""
        return array

    def to_numpy(self, array: FloatArray) -> FloatArray:
        """The array itself."""
        return array

    def indices_to_numpy(self, array: IntArray) -> IntArray:
        """The array itself."""
        return array

    def mask_to_numpy(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The array itself."""
        return array

    def to_floats(self, parts: Sequence[FloatArray]) -> list[float]:
        """Scalars as Python floats."""
        return [float(part) for part in parts]

    def stack_to_numpy(self, parts: Sequence[FloatArray | IntArray]) -> FloatArray:
        """Arrays of one shape, stacked along a new first axis."""
        return np.stack(parts).astype(np.float64, copy=False)

    def all_to_numpy(self, parts: Sequence[FloatArray]) -> list[FloatArray]:
        """The arrays themselves."""
        return list(parts)

    def zeros(self, shape: tuple[int, ...]) -> FloatArray:
        """A float array of zeros."""
        return np.zeros(shape)

    def empty(self, count: int) -> FloatArray:
        """A float vector of this length, not initialised."""
        return np.empty(count)

    def broadcast_rows(self, row: FloatArray, count: int) -> FloatArray:
        """A matrix with ``count`` copies of a row."""
        return np.tile(row, (count, 1))

    def log(self, array: FloatArray) -> FloatArray:
        """Natural logarithm, elementwise."""
        return np.asarray(np.log(array))

    def exp(self, array: FloatArray) -> FloatArray:
        """Exponential, elementwise."""
        return np.asarray(np.exp(array))

    def to_float32(self, array: FloatArray) -> NDArray[np.float32]:
        """The array in single precision."""
        return array.astype(np.float32)

    def take(self, array: NDArray[Kind], indices: IntArray) -> NDArray[Kind]:
        """The entries, or rows, of an array at these indices."""
        return array[indices]

    def where(self, condition: NDArray[np.bool_], first: FloatArray, second: FloatArray) -> FloatArray:
        """``first`` where the condition holds and ``second`` elsewhere."""
        return np.where(condition, first, second)

    def scatter_add(self, indices: IntArray, values: FloatArray, count: int) -> FloatArray:
        """A new array of ``count`` zeros, with ``values`` (or rows) added at ``indices``."""
        if values.ndim == 1:
            return np.asarray(np.bincount(indices, values, count), dtype=np.float64)
        width = values.shape[1]
        flat_indices = (indices[:, None] * width + np.arange(width)).ravel()
        total = np.asarray(np.bincount(flat_indices, values.ravel(), count * width), dtype=np.float64)
        return total.reshape(count, width)

    def index_subtract(self, total: FloatArray, indices: IntArray, values: FloatArray) -> None:
        """Subtract ``values`` from ``total`` at ``indices``, in place."""
        total -= np.bincount(indices, values, len(total))

    def index_add(self, total: FloatArray, indices: IntArray, values: FloatArray) -> None:
        """Add ``values`` to ``total`` at ``indices``, which must differ, in place."""
        total[indices] += values

    def index_add_columns(self, total: FloatArray, indices: IntArray, columns: FloatArray) -> None:
        """Add ``columns`` to the columns of ``total`` at ``indices``, in place."""
        np.add.at(total.T, indices, columns.T)

    def axpy(self, a: float, x: FloatArray, y: FloatArray) -> FloatArray:
        """``a*x + y``."""
        return y + a * x

    def gemm(self, alpha: float, a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
        """``alpha*(a @ b) + c``."""
        product = a @ b
        product *= alpha
        product += c
        return np.asarray(product)

    def multiply_add(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total + first*second``, elementwise."""
        return total + first * second

    def multiply_subtract(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total - first*second``, elementwise."""
        return total - first * second

    def divide_subtract(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """``total - first/second``, elementwise."""
        return total - first / second

    def flatnonzero(self, mask: NDArray[np.bool_]) -> IntArray:
        """The flat indices at which a mask is true."""
        return np.flatnonzero(mask)

    def top_k(self, array: FloatArray, threshold: float, k: int) -> tuple[FloatArray, IntArray]:
        """The entries above the threshold and their indices; where there are more than k, the k largest."""
        indices = np.flatnonzero(array > threshold)
        indices = indices if len(indices) <= k else indices[np.argpartition(array[indices], -k)[-k:]]
        return array[indices], indices

    def top_k_values(self, arrays: Sequence[FloatArray], threshold: float, k: int) -> list[FloatArray]:
        """Of each of several arrays, the k largest entries above the threshold."""
        return [self.top_k(array, threshold, k)[0] for array in arrays]

    def matmul(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The product of two matrices."""
        return np.asarray(first @ second)

    def searchsorted(self, keys: IntArray, values: IntArray) -> IntArray:
        """For each value, the first index in sorted keys whose key is not smaller."""
        return np.searchsorted(keys, values)

    def union1d(self, first: IntArray, second: IntArray) -> IntArray:
        """The union of two sorted arrays; a stable sort merges them in one pass, which ``np.union1d`` does not."""
        both = np.sort(np.concatenate([first, second]), kind="stable")
        return np.asarray(both[np.append(True, both[1:] != both[:-1])]) if len(both) else both

    def tile_indices(self, indices: IntArray, repeats: int, stride: int) -> IntArray:
        """``indices + r*stride`` for r = 0, …, ``repeats`` − 1, one after the other."""
        return np.asarray((np.arange(repeats)[:, None] * stride + indices).ravel())

    def minimum(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The smaller of two arrays, elementwise."""
        return np.minimum(first, second)

    def min(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The smallest entries along an axis."""
        return np.asarray(array.min(axis=axis))

    def max(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The largest entries along an axis."""
        return np.asarray(array.max(axis=axis))

    def concatenate(self, parts: Sequence[Array]) -> Array:
        """Arrays one after the other; a single one is returned as it is."""
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def inverse_cholesky_factor(self, matrix: FloatArray) -> FloatArray | None:
        """L⁻¹ for Cholesky's factor L of a symmetric matrix; None if it is not positive definite."""
        routines, inverse = BlockRoutines(len(matrix)), np.array(matrix, order="C")
        if not routines.factor(inverse):
            return None
        routines.invert_factor(inverse)
        return np.tril(inverse.T)


HOST = HostBackend()
"""NumPy without compiled loops."""

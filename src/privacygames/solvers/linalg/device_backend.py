"""The array backend for PyTorch's devices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray

Tensor = Any
"""``torch.Tensor``, untyped because PyTorch is optional."""


MATRIX_LEAF = 512
"""Size up to which PyTorch factorises a single matrix; a larger one is split into halves."""


class DeviceBackend:
    """PyTorch tensors on one device: 64-bit floats and 32-bit indices."""

    chunk_entries = 1 << 26  # enough to fill a card, and a small part of its memory

    prefer_fused_operations = True

    kernels = None

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, torch.device(device)
        self._units: dict[int, Tensor] = {}

    def to_device(self, array: Tensor) -> Tensor:
        """A float tensor on the device; a tensor is returned as it is."""
        return self._to_device(array, np.float64)

    def indices_to_device(self, array: Tensor) -> Tensor:
        """A tensor of 32-bit indices on the device."""
        return self._to_device(array, np.int32)

    def mask_to_device(self, array: Tensor) -> Tensor:
        """A boolean tensor on the device."""
        return self._to_device(array, np.bool_)

    def _to_device(self, array: Tensor, kind: Any) -> Tensor:
        if self.torch.is_tensor(array):
            return array
        copied = self.torch.from_numpy(np.array(array, dtype=kind))  # tensors may be written to
        # The copy of memory that is not pinned is complete when the call returns; only the device runs behind.
        return copied.to(self.device, non_blocking=True)

    def to_numpy(self, array: Tensor) -> FloatArray:
        """A float tensor as a NumPy array."""
        return np.asarray(self._to_numpy(array))

    def indices_to_numpy(self, array: Tensor) -> IntArray:
        """Indices as a NumPy array of 64-bit integers."""
        return np.asarray(self._to_numpy(array), dtype=np.int64)

    def mask_to_numpy(self, array: Tensor) -> Tensor:
        """A boolean tensor as a NumPy array."""
        return self._to_numpy(array)

    def _to_numpy(self, array: Tensor) -> Tensor:
        if not self.torch.is_tensor(array):
            return array
        copied = array.cpu().numpy()
        return copied.copy() if array.device.type == "cpu" else copied

    def to_floats(self, parts: Sequence[Tensor]) -> list[float]:
        """Scalars as Python floats, in one transfer."""
        return list(map(float, self.torch.stack(list(parts)).tolist())) if parts else []

    def stack_to_numpy(self, parts: Sequence[Tensor]) -> FloatArray:
        """Tensors of one shape, stacked along a new first axis, in one transfer."""
        return self.to_numpy(self.torch.stack(list(parts)))

    def all_to_numpy(self, parts: Sequence[Tensor]) -> list[FloatArray]:
        """Several tensors as NumPy arrays, in one transfer."""
        flat = self.to_numpy(self.torch.cat([part.reshape(-1) for part in parts]))
        ends = np.cumsum([part.numel() for part in parts])[:-1]
        return [values.reshape(part.shape) for values, part in zip(np.split(flat, ends), parts, strict=True)]

    def zeros(self, shape: tuple[int, ...]) -> Tensor:
        """A float tensor of zeros."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def empty(self, count: int) -> Tensor:
        """A float vector of this length, not initialised."""
        return self.torch.empty(count, dtype=self.torch.float64, device=self.device)

    def broadcast_rows(self, row: Tensor, count: int) -> Tensor:
        """A matrix with ``count`` copies of a row, all in the same memory."""
        return row.expand(count, -1)

    def log(self, array: Tensor) -> Tensor:
        """Natural logarithm, elementwise."""
        return self.torch.log(array)

    def exp(self, array: Tensor) -> Tensor:
        """Exponential, elementwise."""
        return self.torch.exp(array)

    def to_float32(self, array: Tensor) -> Tensor:
        """The tensor in single precision."""
        return self.torch.as_tensor(array, dtype=self.torch.float32)

    def take(self, array: Tensor, indices: Tensor) -> Tensor:
        """The entries, or rows, at these indices, which plain indexing would first convert to 64 bits."""
        return self.torch.index_select(array, 0, indices)

    def where(self, condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """``first`` where the condition holds and ``second`` elsewhere."""
        return self.torch.where(condition, first, second)

    def scatter_add(self, indices: Tensor, values: Tensor, count: int) -> Tensor:
        """A new tensor of ``count`` zeros, with ``values`` (or rows) added at ``indices``."""
        return self.zeros((count, *values.shape[1:])).index_add_(0, indices, values)

    def index_subtract(self, total: Tensor, indices: Tensor, values: Tensor) -> None:
        """Subtract ``values`` from ``total`` at ``indices``, in place."""
        total.index_add_(0, indices, values, alpha=-1)

    def index_add(self, total: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add ``values`` to ``total`` at ``indices``, in place."""
        total.index_add_(0, indices, values)

    def index_add_columns(self, total: Tensor, indices: Tensor, columns: Tensor) -> None:
        """Add ``columns`` to the columns of ``total`` at ``indices``, in place."""
        total.index_add_(1, indices, columns)

    def axpy(self, a: float, x: Tensor, y: Tensor) -> Tensor:
        """``a*x + y``, as a new tensor."""
        return self.torch.add(y, x, alpha=a)

    def gemm(self, alpha: float, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """``alpha*(a @ b) + c``, in one operation."""
        return (self.torch.addmv if b.ndim == 1 else self.torch.addmm)(c, a, b, alpha=alpha)

    def multiply_add(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """``total + first*second``, elementwise."""
        return self.torch.addcmul(total, first, second)

    def multiply_subtract(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """``total - first*second``, elementwise."""
        return self.torch.addcmul(total, first, second, value=-1)

    def divide_subtract(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """``total - first/second``, elementwise."""
        return self.torch.addcdiv(total, first, second, value=-1)

    def flatnonzero(self, mask: Tensor) -> Tensor:
        """The flat indices at which a mask is true."""
        return self.torch.nonzero(mask.ravel()).ravel().to(self.torch.int32)

    def top_k(self, array: Tensor, threshold: float, k: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """The k largest entries and their indices.

        They are chosen in single precision, which takes half the time. The threshold is not applied: to know how many
        entries are above it the host would have to wait for the device.
        """
        _, indices = self.torch.topk(self.to_float32(array), min(k, len(array)), sorted=False)
        return array[indices], indices

    def top_k_values(self, arrays: Sequence[Tensor], threshold: float, k: int) -> list[FloatArray]:
        """Of each of several tensors of one length, the k largest entries above the threshold, in one transfer."""
        largest = self.to_numpy(self.torch.stack([self.top_k(array, threshold, k)[0] for array in arrays]))
        return [values[values > threshold] for values in largest]

    def matmul(self, first: Tensor, second: Tensor) -> Tensor:
        """The product of two matrices."""
        return first @ second

    def searchsorted(self, keys: Tensor, values: Tensor) -> Tensor:
        """For each value, the first index in sorted keys whose key is not smaller."""
        return self.torch.searchsorted(keys, values, out_int32=True)

    def union1d(self, first: Tensor, second: Tensor) -> Tensor:
        """The union of two sorted tensors, sorted."""
        return self.torch.unique(self.torch.cat([first, second]))

    def tile_indices(self, indices: Tensor, repeats: int, stride: int) -> Tensor:
        """``indices + r*stride`` for r = 0, …, ``repeats`` − 1, one after the other."""
        starts = self.torch.arange(repeats, device=self.device, dtype=self.torch.int64)[:, None] * stride
        return (starts + indices).ravel().to(self.torch.int32)

    def minimum(self, first: Tensor, second: Tensor) -> Tensor:
        """The smaller of two tensors, elementwise."""
        return self.torch.minimum(first, second)

    def min(self, array: Tensor, axis: int = 0) -> Tensor:
        """The smallest entries along an axis."""
        return array.amin(axis)

    def max(self, array: Tensor, axis: int = 0) -> Tensor:
        """The largest entries along an axis."""
        return array.amax(axis)

    def concatenate(self, parts: Sequence[Tensor]) -> Tensor:
        """Tensors one after the other; a single one is returned as it is."""
        return self.torch.cat(list(parts)) if len(parts) > 1 else parts[0]

    def inverse_cholesky_factor(self, matrix: Tensor) -> Tensor | None:
        """L⁻¹ for Cholesky's factor L of a symmetric matrix, which is overwritten; None if not positive definite."""
        inverse, failed = self.inverse_cholesky_factors(matrix[None], MATRIX_LEAF)
        return None if failed.item() else inverse[0]

    def inverse_cholesky_factors(self, block: Tensor, leaf: int) -> tuple[Tensor, Tensor]:
        """L⁻¹ of blocks A = L Lᵀ, and a mask of the blocks that are not positive definite.

        Blocks are given on and below the diagonal and are overwritten. They are split into halves, so that nearly all
        of the work is matrix products, which are several times as fast on a device: with K₁ = L₁₁⁻¹, L₂₁ = A₂₁ K₁ᵀ
        and K₂ the result for A₂₂ − L₂₁ L₂₁ᵀ, the block below the diagonal is −K₂ L₂₁ K₁. Blocks up to size ``leaf``
        are factorised by PyTorch.
        """
        if block.shape[1] <= leaf:
            return self._invert_leaves(block)
        inverse = self.zeros(tuple(block.shape))
        return inverse, self._invert_halves(block, inverse, leaf)

    def _invert_leaves(self, block: Tensor) -> tuple[Tensor, Tensor]:
        factors, failed = self.torch.linalg.cholesky_ex(block)
        unit = self._unit(block.shape[1]).expand(len(block), -1, -1)
        # The solution is L⁻ᵀ in column-major order; transposed it is in the order that products need.
        return self.torch.linalg.solve_triangular(factors.mT, unit, upper=True).mT, failed != 0

    def _invert_halves(self, block: Tensor, into: Tensor, leaf: int) -> Tensor:
        """Write L⁻¹ into an array of zeros; returns the mask of blocks that failed."""
        width = block.shape[1]
        if width <= leaf:
            inverse, failed = self._invert_leaves(block)
            into.copy_(inverse)
            return failed
        half = -(-width // (2 * leaf)) * leaf  # whole leaves first
        failed = self._invert_halves(block[:, :half, :half], into[:, :half, :half], leaf)
        first = into[:, :half, :half]
        below = block[:, half:, :half] @ first.mT
        block[:, half:, half:].baddbmm_(below, below.mT, alpha=-1)
        failed = failed | self._invert_halves(block[:, half:, half:], into[:, half:, half:], leaf)
        into[:, half:, :half].baddbmm_(into[:, half:, half:], below @ first, beta=0, alpha=-1)
        return failed

    def _unit(self, width: int) -> Tensor:
        """The identity matrix, made once for each of the few sizes that occur."""
        if width not in self._units:
            self._units[width] = self.torch.eye(width, dtype=self.torch.float64, device=self.device)
        return self._units[width]

"""Arrays on one of PyTorch's devices."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray

Tensor = Any
"""PyTorch's: an optional library, whose types are not followed."""


class DeviceBackend:
    """Arrays are PyTorch's tensors on a device: floats of 64 bits, positions of 32."""

    entries_at_once = 1 << 26  # enough to fill a card, and next to nothing of its memory

    prefer_fused_operations = True

    kernels = None

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, torch.device(device)
        self._units: dict[int, Tensor] = {}

    def held(self, array: Tensor) -> Tensor:
        """On the device; what is there already is not copied."""
        return self._held(array, np.float64)

    def held_indices(self, array: Tensor) -> Tensor:
        """On the device."""
        return self._held(array, np.int32)

    def held_mask(self, array: Tensor) -> Tensor:
        """On the device."""
        return self._held(array, np.bool_)

    def _held(self, array: Tensor, kind: Any) -> Tensor:
        if self.torch.is_tensor(array):
            return array
        copied = self.torch.from_numpy(np.array(array, dtype=kind))  # tensors may be written to
        # From memory that is not pinned it has been read when the call returns; only the device is not waited for.
        return copied.to(self.device, non_blocking=True)

    def fetched(self, array: Tensor) -> FloatArray:
        """From the device."""
        return np.asarray(self._fetched(array))

    def fetched_indices(self, array: Tensor) -> IntArray:
        """From the device, with 64 bits."""
        return np.asarray(self._fetched(array), dtype=np.int64)

    def fetched_mask(self, array: Tensor) -> Tensor:
        """From the device."""
        return self._fetched(array)

    def _fetched(self, array: Tensor) -> Tensor:
        if not self.torch.is_tensor(array):
            return array
        fetched = array.cpu().numpy()
        return fetched.copy() if array.device.type == "cpu" else fetched

    def numbers(self, parts: Sequence[Tensor]) -> list[float]:
        """Single numbers in one transfer."""
        return list(map(float, self.torch.stack(list(parts)).tolist())) if parts else []

    def fetched_rows(self, parts: Sequence[Tensor]) -> FloatArray:
        """Arrays of one shape in one transfer."""
        return self.fetched(self.torch.stack(list(parts)))

    def fetched_together(self, parts: Sequence[Tensor]) -> list[FloatArray]:
        """Arrays in one transfer."""
        fetched = self.fetched(self.torch.cat([part.reshape(-1) for part in parts]))
        ends = np.cumsum([part.numel() for part in parts])[:-1]
        return [each.reshape(part.shape) for each, part in zip(np.split(fetched, ends), parts, strict=True)]

    def zeros(self, shape: tuple[int, ...]) -> Tensor:
        """Zeros."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def empty(self, count: int) -> Tensor:
        """Room for so many numbers."""
        return self.torch.empty(count, dtype=self.torch.float64, device=self.device)

    def same_rows(self, row: Tensor, count: int) -> Tensor:
        """A row so many times, one above the other."""
        return row.expand(count, -1)

    def log(self, array: Tensor) -> Tensor:
        """Natural logarithms."""
        return self.torch.log(array)

    def exp(self, array: Tensor) -> Tensor:
        """Exponentials."""
        return self.torch.exp(array)

    def single(self, array: Tensor) -> Tensor:
        """The same in single precision."""
        return self.torch.as_tensor(array, dtype=self.torch.float32)

    def taken(self, array: Tensor, at: Tensor) -> Tensor:
        """What is at some positions of an array, without making 64-bit integers of them as indexing does."""
        return self.torch.index_select(array, 0, at)

    def where(self, condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """The first where the condition holds, and the second elsewhere."""
        return self.torch.where(condition, first, second)

    def totals(self, at: Tensor, values: Tensor, count: int) -> Tensor:
        """Values, or rows of them, added up at their positions."""
        return self.zeros((count, *values.shape[1:])).index_add_(0, at, values)

    def take_totals(self, total: Tensor, at: Tensor, values: Tensor) -> None:
        """Take values from a total at their positions."""
        total.index_add_(0, at, values, alpha=-1)

    def plus(self, value: Tensor, step: float, change: Tensor) -> Tensor:
        """A value and so much of a change."""
        return self.torch.add(value, change, alpha=step)

    def plus_products(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """A total plus the first times the second, entry by entry."""
        return self.torch.addcmul(total, first, second)

    def minus_products(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """A total less the first times the second, entry by entry."""
        return self.torch.addcmul(total, first, second, value=-1)

    def minus_ratios(self, total: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """A total less the first over the second, entry by entry."""
        return self.torch.addcdiv(total, first, second, value=-1)

    def chosen(self, mask: Tensor) -> Tensor:
        """The positions that a mask chooses."""
        return self.torch.nonzero(mask.ravel()).ravel().to(self.torch.int32)

    def largest(self, array: Tensor, _: float, most: int) -> tuple[Tensor, Tensor]:
        """The largest entries and where they are, whatever they are: how many are above a level one would wait for.

        Chosen in single precision, which takes half as long.
        """
        _, at = self.torch.topk(self.single(array), min(most, len(array)), sorted=False)
        return array[at], at

    def largest_values(self, arrays: Sequence[Tensor], level: float, most: int) -> list[FloatArray]:
        """The largest entries of arrays of one length, at most so many, that are above a level: in one transfer."""
        found = self.fetched(self.torch.stack([self.largest(each, level, most)[0] for each in arrays]))
        return [each[each > level] for each in found]

    def add_at(self, total: Tensor, at: Tensor, values: Tensor) -> None:
        """Add values to a total at a few positions."""
        total.index_add_(0, at, values)

    def times(self, first: Tensor, second: Tensor) -> Tensor:
        """The product of two matrices."""
        return first @ second

    def positions(self, keys: Tensor, wanted: Tensor) -> Tensor:
        """Where, in sorted keys, the first is that is not smaller than each that is wanted."""
        return self.torch.searchsorted(keys, wanted, out_int32=True)

    def union(self, first: Tensor, second: Tensor) -> Tensor:
        """The union of two sorted arrays."""
        return self.torch.unique(self.torch.cat([first, second]))

    def repeated(self, pairs: Tensor, times: int, apart: int) -> Tensor:
        """Positions, then the same so far apart, so many times."""
        starts = self.torch.arange(times, device=self.device, dtype=self.torch.int64)[:, None] * apart
        return (starts + pairs).ravel().to(self.torch.int32)

    def add_columns(self, total: Tensor, at: Tensor, columns: Tensor) -> None:
        """Add columns to those of a total."""
        total.index_add_(1, at, columns)

    def smaller(self, first: Tensor, second: Tensor) -> Tensor:
        """The smaller of two arrays, entry by entry."""
        return self.torch.minimum(first, second)

    def least(self, array: Tensor, axis: int = 0) -> Tensor:
        """The least along an axis."""
        return array.amin(axis)

    def most(self, array: Tensor, axis: int = 0) -> Tensor:
        """The most along an axis."""
        return array.amax(axis)

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Arrays one after the other."""
        return self.torch.cat(list(parts)) if len(parts) > 1 else parts[0]

    def inverted_factors(self, block: Tensor, leaf: int) -> tuple[Tensor, Tensor]:
        """L⁻¹ of blocks A = L Lᵀ, given on and below the diagonal, and which of them failed; they are overwritten.

        By halves, so that nearly all of the work is products, in which devices are several times as fast: with
        K₁ = L₁₁⁻¹ and L₂₁ = A₂₁ K₁ᵀ, the rest is A₂₂ − L₂₁ L₂₁ᵀ with K₂, and between them is −K₂ L₂₁ K₁. Blocks up to
        a size of ``leaf`` the library factorises.
        """
        if block.shape[1] <= leaf:
            return self._inverted_leaves(block)
        inverse = self.zeros(tuple(block.shape))
        return inverse, self._invert_halves(block, inverse, leaf)

    def _inverted_leaves(self, block: Tensor) -> tuple[Tensor, Tensor]:
        factors, failed = self.torch.linalg.cholesky_ex(block)
        unit = self._unit(block.shape[1]).expand(len(block), -1, -1)
        # L⁻ᵀ comes column by column: transposed it is as products take it.
        return self.torch.linalg.solve_triangular(factors.mT, unit, upper=True).mT, failed != 0

    def _invert_halves(self, block: Tensor, into: Tensor, leaf: int) -> Tensor:
        """Write L⁻¹ over zeros; which of the blocks failed."""
        width = block.shape[1]
        if width <= leaf:
            found, failed = self._inverted_leaves(block)
            into.copy_(found)
            return failed
        half = -(-width // (2 * leaf)) * leaf  # whole leaves first
        failed = self._invert_halves(block[:, :half, :half], into[:, :half, :half], leaf)
        first = into[:, :half, :half]
        between = block[:, half:, :half] @ first.mT
        block[:, half:, half:].baddbmm_(between, between.mT, alpha=-1)
        failed = failed | self._invert_halves(block[:, half:, half:], into[:, half:, half:], leaf)
        into[:, half:, :half].baddbmm_(into[:, half:, half:], between @ first, beta=0, alpha=-1)
        return failed

    def _unit(self, width: int) -> Tensor:
        """The unit matrix: of few sizes, one at a time."""
        if width not in self._units:
            self._units[width] = self.torch.eye(width, dtype=self.torch.float64, device=self.device)
        return self._units[width]

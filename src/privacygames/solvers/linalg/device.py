"""Block algebra by PyTorch, in double precision: on a GPU, or on PyTorch's CPU device, where tests run the same code.

A batch's blocks are written on the device from the pairs in its working set, factorised and turned into M = L⁻¹ D (L
Cholesky's factor of the block scaled by D to a unit diagonal), so that H⁻¹ = MᵀM: solutions are two products with M, and
the Schur complement of a whole batch is one. The M are kept as long as there is room, and computed anew where not.
"""

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.processors import processors
from privacygames.solvers.linalg.blocks import (
    REGULARISATIONS,
    FactorisationFailed,
    Item,
    Links,
    Result,
    SymmetricBlocks,
    even_ranges,
)
from privacygames.solvers.memory import device_free

TEMPORARIES = 4
"""So many times the memory of a batch's blocks is used while they are factorised."""

BATCH_SHARE = 0.1
"""Of the memory that is free, how much one batch's temporary arrays may take."""

RESERVE_SHARE = 0.3
"""Of all memory, how much is to stay free when factors are kept: for what the method does with its pairs."""

MOST_POSITIONS = 2**31 - 1
"""Positions inside a batch are kept as 32-bit integers."""


@contextmanager
def device_algebra(
    device: str, *, threads: int | None = None, memory: int | None = None
) -> Iterator["DeviceAlgebra"]:
    """Block algebra on one of PyTorch's devices.

    Args:
        device: "cuda", "cuda:1", …; or "cpu", which works with ``threads``, by default one a processor.
        threads: how many, on the CPU device.
        memory: how many bytes to work with; None for what is free.

    Raises:
        InvalidProblem: PyTorch is not installed, or has no such device.
    """
    torch = torch_with(device)
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(threads or processors())
    algebra = DeviceAlgebra(DeviceBackend(device), memory)
    try:
        yield algebra
    finally:
        torch.set_num_threads(before)
        if device != "cpu":
            torch.cuda.empty_cache()


def torch_with(device: str) -> Any:
    """PyTorch, if it is installed and has this device."""
    if device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", device):
        raise InvalidProblem(f'device is {device!r}; it must be "host", "cuda", "cuda:1", … or "cpu" (PyTorch\'s)')
    try:
        import torch
    except ImportError:
        message = f"device={device!r} needs PyTorch: pip install 'privacygames[gpu]', or leave device out"
        raise InvalidProblem(message) from None
    if device != "cpu" and not 0 <= int(device.partition(":")[2] or 0) < torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise InvalidProblem(f"device={device!r} is not here: PyTorch sees {found} CUDA devices; leave device out")
    return torch


class DeviceBackend:
    """Arrays are PyTorch's tensors on a device: floats of 64 bits, positions of 32."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, torch.device(device)

    def held(self, array: FloatArray) -> FloatArray:
        """On the device; what is there already is not copied."""
        return self._held(array, self.torch.float64)

    def held_indices(self, array: IntArray) -> IntArray:
        """On the device."""
        return self._held(array, self.torch.int32)

    def held_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """On the device."""
        return self._held(array, self.torch.bool)

    def _held(self, array: Any, kind: Any) -> Any:
        if self.torch.is_tensor(array):
            return array
        return self.torch.from_numpy(np.array(array)).to(self.device, kind)  # a copy: tensors may be written to

    def fetched(self, array: FloatArray) -> FloatArray:
        """From the device."""
        return self._fetched(array)

    def fetched_indices(self, array: IntArray) -> IntArray:
        """From the device, with 64 bits."""
        return np.asarray(self._fetched(array), dtype=np.int64)

    def fetched_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """From the device."""
        return self._fetched(array)

    def _fetched(self, array: Any) -> Any:
        return array.detach().cpu().numpy().copy() if self.torch.is_tensor(array) else array

    def zeros(self, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def empty(self, count: int) -> FloatArray:
        """Room for so many numbers."""
        return self.torch.empty(count, dtype=self.torch.float64, device=self.device)

    def log(self, array: FloatArray) -> FloatArray:
        """Natural logarithms."""
        return self.torch.log(array)

    def single(self, array: FloatArray) -> NDArray[np.float32]:
        """The same in single precision."""
        return self.torch.as_tensor(array, dtype=self.torch.float32)

    def where(self, condition: NDArray[np.bool_], first: FloatArray, second: FloatArray) -> FloatArray:
        """The first where the condition holds, and the second elsewhere."""
        return self.torch.where(condition, first, second)

    def totals(self, at: IntArray, values: FloatArray, count: int) -> FloatArray:
        """Values added up at their positions."""
        return self.zeros((count,)).index_add_(0, at, values)

    def chosen(self, mask: NDArray[np.bool_]) -> IntArray:
        """The positions that a mask chooses."""
        return self.torch.nonzero(mask.ravel()).ravel().to(self.torch.int32)

    def positions(self, keys: IntArray, wanted: IntArray) -> IntArray:
        """Where, in sorted keys, the first is that is not smaller than each that is wanted."""
        return self.torch.searchsorted(keys, wanted, out_int32=True)

    def union(self, first: IntArray, second: IntArray) -> IntArray:
        """The union of two sorted arrays."""
        return self.torch.unique(self.torch.cat([first, second]))

    def repeated(self, pairs: IntArray, times: int, apart: int) -> IntArray:
        """Positions, then the same so far apart, so many times."""
        starts = self.torch.arange(times, device=self.device, dtype=self.torch.int64)[:, None] * apart
        return (starts + pairs).ravel().to(self.torch.int32)

    def add_columns(self, total: FloatArray, at: IntArray, columns: FloatArray) -> None:
        """Add columns to those of a total."""
        total.index_add_(1, at, columns)  # type: ignore[attr-defined]

    def least(self, array: FloatArray) -> FloatArray:
        """The least of each column."""
        return array.amin(0)

    def joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Arrays one after the other."""
        return self.torch.cat(list(parts))


class DeviceAlgebra:
    """Block algebra on a device: one batch after the other, each all at once."""

    def __init__(self, backend: DeviceBackend, memory: int | None = None) -> None:
        self.backend = backend
        self._memory, self._kept = memory, 0

    def batches(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length: as few as memory allows."""
        entries = max(width, 1) ** 2
        if entries > MOST_POSITIONS:
            raise InvalidProblem(f"blocks of {width} unknowns are too large for this device's 32-bit positions")
        most = min(int(BATCH_SHARE * self._free()) // (8 * TEMPORARIES * entries), MOST_POSITIONS // entries)
        return even_ranges(count, -(-count // max(most, 1)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order; the device works on while the next is prepared."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, links: Links) -> tuple["DeviceFactors", FloatArray]:
        """The factors, and the Schur complement of the links, on the device."""
        inverse = self._inverse_factors(blocks)
        schur = self._projected(inverse, links)
        size = 8 * inverse.numel()
        if self._free() - size < RESERVE_SHARE * self._all():
            return DeviceFactors(lambda: self._inverse_factors(blocks), self.backend), schur
        factors = DeviceFactors(lambda: inverse, self.backend)
        self._kept += size
        weakref.finalize(factors, self._dropped, size)
        return factors, schur

    def _dropped(self, size: int) -> None:
        self._kept -= size

    def _all(self) -> float:
        return self._memory or device_free(self.backend.device)[1]

    def _free(self) -> float:
        return device_free(self.backend.device)[0] if self._memory is None else max(self._memory - self._kept, 0)

    def _inverse_factors(self, blocks: SymmetricBlocks) -> Any:
        """M = L⁻¹ D of every block, (blocks, width, width)."""
        torch = self.backend.torch
        scales = self._scales(blocks)
        written = self._written(blocks, scales)
        diagonal = written.diagonal(dim1=1, dim2=2)
        diagonal.fill_(1.0 + REGULARISATIONS[0])
        factors, failed = torch.linalg.cholesky_ex(written)
        for regularisation in REGULARISATIONS[1:]:
            which = torch.nonzero(failed).ravel()
            if not len(which):
                break
            diagonal.fill_(1.0 + regularisation)
            factors[which], failed[which] = torch.linalg.cholesky_ex(written[which])
        if failed.any():
            raise FactorisationFailed
        del written, diagonal
        return torch.linalg.solve_triangular(factors, torch.diag_embed(scales), upper=False)

    def _scales(self, blocks: SymmetricBlocks) -> Any:
        """What brings the blocks' diagonals to one."""
        diagonal: Any = self.backend.held(blocks.diagonal).clone()  # type: ignore[attr-defined]
        for gram in blocks.grams:
            rows, columns, weights = self._gram(gram.rows, gram.columns, gram.weights)
            diagonal[:, columns] += weights @ rows**2
        scales = diagonal.rsqrt()
        if not bool((scales.isfinite() & (scales > 0)).all()):
            raise FactorisationFailed
        return scales

    def _gram(self, rows: FloatArray, columns: IntArray, weights: FloatArray) -> tuple[Any, Any, Any]:
        backend = self.backend
        return backend.held(rows), backend.held_indices(columns), backend.held(weights)

    def _written(self, blocks: SymmetricBlocks, scales: Any) -> Any:
        """The blocks, scaled on both sides, right on and below the diagonal; what is on it is left to the caller."""
        torch, (count, width) = self.backend.torch, scales.shape
        dense = self.backend.zeros((count, width, width))
        if blocks.beside is not None:
            beside = blocks.beside
            row, column = self.backend.held_indices(beside.row), self.backend.held_indices(beside.column)
            starts: Any = self.backend.held_indices(beside.starts)
            ranges = torch.arange(count, device=self.backend.device, dtype=torch.int32)
            block = torch.repeat_interleave(ranges, starts.diff(), output_size=len(row))
            flat = scales.ravel()
            value = self.backend.held(beside.value) * flat[block * width + row] * flat[block * width + column]
            low, high = torch.maximum(row, column), torch.minimum(row, column)
            # At most two values, of (i, j) and (j, i), meet in one place: their order does not matter.
            dense.view(-1).index_add_(0, (block * width + low) * width + high, value)  # type: ignore[attr-defined]
        for gram in blocks.grams:
            rows, columns, weights = self._gram(gram.rows, gram.columns, gram.weights)
            whole = self.backend.zeros((len(rows), width))
            whole[:, columns] = rows
            scaled = weights.sqrt()[:, :, None] * (whole * scales[:, None, :])
            dense.baddbmm_(scaled.mT, scaled)  # type: ignore[attr-defined]
        return dense

    def _projected(self, inverse: Any, links: Links) -> Any:
        """Σ_o J_o MᵀM J_oᵀ: one product, of all M J_oᵀ below each other."""
        first = inverse[:, :, : links.shared]
        if links.weights is not None:
            weights: Any = self.backend.held(links.weights)
            if links.which is None:
                more = inverse[:, :, : weights.shape[1]] @ weights[:, :, None]
            else:
                which = links.which if isinstance(links.which, slice) else self.backend.held_indices(links.which)
                more = inverse[:, :, which] * weights[:, None, :]
            first = self.backend.torch.cat([first, -more], dim=2)
        stacked = first.reshape(-1, links.rows)
        return stacked.T @ stacked


class DeviceFactors:
    """What solves with a batch of blocks: M, kept or computed anew each time."""

    def __init__(self, inverse: Callable[[], Any], backend: DeviceBackend) -> None:
        self._inverse, self._backend = inverse, backend

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o = MᵀM r_o for every block."""
        inverse, held = self._inverse(), self._backend.held(right)
        return (inverse.mT @ (inverse @ held[:, :, None]))[:, :, 0]  # type: ignore[no-any-return]

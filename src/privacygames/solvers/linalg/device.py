"""Block algebra by PyTorch, in double precision: on a GPU, or on PyTorch's CPU device, where tests run the same code.

A batch's blocks are assembled on the device from the pairs in its working set, factorised and turned into M = L⁻¹ D,
with L Cholesky's factor of the block scaled by D to a unit diagonal. Then H⁻¹ = MᵀM: a solution is two products with M,
and the Schur complement of a whole batch is one product. The M are kept in memory, in stripes of columns without most
of their zeros (``device_triangles.py``); where memory does not suffice blocks are factorised again for every solution.
"""

import os
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.solvers.linalg.backend import FactorisationFailed
from privacygames.solvers.linalg.block_algebra import (
    REGULARISATIONS,
    BlockFactors,
    CouplingRows,
    Item,
    OffDiagonal,
    Result,
    SymmetricBlocks,
    even_ranges,
)
from privacygames.solvers.linalg.device_backend import DeviceBackend, Tensor
from privacygames.solvers.linalg.device_triangles import CholeskyStripes, Triangles, stripe_edges
from privacygames.solvers.linalg.schur import Schur
from privacygames.solvers.memory import device_free
from privacygames.threads import available_processors, single_threaded_blas

TEMPORARIES = 4
"""Memory used while a batch is factorised, as a multiple of that of its blocks."""

BATCH_SHARE = 0.1
"""Largest fraction of the free memory for one batch's temporary arrays."""

RESERVE_SHARE = 0.3
"""Smallest fraction of all memory that kept factors leave free, for the method's arrays of pairs."""

RATIO_BYTES = 280
"""Bytes that kept factors leave free for each ratio of the working set, which grows from iteration to iteration: with
228 the largest design on an H200 went on (185 million ratios, 4096 × 4096), with 195 memory ran out."""

HOST_BOUND = 500 * 500**2 * 8
"""Bytes of all blocks below which a step is limited by the host's time (measured on an H200)."""

PLENTY = 20 * HOST_BOUND
"""Bytes free at the start from which free memory is not queried again while blocks need less than ``HOST_BOUND``."""

LEAF, LARGEST_LEAF = 64, 128
"""Size of blocks up to which PyTorch factorises them; larger ones are split into halves. The second applies where a
step is limited by the host's time."""

STRIPE = 256
"""Columns of a stripe of factors. Wider ones take more memory and operations, narrower ones run at a lower rate: with
2,500 blocks of 2,500 an iteration takes 2.35 s with 256 columns and 2.5 s with 512 (H200)."""

GATHERED = 1 << 27
"""Entries of factors that are gathered at a time, to solve for single right-hand sides: 1 GiB."""

KEPT_SHARE = 0.05
"""Largest fraction of all memory that PyTorch's allocator may keep for the next design."""

MAX_INDEX = 2**31 - 1
"""Indices inside a batch are 32-bit integers."""


@contextmanager
def device_algebra(device: str, *, threads: int | None = None, memory: int | None = None) -> Iterator["DeviceAlgebra"]:
    """Block algebra on one of PyTorch's devices.

    Args:
        device: "cuda", "cuda:1", …, or "cpu".
        threads: the number of threads of the CPU device, by default one per processor.
        memory: the bytes to use; None for all that are free.

    Raises:
        InvalidProblem: PyTorch is not installed, or has no such device.
        TooLarge: its memory is full.
    """
    torch = require_torch(device)
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(threads or available_processors())
    algebra = DeviceAlgebra(DeviceBackend(device), memory)
    try:
        # The host's share of the work is small; and recording gradients would slow down every operation.
        with single_threaded_blas(), torch.inference_mode():
            yield algebra
    except torch.OutOfMemoryError:
        message = (
            f"the device {device!r} ran out of memory: nothing else should use it; or fewer observables or secrets"
        )
        raise TooLarge(message) from None
    finally:
        torch.set_num_threads(before)
        if device != "cpu" and torch.cuda.memory_reserved(device) > KEPT_SHARE * device_free(algebra.backend.device)[1]:
            torch.cuda.empty_cache()


def require_torch(device: str) -> Any:
    """The ``torch`` module; an error if it is not installed or does not have this device."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InvalidProblem(f'device is {device!r}; it must be "host", "cuda", "cuda:1", … or "cpu" (PyTorch\'s)')
    # The working set's arrays grow with every iteration; segments of a fixed size would be left behind, half used.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    try:
        import torch
    except (ImportError, OSError):
        message = f"device={device!r} needs PyTorch: pip install 'privacygames[gpu]', or leave device out"
        raise InvalidProblem(message) from None
    if device != "cpu" and not 0 <= int(device.partition(":")[2] or 0) < torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise InvalidProblem(f"device={device!r} is not here: PyTorch sees {count} CUDA devices; leave device out")
    return torch


class DeviceAlgebra:
    """Block algebra on a device: one batch after the other, each in batched operations."""

    def __init__(self, backend: DeviceBackend, memory: int | None = None) -> None:
        self.backend = backend
        self._memory, self._kept_bytes, self._block_bytes = memory, 0, 0

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether a step is limited by the host's time."""
        return self._block_bytes < HOST_BOUND

    def batch_slices(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length, as few as memory allows."""
        entries = max(width, 1) ** 2
        if entries > MAX_INDEX:
            raise InvalidProblem(f"blocks of {width} unknowns are too large for this device's 32-bit positions")
        largest = min(int(BATCH_SHARE * self._free()) // (8 * TEMPORARIES * entries), MAX_INDEX // entries)
        self._block_bytes = max(self._block_bytes, 8 * count * entries)
        return even_ranges(count, -(-count // max(largest, 1)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(item)`` for every item, in their order; the device computes one while the host prepares the next."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, coupling: CouplingRows) -> tuple[BlockFactors, Tensor]:
        """The factors, and the Schur complement of the coupling rows, on the device."""
        scales, cholesky = self.cholesky(blocks)
        inverse = cholesky.inverse()
        del cholesky  # a square for each block
        inverse.scale_columns(scales)
        schur, size = inverse.project(coupling), inverse.bytes
        if self._free() - size < max(RESERVE_SHARE * self._all, RATIO_BYTES * self._ratios(blocks)):
            return RecomputedFactors(blocks, self), schur
        factors = KeptFactors(inverse)
        self._kept_bytes += size
        weakref.finalize(factors, self._release, size)
        return factors, schur

    def _ratios(self, blocks: SymmetricBlocks) -> float:
        """About how many ratios the working set has, if all batches have as many in a block as this one."""
        if blocks.off_diagonal is None:
            return 0.0
        count, width = blocks.diagonal.shape
        return float(len(blocks.off_diagonal.row) / count * self._block_bytes / (8 * width**2))

    def schur(self, matrix: Tensor) -> Schur:
        """The Schur complement, factorised on the device."""
        return Schur(matrix, self.backend)

    def _release(self, size: int) -> None:
        self._kept_bytes -= size

    @cached_property
    def _all(self) -> float:
        return self._memory or device_free(self.backend.device)[1]

    @cached_property
    def _free_at_first(self) -> float:
        return device_free(self.backend.device)[0]

    def _free(self) -> float:
        if self._memory is not None:
            return max(self._memory - self._kept_bytes, 0)
        if self.prefer_fused_operations and self._free_at_first > PLENTY:
            return self._free_at_first
        return device_free(self.backend.device)[0]

    def cholesky(self, blocks: SymmetricBlocks) -> tuple[Tensor, CholeskyStripes]:
        """The scaling D of every block to a unit diagonal, and Cholesky's factors of D H D."""
        scales = self._scales(blocks)
        factors = self._factors(self._assemble(blocks, scales), REGULARISATIONS[0])
        smallest, largest, any_failed = self.backend.to_floats(
            [*self.backend.torch.aminmax(scales), factors.failed.any()]
        )
        if not 0 < smallest <= largest < inf:
            raise FactorisationFailed
        if any_failed:
            self._regularise(blocks, scales, factors)
        return scales, factors

    def _regularise(self, blocks: SymmetricBlocks, scales: Tensor, factors: CholeskyStripes) -> None:
        """Factorise blocks that failed again, with larger regularisations."""
        for regularisation in REGULARISATIONS[1:]:
            indices = self.backend.torch.nonzero(factors.failed).ravel()
            factors.replace(indices, self._factors(self._assemble(blocks, scales)[indices], regularisation))
            if not factors.failed.any():
                return
        raise FactorisationFailed

    def _factors(self, scaled: Tensor, regularisation: float) -> CholeskyStripes:
        """Cholesky's factors of scaled blocks, which are overwritten."""
        scaled.diagonal(dim1=1, dim2=2).fill_(1.0 + regularisation)
        width = scaled.shape[1]
        if self.prefer_fused_operations:
            return CholeskyStripes.of(scaled, [0, width], LARGEST_LEAF, self.backend)
        return CholeskyStripes.of(scaled, stripe_edges(width, STRIPE), LEAF, self.backend)

    def _scales(self, blocks: SymmetricBlocks) -> Tensor:
        """The diagonal scaling D of every block to a unit diagonal."""
        diagonal = self.backend.to_device(blocks.diagonal)
        diagonal = diagonal.clone() if blocks.grams else diagonal
        for gram in blocks.grams:
            rows, columns, weights = self._gram(gram.rows, gram.columns, gram.weights)
            if len(columns) == diagonal.shape[1]:
                diagonal.addmm_(weights, rows * rows)
            else:
                diagonal[:, columns] += weights @ (rows * rows)
        return diagonal.rsqrt()

    def _gram(self, rows: Tensor, columns: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        backend = self.backend
        return backend.to_device(rows), backend.indices_to_device(columns), backend.to_device(weights)

    def _assemble(self, blocks: SymmetricBlocks, scales: Tensor) -> Tensor:
        """D H D of every block, correct below the diagonal; the diagonal is left to the caller."""
        torch, take, (count, width) = self.backend.torch, self.backend.take, scales.shape
        dense = self.backend.zeros((count, width, width))
        if blocks.off_diagonal is not None:
            entries, backend = blocks.off_diagonal, self.backend
            row, column = backend.indices_to_device(entries.row), backend.indices_to_device(entries.column)
            first = self._block_indices(entries, count) * width
            at_row, at_column, flat_scales = first + row, first + column, scales.ravel()
            value = backend.to_device(entries.value) * take(flat_scales, at_row) * take(flat_scales, at_column)
            indices = torch.maximum(at_row, at_column).mul_(width).add_(torch.minimum(row, column))
            # At most two values, of (i, j) and (j, i), are added to one entry, so their order does not matter.
            dense.view(-1).index_add_(0, indices, value)
        for gram in blocks.grams:
            rows, columns, weights = self._gram(gram.rows, gram.columns, gram.weights)
            whole = rows
            if len(columns) < width:
                whole = self.backend.zeros((len(rows), width))
                whole[:, columns] = rows
            scaled = weights.sqrt()[:, :, None] * (whole * scales[:, None, :])
            dense.baddbmm_(scaled.mT, scaled)
        return dense

    def repeat(self, blocks: SymmetricBlocks, indices: Tensor) -> SymmetricBlocks:
        """The blocks with these indices, of which several may be the same."""
        backend, torch = self.backend, self.backend.torch
        diagonal = backend.to_device(blocks.diagonal)
        grams = tuple(replace(gram, weights=backend.to_device(gram.weights)[indices]) for gram in blocks.grams)
        entries = blocks.off_diagonal
        if entries is not None:
            block = self._block_indices(entries, len(diagonal))
            starts = torch.searchsorted(block, torch.stack([indices, indices + 1]), out_int32=True)
            counts = starts[1] - starts[0]
            copies = torch.repeat_interleave(torch.arange(len(indices), device=backend.device), counts)
            first = (counts.cumsum(0) - counts)[copies]
            which = starts[0][copies] + torch.arange(len(copies), device=backend.device) - first
            entries = OffDiagonal(
                indices[:0],
                backend.indices_to_device(entries.row)[which],
                backend.indices_to_device(entries.column)[which],
                backend.to_device(entries.value)[which],
                copies.to(torch.int32),
            )
        return SymmetricBlocks(diagonal[indices], entries, grams)

    def _block_indices(self, entries: OffDiagonal, count: int) -> Tensor:
        """The block of each off-diagonal entry."""
        if entries.block is not None:
            return self.backend.indices_to_device(entries.block)
        torch, starts = self.backend.torch, self.backend.indices_to_device(entries.starts)
        ranges = torch.arange(count, device=self.backend.device, dtype=torch.int32)
        return torch.repeat_interleave(ranges, starts.diff(), output_size=len(entries.row))


class KeptFactors:
    """The inverse factors M of a batch of blocks, kept in memory."""

    def __init__(self, inverse: Triangles) -> None:
        self._inverse = inverse

    def solve(self, right: Tensor, addend: Tensor | None = None) -> Tensor:
        """H_o⁻¹ r_o = MᵀM r_o for every block, plus the addend."""
        return self._inverse.solve(self._inverse.backend.to_device(right), addend)

    def solve_rows(self, blocks: IntArray, right: Tensor) -> Tensor:
        """H_o⁻¹ r for right-hand sides r, each with its block o; at most ``GATHERED`` entries at a time."""
        inverse, backend = self._inverse, self._inverse.backend
        right, indices = backend.to_device(right), backend.indices_to_device(blocks)
        step = max(1, GATHERED // max(right.shape[1], 1) ** 2)
        if len(right) <= step:
            return inverse.take(indices).solve(right)
        parts = [slice(start, start + step) for start in range(0, len(right), step)]
        return backend.concatenate([inverse.take(indices[part]).solve(right[part]) for part in parts])


class RecomputedFactors:
    """The factors of a batch of blocks that memory has no room for: factorised again for every solution."""

    def __init__(self, blocks: SymmetricBlocks, algebra: DeviceAlgebra) -> None:
        self._blocks, self._algebra = blocks, algebra

    def solve(self, right: Tensor, addend: Tensor | None = None) -> Tensor:
        """H_o⁻¹ r_o for every block, plus the addend."""
        scales, factors = self._algebra.cholesky(self._blocks)
        solution = scales * factors.solve(scales * self._algebra.backend.to_device(right))
        return solution if addend is None else solution.add_(addend)

    def solve_rows(self, blocks: IntArray, right: Tensor) -> Tensor:
        """H_o⁻¹ r for right-hand sides r, each with its block o: only these blocks are factorised."""
        backend = self._algebra.backend
        right, indices = backend.to_device(right), backend.indices_to_device(blocks)
        if not len(right):
            return right
        step = max(1, GATHERED // max(right.shape[1], 1) ** 2)
        parts = [slice(start, start + step) for start in range(0, len(right), step)]
        return backend.concatenate([self._solve_some(indices[part], right[part]) for part in parts])

    def _solve_some(self, indices: Tensor, right: Tensor) -> Tensor:
        scales, factors = self._algebra.cholesky(self._algebra.repeat(self._blocks, indices))
        return scales * factors.solve(scales * right)

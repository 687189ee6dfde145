"""Block algebra by PyTorch, in double precision: on a GPU, or on PyTorch's CPU device, where tests run the same code.

A batch's blocks are written on the device from the pairs in its working set, factorised and turned into M = L⁻¹ D, with
L Cholesky's factor of the block scaled by D to a unit diagonal. So H⁻¹ = MᵀM: solutions are two products with M, and
the Schur complement of a whole batch is one. The M are kept; where room is short, two triangles in one square; and
where there is none they are computed anew.
"""

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import inf
from typing import Any

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.solvers.linalg.blocks import (
    REGULARISATIONS,
    CouplingRows,
    Item,
    OffDiagonal,
    Result,
    SymmetricBlocks,
    even_ranges,
)
from privacygames.solvers.linalg.device_backend import DeviceBackend, Tensor
from privacygames.solvers.linalg.failure import FactorisationFailed
from privacygames.solvers.linalg.schur import REFINEMENTS, REFINEMENTS_REGULARISED
from privacygames.solvers.linalg.schur import REGULARISATIONS as SCHUR_REGULARISATIONS
from privacygames.solvers.memory import device_free
from privacygames.threads import available_processors, single_threaded_blas

TEMPORARIES = 4
"""So many times the memory of a batch's blocks is used while they are factorised."""

BATCH_SHARE = 0.1
"""Of the memory that is free, how much one batch's temporary arrays may take."""

RESERVE_SHARE = 0.3
"""Of all memory, how much is to stay free when factors are kept: for what the method does with its pairs."""

HOST_BOUND = 500 * 500**2 * 8
"""With less memory than this for all blocks, what a step takes is the host's time (on an H200)."""

LARGE_LEAF = 512
"""A single matrix up to this size is factorised by the library; a larger one by halves, as products."""

PLENTY = 20 * HOST_BOUND
"""With so much that is free at the start, nobody asks again while all blocks need less than the last."""

LEAF, LARGEST_LEAF = 64, 128
"""Blocks up to this size are factorised by the library; larger ones by halves, as products. The second size is where
the host's time is what counts."""

GATHERED = 1 << 27
"""So many entries of factors are gathered at a time, to solve for single right-hand sides."""

KEPT_SHARE = 0.05
"""Of all memory, how much PyTorch may keep for the next design."""

MOST_POSITIONS = 2**31 - 1
"""Positions inside a batch are kept as 32-bit integers."""


@contextmanager
def device_algebra(device: str, *, threads: int | None = None, memory: int | None = None) -> Iterator["DeviceAlgebra"]:
    """Block algebra on one of PyTorch's devices.

    Args:
        device: "cuda", "cuda:1", …; or "cpu", which works with ``threads``, by default one a processor.
        threads: how many, on the CPU device.
        memory: how many bytes to work with; None for what is free.

    Raises:
        InvalidProblem: PyTorch is not installed, or has no such device.
        TooLarge: its memory is full.
    """
    torch = torch_with(device)
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(threads or available_processors())
    algebra = DeviceAlgebra(DeviceBackend(device), memory)
    try:
        # What is left to the host is small; and what PyTorch notes for derivatives takes time with every operation.
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


def torch_with(device: str) -> Any:
    """PyTorch, if it is installed and has this device."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InvalidProblem(f'device is {device!r}; it must be "host", "cuda", "cuda:1", … or "cpu" (PyTorch\'s)')
    try:
        import torch
    except (ImportError, OSError):
        message = f"device={device!r} needs PyTorch: pip install 'privacygames[gpu]', or leave device out"
        raise InvalidProblem(message) from None
    if device != "cpu" and not 0 <= int(device.partition(":")[2] or 0) < torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise InvalidProblem(f"device={device!r} is not here: PyTorch sees {found} CUDA devices; leave device out")
    return torch


class DeviceAlgebra:
    """Block algebra on a device: one batch after the other, each all at once."""

    def __init__(self, backend: DeviceBackend, memory: int | None = None) -> None:
        self.backend = backend
        self._memory, self._kept, self._whole = memory, 0, 0

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether the host's own part of a step is the longer one."""
        return self._whole < HOST_BOUND

    def batches(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length: as few as memory allows."""
        entries = max(width, 1) ** 2
        if entries > MOST_POSITIONS:
            raise InvalidProblem(f"blocks of {width} unknowns are too large for this device's 32-bit positions")
        most = min(int(BATCH_SHARE * self._free()) // (8 * TEMPORARIES * entries), MOST_POSITIONS // entries)
        self._whole = max(self._whole, 8 * count * entries)
        return even_ranges(count, -(-count // max(most, 1)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order; the device works on while the next is prepared."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, links: CouplingRows) -> tuple["DeviceFactors", Tensor]:
        """The factors, and the Schur complement of the links, on the device."""
        inverse = self._inverse_factors(blocks)
        schur = self._projected(inverse, links)
        tight = self._whole > (1 - RESERVE_SHARE - BATCH_SHARE) * self._all
        size = 8 * inverse.numel() // (2 if tight else 1)
        if self._free() - size < RESERVE_SHARE * self._all:
            return DeviceFactors(lambda: self._inverse_factors(blocks), self.backend), schur
        factors = DeviceFactors(_packed(inverse) if tight else lambda: inverse, self.backend)
        self._kept += size
        weakref.finalize(factors, self._dropped, size)
        return factors, schur

    def schur(self, matrix: Tensor) -> "DeviceSchur":
        """The Schur complement, on the device."""
        return DeviceSchur(matrix, self.backend)

    def _dropped(self, size: int) -> None:
        self._kept -= size

    @cached_property
    def _all(self) -> float:
        return self._memory or device_free(self.backend.device)[1]

    @cached_property
    def _free_at_first(self) -> float:
        return device_free(self.backend.device)[0]

    def _free(self) -> float:
        if self._memory is not None:
            return max(self._memory - self._kept, 0)
        if self.prefer_fused_operations and self._free_at_first > PLENTY:
            return self._free_at_first
        return device_free(self.backend.device)[0]

    def _inverse_factors(self, blocks: SymmetricBlocks) -> Tensor:
        """M = L⁻¹ D of every block, (blocks, width, width)."""
        scales = self._scales(blocks)
        inverse, failed = self._inverted(self._written(blocks, scales), REGULARISATIONS[0])
        least, most, fails = self.backend.to_floats([*self.backend.torch.aminmax(scales), failed.any()])
        if not 0 < least <= most < inf:
            raise FactorisationFailed
        if fails:
            self._regularise(blocks, scales, inverse, failed)
        return inverse.mul_(scales[:, None, :])

    def _regularise(self, blocks: SymmetricBlocks, scales: Tensor, inverse: Tensor, failed: Tensor) -> None:
        """Invert the factors of blocks that failed, with more on their diagonals."""
        for regularisation in REGULARISATIONS[1:]:
            which = self.backend.torch.nonzero(failed).ravel()
            inverse[which], failed[which] = self._inverted(self._written(blocks, scales)[which], regularisation)
            if not failed.any():
                return
        raise FactorisationFailed

    def _inverted(self, written: Tensor, regularisation: float) -> tuple[Tensor, Tensor]:
        """L⁻¹ of blocks with this on their unit diagonals, which are overwritten; and which of them failed."""
        written.diagonal(dim1=1, dim2=2).fill_(1.0 + regularisation)
        return self.backend.inverse_cholesky_factors(written, LARGEST_LEAF if self.prefer_fused_operations else LEAF)

    def _scales(self, blocks: SymmetricBlocks) -> Tensor:
        """What brings the blocks' diagonals to one."""
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

    def _written(self, blocks: SymmetricBlocks, scales: Tensor) -> Tensor:
        """The blocks, scaled on both sides, right on and below the diagonal; what is on it is left to the caller."""
        torch, taken, (count, width) = self.backend.torch, self.backend.take, scales.shape
        dense = self.backend.zeros((count, width, width))
        if blocks.beside is not None:
            beside = blocks.beside
            row, column = self.backend.indices_to_device(beside.row), self.backend.indices_to_device(beside.column)
            first = self._block(beside, count) * width
            at_row, at_column, flat = first + row, first + column, scales.ravel()
            value = self.backend.to_device(beside.value) * taken(flat, at_row) * taken(flat, at_column)
            at = torch.maximum(at_row, at_column).mul_(width).add_(torch.minimum(row, column))
            # At most two values, of (i, j) and (j, i), meet in one place: their order does not matter.
            dense.view(-1).index_add_(0, at, value)
        for gram in blocks.grams:
            rows, columns, weights = self._gram(gram.rows, gram.columns, gram.weights)
            whole = rows
            if len(columns) < width:
                whole = self.backend.zeros((len(rows), width))
                whole[:, columns] = rows
            scaled = weights.sqrt()[:, :, None] * (whole * scales[:, None, :])
            dense.baddbmm_(scaled.mT, scaled)
        return dense

    def _block(self, beside: OffDiagonal, count: int) -> Tensor:
        """The block of each entry beside a diagonal."""
        if beside.block is not None:
            return self.backend.indices_to_device(beside.block)
        torch, starts = self.backend.torch, self.backend.indices_to_device(beside.starts)
        ranges = torch.arange(count, device=self.backend.device, dtype=torch.int32)
        return torch.repeat_interleave(ranges, starts.diff(), output_size=len(beside.row))

    def _projected(self, inverse: Tensor, links: CouplingRows) -> Tensor:
        """Σ_o J_o MᵀM J_oᵀ: one product, of all M J_oᵀ below each other."""
        first = inverse[:, :, : links.shared]
        if links.weights is not None:
            weights = self.backend.to_device(links.weights)
            if links.which is None:
                more = inverse[:, :, : weights.shape[1]] @ weights[:, :, None]
            else:
                which = links.which if isinstance(links.which, slice) else self.backend.indices_to_device(links.which)
                more = inverse[:, :, which] * weights[:, None, :]
            first = self.backend.torch.cat([first, -more], dim=2)
        stacked = first.reshape(-1, links.rows)
        return stacked.T @ stacked


def _packed(inverse: Tensor) -> Callable[[], Tensor]:
    """Triangles in half the room: two in one rectangle, the second transposed; what gives them back."""
    count, width, _ = inverse.shape
    half = -(-count // 2)
    kept = inverse.new_zeros((half, width + 1, width))
    kept[:, 1:] += inverse[:half]
    kept[: count - half, :width] += inverse[half:].mT

    def unpacked() -> Tensor:
        found = kept.new_empty((count, width, width))
        found[:half] = kept[:, 1:].tril()
        found[half:] = kept[: count - half, :width].triu().mT
        return found

    return unpacked


class DeviceSchur:
    """A positive definite matrix S, solved with by M = L⁻¹ D as blocks are, and refined.

    By two products with M, not one with MᵀM: where S is all but singular only they leave small residuals, which are
    as small before they are refined as after, but where S had to be regularised.
    """

    def __init__(self, matrix: Tensor, backend: DeviceBackend) -> None:
        self._matrix, self._torch = matrix, backend.torch
        scale = matrix.diagonal().rsqrt()
        across, extremes = scale * scale[:, None], self._torch.aminmax(scale)
        for regularisation in SCHUR_REGULARISATIONS:
            scaled = matrix * across
            scaled.diagonal().fill_(1.0 + regularisation)
            inverse, failed = backend.inverse_cholesky_factors(scaled[None], LARGE_LEAF)
            least, most, fails = backend.to_floats([*extremes, failed[0]])
            if not 0 < least <= most < inf:
                break
            if not fails:
                self._inverse = inverse[0].mul_(scale)
                self._transposed = self._inverse.T
                self._refinements = REFINEMENTS_REGULARISED if regularisation else REFINEMENTS
                return
        raise FactorisationFailed

    def solve(self, right: Tensor) -> Tensor:
        """S⁻¹ r, refined."""
        return self._refined(right, self._torch.mv, self._torch.addmv)

    def solve_rows(self, right: Tensor) -> Tensor:
        """S⁻¹ r for every row of ``right``, refined together."""
        return self._refined(right.T, self._torch.mm, self._torch.addmm).T

    def _refined(self, right: Tensor, product: Callable[..., Tensor], plus_product: Callable[..., Tensor]) -> Tensor:
        found = product(self._transposed, product(self._inverse, right))
        for _ in range(self._refinements):
            missed = plus_product(right, self._matrix, found, alpha=-1)
            found = plus_product(found, self._transposed, product(self._inverse, missed))
        return found


class DeviceFactors:
    """What solves with a batch of blocks: M, kept, unpacked, or computed anew each time."""

    def __init__(self, inverse: Callable[[], Tensor], backend: DeviceBackend) -> None:
        self._inverse, self._backend = inverse, backend

    def solve(self, right: Tensor, more: Tensor | None = None) -> Tensor:
        """H_o⁻¹ r_o = MᵀM r_o for every block, and more."""
        return self._solved(self._inverse(), self._backend.to_device(right), more)

    def solve_rows(self, blocks: IntArray, right: Tensor) -> Tensor:
        """H_o⁻¹ r for single right-hand sides: their blocks' M are gathered, as many at a time as is modest."""
        inverse, held, at = self._inverse(), self._backend.to_device(right), self._backend.indices_to_device(blocks)
        several = max(1, GATHERED // max(held.shape[1], 1) ** 2)
        if len(held) <= several:
            return self._solved(self._backend.take(inverse, at), held)
        parts = [slice(start, start + several) for start in range(0, len(held), several)]
        taken = self._backend.take
        return self._backend.concatenate([self._solved(taken(inverse, at[some]), held[some]) for some in parts])

    def _solved(self, inverse: Tensor, right: Tensor, more: Tensor | None = None) -> Tensor:
        """MᵀM r_o; by name, for at small sizes the operators' own checks take longer than the device."""
        torch = self._backend.torch
        half = torch.bmm(inverse, right.unsqueeze(2))
        if more is None:
            return torch.bmm(inverse.mT, half).squeeze(2)
        return torch.baddbmm(more.unsqueeze(2), inverse.mT, half).squeeze(2)

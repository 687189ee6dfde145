"""The factors of a batch of blocks on a device, by stripes of columns, and their inverses without most of the zeros."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from privacygames.arrays import IntArray
from privacygames.solvers.linalg.block_algebra import CouplingRows
from privacygames.solvers.linalg.device_backend import DeviceBackend, Tensor

ALIGNMENT = 64
"""Stripes are a multiple of this many columns wide, as PyTorch's products like them."""

Panel = tuple[int, Tensor]
"""Columns of every block from one of its rows on: that row, and the entries, (blocks, rows, columns)."""


def stripe_edges(width: int, largest: int) -> list[int]:
    """The first column of each stripe, then the width: stripes are of about equal width, ``largest`` or a bit more."""
    columns = -(-width // max(round(width / largest), 1))
    aligned = -(-columns // ALIGNMENT) * ALIGNMENT if columns > ALIGNMENT else columns
    return [*range(0, width, max(aligned, 1)), width]


@dataclass(frozen=True)
class CholeskyStripes:
    """Cholesky's factors L of the blocks A = L Lᵀ of a batch, computed stripe after stripe, so that all are products.

    Attributes:
        edges: the first column of each stripe, then the width.
        matrices: the factors below the diagonal blocks; anything else elsewhere.
        inverses: the inverses K of the factors on the diagonal, one stripe after the other.
        failed: which blocks are not positive definite.
        backend: where they are.
    """

    edges: Sequence[int]
    matrices: Tensor
    inverses: Sequence[Tensor]
    failed: Tensor
    backend: DeviceBackend

    @classmethod
    def of(cls, matrices: Tensor, edges: Sequence[int], leaf: int, backend: DeviceBackend) -> Self:
        """Factorise blocks that are given on and below the diagonal, and are overwritten.

        A stripe's columns of A, less what the stripes before it explain, are factorised on the diagonal and multiplied
        by the inverse of that factor below it.

        Args:
            matrices: the blocks, (blocks, width, width).
            edges: the stripes.
            leaf: the size up to which PyTorch factorises a block.
            backend: where they are.
        """
        inverses: list[Tensor] = []
        any_failed = None
        for start, end in pairwise(edges):
            size, columns, before = end - start, matrices[:, start:, start:end], matrices[:, start:, :start]
            if start:
                columns.baddbmm_(before, before[:, :size].mT, alpha=-1)
            inverse, failed = backend.inverse_cholesky_factors(columns[:, :size], leaf)
            if end < edges[-1]:
                columns[:, size:] = columns[:, size:] @ inverse.mT
            inverses.append(inverse)
            any_failed = failed if any_failed is None else any_failed | failed
        return cls(edges, matrices, inverses, any_failed, backend)

    def inverse(self) -> "Triangles":
        """L⁻¹: the rows of a stripe are −K times its rows of L times the rows of L⁻¹ above."""
        stripes: list[Tensor] = []
        for (start, end), inverse in zip(pairwise(self.edges), self.inverses, strict=True):
            if not start and end == self.edges[-1]:
                return Triangles(self.edges, [inverse], self.backend)
            rows = inverse @ self.matrices[:, start:end, :start]
            for first, stripe in zip(self.edges, stripes, strict=False):
                into, above = stripe[:, start - first : end - first], stripe[:, : start - first]
                into.baddbmm_(rows[:, :, first:], above, beta=0, alpha=-1)
            stripes.append(inverse.new_empty((len(inverse), self.edges[-1] - start, end - start)))
            stripes[-1][:, : end - start] = inverse
        return Triangles(self.edges, stripes, self.backend)

    def replace(self, indices: IntArray, others: "CholeskyStripes") -> None:
        """Overwrite the factors of some blocks."""
        for matrices, other in zip((self.matrices, *self.inverses), (others.matrices, *others.inverses), strict=True):
            matrices[indices] = other
        self.failed[indices] = others.failed

    def solve(self, right: Tensor) -> Tensor:
        """A⁻¹ r for each block, (blocks, width), by substitution."""
        torch, solution = self.backend.torch, right.unsqueeze(2).clone()
        stripes = list(zip(pairwise(self.edges), self.inverses, strict=True))
        for (start, end), inverse in stripes:
            solution[:, start:end] = torch.bmm(inverse, solution[:, start:end])
            if end < self.edges[-1]:
                solution[:, end:].baddbmm_(self.matrices[:, end:, start:end], solution[:, start:end], alpha=-1)
        for (start, end), inverse in reversed(stripes):
            own = solution[:, start:end]
            if end < self.edges[-1]:
                own.baddbmm_(self.matrices[:, end:, start:end].mT, solution[:, end:], alpha=-1)
            solution[:, start:end] = torch.bmm(inverse.mT, own)
        return solution.squeeze(2)


@dataclass(frozen=True)
class Triangles:
    """Lower triangular matrices M, one for each block of a batch, in stripes of columns.

    A stripe has its columns from the row on in which its first one starts, so that about half of a square is stored.
    Nothing has to be unpacked: every operation is a product with each stripe.

    Attributes:
        edges: the first column of each stripe, then the width.
        stripes: (blocks, rows, columns) each.
        backend: where they are.
    """

    edges: Sequence[int]
    stripes: Sequence[Tensor]
    backend: DeviceBackend

    @property
    def bytes(self) -> int:
        """Memory that they take."""
        return 8 * sum(int(stripe.numel()) for stripe in self.stripes)

    @property
    def starts(self) -> Sequence[int]:
        """The first column of each stripe."""
        return self.edges[:-1]

    def scale_columns(self, scales: Tensor) -> None:
        """Multiply by the diagonal matrix of each block's scales, (blocks, width), from the right, in place."""
        for (start, end), stripe in zip(pairwise(self.edges), self.stripes, strict=True):
            stripe.mul_(scales[:, None, start:end])

    def take(self, indices: IntArray) -> "Triangles":
        """Those of some blocks, copied."""
        return Triangles(self.edges, [self.backend.take(stripe, indices) for stripe in self.stripes], self.backend)

    def multiply(self, vectors: Tensor) -> Tensor:
        """M x for each block, (blocks, width, 1)."""
        torch = self.backend.torch
        # Functions instead of operators, whose checks take longer than the device at small sizes.
        product = torch.bmm(self.stripes[0], vectors[:, : self.edges[1]].unsqueeze(2))
        for start, end, stripe in zip(self.edges[1:], self.edges[2:], self.stripes[1:], strict=False):
            product[:, start:].baddbmm_(stripe, vectors[:, start:end].unsqueeze(2))
        return product

    def solve(self, right: Tensor, addend: Tensor | None = None) -> Tensor:
        """MᵀM r for each block, plus the addend, (blocks, width)."""
        torch, half = self.backend.torch, self.multiply(right)
        parts = []
        for start, end, stripe in zip(self.edges, self.edges[1:], self.stripes, strict=False):
            below = half[:, start:] if start else half
            if addend is None:
                parts.append(torch.bmm(stripe.mT, below))
            else:
                parts.append(torch.baddbmm(addend[:, start:end].unsqueeze(2), stripe.mT, below))
        return self._join(parts).squeeze(2)

    def _join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] if len(parts) == 1 else self.backend.torch.cat(list(parts), dim=1)

    def project(self, coupling: CouplingRows) -> Tensor:
        """Σ_o J_o MᵀM J_oᵀ for the coupling rows J."""
        panels = list(self._panels(coupling))
        starts = {start for start, _ in panels}
        if len(starts) == 1:
            stacked = self.backend.torch.cat([panel for _, panel in panels], dim=2) if len(panels) > 1 else panels[0][1]
            stacked = stacked.reshape(-1, coupling.rows)
            return stacked.T @ stacked
        schur, end = self.backend.zeros((coupling.rows, coupling.rows)), 0
        for index, (start, panel) in enumerate(panels):
            begin, end, left = end, end + panel.shape[2], 0
            for other_start, other in panels[: index + 1]:
                top = max(start, other_start)
                product = _gram(panel[:, top - start :], other[:, top - other_start :])
                right = left + other.shape[2]
                schur[begin:end, left:right] = product
                schur[left:right, begin:end] = product.T
                left = right
        return schur

    def _panels(self, coupling: CouplingRows) -> Iterator[Panel]:
        """M Jᵀ of every block, panel by panel."""
        yield from self._columns(coupling.identity_rows)
        if coupling.weights is None:
            return
        weights, unknowns = self.backend.to_device(coupling.weights), coupling.unknowns
        if unknowns is None:
            padded = self.backend.zeros((len(weights), self.edges[-1]))
            padded[:, : weights.shape[1]] = weights
            yield 0, -self.multiply(padded)
        elif isinstance(unknowns, slice) and not unknowns.start:
            for start, columns in self._columns(unknowns.stop):
                yield start, columns * -weights[:, None, start : start + columns.shape[2]]
        else:
            unknowns = unknowns if isinstance(unknowns, slice) else self.backend.indices_to_device(unknowns)
            yield 0, self.dense()[:, :, unknowns] * -weights[:, None, :]

    def _columns(self, count: int) -> Iterator[Panel]:
        """The first columns, stripe by stripe."""
        for start, stripe in zip(self.starts, self.stripes, strict=True):
            if start < count:
                yield start, stripe[:, :, : count - start]

    def dense(self) -> Tensor:
        """The matrices themselves, (blocks, width, width)."""
        if len(self.stripes) == 1:
            return self.stripes[0]
        width = self.edges[-1]
        dense = self.backend.zeros((len(self.stripes[0]), width, width))
        for (start, end), stripe in zip(pairwise(self.edges), self.stripes, strict=True):
            dense[:, start:, start:end] = stripe
        return dense


def _gram(first: Tensor, second: Tensor) -> Tensor:
    """Σ_o first_oᵀ second_o: one product where both are stacked in memory, or else one for each block."""
    if first.is_contiguous() and second.is_contiguous():
        return first.reshape(-1, first.shape[2]).T @ second.reshape(-1, second.shape[2])
    return (first.mT @ second).sum(dim=0)

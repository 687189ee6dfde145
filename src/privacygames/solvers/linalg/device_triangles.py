"""The inverse factors of a batch of blocks on a device, stored without most of the zeros above their diagonals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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

    @classmethod
    def inverse_factors(
        cls, matrices: Tensor, edges: Sequence[int], leaf: int, backend: DeviceBackend
    ) -> tuple["Triangles", Tensor]:
        """L⁻¹ of blocks A = L Lᵀ, and a mask of the blocks that are not positive definite.

        Blocks are given on and below the diagonal and are overwritten. Stripe after stripe: its columns of A, less
        what those before it explain, are factorised on the diagonal and multiplied by that factor's inverse K below.
        Its rows of L⁻¹ are then −K times its rows of L times the rows of L⁻¹ above. So n³ operations for each block,
        counting both, are nearly all there are, and all are products.

        Args:
            matrices: the blocks, (blocks, width, width).
            edges: the stripes.
            leaf: the size up to which PyTorch factorises a block.
            backend: where they are.
        """
        if len(edges) <= 2:  # one stripe
            inverse, failed = backend.inverse_cholesky_factors(matrices, leaf)
            return cls(edges, [inverse], backend), failed
        count, width, _ = matrices.shape
        stripes: list[Tensor] = []
        any_failed = backend.torch.zeros(count, dtype=backend.torch.bool, device=backend.device)
        for start, end in pairwise(edges):
            size = end - start
            columns, before = matrices[:, start:, start:end], matrices[:, start:, :start]
            if start:
                columns.baddbmm_(before, before[:, :size].mT, alpha=-1)
            inverse, failed = backend.inverse_cholesky_factors(columns[:, :size], leaf)
            any_failed |= failed
            columns[:, size:] = columns[:, size:] @ inverse.mT
            rows = inverse @ before[:, :size]
            for first, stripe in zip(edges, stripes, strict=False):
                into, above = stripe[:, start - first : end - first], stripe[:, : start - first]
                into.baddbmm_(rows[:, :, first:], above, beta=0, alpha=-1)
            stripes.append(matrices.new_empty((count, width - start, size)))
            stripes[-1][:, :size] = inverse
        return cls(edges, stripes, backend), any_failed

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

    def replace(self, indices: IntArray, others: "Triangles") -> None:
        """Overwrite the matrices of some blocks."""
        for stripe, other in zip(self.stripes, others.stripes, strict=True):
            stripe[indices] = other

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

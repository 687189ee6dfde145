"""The rows in which blocks meet: Σ_o v_o = 1, the total distortion, and limits on the cost.

All are written J u ≥ or = something, with J of (rows × unknowns of all blocks) and u of shape (m, k):

- n rows Σ_o v_o(s) = 1;
- with distortion bounds, one row Σ_o x_k(o) ≥ d_k for each;
- with a limit on the average cost, one row −Σ_o ⟨c_o, v_o⟩ ≥ −C;
- with a limit on (or, as a variable y, the least) worst cost, rows y − Σ_o c_o(s) v_o(s) ≥ 0, one or more a secret;
- with limits on both, also the average of the latter rows: no linear algebra but a sum of rows that are there.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.program import Limit
from privacygames.solvers.linalg import HOST, Backend, CouplingRows


@dataclass(frozen=True)
class Coupling:
    """Which rows there are, and the products with J and its transpose.

    Attributes:
        size: n, the number of secrets.
        width: k, the unknowns of a block.
        totals: how many of the x have a bounded sum Σ_o x_k(o): the first ones.
        cost: c_o(s), (observables, secrets) or, for "each", (observables, rows), where the cost is limited.
        whose: for "each": the secret of each row.
        limit: how it is limited: "none", on "average" or for "each" secret.
        shares: for "each", where the average is limited as well, what each row counts in it; None otherwise.
        backend: where u is, and the cost.
    """

    size: int
    width: int
    totals: int
    cost: FloatArray
    whose: IntArray
    limit: Limit
    shares: FloatArray | None = None
    backend: Backend = HOST

    @property
    def links(self) -> CouplingRows:
        """The same rows as the block algebra takes them, but for an average beside the limits for each secret."""
        first = self.size + self.totals
        if self.limit == "none":
            return CouplingRows(first)
        one_each = len(self.whose) == self.size  # then in their order, and a slice is faster
        which = None if self.limit == "average" else slice(self.size) if one_each else self.whose
        return CouplingRows(first, self.cost, which)

    @property
    def rows(self) -> int:
        """How many rows there are; the first n are equalities."""
        return self.links.rows + (self.shares is not None)

    def completed(self, schur: FloatArray, backend: Backend) -> FloatArray:
        """The Schur complement of all rows, from that of ``links``: the average is a sum of rows."""
        if self.shares is None:
            return schur
        size = len(schur)
        sums = backend.zeros((size,))
        sums[-len(self.shares) :] = backend.to_device(self.shares)
        across = schur @ sums
        whole = backend.zeros((size + 1, size + 1))
        whole[:size, :size] = schur
        whole[:size, size], whole[size, :size], whole[size, size] = across, across, sums @ across
        return whole

    def gather(self, u: FloatArray) -> FloatArray:
        """J u, where u is."""
        v, parts = u[:, : self.size], [u[:, : self.size + self.totals].sum(axis=0)]
        if self.limit == "average":
            parts.append(-(self.cost * v).sum().reshape(1))
        if self.limit == "each":
            parts.append(-(self.cost * v[:, self._rows]).sum(axis=0))
        if self.shares is not None:
            parts.append((self.backend.to_device(self.shares) @ parts[-1]).reshape(1))
        return self.backend.concatenate(parts)

    def gather_each(self, blocks: IntArray, u: FloatArray) -> FloatArray:
        """J_o u for the unknowns of single blocks, (…, rows)."""
        first = self.size + self.totals
        if self.limit == "none":
            return u[:, :first]
        result = self.backend.zeros((len(u), self.rows))
        result[:, :first] = u[:, :first]
        v = u[:, : self.size] if self.limit == "average" else u[:, self._rows]
        charged = -self.cost[blocks] * v
        last = first + (1 if self.limit == "average" else len(self.whose))
        result[:, first:last] = charged.sum(axis=1, keepdims=True) if self.limit == "average" else charged
        if self.shares is not None:
            result[:, last] = charged @ self.backend.to_device(self.shares)
        return result

    def spread(self, values: FloatArray) -> FloatArray:
        """Jᵀ values."""
        values = self.backend.to_device(values)
        if self.limit == "none":
            return self.backend.broadcast_rows(values, len(self.cost))
        result = self.backend.zeros((len(self.cost), self.width))
        result[:, : self.size] = values[: self.size]
        first = self.size + self.totals
        result[:, self.size : first] = values[self.size : first]
        result[:, : self.size] -= self.charged(values[first:])
        return result

    def charged(self, prices: FloatArray) -> FloatArray:
        """What prices of the limits add to the cost of each entry, (observables, secrets)."""
        prices = self.backend.to_device(prices)
        if self.limit != "each":
            return self.cost * prices
        if self.shares is not None:
            prices = prices[:-1] + self.backend.to_device(self.shares) * prices[-1]
        if len(self.whose) == self.size:  # then in their order
            return self.cost * prices
        total = self.backend.zeros((len(self.cost), self.size))
        self.backend.index_add_columns(total, self._rows, self.cost * prices)
        return total

    @cached_property
    def _rows(self) -> IntArray:
        """The secret of each row, where u is."""
        return self.backend.indices_to_device(self.whose)

    def among(self, blocks: slice, backend: Backend) -> "Coupling":
        """The same rows for some of the blocks, whose unknowns are elsewhere."""
        return replace(self, cost=backend.to_device(self.cost[blocks]), backend=backend)

"""The coupling rows J, which alone link the blocks: sums to one, total distortions, and limits on the cost.

All are in the form Ju ≥ b or Ju = b, with J of (rows × unknowns of all blocks) and u of shape (m, k):

- n rows Σ_o v_o = 1;
- for each distortion guarantee, one row Σ_o x_k(o) ≥ d_k;
- with a limit on the average cost, one row −Σ_o ⟨c_o, v_o⟩ ≥ −C;
- where the worst cost is limited, or minimised through a variable y, rows y − Σ_o c_o(s) v_o(s) ≥ 0, one or more per
  secret;
- with both limits, also the average of the latter rows, which is a linear combination of rows that are there.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.program import Limit
from privacygames.solvers.linalg import HOST, Backend, CouplingRows


@dataclass(frozen=True)
class Coupling:
    """The linear operator J and its transpose.

    Attributes:
        size: n, the number of secrets.
        width: k, the unknowns of a block.
        distortion_count: number of adversaries whose Σ_o x_k(o) is bounded: the first ones.
        cost: c_o(s), (observables, secrets) or, for "each", (observables, rows), where the cost is limited.
        cost_secret: for "each": the secret of each row.
        limit: which cost is limited: "none", the "average" or "each" secret's.
        average_weights: for "each", where the average is limited as well, each row's weight in it; None otherwise.
        backend: where u is, and the cost.
    """

    size: int
    width: int
    distortion_count: int
    cost: FloatArray
    cost_secret: IntArray
    limit: Limit
    average_weights: FloatArray | None = None
    backend: Backend = HOST

    @property
    def block_rows(self) -> CouplingRows:
        """The rows as the block algebra takes them: all but an average beside the limits for each secret."""
        first = self.size + self.distortion_count
        if self.limit == "none":
            return CouplingRows(first)
        in_order = len(self.cost_secret) == self.size  # one row per secret: a slice is faster
        which = None if self.limit == "average" else slice(self.size) if in_order else self.cost_secret
        return CouplingRows(first, self.cost, which)

    @property
    def row_count(self) -> int:
        """Number of rows; the first n are equalities."""
        return self.block_rows.rows + (self.average_weights is not None)

    def complete_schur(self, schur: FloatArray, backend: Backend) -> FloatArray:
        """The Schur complement of all rows, from that of ``block_rows``: the average is a combination of rows."""
        if self.average_weights is None:
            return schur
        size = len(schur)
        weights = backend.zeros((size,))
        weights[-len(self.average_weights) :] = backend.to_device(self.average_weights)
        across = schur @ weights
        whole = backend.zeros((size + 1, size + 1))
        whole[:size, :size] = schur
        whole[:size, size], whole[size, :size], whole[size, size] = across, across, weights @ across
        return whole

    def matvec(self, u: FloatArray) -> FloatArray:
        """J u, where u is."""
        v, parts = u[:, : self.size], [u[:, : self.size + self.distortion_count].sum(axis=0)]
        if self.limit == "average":
            parts.append(-(self.cost * v).sum().reshape(1))
        if self.limit == "each":
            parts.append(-(self.cost * v[:, self._device_cost_secret]).sum(axis=0))
        if self.average_weights is not None:
            parts.append((self.backend.to_device(self.average_weights) @ parts[-1]).reshape(1))
        return self.backend.concatenate(parts)

    def matvec_blocks(self, blocks: IntArray, u: FloatArray) -> FloatArray:
        """J_o u for the unknowns of single blocks, (…, rows)."""
        first = self.size + self.distortion_count
        if self.limit == "none":
            return u[:, :first]
        result = self.backend.zeros((len(u), self.row_count))
        result[:, :first] = u[:, :first]
        v = u[:, : self.size] if self.limit == "average" else u[:, self._device_cost_secret]
        terms = -self.cost[blocks] * v
        last = first + (1 if self.limit == "average" else len(self.cost_secret))
        result[:, first:last] = terms.sum(axis=1, keepdims=True) if self.limit == "average" else terms
        if self.average_weights is not None:
            result[:, last] = terms @ self.backend.to_device(self.average_weights)
        return result

    def rmatvec(self, duals: FloatArray) -> FloatArray:
        """Jᵀ duals."""
        duals = self.backend.to_device(duals)
        if self.limit == "none":
            return self.backend.broadcast_rows(duals, len(self.cost))
        result = self.backend.zeros((len(self.cost), self.width))
        result[:, : self.size] = duals[: self.size]
        first = self.size + self.distortion_count
        result[:, self.size : first] = duals[self.size : first]
        result[:, : self.size] -= self.weighted_cost(duals[first:])
        return result

    def weighted_cost(self, limit_duals: FloatArray) -> FloatArray:
        """The limited cost of each entry times the dual value of its limit, (observables, secrets)."""
        duals = self.backend.to_device(limit_duals)
        if self.limit != "each":
            return self.cost * duals
        if self.average_weights is not None:
            duals = duals[:-1] + self.backend.to_device(self.average_weights) * duals[-1]
        if len(self.cost_secret) == self.size:  # one row per secret, in order
            return self.cost * duals
        total = self.backend.zeros((len(self.cost), self.size))
        self.backend.index_add_columns(total, self._device_cost_secret, self.cost * duals)
        return total

    @cached_property
    def _device_cost_secret(self) -> IntArray:
        return self.backend.indices_to_device(self.cost_secret)

    def restrict(self, blocks: slice, backend: Backend) -> "Coupling":
        """The same rows for some of the blocks, with arrays of another backend."""
        return replace(self, cost=backend.to_device(self.cost[blocks]), backend=backend)

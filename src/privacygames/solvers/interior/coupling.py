"""The rows in which blocks meet: Σ_o v_o = 1, the total distortion, and limits on the cost.

All are written J u ≥ or = something, with J of (rows × unknowns of all blocks) and u of shape (m, k):

- n rows Σ_o v_o(s) = 1;
- with distortion bounds, one row Σ_o x_k(o) ≥ d_k for each;
- with a limit on the average cost, one row −Σ_o ⟨c_o, v_o⟩ ≥ −C;
- with a limit on (or, as a variable y, the least) worst cost, rows y − Σ_o c_o(s) v_o(s) ≥ 0, one or more a secret;
- with limits on both, also the average of the latter rows: no linear algebra but a sum of rows that are there.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.alike import added_up
from privacygames.solvers.interior.program import Limit
from privacygames.solvers.linalg import Links


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
    """

    size: int
    width: int
    totals: int
    cost: FloatArray
    whose: IntArray
    limit: Limit
    shares: FloatArray | None = None

    @property
    def links(self) -> Links:
        """The same rows as the block algebra takes them, but for an average beside the limits for each secret."""
        first = self.size + self.totals
        if self.limit == "none":
            return Links(first)
        one_each = len(self.whose) == self.size  # then in their order, and a slice is faster
        which = None if self.limit == "average" else slice(self.size) if one_each else self.whose
        return Links(first, self.cost, which)

    @property
    def rows(self) -> int:
        """How many rows there are; the first n are equalities."""
        return self.links.rows + (self.shares is not None)

    def completed(self, schur: FloatArray) -> FloatArray:
        """The Schur complement of all rows, from that of ``links``: the average is a sum of rows."""
        if self.shares is None:
            return schur
        sums = np.zeros(len(schur))
        sums[-len(self.shares) :] = self.shares
        across = schur @ sums
        return np.block([[schur, across[:, None]], [across[None, :], np.full((1, 1), sums @ across)]])

    def gather(self, u: FloatArray) -> FloatArray:
        """J u."""
        v = u[:, : self.size]
        parts = [v.sum(axis=0)]
        if self.totals:
            parts.append(u[:, self.size : self.size + self.totals].sum(axis=0))
        if self.limit == "average":
            parts.append(-(self.cost * v).sum(keepdims=True)[0])
        if self.limit == "each":
            parts.append(-(self.cost * v[:, self.whose]).sum(axis=0))
        if self.shares is not None:
            parts.append((self.shares @ parts[-1])[None])
        return np.concatenate(parts)

    def spread(self, values: FloatArray) -> FloatArray:
        """Jᵀ values."""
        result = np.zeros((len(self.cost), self.width))
        result[:, : self.size] = values[: self.size]
        first = self.size + self.totals
        result[:, self.size : first] = values[self.size : first]
        if self.limit != "none":
            result[:, : self.size] -= self.charged(values[first:])
        return result

    def charged(self, prices: FloatArray) -> FloatArray:
        """What prices of the limits add to the cost of each entry, (observables, secrets)."""
        if self.limit != "each":
            return self.cost * prices
        if self.shares is not None:
            prices = prices[:-1] + self.shares * prices[-1]
        return added_up(self.cost * prices, self.whose, self.size)

    def among(self, blocks: slice) -> "Coupling":
        """The same rows for some of the blocks."""
        return replace(self, cost=self.cost[blocks])

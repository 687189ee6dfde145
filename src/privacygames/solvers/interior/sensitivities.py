"""Some of the inequalities, and how all unknowns respond to changes of their dual values."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class SelectedInequalities:
    """Some of the inequalities within the blocks.

    Attributes:
        batch: batch of each.
        index: its index among the inequalities of the batch.
        keys: for those that are pairs, the key in the working set.
        values: slacks, dual values, and the changes of both along a direction, (4, …).
    """

    batch: IntArray
    index: IntArray
    keys: IntArray
    values: FloatArray

    def in_batch(self, batch: int) -> IntArray:
        """Indices of those in a batch."""
        return np.flatnonzero(self.batch == batch)

    def difference(self, other: "SelectedInequalities") -> "SelectedInequalities":
        """Those of another selection that are not in this one."""
        mine = set(zip(self.batch.tolist(), self.index.tolist(), strict=True))
        theirs = zip(other.batch.tolist(), other.index.tolist(), strict=True)
        new = np.array([named not in mine for named in theirs], dtype=bool)
        return SelectedInequalities(other.batch[new], other.index[new], other.keys[new], other.values[:, new])

    def concatenate(self, other: "SelectedInequalities") -> "SelectedInequalities":
        """These, then those of another selection."""
        return SelectedInequalities(
            np.append(self.batch, other.batch),
            np.append(self.index, other.index),
            np.append(self.keys, other.keys),
            np.append(self.values, other.values, axis=1),
        )


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of the Newton direction with respect to shifts of the dual values of some inequalities.

    Shifting the dual value of an inequality with row a by f adds f·a to its block's Newton right-hand side; with fixed
    coupling duals this moves the block by H⁻¹a f. The coupling duals respond so that the coupling rows still hold.

    Attributes:
        rows: rows of the inequalities, (…, width).
        block: the block of each, among all.
        block_response: H⁻¹ rows, (…, width).
        coupling_response: J H⁻¹ rows, (…, coupling rows).
        coupling_dual: response of the coupling rows' dual values, (…, coupling rows), and of y, last, where it is free.
        backend: where all of these are.
    """

    rows: FloatArray
    block: IntArray
    block_response: FloatArray
    coupling_response: FloatArray
    coupling_dual: FloatArray
    backend: Backend

    def response_to(self, others: "Sensitivities") -> FloatArray:
        """Derivative of each slack with respect to each shift of others, (…, …), on the host."""
        same_block = self.block[:, None] == others.block[None, :]
        through_coupling = self.coupling_response @ others.coupling_dual[:, : self.coupling_response.shape[1]].T
        response = self.backend.multiply_add(through_coupling, self.rows @ others.block_response.T, same_block)
        return self.backend.to_numpy(response)

    def concatenate(self, other: "Sensitivities") -> "Sensitivities":
        """These, then others."""
        concatenate = self.backend.concatenate
        return Sensitivities(
            concatenate([self.rows, other.rows]),
            concatenate([self.block, other.block]),
            concatenate([self.block_response, other.block_response]),
            concatenate([self.coupling_response, other.coupling_response]),
            concatenate([self.coupling_dual, other.coupling_dual]),
            self.backend,
        )

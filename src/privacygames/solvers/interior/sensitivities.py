"""Some of the inequalities inside the blocks, and what forces on them do."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class Inequalities:
    """Some inequalities inside the blocks.

    Attributes:
        batch: of each.
        at: its position among those of the batch.
        keys: of those that are pairs, the key in the working set.
        values: slacks, dual values, and how a direction changes both, (4, …).
    """

    batch: IntArray
    at: IntArray
    keys: IntArray
    values: FloatArray

    def within(self, batch: int) -> IntArray:
        """Which of them are in a batch."""
        return np.flatnonzero(self.batch == batch)

    def new_in(self, other: "Inequalities") -> "Inequalities":
        """Those of another set that are not in this one."""
        mine = set(zip(self.batch.tolist(), self.at.tolist(), strict=True))
        theirs = zip(other.batch.tolist(), other.at.tolist(), strict=True)
        new = np.array([each not in mine for each in theirs], dtype=bool)
        return Inequalities(other.batch[new], other.at[new], other.keys[new], other.values[:, new])

    def and_then(self, other: "Inequalities") -> "Inequalities":
        """These, then others."""
        return Inequalities(
            np.append(self.batch, other.batch),
            np.append(self.at, other.at),
            np.append(self.keys, other.keys),
            np.append(self.values, other.values, axis=1),
        )


@dataclass(frozen=True)
class Sensitivities:
    """What forces of one on some inequalities do: the changes of their own blocks' unknowns, and of what blocks share.

    Attributes:
        rows: the inequalities' rows, (…, width).
        block: the block of each, among all.
        within: H⁻¹ rows, (…, width): the change of that block as long as the coupling rows' duals do not change.
        gathered: what that does to the coupling rows, (…, coupling rows).
        coupling_dual: how the coupling rows' duals change in answer, (…, coupling rows), and y, last, where it is free.
        backend: where all of these are.
    """

    rows: FloatArray
    block: IntArray
    within: FloatArray
    gathered: FloatArray
    coupling_dual: FloatArray
    backend: Backend

    def to_forces_on(self, others: "Sensitivities") -> FloatArray:
        """How the slack of each changes by a force on each of others, (…, …), on the host."""
        together = self.block[:, None] == others.block[None, :]
        shared = self.gathered @ others.coupling_dual[:, : self.gathered.shape[1]].T
        return self.backend.to_numpy(self.backend.multiply_add(shared, self.rows @ others.within.T, together))

    def and_then(self, other: "Sensitivities") -> "Sensitivities":
        """These, then others."""
        joined = self.backend.concatenate
        return Sensitivities(
            joined([self.rows, other.rows]),
            joined([self.block, other.block]),
            joined([self.within, other.within]),
            joined([self.gathered, other.gathered]),
            joined([self.coupling_dual, other.coupling_dual]),
            self.backend,
        )

"""Some of the inequalities inside the blocks, and what forces on them do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class Inequalities:
    """Some inequalities inside the blocks: the batch, the family and the position in its arrays of each."""

    batch: IntArray
    family: IntArray
    at: IntArray

    def within(self, batch: int) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Family by family, which of them are in a batch, and where in its arrays."""
        for family in np.unique(self.family[self.batch == batch]):
            which = np.flatnonzero((self.batch == batch) & (self.family == family))
            yield int(family), which, self.at[which]

    def new_in(self, other: "Inequalities") -> "Inequalities":
        """Those of another set that are not in this one."""
        mine = set(zip(self.batch.tolist(), self.family.tolist(), self.at.tolist(), strict=True))
        theirs = zip(other.batch.tolist(), other.family.tolist(), other.at.tolist(), strict=True)
        new = np.array([each not in mine for each in theirs], dtype=bool)
        return Inequalities(other.batch[new], other.family[new], other.at[new])

    def and_then(self, other: "Inequalities") -> "Inequalities":
        """These, then others."""
        return Inequalities(
            np.append(self.batch, other.batch), np.append(self.family, other.family), np.append(self.at, other.at)
        )


@dataclass(frozen=True)
class Answers:
    """What forces of one on some inequalities do: the changes of their own blocks' unknowns, and of what blocks share.

    Attributes:
        rows: the inequalities' rows, (…, width).
        block: the block of each, among all.
        within: H⁻¹ rows, (…, width): the change of that block as long as the coupling rows' duals do not change.
        gathered: what that does to the coupling rows, (…, coupling rows).
        coupling_dual: how the coupling rows' duals change in answer, (…, coupling rows), and y, last.
        backend: where all of these are.
    """

    rows: FloatArray
    block: IntArray
    within: FloatArray
    gathered: FloatArray
    coupling_dual: FloatArray
    backend: Backend

    def to_forces_on(self, others: "Answers") -> FloatArray:
        """How the slack of each changes by a force on each of others, (…, …), on the host."""
        together = self.block[:, None] == others.block[None, :]
        found = self.gathered @ others.coupling_dual[:, :-1].T + (self.rows @ others.within.T) * together
        return self.backend.fetched(found)

    def and_then(self, other: "Answers") -> "Answers":
        """These, then others."""
        joined = self.backend.joined
        return Answers(
            joined([self.rows, other.rows]),
            joined([self.block, other.block]),
            joined([self.within, other.within]),
            joined([self.gathered, other.gathered]),
            joined([self.coupling_dual, other.coupling_dual]),
            self.backend,
        )

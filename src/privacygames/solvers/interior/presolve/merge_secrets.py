"""Secrets whose answers must be the same, or almost: taken together as one, and told apart again in the proof.

Where the exponent between two secrets is 0 their columns are equal, so one unknown stands for both: prior, cost and
errors add up, and the smallest exponent to any third secret counts. The multipliers of the smaller program become ones
of the whole by passing on, along ratios inside a group, what one member has too much and another too little. A ratio
with exponent e loses a share e of what is passed on over it, so secrets that are *nearly* the same may be taken
together, too: the mechanism is valid all the same, and the certified gap says whether it was worth it.

One direction is enough: where p(o|s) ≤ p(o|s') for every o, the rows are equal, for both sum to one. In the proof there
is a multiplier of only one sign then; adding the same to it for every output changes the minima of the two rows by as
much up as down. docs/theory/solver.md has the proof.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import RatioDuals

BOTH_WAYS = 1e-6
"""Exponents up to this are passed on over in both directions: a share of as much is lost."""


def added_up(table: FloatArray, whose: IntArray, count: int) -> FloatArray:
    """(…, members) added up to (…, owners): ``whose`` says which each belongs to. As it is where each owns one."""
    if len(whose) == count:
        return table
    total = np.zeros((*table.shape[:-1], count))
    np.add.at(np.moveaxis(total, -1, 0), whose, np.moveaxis(table, -1, 0))
    return total


@dataclass(frozen=True)
class SecretClasses:
    """Which secrets are taken together.

    Attributes:
        of: for each secret, its group.
        exponents: between all secrets.
    """

    of: IntArray
    exponents: FloatArray

    @classmethod
    def where(cls, exponents: FloatArray, most: float) -> "SecretClasses":
        """Groups of secrets that exponents of at most so much, one way or both, tie together."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        near = np.minimum(exponents, exponents.T) <= most
        if not near.any():
            return cls(np.arange(len(exponents)), exponents)
        labels = connected_components(csr_array(near), directed=False)[1]
        _, first, of = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # groups in the order of their first members
        return cls(order[of].astype(np.int64), exponents)

    @cached_property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.of.max()) + 1

    @property
    def trivial(self) -> bool:
        """Whether every secret is on its own."""
        return self.count == len(self.of)

    def summed(self, table: FloatArray) -> FloatArray:
        """(…, secrets) added up to (…, groups)."""
        return added_up(table, self.of, self.count)

    @cached_property
    def _tightest(self) -> IntArray:
        """(groups, groups): the pair of members, as secret·n + other, with the smallest exponent between two groups."""
        size = len(self.of)
        order = np.lexsort((self.exponents.ravel(), np.repeat(self.of, size) * self.count + np.tile(self.of, size)))
        between = (np.repeat(self.of, size) * self.count + np.tile(self.of, size))[order]
        return np.asarray(order[np.searchsorted(between, np.arange(self.count**2))].reshape(self.count, self.count))

    @cached_property
    def between(self) -> FloatArray:
        """Exponents between groups: the smallest between their members."""
        if self.trivial:
            return self.exponents
        found = self.exponents.ravel()[self._tightest]
        found[np.arange(self.count), np.arange(self.count)] = np.inf
        return np.asarray(found)

    def lifted(self, ratios: RatioDuals, left: FloatArray, column: FloatArray) -> RatioDuals:
        """Multipliers between secrets, from multipliers between groups.

        Args:
            ratios: multipliers between groups.
            left: (observables, secrets): what the other multipliers leave of the cost of each entry.
            column: (observables, groups): the mechanism, which says which observables matter.
        """
        if self.trivial:
            return ratios
        size = len(self.of)
        secret, other = np.divmod(self._tightest[ratios.secret, ratios.other], size)
        flat = ratios.observable.astype(np.int64) * size
        residual = left + np.bincount(flat + secret, ratios.value, left.size).reshape(left.shape)
        lost = ratios.value * np.exp(self.exponents[secret, other])
        residual -= np.bincount(flat + other, lost, left.size).reshape(left.shape)
        passed: list[tuple[IntArray, int, int, FloatArray]] = []
        for group in np.flatnonzero(np.bincount(self.of) > 1):
            passed += self._passed_on(int(group), residual, column[:, group])
        observables = np.concatenate([ratios.observable, *(each[0] for each in passed)])
        return RatioDuals(
            observables.astype(np.int32),
            np.concatenate([secret, *(np.full(len(each[0]), each[1]) for each in passed)]).astype(np.int32),
            np.concatenate([other, *(np.full(len(each[0]), each[2]) for each in passed)]).astype(np.int32),
            np.concatenate([ratios.value, *(each[3] for each in passed)]),
        )

    def _passed_on(
        self, group: int, residual: FloatArray, used: FloatArray
    ) -> list[tuple[IntArray, int, int, FloatArray]]:
        """What to pass on inside a group so that every member has its part: (observables, to, from, how much)."""
        members, parents = self._tree(group)
        total = residual[:, members].sum(axis=1)
        share = used / used.sum()
        price = share @ residual[:, members]  # of each member's row sum; they add up to the group's
        wanted = price + ((total - share @ total) / len(members))[:, None]
        have = residual[:, members].copy()
        every = np.arange(len(residual))
        passed = []
        for at in range(len(members) - 1, 0, -1):  # leaves first
            member, parent = int(members[at]), int(members[parents[at]])
            over = have[:, at] - wanted[:, at]
            upward, downward = float(self.exponents[member, parent]), float(self.exponents[parent, member])
            if upward <= downward and downward > BOTH_WAYS:  # only p(o|member) ≤ γ p(o|parent) has a multiplier
                value = over.max() - over
                passed.append((every, member, parent, value))
                have[:, parents[at]] -= value * np.exp(upward)
                continue
            if upward > BOTH_WAYS:
                value = (over - over.min()) * np.exp(-downward)
                passed.append((every, parent, member, value))
                have[:, parents[at]] += value
                continue
            gives, takes = np.flatnonzero(over > 0), np.flatnonzero(over < 0)
            given = over[gives] * np.exp(-self.exponents[parent, member])
            passed.append((gives, parent, member, given))
            have[gives, parents[at]] += given
            passed.append((takes, member, parent, -over[takes]))
            have[takes, parents[at]] += over[takes] * np.exp(self.exponents[member, parent])
        return passed

    def _tree(self, group: int) -> tuple[IntArray, IntArray]:
        """The members of a group from a root on, and each one's parent: the way to the root over small exponents."""
        members = np.flatnonzero(self.of == group)
        inside = np.minimum(self.exponents, self.exponents.T)[np.ix_(members, members)]
        order, parents = [0], [0]
        way, by = inside[0].copy(), np.zeros(len(members), dtype=np.int64)
        way[0] = np.inf
        while len(order) < len(members):  # Prim's: always the nearest one to those that are there
            nearest = int(way.argmin())
            parents.append(int(by[nearest]))
            nearer = inside[nearest] < way
            nearer[[*order, nearest]] = False
            way[nearer], by[nearer] = inside[nearest, nearer], len(order)
            way[nearest] = np.inf
            order.append(nearest)
        return members[order], np.array(parents)

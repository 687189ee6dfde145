"""Secrets with equal rows: merged into classes with one unknown each, and separated again in the dual solution.

Where the exponent between two secrets is 0 their rows are equal, so one unknown stands for both: prior, cost and errors
add up, and the smallest exponent to any third secret counts. Dual values of the smaller program become ones of the full
program by transferring, along ratios within a class, what one member has in excess of another. A ratio with exponent e
loses a fraction e of what is transferred over it, so secrets that are *nearly* equal may be merged, too: the mechanism
is valid all the same, and the certified gap shows the loss.

One direction is enough: if p(o|s) ≤ p(o|s') for every o, the rows are equal, for both sum to one. The dual value then
has only one sign; adding the same to it for every output raises the minimum of one row's residual by as much as it
lowers the other's. docs/theory/solver.md has the proof.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import RatioDuals


@dataclass(frozen=True)
class SecretClasses:
    """The classes of secrets that are merged.

    Attributes:
        class_of: the class of each secret.
        exponents: between all secrets.
        two_way_exponent: exponents up to this carry dual values in both directions.
    """

    class_of: IntArray
    exponents: FloatArray
    two_way_exponent: float = 1e-6

    @classmethod
    def of(cls, exponents: FloatArray, largest: float, two_way_exponent: float = 1e-6) -> "SecretClasses":
        """Classes of secrets that exponents up to the largest, in one direction or both, connect."""
        close = exponents <= largest
        if not close.any():
            return cls(np.arange(len(exponents)), exponents, two_way_exponent)
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        labels = connected_components(csr_array(close), directed=False)[1]
        _, first, class_of = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # classes in the order of their first members
        return cls(order[class_of].astype(np.int64), exponents, two_way_exponent)

    @cached_property
    def count(self) -> int:
        """Number of classes."""
        return int(self.class_of.max()) + 1

    @property
    def trivial(self) -> bool:
        """Whether every secret is its own class."""
        return self.count == len(self.class_of)

    def sum_members(self, table: FloatArray) -> FloatArray:
        """(…, secrets) added up to (…, classes)."""
        if self.trivial:
            return table
        total = np.zeros((*table.shape[:-1], self.count))
        np.add.at(np.moveaxis(total, -1, 0), self.class_of, np.moveaxis(table, -1, 0))
        return total

    @cached_property
    def _tightest(self) -> IntArray:
        """(classes, classes): the pair of members, as secret·n + other, with the least exponent between two classes."""
        size = len(self.class_of)
        classes = np.repeat(self.class_of, size) * self.count + np.tile(self.class_of, size)
        order = np.lexsort((self.exponents.ravel(), classes))
        first = np.searchsorted(classes[order], np.arange(self.count**2))
        return np.asarray(order[first].reshape(self.count, self.count))

    @cached_property
    def class_exponents(self) -> FloatArray:
        """Exponents between classes: the smallest between their members."""
        if self.trivial:
            return self.exponents
        exponents = self.exponents.ravel()[self._tightest]
        exponents[np.arange(self.count), np.arange(self.count)] = np.inf
        return np.asarray(exponents)

    def separate_duals(self, ratios: RatioDuals, reduced_cost: FloatArray, columns: FloatArray) -> RatioDuals:
        """Dual values of ratios between secrets, from those between classes.

        Args:
            ratios: dual values between classes.
            reduced_cost: (observables, secrets): the cost of each entry less what the other dual values contribute.
            columns: (observables, classes): the mechanism, which says which observables matter.
        """
        if self.trivial:
            return ratios
        size = len(self.class_of)
        secret, other = np.divmod(self._tightest[ratios.secret, ratios.other], size)
        row = ratios.observable.astype(np.int64) * size
        residual = reduced_cost + np.bincount(row + secret, ratios.value, reduced_cost.size).reshape(reduced_cost.shape)
        lost = ratios.value * np.exp(self.exponents[secret, other])
        residual -= np.bincount(row + other, lost, reduced_cost.size).reshape(reduced_cost.shape)
        transfers: list[tuple[IntArray, int, int, FloatArray]] = []
        for merged in np.flatnonzero(np.bincount(self.class_of) > 1):
            transfers += self._transfers(int(merged), residual, columns[:, merged])
        secrets = (np.full(len(observables), first) for observables, first, _, _ in transfers)
        others = (np.full(len(observables), second) for observables, _, second, _ in transfers)
        return RatioDuals(
            np.concatenate([ratios.observable, *(observables for observables, *_ in transfers)]).astype(np.int32),
            np.concatenate([secret, *secrets]).astype(np.int32),
            np.concatenate([other, *others]).astype(np.int32),
            np.concatenate([ratios.value, *(values for *_, values in transfers)]),
        )

    def _transfers(
        self, merged: int, residual: FloatArray, used: FloatArray
    ) -> list[tuple[IntArray, int, int, FloatArray]]:
        """Dual values within a class with which every member gets its share: (observables, secret, other, values)."""
        members, parents = self._spanning_tree(merged)
        total = residual[:, members].sum(axis=1)
        weights = used / used.sum()
        row_duals = weights @ residual[:, members]  # of each member's row sum; they sum to the class's
        wanted = row_duals + ((total - weights @ total) / len(members))[:, None]
        present = residual[:, members].copy()
        all_observables = np.arange(len(residual))
        transfers = []
        for member_index in range(len(members) - 1, 0, -1):  # leaves first
            member, parent = int(members[member_index]), int(members[parents[member_index]])
            excess = present[:, member_index] - wanted[:, member_index]
            upward, downward = float(self.exponents[member, parent]), float(self.exponents[parent, member])
            if upward <= downward and downward > self.two_way_exponent:  # only p(o|member) ≤ γ p(o|parent) is bounded
                value = excess.max() - excess
                transfers.append((all_observables, member, parent, value))
                present[:, parents[member_index]] -= value * np.exp(upward)
                continue
            if upward > self.two_way_exponent:
                value = (excess - excess.min()) * np.exp(-downward)
                transfers.append((all_observables, parent, member, value))
                present[:, parents[member_index]] += value
                continue
            above, below = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
            value = excess[above] * np.exp(-self.exponents[parent, member])
            transfers.append((above, parent, member, value))
            present[above, parents[member_index]] += value
            transfers.append((below, member, parent, -excess[below]))
            present[below, parents[member_index]] += excess[below] * np.exp(self.exponents[member, parent])
        return transfers

    def _spanning_tree(self, merged: int) -> tuple[IntArray, IntArray]:
        """The members of a class, a root first, and each one's parent in a minimum spanning tree (Prim's)."""
        members = np.flatnonzero(self.class_of == merged)
        exponents = np.minimum(self.exponents, self.exponents.T)[np.ix_(members, members)]
        order, parents = [0], [0]
        distance, nearest_in_tree = exponents[0].copy(), np.zeros(len(members), dtype=np.int64)
        distance[0] = np.inf
        while len(order) < len(members):
            nearest = int(distance.argmin())
            parents.append(int(nearest_in_tree[nearest]))
            nearer = exponents[nearest] < distance
            nearer[[*order, nearest]] = False
            distance[nearer], nearest_in_tree[nearer] = exponents[nearest, nearer], len(order)
            distance[nearest] = np.inf
            order.append(nearest)
        return members[order], np.array(parents)

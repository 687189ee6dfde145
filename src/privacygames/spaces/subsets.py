"""Outputs that are sets of secrets: coarser cells, intervals, or any part of the power set."""

from collections.abc import Iterable, Sequence
from itertools import combinations, islice
from math import comb
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.spaces.space import AggregateSpace, Label, Space, label_text, require_label_size
from privacygames.validation import as_ordered_list, is_integer, require_choice, require_instance

Aggregation = Literal["mean", "max", "min"]
"""What answering with a set costs, from what answering with each member costs."""

_MOST = 100_000


class Subsets(AggregateSpace):
    """Sets of labels of another space, each one output (the paper's :math:`O ⊆ 2^S`).

    The cost of releasing a set follows from the costs of releasing its members:

    - ``"mean"``: whoever receives the set picks a member at random (a larger set serves worse);
    - ``"max"``: the most expensive member counts;
    - ``"min"``: the cheapest member counts (a set that contains the secret costs nothing).

    Args:
        space: the space the members are labels of.
        members: for each output, its members.
        labels: names of the outputs; by default ``"{a, b}"``.
        aggregation: how the cost of a set follows from the costs of its members.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> outputs = pg.Subsets(ages, [[20, 30], [40]])
    >>> outputs.labels, ages.distance("absolute", outputs).tolist()
    (('{20, 30}', '{40}'), [[5.0, 5.0, 15.0], [20.0, 10.0, 0.0]])
    """

    underlying: Space
    members: tuple[IntArray, ...]
    """For each observable, the positions of its members in the underlying space."""
    aggregation: Aggregation

    def __init__(
        self,
        space: Space,
        members: Iterable[Iterable[Label]],
        *,
        labels: Iterable[Label] | None = None,
        aggregation: Aggregation = "mean",
    ) -> None:
        require_choice(aggregation, ("mean", "max", "min"), "aggregation")
        require_instance(space, Space, "what subsets are of")
        groups = tuple(freeze(np.unique(space.indices(group))) for group in as_ordered_list(members, "the subsets"))
        if any(len(group) == 0 for group in groups):
            raise InvalidProblem("every subset needs at least one member; an empty one was given")
        self._fill(underlying=space, aggregation=aggregation, members=groups)
        super().__init__(self._default_labels() if labels is None else labels)
        if len(self.labels) != len(groups):
            raise InvalidProblem(f"{len(groups)} subsets were given but {len(self.labels)} labels")

    @classmethod
    def all(
        cls, space: Space, *, at_most: int | None = None, aggregation: Aggregation = "mean", most: int | None = None
    ) -> "Subsets":
        """Every non-empty subset of ``space`` with at most ``at_most`` members.

        Args:
            space: the space the members are labels of.
            at_most: maximum number of members of a subset; by default there is no limit.
            aggregation: as for the class.
            most: maximum number of subsets, 100,000 at most.

        >>> len(pg.Subsets.all(pg.Categories("abc"), at_most=2))
        6
        """
        if not (at_most is None or is_integer(at_most)):
            raise InvalidProblem(f"at_most is {repr(at_most)[:40]}; it must be a whole number, 1 or more")
        largest = len(space) if at_most is None else min(at_most, len(space))
        limit, count = _MOST if most is None else min(most, _MOST), 0
        for size in range(1, largest + 1):
            count += comb(len(space), size)
            if count > limit:
                break
        if not 0 < count <= limit:
            raise TooLarge(f"that is {count} subsets or more; at most {limit} are allowed: choose another at_most")
        groups = [group for size in range(1, largest + 1) for group in combinations(space.labels, size)]
        return cls(space, groups, aggregation=aggregation)

    @property
    def content(self) -> tuple[object, ...]:
        """The underlying space, the labels, the members and the aggregation."""
        return self.underlying, self.labels, tuple(tuple(group.tolist()) for group in self.members), self.aggregation

    @property
    def elements(self) -> Sequence[frozenset[Label]]:
        """The members of each output: the arguments of a cost function."""
        return [frozenset(self.underlying.labels[i] for i in group) for group in self.members]

    def aggregate(self, matrix: FloatArray) -> FloatArray:
        """One row per subset: the mean, maximum or minimum of its members' rows."""
        return np.stack([getattr(matrix[group], self.aggregation)(axis=0) for group in self.members])

    def _default_labels(self) -> list[str]:
        texts = [label_text(label) for label in self.underlying.labels]
        lengths = np.array([len(text) + 2 for text in texts])
        require_label_size(sum(int(lengths[group].sum()) for group in self.members))
        return ["{" + ", ".join(texts[i] for i in group) + "}" for group in self.members]


def consecutive_groups(values: Sequence[Label], length: int) -> list[list[Label]]:
    """Cut a sequence into consecutive runs of ``length`` (the last may be shorter)."""
    return [list(islice(values, start, start + length)) for start in range(0, len(values), length)]

"""Products: attributes that belong together, such as age × diagnosis; distances of the parts add up."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import inf, prod

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces.space import NamedDistances, Space, label_text, require_label_size
from privacygames.validation import as_ordered_list, is_number, require_instance

MOST_LABELS = 1_000_000
BETWEEN = " | "


class Product(Space):
    """Every combination of one label from each part, labelled ``"34 | asthma"``, the last part changing fastest.

    The distance ``"sum"`` is the sum of the parts' own distances, each times its scale: with ``scales=(0.1, 1)`` ten
    years of age count as much as another diagnosis. Outputs may be a product of coarser parts (intervals of ages ×
    diagnoses): parts are then compared one by one.

    Args:
        parts: two spaces or more.
        scales: the weight of each part's distance; 1 each by default.

    >>> people = pg.Product([pg.Numbers([34, 35]), pg.Categories(["asthma", "none"])], scales=(0.1, 1))
    >>> people.labels[1], people.distance("sum")[0].round(2).tolist()
    ('34 | none', [0.0, 1.0, 0.1, 1.1])
    """

    parts: tuple[Space, ...]
    scales: tuple[float, ...]
    default_distance = "sum"

    def __init__(self, parts: Iterable[Space], *, scales: Iterable[float] | None = None) -> None:
        spaces = tuple(
            require_instance(part, Space, "each part of a product") for part in as_ordered_list(parts, "the parts")
        )
        if len(spaces) < 2:
            raise InvalidProblem(f"a product needs two parts or more; got {len(spaces)}")
        if prod(map(len, spaces)) > MOST_LABELS:
            raise InvalidProblem(f"that product has {prod(map(len, spaces))} labels; at most {MOST_LABELS} are allowed")
        weights = [1.0] * len(spaces) if scales is None else as_ordered_list(scales, "the scales")
        if len(weights) != len(spaces) or not all(is_number(each) and 0 < each < inf for each in weights):
            raise InvalidProblem(f"scales must be {len(spaces)} positive numbers, one for each part")
        self._fill(parts=spaces, scales=tuple(float(each) for each in weights))
        texts = [[label_text(label) for label in part.labels] for part in spaces]
        size = prod(map(len, spaces))
        require_label_size(sum(size // len(part) * sum(len(text) + len(BETWEEN) for text in part) for part in texts))
        super().__init__(BETWEEN.join(combination) for combination in product(*texts))

    @property
    def content(self) -> tuple[object, ...]:
        """The parts, their scales and the labels."""
        return self.parts, self.scales, self.labels  # parts of 1 and of 1.0 are equal; what they are called is not

    def __repr__(self) -> str:
        return f"Product({' × '.join(map(repr, self.parts))})"

    @property
    def elements(self) -> Sequence[object]:
        """The combinations as tuples: what a cost or distance function is called with."""
        return list(product(*(part.elements for part in self.parts)))

    def join(self, positions: Sequence[IntArray]) -> IntArray:
        """Positions in this space from positions in each part."""
        return np.asarray(np.ravel_multi_index(tuple(positions), tuple(map(len, self.parts))), dtype=np.int64)

    def split(self, positions: IntArray) -> tuple[IntArray, ...]:
        """Positions in each part from positions in this space."""
        return tuple(np.unravel_index(positions, tuple(map(len, self.parts))))

    def distance_unit(self, name: str) -> str:
        """The unit that all parts share, where they do and have the same scale."""
        units = {part.distance_unit(part.default_distance) for part in self.parts}
        return units.pop() if name == "sum" and len(units) == 1 and set(self.scales) == {1.0} else ""

    def named_distances(self) -> NamedDistances:
        """The sum of the parts' distances, and Hamming's distance."""
        return {"sum": self._sum, **super().named_distances()}

    def _sum(self, other: Space) -> FloatArray:
        rows = self._needs_same_kind(other, "sum")
        if len(rows.parts) != len(self.parts):
            raise InvalidProblem(
                f"a product of {len(rows.parts)} parts cannot be compared with one of {len(self.parts)}"
            )
        total: FloatArray = np.zeros((1, 1))
        for part, row, scale in zip(self.parts, rows.parts, self.scales, strict=True):
            matrix = scale * part.distance(part.default_distance, row)
            total = (total[:, None, :, None] + matrix[None, :, None, :]).reshape(
                len(total) * len(matrix), total.shape[1] * matrix.shape[1]
            )
        return total

"""Graphs: road junctions, web pages, friends; distances are lengths of shortest paths."""

from collections.abc import Iterable, Sequence

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.spaces.space import Label, NamedDistances, Space
from privacygames.validation import as_ordered_list


class Graph(Space):
    """Nodes joined by edges; the distance is the length of the shortest path, ∞ where there is none.

    Args:
        edges: pairs ``(a, b)`` of length 1, or triples ``(a, b, length)``.
        nodes: further nodes, or an order for all; by default nodes are in the order in which the edges name them.
        directed: whether edges have one direction only (distances are then not symmetric).

    >>> roads = pg.Graph([("station", "market", 0.5), ("market", "school", 0.8)])
    >>> roads.distance("shortest path")[0].tolist()
    [0.0, 0.5, 1.3]
    """

    edges: tuple[tuple[int, int, float], ...]
    """The positions of the two nodes of each edge, and its length."""
    directed: bool
    default_distance = "shortest path"

    def __init__(
        self, edges: Iterable[Sequence[object]], *, nodes: Iterable[Label] = (), directed: bool = False
    ) -> None:
        parsed = [_edge(edge) for edge in as_ordered_list(edges, "the edges")]
        order = dict.fromkeys((*as_ordered_list(nodes, "the nodes"), *(end for a, b, _ in parsed for end in (a, b))))
        super().__init__(order)
        edges_by_position = tuple((self.index(a), self.index(b), length) for a, b, length in parsed)
        self._fill(edges=edges_by_position, directed=bool(directed))

    @property
    def content(self) -> tuple[object, ...]:
        """The nodes, the edges, and whether these are directed."""
        return self.labels, self.edges, self.directed

    def named_distances(self) -> NamedDistances:
        """The length of the shortest path, and Hamming's distance."""
        return {"shortest path": self._shortest_path, **super().named_distances()}

    def _shortest_path(self, other: Space) -> FloatArray:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        lengths: dict[tuple[int, int], float] = {}
        for a, b, length in self.edges:  # of parallel edges the shortest counts
            lengths[a, b] = min(length, lengths.get((a, b), np.inf))
        starts, ends = np.array(list(lengths), dtype=np.int64).reshape(-1, 2).T
        weights = coo_array((list(lengths.values()), (starts, ends)), shape=(len(self), len(self)))
        matrix: FloatArray = dijkstra(weights.tocsr(), directed=self.directed)
        return matrix if other == self else matrix[self.indices(other.labels)]


def _edge(edge: Sequence[object]) -> tuple[object, object, float]:
    if not isinstance(edge, Sequence) or isinstance(edge, str) or len(edge) not in (2, 3):
        raise InvalidProblem("an edge is (a, b) or (a, b, length)")
    length = edge[2] if len(edge) == 3 else 1.0
    if not isinstance(length, int | float | np.integer | np.floating) or not 0 < length < np.inf:
        raise InvalidProblem(f"the length of an edge must be a positive number; got {length!r}")
    return edge[0], edge[1], float(length)

"""Spaces as plain tables and back: what problem documents, mechanism files and requests have in common.

A space is a table with a ``kind`` and a few keys (docs/reference: the problem document). Nothing in it is executed,
and sizes are checked before anything is built.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, get_args

from privacygames.arrays import FloatArray, content_hash
from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem, PrivacyGamesError, Status, TooLarge
from privacygames.spaces.categories import Categories
from privacygames.spaces.graph import Graph
from privacygames.spaces.grid import MOST_CELLS, Grid
from privacygames.spaces.numbers import Numbers
from privacygames.spaces.product import Product
from privacygames.spaces.sets import Sets
from privacygames.spaces.space import DistanceSpace, Label, Space
from privacygames.spaces.subsets import Aggregation, Subsets
from privacygames.table_reader import TableReader
from privacygames.validation import require_choice

SpaceTable = dict[str, Any]
"""A space in plain values: texts, numbers, lists and tables of them."""

SECRETS = "secrets"
"""What subsets are of, where that is the space of secrets beside them."""

MOST_PARTS = 16

MOST_MEMORY = 3 * 10**8
"""About how many bytes of labels one document or file may describe, in all spaces and spaces within spaces together."""

TABLE_MEMORY, LABEL_MEMORY = 2000, 100
"""About how many bytes a space takes, and each of its labels beside the text."""


class LabelBudget:
    """How much the spaces of one document or file may still take: small tables could describe any amount of labels.

    Args:
        memory: about how many bytes, in all.
        most: how many labels each space may have, and every space in it.
    """

    def __init__(self, memory: int = MOST_MEMORY, *, most: int | None = None) -> None:
        self._left, self.most = memory, most

    def take_labels(self, count: int) -> None:
        """Use what so many labels need, or refuse; before they are built."""
        if self.most is not None and count > self.most:
            raise TooLarge(f"has {count} labels; at most {self.most} are allowed here")
        self.take(LABEL_MEMORY * min(count, MOST_CELLS))  # of more a space itself says what is wrong

    def take(self, memory: int) -> None:
        """Use some of it, or refuse."""
        self._left -= memory
        if self._left < 0:
            raise TooLarge("describes more labels than may be built from one document or file")


def encode_space(
    space: Space, *, secrets: Space | None = None, store: Callable[[FloatArray], str] | None = None
) -> SpaceTable:
    """A space as a plain table.

    Args:
        space: the space.
        secrets: the space of secrets beside it, which subsets then only refer to.
        store: keeps a matrix elsewhere and says under which name; by default it is written out.
    """
    return next(form for kind, form in _FORMS if isinstance(space, kind))(space, secrets, store)


def space_digest(space: Space) -> str:
    """SHA-256 of everything that defines a space: the same for equal spaces, in every process."""
    return digest_of("space", encode_space(space, store=content_hash))


def decode_space(
    table: object,
    *,
    name: str = "[space]",
    secrets: Space | None = None,
    matrices: Mapping[str, FloatArray] | None = None,
    size: int | None = None,
    allowance: LabelBudget | None = None,
) -> Space:
    """The space that a plain table describes.

    Args:
        table: as :func:`describe` gives it, or a person wrote it.
        name: what messages call the table.
        secrets: the space that subsets of ``"secrets"`` are of.
        matrices: where a matrix is found that the table only names.
        size: how many labels it must have.
        allowance: what the spaces of a document or file may take together; by default this one has it for itself.

    Raises:
        InvalidProblem: the table is not that of a space; says which key is wrong.
        TooLarge: it has more labels than it may have.
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if not isinstance(kind, str) or kind not in KEYS:
        raise InvalidProblem(f"needs a kind: one of {', '.join(KEYS)}", field="kind", location=name)
    keys = TableReader(table, name, ("kind", *KEYS[kind]))
    with error_context(name):
        return _Builder(keys, secrets, dict(matrices or {}), size, allowance or LabelBudget()).build(kind)


@contextmanager
def error_context(name: str) -> Iterator[None]:
    """Whatever a value of the wrong type breaks inside, say which table it is in."""
    try:
        yield
    except PrivacyGamesError as error:
        if error.location or error.status is Status.FILE_TROUBLE:
            raise
        kind = TooLarge if isinstance(error, TooLarge) else InvalidProblem
        raise kind(*error.args, field=error.field, location=name) from None
    except MemoryError:
        raise TooLarge("needs more memory than there is: use fewer secrets or observables", location=name) from None
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError):
        raise InvalidProblem("has a value of the wrong type or size", location=name) from None


KEYS: dict[str, tuple[str, ...]] = {
    "grid": ("columns", "rows", "width", "height", "box"),
    "numbers": ("values", "from", "to", "step", "unit"),
    "categories": ("labels",),
    "sets": ("sets",),
    "graph": ("edges", "nodes", "directed"),
    "distances": ("labels", "matrix"),
    "subsets": ("of", "members", "labels", "reading"),
    "product": ("parts", "scales"),
    "labels": ("labels",),
}
"""The keys of each kind of space."""


class _Builder:
    """Builds the space of one table."""

    def __init__(
        self,
        keys: TableReader,
        secrets: Space | None,
        matrices: dict[str, FloatArray],
        size: int | None,
        allowance: LabelBudget,
    ) -> None:
        self.keys, self.secrets, self.matrices, self.size, self.allowance = keys, secrets, matrices, size, allowance

    def build(self, kind: str) -> Space:
        builders: dict[str, Callable[[], Space]] = {
            "grid": self._grid,
            "numbers": self._numbers,
            "categories": lambda: Categories(self._labels()),
            "sets": lambda: Sets(self._sized("sets")),
            "graph": self._graph,
            "distances": lambda: Space.from_distances(self._labels(), self._matrix()),
            "subsets": self._subsets,
            "product": self._product,
            "labels": lambda: Space(self._labels()),
        }
        self.allowance.take(TABLE_MEMORY)
        space = builders[kind]()
        self.allowance.take(sum(len(label) for label in space.labels if isinstance(label, str)))
        return space

    def _sized(self, key: str) -> list[Any]:
        found: list[Any] = self.keys.array(key)
        self._fits(len(found))
        return found

    def _fits(self, count: int) -> None:
        if self.size is not None and count != self.size:
            raise InvalidProblem(f"has {count} labels where {self.size} are needed")
        self.allowance.take_labels(count)

    def _labels(self) -> list[Label]:
        return [_read(label) for label in self._sized("labels")]

    def _grid(self) -> Grid:
        keys = self.keys
        columns, rows = keys.integer("columns"), keys.integer("rows")
        if columns >= 1 and rows >= 1:
            self._fits(columns * rows)
        width, height = keys.number("width", None), keys.number("height", None)
        box = keys.array("box", None)
        if box is not None and len(box) != 4:
            raise keys.type_error("box", "[west, south, east, north] in degrees")
        if box is not None and width is None and height is None:
            return Grid.over(tuple(box), columns=columns, rows=rows)
        return Grid(columns, rows, width, height, box=None if box is None else tuple(box))

    def _numbers(self) -> Numbers:
        keys, unit = self.keys, self.keys.string("unit", "")
        if "values" in keys:
            if any(key in keys for key in ("from", "to", "step")):
                raise InvalidProblem("give values, or from, to and step, not both")
            return Numbers(self._sized("values"), unit=unit)
        first, last, step = keys.integer("from"), keys.integer("to"), keys.integer("step", 1)
        if step < 1:
            raise keys.type_error("step", "1 or more")
        if (last - first) // step >= MOST_CELLS:
            raise InvalidProblem(f"has more than {MOST_CELLS} numbers")
        self._fits(len(range(first, last + 1, step)))
        return Numbers(range(first, last + 1, step), unit=unit)

    def _graph(self) -> Graph:
        keys = self.keys
        edges = [[*map(_read, edge[:2]), *edge[2:]] for edge in keys.array("edges")]
        graph = Graph(edges, nodes=map(_read, keys.array("nodes", [])), directed=keys.boolean("directed", False))
        self._fits(len(graph))  # a graph is no larger than its table; only its distances are
        return graph

    def _matrix(self) -> Any:
        matrix = self.keys.value("matrix")
        if isinstance(matrix, str):
            return self.matrices[matrix]
        return self.keys.array("matrix")

    def _subsets(self) -> Subsets:
        keys = self.keys
        within = keys.value("of", SECRETS)
        if within == SECRETS:
            if self.secrets is None:
                raise keys.type_error("of", "a space, where there are no secrets beside it")
            space = self.secrets
        else:
            space = decode_space(within, name=self.keys.name, matrices=self.matrices, allowance=self.allowance)
        members = [[space.labels[position] for position in _positions(group)] for group in self._sized("members")]
        labels = None if "labels" not in keys else self._labels()
        aggregation: Any = keys.string("reading", "mean")
        require_choice(aggregation, get_args(Aggregation), "reading")  # the document's word for it
        return Subsets(space, members, labels=labels, aggregation=aggregation)

    def _product(self) -> Product:
        keys, beside = self.keys, self.secrets
        tables = keys.array("parts")
        if len(tables) > MOST_PARTS:
            raise keys.type_error("parts", f"at most {MOST_PARTS} spaces")
        parts: list[Space] = []
        for number, (table, of) in enumerate(zip(tables, _parts(beside, len(tables)), strict=True), start=1):
            what = f"{keys.name} part {number},"
            parts.append(decode_space(table, name=what, secrets=of, matrices=self.matrices, allowance=self.allowance))
            largest = min((each for each in (self.size, self.allowance.most) if each is not None), default=None)
            if largest is not None and prod(map(len, parts)) > largest:  # before any more is built
                self._fits(prod(map(len, parts)))
        self._fits(prod(map(len, parts)))
        return Product(parts, scales=keys.array("scales", None))


Store = Callable[[FloatArray], str] | None


def _described_grid(space: Any, _secrets: Space | None, _store: Store) -> SpaceTable:
    size = {"columns": space.columns, "rows": space.rows, "width": space.width, "height": space.height}
    return {"kind": "grid", **size, **({} if space.box is None else {"box": list(space.box)})}


def _described_graph(space: Any, _secrets: Space | None, _store: Store) -> SpaceTable:
    names = _names(space)
    edges = [[names[a], names[b], length] for a, b, length in space.edges]
    return {"kind": "graph", "edges": edges, "nodes": names, "directed": space.directed}


def _described_distances(space: Any, _secrets: Space | None, store: Store) -> SpaceTable:
    matrix = space.matrix.tolist() if store is None else store(space.matrix)
    return {"kind": "distances", "labels": _names(space), "matrix": matrix}


def _described_subsets(space: Any, secrets: Space | None, store: Store) -> SpaceTable:
    within = SECRETS if space.underlying == secrets else encode_space(space.underlying, store=store)
    members = [group.tolist() for group in space.members]
    return {"kind": "subsets", "of": within, "members": members, "labels": _names(space), "reading": space.aggregation}


def _described_product(space: Any, secrets: Space | None, store: Store) -> SpaceTable:
    within = _parts(secrets, len(space.parts))
    parts = [encode_space(part, secrets=of, store=store) for part, of in zip(space.parts, within, strict=True)]
    return {"kind": "product", "parts": parts, "scales": list(space.scales)}


_FORMS: tuple[tuple[type[Space], Callable[[Any, Space | None, Store], SpaceTable]], ...] = (
    (Grid, _described_grid),
    (Numbers, lambda space, *_: {"kind": "numbers", "values": list(space.labels), "unit": space.unit}),
    (Sets, lambda space, *_: {"kind": "sets", "sets": [sorted(label) for label in space.labels]}),
    (Graph, _described_graph),
    (DistanceSpace, _described_distances),
    (Subsets, _described_subsets),
    (Product, _described_product),
    (Categories, lambda space, *_: {"kind": "categories", "labels": _names(space)}),
    (Space, lambda space, *_: {"kind": "labels", "labels": _names(space)}),
)
"""How each kind of space is described; the last takes whatever is left."""


def _parts(secrets: Space | None, count: int) -> tuple[Space | None, ...]:
    """The parts of the secrets beside a product, which parts of observables may be subsets of."""
    fits = isinstance(secrets, Product) and len(secrets.parts) == count
    return secrets.parts if fits and isinstance(secrets, Product) else (None,) * count


def _names(space: Space) -> list[object]:
    return [_written(label) for label in space.labels]


def _positions(group: list[int]) -> list[int]:
    if not all(type(position) is int and position >= 0 for position in group):
        raise InvalidProblem("members must be lists of positions in the space they are of")
    return group


def _written(label: Label) -> object:
    return {"set": sorted(label)} if isinstance(label, frozenset) else label


def _read(label: Any) -> Label:
    return frozenset(label["set"]) if isinstance(label, dict) else label  # Space checks the rest

"""Spaces as plain tables and back: the form they have in problem documents, mechanism files and HTTP requests.

A space is a table with a ``kind`` and the keys of that kind (docs/reference/problem-file.md). ``KINDS`` holds, for
every kind, its class, its keys and how it is encoded and decoded; :func:`register_space` adds a kind. Decoding executes
nothing of what it reads, and checks sizes before it builds anything.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, get_args

from privacygames.arrays import FloatArray, content_hash
from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem, PrivacyGamesError, Status, TooLarge
from privacygames.spaces.area import Area
from privacygames.spaces.categories import Categories
from privacygames.spaces.graph import Graph
from privacygames.spaces.grid import MOST_CELLS, Grid
from privacygames.spaces.interval import Interval
from privacygames.spaces.numbers import Numbers
from privacygames.spaces.places import Places
from privacygames.spaces.product import Product
from privacygames.spaces.region import Region
from privacygames.spaces.sets import Sets
from privacygames.spaces.space import DistanceSpace, Label, Space
from privacygames.spaces.subsets import Aggregation, Subsets
from privacygames.table_reader import TableReader
from privacygames.validation import as_list, require_choice

SpaceTable = dict[str, Any]
"""A space in plain values: strings, numbers, lists and tables of them."""

Store = Callable[[FloatArray], str] | None
"""Stores a matrix elsewhere and returns its name there; None: matrices are part of the table."""

SECRETS = "secrets"
"""What a table of subsets says in place of the underlying space where that is the space of secrets beside it."""

MOST_PARTS = 16
"""Maximum number of parts of a product in a document or file."""

MOST_MEMORY = 3 * 10**8
"""Approximate memory, in bytes, that the labels of all spaces of one document or file may take."""

TABLE_MEMORY, LABEL_MEMORY = 2000, 100
"""Approximate memory, in bytes, of a space without labels, and of one label without its text."""


class LabelBudget:
    """Memory left for the labels of one document or file, in which a small table could describe any number of labels.

    Args:
        memory: approximate memory for all spaces together, in bytes.
        most: maximum number of labels of each space, including the spaces inside it.

    >>> LabelBudget(1000).take_labels(50)
    Traceback (most recent call last):
    privacygames.errors.TooLarge: describes more labels than may be built from one document or file
    """

    def __init__(self, memory: int = MOST_MEMORY, *, most: int | None = None) -> None:
        self._left, self.most = memory, most

    def take_labels(self, count: int) -> None:
        """Reserve the memory of ``count`` labels before they are built, or raise ``TooLarge``."""
        if self.most is not None and count > self.most:
            raise TooLarge(f"has {count} labels; at most {self.most} are allowed here")
        self.take(LABEL_MEMORY * min(count, MOST_CELLS))  # spaces refuse more themselves, with a message of their own

    def take(self, memory: int) -> None:
        """Reserve some memory, in bytes, or raise ``TooLarge``."""
        self._left -= memory
        if self._left < 0:
            raise TooLarge("describes more labels than may be built from one document or file")


def encode_space(
    space: Space, *, secrets: Space | None = None, store: Callable[[FloatArray], str] | None = None
) -> SpaceTable:
    """A space as a plain table.

    Args:
        space: the space.
        secrets: the space of secrets beside it; subsets of it then only refer to it.
        store: stores a matrix elsewhere and returns its name there; by default the table contains the matrix.

    Raises:
        InvalidProblem: the space is of a class that is not registered.

    >>> encode_space(pg.Numbers([18, 19], unit="years"))
    {'kind': 'numbers', 'values': [18, 19], 'unit': 'years'}
    """
    kind = next((name for name, each in KINDS.items() if each.space is type(space)), None)
    if kind is None:
        name = type(space).__name__
        raise InvalidProblem(f"no file can hold a {name}: register the class with privacygames.register_space first")
    return {"kind": kind, **KINDS[kind].encode(space, secrets, store)}


def space_digest(space: Space) -> str:
    """SHA-256 of everything that defines a space: equal for equal spaces, in every process.

    >>> space_digest(pg.Categories("ab")) == space_digest(pg.Categories(["a", "b"]))
    True
    """
    return digest_of("space", encode_space(space, store=content_hash))


def decode_space(
    table: object,
    *,
    name: str = "[space]",
    secrets: Space | None = None,
    matrices: Mapping[str, FloatArray] | None = None,
    size: int | None = None,
    allowance: LabelBudget | None = None,
    others: Iterable[str] = (),
) -> Space:
    """The space that a plain table describes.

    Args:
        table: a table as :func:`encode_space` returns it, or as a person writes it.
        name: how messages refer to the table.
        secrets: the space that subsets of ``"secrets"`` are of.
        matrices: stored matrices by the names that tables use.
        size: the number of labels that the space must have.
        allowance: the budget shared by all spaces of a document or file; by default one for this space alone.
        others: kinds that may stand there and are read elsewhere, for messages.

    Raises:
        InvalidProblem: the table describes no space; the message names the wrong key.
        TooLarge: it has more labels than allowed.

    >>> decode_space({"kind": "numbers", "from": 17, "to": 90, "unit": "years"})
    Numbers(74 labels)
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    refuse_region(table, name=name)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidProblem(f"needs a kind: one of {', '.join([*KINDS, *others])}", field="kind", location=name)
    keys = TableReader(table, name, ("kind", *KINDS[kind].keys))
    with error_context(name):
        return _Decoder(keys, secrets, dict(matrices or {}), size, allowance or LabelBudget()).decode(kind)


def register_space(
    kind: str,
    space: type[Space],
    *,
    keys: Iterable[str],
    encode: Callable[[Any], Mapping[str, object]],
    decode: Callable[[Mapping[str, Any]], Space],
) -> None:
    """Let files and problem documents hold spaces of a class of your own.

    Whoever reads such a file has to register the class, too. Register it once, when its module is imported.

    Args:
        kind: what tables call the class.
        space: a subclass of :class:`privacygames.Space`. Its ``named_distances`` lists the distances it knows, and its
            ``content`` everything that defines it, if that is more than its labels.
        keys: the keys of its tables.
        encode: returns the table of a space: strings, numbers, booleans, and lists of them, under these keys.
        decode: returns the space of a table, the ``kind`` left out. The table may come from anybody: check it, and its
            size, before anything large is built.

    Raises:
        InvalidProblem: the kind or the class is registered already, or something given does not fit.

    >>> class Hours(pg.Space):
    ...     default_distance = "around the clock"
    ...     def named_distances(self):
    ...         return {"around the clock": self.around_the_clock, **super().named_distances()}
    ...     def around_the_clock(self, other):
    ...         gaps = np.abs(np.subtract.outer(other.labels, self.labels))
    ...         return np.minimum(gaps, 24 - gaps)
    >>> pg.register_space("hours", Hours, keys=["hours"],
    ...                   encode=lambda space: {"hours": list(space.labels)},
    ...                   decode=lambda table: Hours(table["hours"]))
    >>> problem = pg.Problem(pg.Prior.uniform(Hours([1, 9, 17, 23])))
    >>> problem.distance[0].astype(int).tolist()
    [0, 8, 8, 2]
    >>> pg.design(problem, epsilon=0.2).save("hours.pgm")
    >>> pg.load("hours.pgm").secrets == problem.space
    True
    """
    if not isinstance(kind, str) or not kind.isprintable() or not kind or kind in KINDS:
        raise InvalidProblem(f"kind is {kind!r}; it must be a printable text and none of {', '.join(KINDS)}")
    registered = [each.space for each in KINDS.values()]
    if not (isinstance(space, type) and issubclass(space, Space)) or space in registered:
        raise InvalidProblem("space must be a subclass of Space that is not registered yet")
    names = tuple(as_list(keys, "the keys"))
    if not all(isinstance(name, str) and name != "kind" for name in names):
        raise InvalidProblem("the keys must be texts, other than 'kind'")

    def encode_checked(given: Any, _secrets: Space | None, _store: Store) -> SpaceTable:
        table = dict(encode(given))
        if not set(table) <= set(names):
            raise InvalidProblem(f"the table of a {space.__name__} has a key that is not one of {', '.join(names)}")
        return table

    def decode_checked(decoder: _Decoder) -> Space:
        decoded = decode({name: decoder.keys.value(name) for name in names if name in decoder.keys})
        if type(decoded) is not space:
            raise InvalidProblem(f"what decode returns for {kind!r} must be a {space.__name__}")
        decoder.require_size(len(decoded))
        return decoded

    KINDS[kind] = SpaceKind(space, names, encode_checked, decode_checked)


@contextmanager
def error_context(name: str) -> Iterator[None]:
    """Prefix the errors raised inside with the name of the table that they are about."""
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


class _Decoder:
    """Decodes one table."""

    def __init__(
        self,
        keys: TableReader,
        secrets: Space | None,
        matrices: dict[str, FloatArray],
        size: int | None,
        allowance: LabelBudget,
    ) -> None:
        self.keys, self.secrets, self.matrices, self.size, self.allowance = keys, secrets, matrices, size, allowance

    def decode(self, kind: str) -> Space:
        """The space of the table."""
        self.allowance.take(TABLE_MEMORY)
        space = KINDS[kind].decode(self)
        self.allowance.take(sum(len(label) for label in space.labels if isinstance(label, str)))
        return space

    def require_size(self, count: int) -> None:
        """Raise unless the space may have this many labels."""
        if self.size is not None and count != self.size:
            raise InvalidProblem(f"has {count} labels where {self.size} are needed")
        self.allowance.take_labels(count)

    def array_of_labels(self, key: str) -> list[Any]:
        """The entries under a key, one for each label."""
        entries: list[Any] = self.keys.array(key)
        self.require_size(len(entries))
        return entries

    def labels(self) -> list[Label]:
        """The labels under the key ``labels``."""
        return [_decode_label(label) for label in self.array_of_labels("labels")]

    def grid(self) -> Grid:
        """A grid of cells."""
        keys = self.keys
        columns, rows = keys.integer("columns"), keys.integer("rows")
        if columns >= 1 and rows >= 1:
            self.require_size(columns * rows)
        width, height = keys.number("width", None), keys.number("height", None)
        box = keys.array("box", None)
        if box is not None and len(box) != 4:
            raise keys.type_error("box", "[west, south, east, north] in degrees")
        if box is not None and width is None and height is None:
            return Grid.over(tuple(box), columns=columns, rows=rows)
        return Grid(columns, rows, width, height, box=None if box is None else tuple(box))

    def numbers(self) -> Numbers:
        """Numbers, listed or as a range."""
        keys, unit = self.keys, self.keys.string("unit", "")
        if "values" in keys:
            if any(key in keys for key in ("from", "to", "step")):
                raise InvalidProblem("give values, or from, to and step, not both")
            return Numbers(self.array_of_labels("values"), unit=unit)
        first, last, step = keys.integer("from"), keys.integer("to"), keys.integer("step", 1)
        if step < 1:
            raise keys.type_error("step", "1 or more")
        if (last - first) // step >= MOST_CELLS:
            raise InvalidProblem(f"has more than {MOST_CELLS} numbers")
        self.require_size(len(range(first, last + 1, step)))
        return Numbers(range(first, last + 1, step), unit=unit)

    def places(self) -> Places:
        """Points of the plane."""
        points, labels = self.array_of_labels("points"), self.keys.array("labels", None)
        return Places(points, labels=labels, degrees=self.keys.boolean("degrees", False))

    def graph(self) -> Graph:
        """A graph."""
        keys = self.keys
        edges = [[*map(_decode_label, edge[:2]), *edge[2:]] for edge in keys.array("edges")]
        graph = Graph(
            edges, nodes=map(_decode_label, keys.array("nodes", [])), directed=keys.boolean("directed", False)
        )
        self.require_size(len(graph))  # a graph is no larger than its table; only its distances are
        return graph

    def matrix(self) -> Any:
        """The matrix of distances."""
        matrix = self.keys.value("matrix")
        if isinstance(matrix, str):
            return self.matrices[matrix]
        return self.keys.array("matrix")

    def subsets(self) -> Subsets:
        """Subsets of the secrets or of another space."""
        keys = self.keys
        within = keys.value("of", SECRETS)
        if within == SECRETS:
            if self.secrets is None:
                raise keys.type_error("of", "a space, where there are no secrets beside it")
            space = self.secrets
        else:
            space = decode_space(within, name=self.keys.name, matrices=self.matrices, allowance=self.allowance)
        members = [
            [space.labels[position] for position in _positions(group)] for group in self.array_of_labels("members")
        ]
        labels = None if "labels" not in keys else self.labels()
        aggregation: Any = keys.string("reading", "mean")
        require_choice(aggregation, get_args(Aggregation), "reading")  # the document's word for it
        return Subsets(space, members, labels=labels, aggregation=aggregation)

    def product(self) -> Product:
        """A product of spaces."""
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
                self.require_size(prod(map(len, parts)))
        self.require_size(prod(map(len, parts)))
        return Product(parts, scales=keys.array("scales", None))


def encode_region(region: Region) -> SpaceTable:
    """A region as a plain table.

    >>> encode_region(pg.Interval(0.0, 24.0, unit="hours"))
    {'kind': 'interval', 'low': 0.0, 'high': 24.0, 'unit': 'hours'}
    """
    if isinstance(region, Area):
        size = {"kind": "area", "width": region.width, "height": region.height}
        return {**size, **({} if region.box is None else {"box": list(region.box)})}
    if isinstance(region, Interval):
        return {"kind": "interval", "low": region.low, "high": region.high, "unit": region.unit}
    raise InvalidProblem(f"no file can hold a {type(region).__name__}")


def decode_region(table: object, *, name: str = "[space]") -> Region:
    """The region that a plain table describes.

    Args:
        table: a table as :func:`encode_region` returns it, or as a person writes it: an area over degrees needs no more
            than its box.
        name: how messages refer to the table.

    Raises:
        InvalidProblem: the table describes no region; the message names the wrong key.

    >>> decode_region({"kind": "area", "box": [116.2, 39.8, 116.5, 40.0]})
    Area(25.6 × 22.2 km, over degrees)
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if not isinstance(kind, str) or kind not in REGION_KINDS:
        raise InvalidProblem(f"needs a kind: one of {', '.join(REGION_KINDS)}", field="kind", location=name)
    keys = TableReader(table, name, ("kind", *REGION_KINDS[kind]))
    with error_context(name):
        if kind == "interval":
            return Interval(keys.number("low"), keys.number("high"), unit=keys.string("unit", ""))
        box = keys.array("box", None)
        if box is None:
            return Area(keys.number("width"), keys.number("height"))
        if len(box) != 4:
            raise keys.type_error("box", "[west, south, east, north] in degrees")
        area = Area.over(tuple(box))
        return area.with_lengths(keys.number("width", area.width), keys.number("height", area.height))


def is_region(table: object) -> bool:
    """Whether a table describes a region, by its kind.

    >>> is_region({"kind": "area"}), is_region({"kind": "grid"})
    (True, False)
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    return isinstance(kind, str) and kind in REGION_KINDS


def refuse_region(table: object, *, name: str = "[space]") -> None:
    """Raise if a table describes a region, where a space of labels is needed.

    Args:
        table: the table.
        name: how messages refer to it.
    """
    if is_region(table):
        raise InvalidProblem(
            "is a region of points; what is asked for here needs cells or labels, such as those of a grid",
            location=name,
        )


def region_digest(region: Region) -> str:
    """SHA-256 of everything that defines a region.

    >>> region_digest(pg.Area(2, 1)) == region_digest(pg.Area(2.0, 1.0))
    True
    """
    return digest_of("region", encode_region(region))


REGION_KINDS = {"area": ("width", "height", "box"), "interval": ("low", "high", "unit")}
"""Every kind of region by the name that tables use, and the keys of its tables."""


def _encode_grid(space: Any, _secrets: Space | None, _store: Store) -> SpaceTable:
    size = {"columns": space.columns, "rows": space.rows, "width": space.width, "height": space.height}
    return {**size, **({} if space.box is None else {"box": list(space.box)})}


def _encode_graph(space: Any, _secrets: Space | None, _store: Store) -> SpaceTable:
    nodes = _encode_labels(space)
    edges = [[nodes[a], nodes[b], length] for a, b, length in space.edges]
    return {"edges": edges, "nodes": nodes, "directed": space.directed}


def _encode_distances(space: Any, _secrets: Space | None, store: Store) -> SpaceTable:
    matrix = space.matrix.tolist() if store is None else store(space.matrix)
    return {"labels": _encode_labels(space), "matrix": matrix}


def _encode_subsets(space: Any, secrets: Space | None, store: Store) -> SpaceTable:
    underlying = SECRETS if space.underlying == secrets else encode_space(space.underlying, store=store)
    members = [group.tolist() for group in space.members]
    return {"of": underlying, "members": members, "labels": _encode_labels(space), "reading": space.aggregation}


def _encode_product(space: Any, secrets: Space | None, store: Store) -> SpaceTable:
    beside = _parts(secrets, len(space.parts))
    parts = [encode_space(part, secrets=of, store=store) for part, of in zip(space.parts, beside, strict=True)]
    return {"parts": parts, "scales": list(space.scales)}


@dataclass(frozen=True)
class SpaceKind:
    """How one class of spaces is encoded and decoded.

    Attributes:
        space: the class; its subclasses are kinds of their own.
        keys: the keys of its tables, besides ``kind``.
        encode: the table of a space, given the secrets beside it and where matrices are stored.
        decode: the space of the table that a decoder reads.
    """

    space: type[Space]
    keys: tuple[str, ...]
    encode: Callable[[Any, Space | None, Store], SpaceTable]
    decode: Callable[["_Decoder"], Space]


KINDS: dict[str, SpaceKind] = {
    "grid": SpaceKind(Grid, ("columns", "rows", "width", "height", "box"), _encode_grid, _Decoder.grid),
    "numbers": SpaceKind(
        Numbers,
        ("values", "from", "to", "step", "unit"),
        lambda space, *_: {"values": list(space.labels), "unit": space.unit},
        _Decoder.numbers,
    ),
    "categories": SpaceKind(
        Categories,
        ("labels",),
        lambda space, *_: {"labels": _encode_labels(space)},
        lambda decoder: Categories(decoder.labels()),
    ),
    "sets": SpaceKind(
        Sets,
        ("sets",),
        lambda space, *_: {"sets": [sorted(label) for label in space.labels]},
        lambda decoder: Sets(decoder.array_of_labels("sets")),
    ),
    "graph": SpaceKind(Graph, ("edges", "nodes", "directed"), _encode_graph, _Decoder.graph),
    "distances": SpaceKind(
        DistanceSpace,
        ("labels", "matrix"),
        _encode_distances,
        lambda decoder: Space.from_distances(decoder.labels(), decoder.matrix()),
    ),
    "subsets": SpaceKind(Subsets, ("of", "members", "labels", "reading"), _encode_subsets, _Decoder.subsets),
    "places": SpaceKind(
        Places,
        ("points", "labels", "degrees"),
        lambda space, *_: {
            "points": space.points.tolist(),
            "labels": _encode_labels(space),
            "degrees": space.degrees,
        },
        _Decoder.places,
    ),
    "product": SpaceKind(Product, ("parts", "scales"), _encode_product, _Decoder.product),
    "labels": SpaceKind(
        Space,
        ("labels",),
        lambda space, *_: {"labels": _encode_labels(space)},
        lambda decoder: Space(decoder.labels()),
    ),
}
"""Every kind of space by the name that tables use."""


def _parts(secrets: Space | None, count: int) -> tuple[Space | None, ...]:
    """The parts of the secrets beside a product of observables: its own parts may be subsets of them."""
    fits = isinstance(secrets, Product) and len(secrets.parts) == count
    return secrets.parts if fits and isinstance(secrets, Product) else (None,) * count


def _encode_labels(space: Space) -> list[object]:
    return [_encode_label(label) for label in space.labels]


def _positions(group: list[int]) -> list[int]:
    if not all(type(position) is int and position >= 0 for position in group):
        raise InvalidProblem("members must be lists of positions in the space they are of")
    return group


def _encode_label(label: Label) -> object:
    return {"set": sorted(label)} if isinstance(label, frozenset) else label


def _decode_label(label: Any) -> Label:
    return frozenset(label["set"]) if isinstance(label, dict) else label  # Space checks the rest

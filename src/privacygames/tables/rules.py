"""Rules: the mechanism for a column, the form of its outputs, and what becomes of originals and invalid rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Sampleable, is_region_mechanism, is_sampleable
from privacygames.spaces import Area, Region, Space
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.output_columns import OutputForm, OutputWriter, in_category_order
from privacygames.tables.point_columns import PointReader
from privacygames.tables.secret_columns import ColumnReader, SecretReader, column_names
from privacygames.validation import is_number, require_choice

Original = Literal["replace", "drop", "null"]
"""What becomes of the original columns: outputs take their place; they are dropped, and outputs come last; they stay,
filled with nulls."""

Invalid = Literal["error", "drop", "null", "nearest"]
"""What becomes of a row whose value is no secret of the mechanism."""

Repeat = Literal["fresh", "same"]
"""Whether every row is drawn independently, or each person's secret once."""

RELEASED_SUFFIX = "_released"

PANDAS_METADATA = b"pandas"
"""Key under which pandas describes columns in a schema's metadata."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a column, or several that belong together, is released.

    Attributes:
        mechanism: what draws the outputs: a mechanism, a fleet with one for each person, or whatever else has the
            members of :class:`privacygames.Sampleable`.
        output_form: how an output is written: its ``"label"`` (the default), its ``"centre"`` (its coordinates, the
            default where secrets are points of an area), a random ``"point"`` in it, its ``"bounds"``, or the ``"set"``
            of its members.
        into: names of the columns of outputs; by default those of the originals, if there are as many.
        original: what becomes of the original columns: ``"replace"`` puts outputs in their place, ``"drop"`` removes
            them and puts outputs last, ``"null"`` keeps them as empty columns.
        invalid: what becomes of a row whose value is no secret: ``"error"`` refuses the table (the default), ``"drop"``
            drops the row, ``"null"`` makes its output null, ``"nearest"`` takes the nearest secret (places and numbers;
            the default where secrets are points of a region, whose guarantee covers points outside).
        missing: the same for a row without a value; by default as ``invalid``, and an error where that is
            ``"nearest"``.
        far_share_at_most: with ``"nearest"``, the largest share of rows that may lie outside all secrets by more than
            one step (a cell, the distance of the outermost number from its neighbour, or a tenth of an area's width or
            height); above it, the release is refused. It is always refused if most points lie in the grid or area only
            with their coordinates swapped.

    >>> ages = pg.Problem(pg.Prior.uniform(pg.Numbers(range(20, 30))))
    >>> pg.tables.Rule(mechanism=pg.baselines.geometric(ages, epsilon=0.5), invalid="nearest").for_missing
    'error'
    """

    mechanism: Sampleable
    output_form: OutputForm | None = None
    into: str | Sequence[str] | None = None
    original: Original = "replace"
    invalid: Invalid | None = None
    missing: Literal["error", "drop", "null"] | None = None
    far_share_at_most: float = 0.05

    def __post_init__(self) -> None:
        if not is_sampleable(self.mechanism):
            raise InvalidProblem(f"a Rule needs a Mechanism, or a Fleet; got {type(self.mechanism).__name__}")
        require_choice(self.original, get_args(Original), "original")
        if self.invalid is not None:
            require_choice(self.invalid, get_args(Invalid), "invalid")
        if self.missing is not None:
            require_choice(self.missing, ("error", "drop", "null"), "missing")
        if not (is_number(self.far_share_at_most) and 0 <= self.far_share_at_most <= 1):
            raise InvalidProblem(Field("far_share_at_most"), " is a share of rows: between 0 and 1")

    @property
    def form(self) -> OutputForm:
        """How an output is written."""
        return self.output_form or ("centre" if isinstance(self.mechanism.secrets, Area) else "label")

    @property
    def for_unknown(self) -> Invalid:
        """What becomes of rows whose value is no secret."""
        return self.invalid or ("nearest" if isinstance(self.mechanism.secrets, Region) else "error")

    @property
    def for_missing(self) -> str:
        """What becomes of rows without a value."""
        return self.missing or ("error" if self.for_unknown == "nearest" else self.for_unknown)


Rules = Mapping[Any, Sampleable | Rule]
"""Mechanisms or rules by columns: ``{"age": mechanism, ("lon", "lat"): Rule(…)}``."""


class ColumnRule:
    """A rule together with its columns.

    Args:
        place: a column, or a tuple of columns that belong together.
        rule: the rule.
    """

    def __init__(self, place: Any, rule: Rule) -> None:
        self.rule, self.columns = rule, column_names(place)
        self.reader = _reader(rule.mechanism, place)
        self.writer = OutputWriter(rule.mechanism.observables, rule.form, split_product=not isinstance(place, str))
        if rule.invalid == "nearest" and not self.reader.has_nearest:
            raise InvalidProblem(
                Field("invalid"), f"='nearest' for {self.name}: only places and numbers have a nearest secret"
            )
        self.outputs = self._output_names()

    @property
    def name(self) -> str:
        """The columns, as messages name them."""
        return ", ".join(self.columns)

    @property
    def purpose(self) -> tuple[str, ...]:
        """What random bits are derived for: no other rule, and no other mechanism, has the same purpose."""
        return (self.rule.mechanism.digest, str(len(self.columns)), *self.columns)

    def _output_names(self) -> tuple[str, ...]:
        rule, suffixes = self.rule, self.writer.suffixes
        if rule.into is not None:
            names = (rule.into,) if isinstance(rule.into, str) else tuple(rule.into)
            if len(names) != len(suffixes) or not all(isinstance(name, str) for name in names):
                raise InvalidProblem(
                    Field("output_form"),
                    f"={rule.form!r} for {self.name} makes {len(suffixes)} columns; ",
                    Field("into"),
                    f" names {len(names)}",
                )
            return names
        ending = "" if rule.original == "replace" else RELEASED_SUFFIX
        if len(suffixes) == len(self.columns):
            return tuple(f"{name}{ending}" for name in self.columns)
        if len(self.columns) == 1:
            return tuple(f"{self.columns[0]}{suffix}{ending}" for suffix in suffixes)
        raise InvalidProblem(
            Field("output_form"),
            f"={rule.form!r} turns the {len(self.columns)} columns {self.name} into {len(suffixes)}: say with ",
            Field("into"),
            " what to call them",
        )

    def in_category_order(self, outputs: Sequence[Any], columns: Mapping[str, Any]) -> list[Any]:
        """Columns of outputs, with ordered categories in the order of the columns that they replace."""
        if len(outputs) != len(self.columns):
            return list(outputs)
        return [
            in_category_order(array, columns[name], name) for array, name in zip(outputs, self.columns, strict=True)
        ]

    def replaced_types(self, schema: Any) -> list[Any]:
        """For each column of outputs, the type of the column that it replaces; None if it replaces none."""
        if len(self.outputs) != len(self.columns):
            return [None] * len(self.outputs)
        mechanism = self.rule.mechanism
        types = [schema.field(name).type for name in self.columns]
        secrets = mechanism.secrets
        if isinstance(secrets, Space) and set(mechanism.observables.labels) <= set(secrets.labels):
            return types
        return [_unordered(kind) for kind in types]  # the order of categories says nothing of other outputs


def _reader(mechanism: Sampleable, place: Any) -> ColumnReader:
    """The reader of a mechanism's secrets."""
    if is_region_mechanism(mechanism):
        return PointReader(mechanism, place)
    secrets = mechanism.secrets
    if isinstance(secrets, Region):
        raise InvalidProblem(f"the mechanism for {secrets!r} lacks members of RegionMechanism: it cannot encode points")
    return SecretReader(secrets, place)


def _unordered(kind: Any) -> Any:
    pa = import_optional("pyarrow")
    return pa.dictionary(kind.index_type, kind.value_type) if pa.types.is_dictionary(kind) else kind


def column_rules(rules: Rules) -> tuple[ColumnRule, ...]:
    """Check a caller's rules, and join each with its columns."""
    if not isinstance(rules, Mapping) or not rules:
        raise InvalidProblem('give the rules as {"column": mechanism} or {("lon", "lat"): Rule(…)}')
    checked = tuple(
        ColumnRule(place, value if isinstance(value, Rule) else Rule(mechanism=value)) for place, value in rules.items()
    )
    columns = [name for rule in checked for name in rule.columns]
    if len(set(columns)) < len(columns):
        raise InvalidProblem("a column may have one rule only: two outputs for one secret are two releases")
    return checked


@dataclass(frozen=True)
class Layout:
    """The columns of the released table, in order.

    Attributes:
        columns: for each, its name and its origin: ``"original"``, ``"output"`` or ``"null"``.
    """

    columns: tuple[tuple[str, str], ...]

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [name for name, _ in self.columns]


def output_layout(names: Sequence[str], rules: Sequence[ColumnRule], also_needed: Sequence[str]) -> Layout:
    """The columns of the released table; refuses columns that are not there, and names that are taken.

    Args:
        names: the columns of the table.
        rules: the rules.
        also_needed: further columns that must be there.
    """
    for name in [name for rule in rules for name in rule.columns] + list(also_needed):
        if list(names).count(name) != 1:
            number = "no column" if name not in names else "several columns"
            raise InvalidProblem(f"the table has {number} {name!r}; it has {', '.join(map(str, names))}")
    rule_of = {name: rule for rule in rules for name in rule.columns}
    columns: list[tuple[str, str]] = []
    for name in names:
        rule = rule_of.get(name)
        if rule is None:
            columns.append((name, "original"))
        elif rule.rule.original == "null":
            columns.append((name, "null"))
        elif rule.rule.original == "replace":
            columns += _replacements(name, rule)
    columns += [(name, "output") for rule in rules if rule.rule.original != "replace" for name in rule.outputs]
    layout = Layout(tuple(columns))
    if len(set(layout.names)) < len(layout.names):
        duplicates = sorted({name for name in layout.names if layout.names.count(name) > 1})
        raise InvalidProblem(
            f"the output would have two columns {', '.join(duplicates)}: choose other names with ", Field("into")
        )
    return layout


def _replacements(name: str, rule: ColumnRule) -> list[tuple[str, str]]:
    """The output of one column if there are as many; else all outputs in place of the first column."""
    index = rule.columns.index(name)
    if len(rule.outputs) == len(rule.columns):
        return [(rule.outputs[index], "output")]
    return [(output, "output") for output in rule.outputs] if index == 0 else []


def check_secret_columns(rules: Sequence[ColumnRule], identity: Sequence[str], user: str | None) -> None:
    """Refuse columns of secrets that also identify rows or users: these columns are released as they are."""
    for rule in rules:
        for name in rule.columns:
            if name == user:
                raise InvalidProblem(f"{name!r} cannot be both a secret and the user")
            if name in identity:
                raise InvalidProblem(f"{name!r} is a secret; rows need to be told apart by other columns")


def output_schema(schema: Any, rules: Sequence[ColumnRule], layout: Layout) -> Any:
    """The Arrow schema of the released table: other columns as they are, metadata included."""
    pa = import_optional("pyarrow")
    outputs, described = {}, set(layout.names)
    for rule in rules:
        types = rule.writer.types(rule.replaced_types(schema))
        for index, (name, kind) in enumerate(zip(rule.outputs, types, strict=True)):
            in_place = len(rule.outputs) == len(rule.columns) and rule.rule.original == "replace"
            original = schema.field(rule.columns[index]) if in_place else pa.field(name, pa.null())
            # Metadata of categories lists or counts the original ones: the secrets that occur.
            same = original.type == kind and not pa.types.is_dictionary(kind)
            outputs[name] = pa.field(name, kind, metadata=original.metadata if same else None)
            described -= set() if same else {name, *rule.columns}
    fields = [outputs[name] if origin == "output" else schema.field(name) for name, origin in layout.columns]
    fields = [
        pa.field(field.name, field.type) if origin == "null" else field
        for field, (_, origin) in zip(fields, layout.columns, strict=True)
    ]
    return pa.schema(fields, metadata=_describing_only(described, schema.metadata))


def _describing_only(columns: set[str], metadata: Mapping[bytes, bytes] | None) -> Mapping[bytes, bytes] | None:
    """A schema's metadata in which pandas' describe only these columns: others are not what they were."""
    if not metadata or PANDAS_METADATA not in metadata:
        return metadata
    try:
        description = json.loads(metadata[PANDAS_METADATA])
        description["columns"] = [each for each in description["columns"] if each["field_name"] in columns]
    except (ValueError, KeyError, TypeError):
        return {key: value for key, value in metadata.items() if key != PANDAS_METADATA}
    return {**metadata, PANDAS_METADATA: json.dumps(description).encode()}

"""What is to become of a column: which mechanism, how answers are written, what happens to originals and odd rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Sampleable, is_sampleable
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.output_columns import Answer, AnswerWriter, in_category_order
from privacygames.tables.secret_columns import SecretReader, column_names
from privacygames.validation import is_number, require_choice

Original = Literal["replace", "drop", "null"]
"""What becomes of the original columns: answers take their place; they go, and answers come last; they stay, empty."""

Invalid = Literal["error", "drop", "null", "nearest"]
"""What becomes of a row whose value is no secret of the mechanism."""

RELEASED = "_released"

PANDAS = b"pandas"
"""Where pandas notes in a schema's metadata what its columns were."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is to become of a column, or of columns that belong together.

    Attributes:
        mechanism: what draws the answers: a mechanism, a fleet of one for each person, or whatever else has the members
            of :class:`privacygames.Sampleable`.
        output_form: how an output is written: its ``"label"``, its ``"centre"``, a random ``"point"`` in it, its
            ``"bounds"``, or the ``"set"`` of its members.
        into: names of the columns of answers; by default those of the originals where they are replaced one by one.
        original: what becomes of the original columns.
        invalid: what becomes of a row whose value is no secret: an ``"error"``, the row is dropped (``"drop"``), its
            answer is null (``"null"``), or the ``"nearest"`` secret is taken (places and numbers).
        missing: the same for a row that has no value; by default as ``invalid``, and an error where that is
            ``"nearest"``.
        far_share_at_most: with ``"nearest"``, the largest share of rows that may lie outside all secrets by more than
            one step (a cell, or the distance of the outermost number from its neighbour); above it, the release is
            refused. Points that fit a grid only with longitude and latitude exchanged are refused where they are most
            of the rows, whatever this says.
    """

    mechanism: Sampleable
    output_form: Answer = "label"
    into: str | Sequence[str] | None = None
    original: Original = "replace"
    invalid: Invalid = "error"
    missing: Literal["error", "drop", "null"] | None = None
    far_share_at_most: float = 0.05

    def __post_init__(self) -> None:
        if not is_sampleable(self.mechanism):
            raise InvalidProblem(f"a Rule needs a Mechanism, or a Fleet; got {type(self.mechanism).__name__}")
        require_choice(self.original, get_args(Original), "original")
        require_choice(self.invalid, get_args(Invalid), "invalid")
        if self.missing is not None:
            require_choice(self.missing, ("error", "drop", "null"), "missing")
        if not (is_number(self.far_share_at_most) and 0 <= self.far_share_at_most <= 1):
            raise InvalidProblem(Field("far_share_at_most"), " is a share of rows: between 0 and 1")

    @property
    def for_missing(self) -> str:
        """What becomes of rows without a value."""
        return self.missing or ("error" if self.invalid == "nearest" else self.invalid)


class ColumnRule:
    """A rule and the columns it is for."""

    def __init__(self, place: Any, rule: Rule) -> None:
        self.rule, self.columns = rule, column_names(place)
        self.reader = SecretReader(rule.mechanism.secrets, place)
        self.writer = AnswerWriter(rule.mechanism.observables, rule.output_form, apart=not isinstance(place, str))
        if rule.invalid == "nearest" and not self.reader.has_nearest:
            raise InvalidProblem(
                Field("invalid"), f"='nearest' for {self.name}: only places and numbers have a nearest secret"
            )
        self.outputs = self._outputs()

    @property
    def name(self) -> str:
        """The columns, as messages call them."""
        return ", ".join(self.columns)

    @property
    def purpose(self) -> tuple[str, ...]:
        """What its random bits are for: no other rule, and no other mechanism, gets the same."""
        return (self.rule.mechanism.digest, str(len(self.columns)), *self.columns)

    def _outputs(self) -> tuple[str, ...]:
        rule, suffixes = self.rule, self.writer.suffixes
        if rule.into is not None:
            names = (rule.into,) if isinstance(rule.into, str) else tuple(rule.into)
            if len(names) != len(suffixes) or not all(isinstance(name, str) for name in names):
                raise InvalidProblem(
                    f"output_form={rule.output_form!r} for {self.name} makes {len(suffixes)} columns; "
                    f"into names {len(names)}"
                )
            return names
        ending = "" if rule.original == "replace" else RELEASED
        if len(suffixes) == len(self.columns):
            return tuple(f"{name}{ending}" for name in self.columns)
        if len(self.columns) == 1:
            return tuple(f"{self.columns[0]}{suffix}{ending}" for suffix in suffixes)
        raise InvalidProblem(
            f"output_form={rule.output_form!r} turns the {len(self.columns)} columns {self.name} into {len(suffixes)}: "
            "say with into what to call them"
        )

    def in_category_order(self, answers: Sequence[Any], columns: Mapping[str, Any]) -> list[Any]:
        """Columns of answers, with ordered categories in the order of the columns they take the place of."""
        if len(answers) != len(self.columns):
            return list(answers)
        return [
            in_category_order(array, columns[name], name) for array, name in zip(answers, self.columns, strict=True)
        ]

    def like(self, schema: Any) -> list[Any]:
        """The types of the columns that answers take the place of, one for each; None where there is none."""
        if len(self.outputs) != len(self.columns):
            return [None] * len(self.outputs)
        mechanism = self.rule.mechanism
        types = [schema.field(name).type for name in self.columns]
        if set(mechanism.observables.labels) <= set(mechanism.secrets.labels):
            return types
        return [_without_order(kind) for kind in types]  # the order of categories says nothing of other answers


def _without_order(kind: Any) -> Any:
    pa = import_optional("pyarrow")
    return pa.dictionary(kind.index_type, kind.value_type) if pa.types.is_dictionary(kind) else kind


def rules_from(given: Any) -> tuple[ColumnRule, ...]:
    """The rules a caller gave: a mapping from columns to mechanisms or rules."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidProblem('give the rules as {"column": mechanism} or {("lon", "lat"): Rule(…)}')
    rules = tuple(
        ColumnRule(place, each if isinstance(each, Rule) else Rule(mechanism=each)) for place, each in given.items()
    )
    columns = [name for rule in rules for name in rule.columns]
    if len(set(columns)) < len(columns):
        raise InvalidProblem("a column may have one rule only: two answers for one secret are two releases")
    return rules


@dataclass(frozen=True)
class Layout:
    """The columns of the output, in order.

    Attributes:
        columns: for each, its name and where it comes from: ``"kept"``, ``"answer"`` or ``"null"``.
    """

    columns: tuple[tuple[str, str], ...]

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [name for name, _ in self.columns]


def layout_of(names: Sequence[str], rules: Sequence[ColumnRule], also: Sequence[str]) -> Layout:
    """Where everything goes; refuses columns that are not there, or names that are taken."""
    for name in [name for rule in rules for name in rule.columns] + list(also):
        if list(names).count(name) != 1:
            count = "no column" if name not in names else "several columns"
            raise InvalidProblem(f"the table has {count} {name!r}; it has {', '.join(map(str, names))}")
    originals = {name: rule for rule in rules for name in rule.columns}
    found: list[tuple[str, str]] = []
    for name in names:
        rule = originals.get(name)
        if rule is None:
            found.append((name, "kept"))
        elif rule.rule.original == "null":
            found.append((name, "null"))
        elif rule.rule.original == "replace":
            found += _in_place(name, rule)
    found += [(name, "answer") for rule in rules if rule.rule.original != "replace" for name in rule.outputs]
    layout = Layout(tuple(found))
    if len(set(layout.names)) < len(layout.names):
        twice = sorted({name for name in layout.names if layout.names.count(name) > 1})
        raise InvalidProblem(f"the output would have two columns {', '.join(twice)}: choose other names with into")
    return layout


def _in_place(name: str, rule: ColumnRule) -> list[tuple[str, str]]:
    """One answer for each column where there are as many; else all of them where the first column was."""
    at = rule.columns.index(name)
    if len(rule.outputs) == len(rule.columns):
        return [(rule.outputs[at], "answer")]
    return [(output, "answer") for output in rule.outputs] if at == 0 else []


def check_secret_columns(rules: Sequence[ColumnRule], identity: Sequence[str], user: str | None) -> None:
    """Refuse a table whose secrets would leave it by another column."""
    for rule in rules:
        for name in rule.columns:
            if name == user:
                raise InvalidProblem(f"{name!r} cannot be both a secret and the user")
            if name in identity:
                raise InvalidProblem(f"{name!r} is a secret; rows need to be told apart by other columns")


def schema_of(schema: Any, rules: Sequence[ColumnRule], layout: Layout) -> Any:
    """The schema of the output: kept columns as they are, metadata included."""
    pa = import_optional("pyarrow")
    answers, described = {}, set(layout.names)
    for rule in rules:
        for at, (name, kind) in enumerate(zip(rule.outputs, rule.writer.types(rule.like(schema)), strict=True)):
            same_place = len(rule.outputs) == len(rule.columns) and rule.rule.original == "replace"
            before = schema.field(rule.columns[at]) if same_place else pa.field(name, pa.null())
            # Of categories, metadata lists or counts those of the originals: they are the secrets that occur.
            same = before.type == kind and not pa.types.is_dictionary(kind)
            answers[name] = pa.field(name, kind, metadata=before.metadata if same else None)
            described -= set() if same else {name, *rule.columns}
    fields = [answers[name] if origin == "answer" else schema.field(name) for name, origin in layout.columns]
    fields = [
        pa.field(field.name, field.type) if origin == "null" else field
        for field, (_, origin) in zip(fields, layout.columns, strict=True)
    ]
    return pa.schema(fields, metadata=_pandas_about(described, schema.metadata))


def _pandas_about(columns: set[str], metadata: Mapping[bytes, bytes] | None) -> Mapping[bytes, bytes] | None:
    """A schema's metadata in which pandas' describe only these columns: it cannot read others as what they were."""
    if not metadata or PANDAS not in metadata:
        return metadata
    try:
        told = json.loads(metadata[PANDAS])
        told["columns"] = [each for each in told["columns"] if each["field_name"] in columns]
    except (ValueError, KeyError, TypeError):
        return {key: value for key, value in metadata.items() if key != PANDAS}
    return {**metadata, PANDAS: json.dumps(told).encode()}

"""The kernel: columns of an Arrow batch in, columns of outputs out. All engines and files draw through it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray, keep_freed_memory
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import RowSampler
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words
from privacygames.tables.row_identity import RowIdentity
from privacygames.tables.rules import ColumnRule, Layout, check_secret_columns, output_layout, output_schema
from privacygames.tables.secret_columns import BLOCK, MISSING, SWAPPED, UNKNOWN

CHUNK = 1 << 17
"""Rows of a batch of the released table."""

BitsFor = Callable[..., KeyedBits]
"""The random bits for a purpose, which is given as texts."""

LOW_64_BITS = (1 << 64) - 1

CHANGED = (
    "{} rows are not among those that were looked at when the release was set up, or hold other secrets now: the table "
    "changed, or gives other rows each time it is computed. Collect or store it first, and release that"
)
"""The error for rows that differ from those a release was charged for."""


@dataclass
class RowCounts:
    """Numbers of rows read, dropped and invalid. Counts of batches add up.

    Attributes:
        rows: rows read.
        dropped: rows left out.
        invalid: by rule and reason (``missing``, ``unknown``), rows whose value is no secret. Of those moved to the
            nearest secret, ``far`` counts again the ones far from all secrets, and ``exchanged`` the points that lie
            in the grid only with their coordinates swapped.
        draws: by rule, a keyed hash of the identities and secrets of all rows drawn, in any order: two sums modulo
            2⁶⁴. Empty if rows have no identity.
    """

    rows: int = 0
    dropped: int = 0
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter)
    draws: Counter[str] = field(default_factory=Counter)

    def add(self, other: "RowCounts") -> None:
        """Add the counts of another batch."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.invalid.update(other.invalid)
        self.add_draws(other.draws)

    def add_draws(self, draws: Mapping[str, int]) -> None:
        """Add the hashes of further draws."""
        for rule, value in draws.items():
            total = self.draws[rule]
            low, high = (total & LOW_64_BITS) + (value & LOW_64_BITS), (total >> 64) + (value >> 64)
            self.draws[rule] = (low & LOW_64_BITS) | (high & LOW_64_BITS) << 64

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        invalid = [[*key, count] for key, count in sorted(self.invalid.items())]
        return {"rows": self.rows, "dropped": self.dropped, "odd": invalid, "draws": dict(self.draws)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "RowCounts":
        """The inverse of :meth:`to_dict`."""
        invalid = Counter({(str(rule), str(reason)): int(count) for rule, reason, count in table["odd"]})
        draws = Counter({str(rule): int(value) for rule, value in table["draws"].items()})
        return cls(int(table["rows"]), int(table["dropped"]), invalid, draws)


@dataclass(frozen=True)
class BatchSecrets:
    """The secrets of a batch.

    Attributes:
        by_rule: for each rule, each row's secret as a number (its index, or an encoded point); negative for rows
            without one.
        keep: mask of the rows that stay; None: all.
        counts: what was counted.
    """

    by_rule: dict[str, IntArray]
    keep: NDArray[np.bool_] | None
    counts: RowCounts

    def of_kept_rows(self) -> dict[str, IntArray]:
        """The secrets of the rows that stay."""
        if self.keep is None:
            return self.by_rule
        return {name: secrets[self.keep] for name, secrets in self.by_rule.items()}


@dataclass(frozen=True)
class BatchOutputs:
    """The outputs for a batch.

    Attributes:
        columns: Arrow arrays by name, with an entry for each row that stays.
        keep: mask of the rows that stay; None: all.
        counts: what was counted.
    """

    columns: dict[str, Any]
    keep: NDArray[np.bool_] | None
    counts: RowCounts


class Kernel:
    """Rules, key and row identity, for batches of one schema.

    Args:
        rules: the rules.
        key: the source of random bits.
        identity: how rows are told apart.
        user: the column that says whose row it is; fleets and ``repeat="same"`` need it.
        schema: the Arrow schema of the batches.

    Attributes:
        needs: the columns that the kernel reads.
        layout: the columns of the output.
        schema: the Arrow schema of the output.
    """

    def __init__(
        self, rules: tuple[ColumnRule, ...], key: ReleaseKey, identity: RowIdentity, user: str | None, schema: Any
    ) -> None:
        check_secret_columns(rules, identity.columns, user)
        self._per_user = any(rule.rule.mechanism.per_user for rule in rules)
        if self._per_user and user is None:
            raise InvalidProblem(
                "a fleet has a mechanism for each person: say with ",
                Field("user"),
                " which column says whose row it is",
            )
        self.rules, self.identity, self.user = rules, identity, user
        secret_columns = [name for rule in rules for name in rule.columns]
        self.needs = tuple(
            dict.fromkeys([*secret_columns, *identity.columns, *([user] if self._per_user and user else [])])
        )
        self.layout: Layout = output_layout(schema.names, rules, [*identity.columns, *([user] if user else [])])
        self.schema = output_schema(schema, rules, self.layout)
        self._types = {rule.name: [self.schema.field(name).type for name in rule.outputs] for rule in rules}
        self._key = key
        self._expected_marks: Words | None = None

    def draw(self, columns: Mapping[str, Any], count: int, start: int, *, encode_lists: bool = False) -> BatchOutputs:
        """Draw the outputs for some rows.

        Args:
            columns: Arrow arrays of the columns in ``needs``.
            count: number of rows.
            start: position of the first row in its table or file.
            encode_lists: whether columns of lists are dictionary-encoded, for engines where every list is an object.
        """
        keep_freed_memory()
        batch = self._secrets(columns, count, start)
        secrets = batch.of_kept_rows()
        samplers = self._row_samplers(columns, batch.keep)
        tags = None if self.identity.by_position else self.tags(columns, count, start)
        if tags is not None:
            tags = tags if batch.keep is None else tags[batch.keep]
            self._require_expected(self._marks(secrets, tags, samplers, batch.counts))
        outputs: dict[str, Any] = {}
        for rule in self.rules:
            bits, types = self._keyed_bits(rule), self._types[rule.name]
            if encode_lists:
                types = [dictionary_of_lists(kind) for kind in types]
            blocks = [
                self._draw_block(rule, secrets[rule.name][part], samplers[rule.name], part_tags, bits=bits, types=types)
                for part, part_tags in self._blocks(tags, batch.keep, count, start)
            ]
            arrays = [concatenate(parts) for parts in zip(*blocks, strict=True)]
            outputs |= dict(zip(rule.outputs, rule.in_category_order(arrays, columns), strict=True))
        return BatchOutputs(outputs, batch.keep, batch.counts)

    def _blocks(
        self, tags: Words | None, keep: NDArray[np.bool_] | None, count: int, start: int
    ) -> Iterator[tuple[slice, Words]]:
        """The rows that stay, as many as are drawn together, and their identities; one empty block if none stays.

        Args:
            tags: the identities of the rows that stay; None: their positions.
            keep: mask of the rows that stay; None: all.
            count: number of rows of the batch.
            start: position of its first row.
        """
        kept = None if keep is None else np.flatnonzero(keep)
        rows = count if kept is None else len(kept)
        size = max(rows, 1) if self._per_user else BLOCK  # the samplers of people are those of all rows
        for first in range(0, rows, size) or [0]:
            part = slice(first, min(first + size, rows))
            if tags is not None:
                yield part, tags[part]
                continue
            positions = self.identity.tags(self._key, {}, part.stop - first, start + first)
            if kept is not None:
                positions[:, 0] = (kept[part] + start).astype(np.uint64)
            yield part, positions

    def tags(self, columns: Mapping[str, Any], count: int, start: int) -> Words:
        """The identity of each row, as 128 bits."""
        return self.identity.tags(self._key, columns, count, start)

    def scan(self, columns: Mapping[str, Any], count: int, start: int | None) -> tuple[RowCounts, NDArray[np.uint64]]:
        """Count rows, and mark each that stays with a hash of its identity and secrets, without drawing.

        Args:
            columns: Arrow arrays of the columns in ``needs``.
            count: number of rows.
            start: position of the first row; None if it is not known.
        """
        batch = self._secrets(columns, count, start)
        if self.identity.by_position:
            return batch.counts, np.zeros(0, dtype=np.uint64)
        tags = self.tags(columns, count, 0)
        if batch.keep is not None:
            tags = tags[batch.keep]
        marks = self._marks(batch.of_kept_rows(), tags, self._row_samplers(columns, batch.keep), batch.counts)
        return batch.counts, marks

    def expect(self, marks: Sequence[NDArray[np.uint64]]) -> None:
        """From now on refuse rows that were not scanned, or that have other secrets than when they were."""
        if not self.identity.by_position:
            self._expected_marks = distinct(np.concatenate([np.zeros(0, dtype=np.uint64), *marks]))

    def require_known_people(self, columns: Mapping[str, Any]) -> None:
        """Refuse people without a mechanism; nothing is drawn."""
        for rule in self.rules:
            if rule.rule.mechanism.per_user:
                rule.rule.mechanism.row_sampler(columns[self.user or ""])

    def batch(self, batch: Any, start: int) -> tuple[Any, RowCounts]:
        """An Arrow record batch with outputs in place of secrets, and what was counted."""
        pa = import_optional("pyarrow")
        drawn = self.draw({name: batch.column(name) for name in self.needs}, batch.num_rows, start)
        mask = None if drawn.keep is None else pa.array(drawn.keep)
        kept_count = batch.num_rows - drawn.counts.dropped
        arrays = []
        for (name, origin), field_out in zip(self.layout.columns, self.schema, strict=True):
            if origin == "output":
                arrays.append(drawn.columns[name])
            elif origin == "null":
                arrays.append(pa.nulls(kept_count, field_out.type))
            else:
                arrays.append(batch.column(name) if mask is None else filter_array(batch.column(name), mask))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), drawn.counts

    def batches(self, batches: Any, counts: RowCounts, start: int = 0) -> Iterator[Any]:
        """Record batches with outputs in place of secrets, one at a time: memory does not grow with them."""
        for batch in batches:
            for first in range(0, batch.num_rows, CHUNK):
                output, batch_counts = self.batch(batch.slice(first, CHUNK), start)
                start += batch_counts.rows
                counts.add(batch_counts)
                yield output

    def _require_expected(self, marks: NDArray[np.uint64]) -> None:
        if self._expected_marks is None or not len(marks):
            return
        if not len(self._expected_marks):
            raise InvalidProblem(CHANGED.format(len(marks)))
        index = np.minimum(np.searchsorted(self._expected_marks, marks), len(self._expected_marks) - 1)
        changed = int((self._expected_marks[index] != marks).sum())
        if changed:
            raise InvalidProblem(CHANGED.format(changed))

    def _marks(
        self, secrets: Mapping[str, IntArray], tags: Words, samplers: Mapping[str, RowSampler], counts: RowCounts
    ) -> NDArray[np.uint64]:
        """64 bits for each row: a keyed hash of its identity and secrets. Their sums are added to the counts."""
        marks = np.zeros(len(tags), dtype=np.uint64)
        if self.identity.by_position:
            return marks
        for rule in self.rules:
            positions = secrets[rule.name]
            bits = self._keyed_bits(rule)("marks")
            blocks = bits.blocks(tags, samplers[rule.name].tweak(np.maximum(positions, 0)))
            blocks[positions < 0] = 0
            marks ^= blocks[:, 0]
            low, high = (int(total) for total in blocks.sum(axis=0, dtype=np.uint64))
            counts.add_draws({rule.name: low | high << 64})
        return marks

    def _row_samplers(self, columns: Mapping[str, Any], keep: NDArray[np.bool_] | None) -> dict[str, RowSampler]:
        """For each rule, the sampler for the rows that stay."""
        users = columns[self.user] if self._per_user and self.user else None
        if users is not None and keep is not None:
            users = users.filter(import_optional("pyarrow").array(keep))
        return {
            rule.name: rule.rule.mechanism.row_sampler(users if rule.rule.mechanism.per_user else None)
            for rule in self.rules
        }

    def _secrets(self, columns: Mapping[str, Any], count: int, start: int | None) -> BatchSecrets:
        """The secrets of each rule, the rows that stay, and what was counted."""
        counts = RowCounts(rows=count)
        secrets = {rule.name: secrets_of(rule, columns, counts) for rule in self.rules}
        return BatchSecrets(secrets, self._kept_rows(secrets, columns, counts, start), counts)

    def _kept_rows(
        self, secrets: dict[str, IntArray], columns: Mapping[str, Any], counts: RowCounts, start: int | None
    ) -> NDArray[np.bool_] | None:
        """The rows that stay, after every invalid one is counted; an error if a rule allows none."""
        keep: NDArray[np.bool_] | None = None
        for rule in self.rules:
            positions = secrets[rule.name]
            if not len(positions) or int(positions.min()) >= 0:
                continue
            for reason, code, treatment in (
                ("missing", MISSING, rule.rule.for_missing),
                ("unknown", UNKNOWN, rule.rule.for_unknown),
            ):
                invalid = positions == code
                count = int(invalid.sum())
                if not count:
                    continue
                if treatment in ("error", "nearest"):  # what still has no nearest secret, such as another diagnosis
                    raise self._invalid_rows_error(rule, reason, invalid, columns, start)
                counts.invalid[rule.name, reason] += count
                if treatment == "drop":
                    keep = ~invalid if keep is None else keep & ~invalid
        if keep is not None:
            counts.dropped = int(len(keep) - keep.sum())
        return keep

    def _invalid_rows_error(
        self, rule: ColumnRule, reason: str, invalid: NDArray[np.bool_], columns: Mapping[str, Any], start: int | None
    ) -> InvalidProblem:
        """The error about rows whose value is no secret; it never says what they hold."""
        first, is_position = int(np.argmax(invalid)), start is not None and self.identity.by_position
        if start is not None and is_position:
            first += start
        where = f"the first at row {first} (from 0)" + ("" if is_position else " of its batch")
        what = "have no value" if reason == "missing" else rule.reader.unknown
        hint = rule.reader.hint(columns) if reason == "unknown" else ""
        nearest = reason == "unknown" and rule.reader.has_nearest and rule.rule.for_unknown != "nearest"
        choices = "'drop' or 'null'" + (", or 'nearest'" if nearest else "")
        option = "missing" if reason == "missing" and rule.rule.for_unknown == "nearest" else "invalid"
        rows = f"{rule.name}: {int(invalid.sum())} of {len(invalid)} rows {what}, {where}{hint}; say "
        return InvalidProblem(rows, Field(option), f"={choices}")

    @staticmethod
    def _draw_block(
        rule: ColumnRule,
        secrets: IntArray,
        sampler: RowSampler,
        tags: Words,
        *,
        bits: BitsFor,
        types: Sequence[Any],
    ) -> list[Any]:
        """The columns of outputs for some rows; null for rows without a secret.

        Args:
            rule: the rule.
            secrets: the rows' secrets.
            sampler: the rows' sampler.
            tags: the rows' identities.
            bits: the rule's random bits for each purpose.
            types: the Arrow types of the columns.
        """
        all_known = not len(secrets) or int(secrets.min()) >= 0
        known = secrets if all_known else np.maximum(secrets, 0)
        tweak = sampler.tweak(known)

        def random_words(number: int) -> Words:  # each of the words 0, 1, 2, … has a key of its own
            return (bits("draw") if number == 0 else bits("draw word", str(number))).words(tags, tweak)

        def point_bits(what: str, drawn: IntArray) -> Words:  # functions of the row and its output, not of its secret
            return bits("point", what).words(tags, drawn)

        drawn: IntArray = sampler.draw(known, random_words)
        indices = drawn if all_known else np.where(secrets < 0, -1, drawn)
        return rule.writer.columns(indices, point_bits, types)

    def _keyed_bits(self, rule: ColumnRule) -> BitsFor:
        """The random bits of one rule for each purpose."""
        rule_purpose = (*rule.purpose, *self.identity.purpose())
        return cache(lambda *purpose: KeyedBits(self._key.derive(*purpose, *rule_purpose)))


def distinct(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The distinct ones of some words, in ascending order.

    Sorting them takes a tenth of the time of the hash table that ``np.unique`` makes.
    """
    ordered = np.sort(words)
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def filter_array(array: Any, mask: Any) -> Any:
    """The rows of an Arrow array that a mask keeps, also of types for which PyArrow has no filter, such as views."""
    pa = import_optional("pyarrow")
    try:
        return array.filter(mask)
    except pa.ArrowNotImplementedError:
        edges = np.diff(np.concatenate([[False], mask.to_numpy(zero_copy_only=False), [False]]).astype(np.int8))
        starts, ends = np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist()
        runs = [array.slice(first, last - first) for first, last in zip(starts, ends, strict=True)]
        return pa.concat_arrays(runs) if runs else array.slice(0, 0)


def dictionary_of_lists(kind: Any) -> Any:
    """The type of a dictionary of lists for a type of lists; other types as they are."""
    pa = import_optional("pyarrow")
    return pa.dictionary(pa.int32(), kind) if pa.types.is_list(kind) else kind


def concatenate(arrays: Sequence[Any]) -> Any:
    """Arrow arrays of one type as one array."""
    return arrays[0] if len(arrays) == 1 else import_optional("pyarrow").concat_arrays(arrays)


def secrets_of(rule: ColumnRule, columns: Mapping[str, Any], counts: RowCounts) -> IntArray:
    """A rule's secrets as numbers; rows moved to the nearest secret are counted."""
    secrets = rule.reader.positions(columns)
    if rule.rule.for_unknown != "nearest" or not (outside := secrets == UNKNOWN).any():
        return secrets
    mask = import_optional("pyarrow").array(outside)
    rows_outside = {name: filter_array(columns[name], mask) for name in rule.columns}
    nearest = rule.reader.positions(rows_outside, nearest=True)
    moved = nearest >= 0
    by_reason = {
        "unknown": moved,
        "far": moved & rule.reader.is_far(rows_outside),
        "exchanged": moved & rule.reader.is_swapped(rows_outside),
    }
    for reason, rows in by_reason.items():
        if count := int(rows.sum()):
            counts.invalid[rule.name, reason] += count
    secrets[outside] = nearest
    return secrets


def require_few_far_rows(rules: Sequence[ColumnRule], counts: RowCounts) -> None:
    """Refuse a table of which too many rows would be moved far to their nearest secret."""
    for rule in rules:
        far, swapped = counts.invalid[rule.name, "far"], counts.invalid[rule.name, "exchanged"]
        mostly_swapped = 2 * swapped > counts.rows
        if not mostly_swapped and far <= rule.rule.far_share_at_most * counts.rows:
            continue
        hint = SWAPPED if 2 * swapped > far else ""
        moved = f"='nearest' would move {max(far, swapped)} of {counts.rows} rows"
        if mostly_swapped:
            raise InvalidProblem(
                f"{rule.name}: ", Field("invalid"), f"{moved} to the border{hint}: swap the two columns"
            )
        raise InvalidProblem(
            f"{rule.name}: ",
            Field("invalid"),
            f"{moved} by more than one step beyond the outermost secrets{hint}, above the share of "
            f"{rule.rule.far_share_at_most:g}: correct the columns, design for more secrets or a larger area, choose ",
            Field("invalid"),
            "='drop', or raise ",
            Field("far_share_at_most"),
        )

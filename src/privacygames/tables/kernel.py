"""The one kernel: columns of an Arrow batch in, columns of answers out. Every adapter ends here."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import RandomWords, RowSampler
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.output_columns import Bits
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words
from privacygames.tables.row_identity import Identity
from privacygames.tables.rules import ColumnRule, Layout, check_secret_columns, layout_of, schema_of
from privacygames.tables.secret_columns import EXCHANGED, MISSING, UNKNOWN

CHUNK = 1 << 17
"""Rows looked at together: what fits the caches of a processor."""

HALF = (1 << 64) - 1
"""Mask of 64 bits: hashes of draws are two numbers, each added up modulo 2^64, so that the order of rows is nothing."""


@dataclass
class RowCounts:
    """How many rows there were, and what became of the odd ones. Tallies of batches add up.

    Attributes:
        rows: rows read.
        dropped: rows left out.
        invalid: by rule and reason (``missing``, ``unknown``), rows whose value was no secret. Of those taken for the
            nearest secret, ``far`` and ``exchanged`` count again the ones that lie far from all secrets, and the points
            that fit only with their coordinates exchanged.
        draws: by rule, a keyed hash of the identities and secrets that answers were drawn for, in any order; none
            where rows have no identity.
    """

    rows: int = 0
    dropped: int = 0
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter)
    draws: Counter[str] = field(default_factory=Counter)

    def add(self, other: "RowCounts") -> None:
        """Count another batch, too."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.invalid.update(other.invalid)
        self.add_draws(other.draws)

    def add_draws(self, draws: Mapping[str, int]) -> None:
        """Add hashes of more draws."""
        for rule, value in draws.items():
            before = self.draws[rule]
            low, high = (before & HALF) + (value & HALF), (before >> 64) + (value >> 64)
            self.draws[rule] = (low & HALF) | (high & HALF) << 64

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        odd = [[*key, count] for key, count in sorted(self.invalid.items())]
        return {"rows": self.rows, "dropped": self.dropped, "odd": odd, "draws": dict(self.draws)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "RowCounts":
        """What :meth:`to_dict` gave."""
        odd = Counter({(str(rule), str(reason)): int(count) for rule, reason, count in table["odd"]})
        draws = Counter({str(rule): int(value) for rule, value in table["draws"].items()})
        return cls(int(table["rows"]), int(table["dropped"]), odd, draws)


@dataclass(frozen=True)
class Answered:
    """The answers for one batch.

    Attributes:
        columns: Arrow arrays by name, one entry for each row that is kept.
        keep: which rows are kept; None: all.
        counts: what was counted.
    """

    columns: dict[str, Any]
    keep: NDArray[np.bool_] | None
    counts: RowCounts


CHANGED = (
    "{} rows are not among those that were looked at when the release was set up, or hold other secrets now: the table "
    "changed, or gives other rows each time it is computed. Collect or store it first, and release that"
)


class Kernel:
    """Rules, key and identity, ready for batches of one schema.

    Args:
        rules: what becomes of which columns.
        key: where the random bits come from.
        identity: what tells rows apart.
        user: the column that says whose row it is, where fleets or repeated answers need it.
        schema: of the batches to come.
    """

    def __init__(
        self, rules: tuple[ColumnRule, ...], key: ReleaseKey, identity: Identity, user: str | None, schema: Any
    ) -> None:
        check_secret_columns(rules, identity.columns, user)
        self._per_user = any(rule.rule.mechanism.per_user for rule in rules)
        if self._per_user and user is None:
            raise InvalidProblem("a fleet has a mechanism for each person: say with user which column names her")
        self.rules, self.identity, self.user = rules, identity, user
        self.needs = tuple(
            dict.fromkeys(
                [
                    *(name for rule in rules for name in rule.columns),
                    *identity.columns,
                    *([user] if self._per_user and user else []),
                ]
            )
        )
        self.layout: Layout = layout_of(schema.names, rules, [*identity.columns, *([user] if user else [])])
        self.schema = schema_of(schema, rules, self.layout)
        self._types = {rule.name: [self.schema.field(name).type for name in rule.outputs] for rule in rules}
        self._key = key
        self._expected: Words | None = None

    def answer(self, columns: Mapping[str, Any], count: int, at: int) -> Answered:
        """The answers for some rows.

        Args:
            columns: Arrow arrays of the columns that are needed.
            count: how many rows.
            at: where they stand in their source.
        """
        found, keep, counts = self._looked_at(columns, count, at)
        tags = self.tags(columns, count, at)
        if keep is not None:
            tags, found = tags[keep], {name: positions[keep] for name, positions in found.items()}
        samplers = self._row_samplers(columns, keep)
        self._require_expected(self._marks(found, tags, samplers, counts))
        answers: dict[str, Any] = {}
        for rule in self.rules:
            drawn = self._drawn(rule, found[rule.name], tags, samplers[rule.name])
            arrays = rule.writer.columns(drawn, self._post_bits(rule, tags), self._types[rule.name])
            answers |= dict(zip(rule.outputs, rule.in_category_order(arrays, columns), strict=True))
        return Answered(answers, keep, counts)

    def tags(self, columns: Mapping[str, Any], count: int, at: int) -> Words:
        """128 bits for each row: its identity."""
        return self.identity.tags(self._key, columns, count, at)

    def survey(self, columns: Mapping[str, Any], count: int, at: int | None) -> tuple[RowCounts, NDArray[np.uint64]]:
        """What there is to count, and a mark for each row that stays, with nothing drawn.

        Args:
            columns: Arrow arrays of the columns that are needed.
            count: how many rows.
            at: where they stand; None where that is not known yet.
        """
        found, keep, counts = self._looked_at(columns, count, at)
        if self.identity.by_position:
            return counts, np.zeros(0, dtype=np.uint64)
        tags = self.tags(columns, count, 0)
        if keep is not None:
            tags, found = tags[keep], {name: positions[keep] for name, positions in found.items()}
        return counts, self._marks(found, tags, self._row_samplers(columns, keep), counts)

    def expect(self, marks: Sequence[NDArray[np.uint64]]) -> None:
        """From now on draw for rows only that were surveyed, with the secrets that they had then."""
        if not self.identity.by_position:
            self._expected = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *marks]))

    def _require_expected(self, marks: NDArray[np.uint64]) -> None:
        if self._expected is None or not len(marks):
            return
        at = np.minimum(np.searchsorted(self._expected, marks), max(len(self._expected) - 1, 0))
        new = len(marks) if not len(self._expected) else int((self._expected[at] != marks).sum())
        if new:
            raise InvalidProblem(CHANGED.format(new))

    def _marks(
        self, found: Mapping[str, IntArray], tags: Words, samplers: Mapping[str, RowSampler], counts: RowCounts
    ) -> NDArray[np.uint64]:
        """64 bits for each row: a keyed hash of its identity and all its secrets; the sums are added to the counts."""
        marks = np.zeros(len(tags), dtype=np.uint64)
        if self.identity.by_position:
            return marks
        for rule in self.rules:
            secrets = found[rule.name]
            bits = KeyedBits(self._key.derive("marks", *rule.purpose, *self.identity.purpose()))
            blocks = bits.blocks(tags, samplers[rule.name].tweak(np.maximum(secrets, 0)))
            blocks[secrets < 0] = 0
            marks ^= blocks[:, 0]
            low, high = (int(each) for each in blocks.sum(axis=0, dtype=np.uint64))
            counts.add_draws({rule.name: low | high << 64})
        return marks

    def _row_samplers(self, columns: Mapping[str, Any], keep: NDArray[np.bool_] | None) -> dict[str, RowSampler]:
        """For each rule, the sampler for the rows that are kept."""
        users = columns[self.user] if self._per_user and self.user else None
        if users is not None and keep is not None:
            users = users.filter(import_optional("pyarrow").array(keep))
        return {
            rule.name: rule.rule.mechanism.row_sampler(users if rule.rule.mechanism.per_user else None)
            for rule in self.rules
        }

    def require_known(self, columns: Mapping[str, Any]) -> None:
        """Refuse people that a fleet does not know; nothing is drawn."""
        for rule in self.rules:
            if rule.rule.mechanism.per_user:
                rule.rule.mechanism.row_sampler(columns[self.user or ""])

    def _looked_at(
        self, columns: Mapping[str, Any], count: int, at: int | None
    ) -> tuple[dict[str, IntArray], NDArray[np.bool_] | None, RowCounts]:
        """The secrets of each rule, which rows stay, and what was counted."""
        counts = RowCounts(rows=count)
        found = {rule.name: secrets_of(rule, columns, counts) for rule in self.rules}
        return found, self._kept(found, columns, counts, at), counts

    def _kept(
        self, found: dict[str, IntArray], columns: Mapping[str, Any], counts: RowCounts, at: int | None
    ) -> NDArray[np.bool_] | None:
        """Which rows stay, after every odd one was counted; an error where one may not be."""
        keep: NDArray[np.bool_] | None = None
        for rule in self.rules:
            positions = found[rule.name]
            if not len(positions) or int(positions.min()) >= 0:
                continue
            for reason, code, policy in (
                ("missing", MISSING, rule.rule.for_missing),
                ("unknown", UNKNOWN, rule.rule.invalid),
            ):
                odd = positions == code
                count = int(odd.sum())
                if not count:
                    continue
                if policy in ("error", "nearest"):  # what still has no nearest one: another diagnosis, say
                    raise self._odd(rule, reason, odd, columns, at)
                counts.invalid[rule.name, reason] += count
                if policy == "drop":
                    keep = ~odd if keep is None else keep & ~odd
        if keep is not None:
            counts.dropped = int(len(keep) - keep.sum())
        return keep

    def _odd(
        self, rule: ColumnRule, reason: str, odd: NDArray[np.bool_], columns: Mapping[str, Any], at: int | None
    ) -> InvalidProblem:
        """The error about rows that are no secret; it never says what they hold."""
        first, known = int(np.argmax(odd)), at is not None and self.identity.by_position
        if at is not None and known:
            first += at
        where = f"the first at row {first} (from 0)" + ("" if known else " of its batch")
        what = "have no value" if reason == "missing" else "hold what is no secret of the mechanism"
        hint = rule.reader.hint(columns) if reason == "unknown" else ""
        near = reason == "unknown" and rule.reader.has_nearest and rule.rule.invalid != "nearest"
        ways = "'drop' or 'null'" + (", or 'nearest'" if near else "")
        option = "missing" if reason == "missing" and rule.rule.invalid == "nearest" else "invalid"
        rows = f"{rule.name}: {int(odd.sum())} of {len(odd)} rows {what}, {where}{hint}; say "
        return InvalidProblem(rows, Field(option), f"={ways}")

    def _drawn(self, rule: ColumnRule, secrets: IntArray, tags: Words, sampler: RowSampler) -> IntArray:
        """The observable drawn for each row, −1 where there is no secret."""
        known = np.maximum(secrets, 0)
        drawn: IntArray = sampler.draw(known, self._random_words(rule, tags, sampler.tweak(known)))
        return drawn if not len(secrets) or int(secrets.min()) >= 0 else np.where(secrets < 0, -1, drawn)

    def _random_words(self, rule: ColumnRule, tags: Words, tweak: IntArray) -> RandomWords:
        """The random bits of each row for one rule: words 1, 2, … have keys of their own, beside that of word 0."""
        purpose = (*rule.purpose, *self.identity.purpose())

        def word(number: int) -> Words:
            drawing = ("draw",) if number == 0 else ("draw word", str(number))
            return KeyedBits(self._key.derive(*drawing, *purpose)).words(tags, tweak)

        return word

    def _post_bits(self, rule: ColumnRule, tags: Words) -> Bits:
        """Bits for random points: of the row and its answer, never of its secret."""
        purpose = (*rule.purpose, *self.identity.purpose())
        return lambda what, drawn: KeyedBits(self._key.derive("point", what, *purpose)).words(tags, drawn)

    def batch(self, batch: Any, at: int) -> tuple[Any, RowCounts]:
        """An Arrow record batch with answers in it, and what was counted."""
        pa = import_optional("pyarrow")
        answered = self.answer({name: batch.column(name) for name in self.needs}, batch.num_rows, at)
        mask = None if answered.keep is None else pa.array(answered.keep)
        kept = batch.num_rows - answered.counts.dropped
        arrays = []
        for (name, origin), into in zip(self.layout.columns, self.schema, strict=True):
            if origin == "answer":
                arrays.append(answered.columns[name])
            elif origin == "null":
                arrays.append(pa.nulls(kept, into.type))
            else:
                arrays.append(batch.column(name) if mask is None else filtered(batch.column(name), mask))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), answered.counts

    def batches(self, batches: Any, counts: RowCounts, start: int = 0) -> Iterator[Any]:
        """Record batches with answers in them, one at a time: memory does not grow with them."""
        for whole in batches:
            for first in range(0, whole.num_rows, CHUNK):
                made, counted = self.batch(whole.slice(first, CHUNK), start)
                start += counted.rows
                counts.add(counted)
                yield made


def filtered(array: Any, mask: Any) -> Any:
    """The rows of an Arrow array that a mask keeps, also of types that PyArrow has no filter for, such as views."""
    pa = import_optional("pyarrow")
    try:
        return array.filter(mask)
    except pa.ArrowNotImplementedError:
        edges = np.diff(np.concatenate([[False], mask.to_numpy(zero_copy_only=False), [False]]).astype(np.int8))
        starts, ends = np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist()
        runs = [array.slice(first, last - first) for first, last in zip(starts, ends, strict=True)]
        return pa.concat_arrays(runs) if runs else array.slice(0, 0)


def secrets_of(rule: ColumnRule, columns: Mapping[str, Any], counts: RowCounts) -> IntArray:
    """The positions of a rule's secrets; what is taken for the nearest one is counted."""
    found = rule.reader.positions(columns)
    if rule.rule.invalid != "nearest" or not (outside := found == UNKNOWN).any():
        return found
    near = rule.reader.positions(columns, nearest=True)
    moved = outside & (near >= 0)
    kinds = {
        "unknown": moved,
        "far": moved & rule.reader.far(columns),
        "exchanged": moved & rule.reader.exchanged(columns),
    }
    for reason, rows in kinds.items():
        if count := int(rows.sum()):
            counts.invalid[rule.name, reason] += count
    return near


def require_near(rules: Sequence[ColumnRule], counts: RowCounts) -> None:
    """Refuse a table of which too many rows would be moved far, to a secret that is only the nearest."""
    for rule in rules:
        far, exchanged = counts.invalid[rule.name, "far"], counts.invalid[rule.name, "exchanged"]
        swapped = 2 * exchanged > counts.rows
        if not swapped and far <= rule.rule.far_share_at_most * counts.rows:
            continue
        hint = EXCHANGED if 2 * exchanged > far else ""
        moved = f"='nearest' would move {max(far, exchanged)} of {counts.rows} rows"
        if swapped:
            raise InvalidProblem(
                f"{rule.name}: ",
                Field("invalid"),
                f"{moved} to the border of the grid{hint}: exchange the two columns",
            )
        raise InvalidProblem(
            f"{rule.name}: ",
            Field("invalid"),
            f"{moved} by more than one step beyond the outermost secrets{hint}, above the share of "
            f"{rule.rule.far_share_at_most:g}: correct the columns, design for more secrets, choose ",
            Field("invalid"),
            "='drop', or raise ",
            Field("far_share_at_most"),
        )

"""The one kernel: columns of an Arrow batch in, columns of answers out. Every adapter ends here."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem
from privacygames.fleet import Fleet
from privacygames.tables.answer_columns import Bits
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words
from privacygames.tables.row_identity import At, Identity
from privacygames.tables.rules import ColumnRule, Layout, check_secret_columns, layout_of, schema_of
from privacygames.tables.secret_columns import MISSING, UNKNOWN

CHUNK = 1 << 17
"""Rows looked at together: what fits the caches of a processor."""


@dataclass
class Tally:
    """How many rows there were, and what became of the odd ones. Tallies of batches add up.

    Attributes:
        rows: rows read.
        dropped: rows left out.
        odd: by rule and reason (``missing``, ``unknown``), rows whose value was no secret.
    """

    rows: int = 0
    dropped: int = 0
    odd: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Count another batch, too."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.odd.update(other.odd)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        odd = [[*key, count] for key, count in sorted(self.odd.items())]
        return {"rows": self.rows, "dropped": self.dropped, "odd": odd}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Tally":
        """What :meth:`to_dict` gave."""
        odd = Counter({(str(rule), str(reason)): int(count) for rule, reason, count in table["odd"]})
        return cls(int(table["rows"]), int(table["dropped"]), odd)


@dataclass(frozen=True)
class Answered:
    """The answers for one batch.

    Attributes:
        columns: Arrow arrays by name, one entry for each row that is kept.
        keep: which rows are kept; None: all.
        tally: what was counted.
    """

    columns: dict[str, Any]
    keep: NDArray[np.bool_] | None
    tally: Tally


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
        fleets = any(isinstance(rule.rule.mechanism, Fleet) for rule in rules)
        if fleets and user is None:
            raise InvalidProblem("a fleet has a mechanism for each person: say with user which column names her")
        self.rules, self.identity, self.user = rules, identity, user
        self.needs = tuple(
            dict.fromkeys(
                [
                    *(name for rule in rules for name in rule.columns),
                    *identity.columns,
                    *([user] if fleets and user else []),
                ]
            )
        )
        self.layout: Layout = layout_of(schema.names, rules, [*identity.columns, *([user] if user else [])])
        self.schema = schema_of(schema, rules, self.layout)
        self._types = {rule.name: [self.schema.field(name).type for name in rule.outputs] for rule in rules}
        self._key = key

    def answer(self, columns: Mapping[str, Any], count: int, at: At) -> Answered:
        """The answers for some rows.

        Args:
            columns: Arrow arrays of the columns that are needed.
            count: how many rows.
            at: where they stand in their source.
        """
        found, keep, tally = self._looked_at(columns, count, at)
        tags = self.tags(columns, count, at)
        if keep is not None:
            tags = tags[keep]
        answers: dict[str, Any] = {}
        for rule in self.rules:
            secrets = found[rule.name] if keep is None else found[rule.name][keep]
            drawn = self._drawn(rule, secrets, tags, columns, keep)
            arrays = rule.writer.columns(drawn, self._post_bits(rule, tags), self._types[rule.name])
            answers |= dict(zip(rule.outputs, arrays, strict=True))
        return Answered(answers, keep, tally)

    def tags(self, columns: Mapping[str, Any], count: int, at: At) -> Words:
        """128 bits for each row: its identity."""
        return self.identity.tags(self._key, columns, count, at)

    def survey(self, columns: Mapping[str, Any], count: int, at: At | None) -> Tally:
        """What there is to count, with nothing drawn; ``at`` is None where it is not known yet."""
        return self._looked_at(columns, count, at)[2]

    def require_known(self, columns: Mapping[str, Any]) -> None:
        """Refuse people that a fleet does not know; nothing is drawn."""
        for rule in self.rules:
            if isinstance(rule.rule.mechanism, Fleet):
                rule.rule.mechanism.people_in(columns[self.user or ""])

    def _looked_at(
        self, columns: Mapping[str, Any], count: int, at: At | None
    ) -> tuple[dict[str, IntArray], NDArray[np.bool_] | None, Tally]:
        """The secrets of each rule, which rows stay, and what was counted."""
        tally = Tally(rows=count)
        found = {rule.name: _secrets(rule, columns, tally) for rule in self.rules}
        return found, self._kept(found, columns, tally, at), tally

    def _kept(
        self, found: dict[str, IntArray], columns: Mapping[str, Any], tally: Tally, at: At | None
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
                    raise InvalidProblem(self._odd(rule, reason, odd, columns, at))
                tally.odd[rule.name, reason] += count
                if policy == "drop":
                    keep = ~odd if keep is None else keep & ~odd
        if keep is not None:
            tally.dropped = int(len(keep) - keep.sum())
        return keep

    def _odd(
        self, rule: ColumnRule, reason: str, odd: NDArray[np.bool_], columns: Mapping[str, Any], at: At | None
    ) -> str:
        """What to say of rows that are no secret; never what they hold."""
        first, known = int(np.argmax(odd)), at is not None and self.identity.by_position
        if at is not None and known:
            first = at + first if isinstance(at, int) else int(at[first])
        where = f"the first at row {first} (from 0)" + ("" if known else " of its batch")
        what = "have no value" if reason == "missing" else "hold what is no secret of the mechanism"
        hint = rule.reader.hint(columns) if reason == "unknown" else ""
        near = reason == "unknown" and rule.reader.has_nearest and rule.rule.invalid != "nearest"
        ways = "'drop' or 'null'" + (", or 'nearest'" if near else "")
        option = "missing" if reason == "missing" and rule.rule.invalid == "nearest" else "invalid"
        return f"{rule.name}: {int(odd.sum())} of {len(odd)} rows {what}, {where}{hint}; say {option}={ways}"

    def _drawn(
        self,
        rule: ColumnRule,
        secrets: IntArray,
        tags: Words,
        columns: Mapping[str, Any],
        keep: NDArray[np.bool_] | None,
    ) -> IntArray:
        """The observable drawn for each row, −1 where there is no secret."""
        mechanism = rule.rule.mechanism
        known = np.maximum(secrets, 0)
        bits = KeyedBits(self._key.derive("draw", *rule.purpose, *self.identity.purpose()))
        if isinstance(mechanism, Fleet):
            names = columns[self.user or ""]
            people = mechanism.people_in(
                names if keep is None else names.filter(needed_for_tables("pyarrow").array(keep))
            )
            drawn = mechanism.draw_with(people, known, bits.words(tags, people.tweak(known)))
        else:
            drawn = mechanism.sampler().draw_with(known, bits.words(tags, known))
        return drawn if not len(secrets) or int(secrets.min()) >= 0 else np.where(secrets < 0, -1, drawn)

    def _post_bits(self, rule: ColumnRule, tags: Words) -> Bits:
        """Bits for random points: of the row and its answer, never of its secret."""
        purpose = (*rule.purpose, *self.identity.purpose())
        return lambda what, drawn: KeyedBits(self._key.derive("point", what, *purpose)).words(tags, drawn)

    def batch(self, batch: Any, at: At) -> tuple[Any, Tally]:
        """An Arrow record batch with answers in it, and what was counted."""
        pa = needed_for_tables("pyarrow")
        answered = self.answer({name: batch.column(name) for name in self.needs}, batch.num_rows, at)
        mask = None if answered.keep is None else pa.array(answered.keep)
        kept = batch.num_rows - answered.tally.dropped
        arrays = []
        for (name, origin), into in zip(self.layout.columns, self.schema, strict=True):
            if origin == "answer":
                arrays.append(answered.columns[name])
            elif origin == "null":
                arrays.append(pa.nulls(kept, into.type))
            else:
                arrays.append(batch.column(name) if mask is None else batch.column(name).filter(mask))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), answered.tally

    def batches(self, batches: Any, tally: Tally, start: int = 0) -> Iterator[Any]:
        """Record batches with answers in them, one at a time: memory does not grow with them."""
        for whole in batches:
            for first in range(0, whole.num_rows, CHUNK):
                made, counted = self.batch(whole.slice(first, CHUNK), start)
                start += counted.rows
                tally.add(counted)
                yield made


def _secrets(rule: ColumnRule, columns: Mapping[str, Any], tally: Tally) -> IntArray:
    """The positions of a rule's secrets; what is taken for the nearest one is counted."""
    found = rule.reader.positions(columns)
    if rule.rule.invalid != "nearest" or not (outside := found == UNKNOWN).any():
        return found
    near = rule.reader.positions(columns, nearest=True)
    if moved := int((outside & (near >= 0)).sum()):
        tally.odd[rule.name, "unknown"] += moved
    return near

"""Protecting a file in the worker process: a table in; the protected table, its manifest and its statistics out."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.mechanism_files import finite_mechanism, load_bytes
from privacygames.points import PointMechanism
from privacygames.progress import Progress
from privacygames.spaces import Area, Categories, Grid, Numbers, Space
from privacygames.studio.column_roles import Decimal
from privacygames.studio.requests import Outside
from privacygames.studio.table_uploads import (
    OTHER,
    StoredTable,
    is_empty,
    labels_of,
    numbers_of,
    positions_of,
)
from privacygames.tables import FrequencyEstimate, Manifest, Rule, apply, estimate

BATCH_ROWS = 1 << 14
"""Rows between two reports of progress."""

MOST_BARS = 12
"""Categories, cells or ranges whose shares are compared before and after."""

Json = dict[str, Any]


@dataclass(frozen=True)
class ProtectionRequest:
    """What is to be protected, and how.

    Attributes:
        columns: the columns of the secret by number: one, or latitude and longitude.
        who: the column that says whose row it is, if there is one.
        decimal: the sign before the decimal places.
        outside: what happens to rows whose value is none of the secrets.
    """

    columns: tuple[int, ...]
    who: int | None
    decimal: Decimal
    outside: Outside


class _Secrets:
    """The secrets in a table's columns: typed columns that rules read, and which row holds a secret."""

    def __init__(self, mechanism: Mechanism | PointMechanism, table: Any, asked: ProtectionRequest) -> None:
        self.space: Any = mechanism.secrets
        self._asked = asked
        self._original = table
        self.names = [table.column_names[index] for index in asked.columns]
        self.is_place = isinstance(self.space, Area) or (isinstance(self.space, Grid) and self.space.box is not None)
        columns = [table.column(index) for index in asked.columns]
        if self.is_place:
            self.table = self._with_places(table, columns)
        elif isinstance(self.space, Numbers):
            self._require_columns(1, "a number")
            self.numbers = numbers_of(columns[0], asked.decimal)
            self.table = self._with_numbers(table, columns[0])
        elif isinstance(self.space, Categories) and all(isinstance(label, str) for label in self.space.labels):
            self._require_columns(1, "a category")
            self.table = self._with_labels(table, columns[0])
        else:
            raise InvalidProblem(
                "files are protected here for places on a map, numbers and categories; others on the command line"
            )
        self.missing = np.logical_or.reduce([is_empty(column) for column in columns])
        self.positions = self._positions()

    def _require_columns(self, count: int, what: str) -> None:
        if len(self._asked.columns) != count:
            raise InvalidProblem(f"the secret is {what}: choose one column")

    def _with_places(self, table: Any, columns: Sequence[Any]) -> Any:

        if len(columns) == 2:
            latitude, longitude = (numbers_of(column, self._asked.decimal) for column in columns)
            names = list(self.names)
        elif len(columns) == 1:
            latitude, longitude = positions_of(columns[0])
            names = [f"{self.names[0]} (latitude)", f"{self.names[0]} (longitude)"]
            at = self._asked.columns[0]
            table = table.set_column(at, names[0], columns[0]).add_column(at + 1, names[1], columns[0])
        else:
            raise InvalidProblem("choose the columns of the latitude and the longitude")
        self.points = np.stack([longitude, latitude], axis=1)
        for name, values in zip(names, (latitude, longitude), strict=True):
            array = self._numeric(values, table.column(name))
            table = table.set_column(table.column_names.index(name), name, array)
        self.names = names
        return table

    def _with_numbers(self, table: Any, column: Any) -> Any:
        return table.set_column(self._asked.columns[0], self.names[0], self._numeric(self.numbers, column))

    def _numeric(self, values: FloatArray, column: Any) -> Any:
        """Numbers for a rule: null for an empty cell, infinity for a text that is none: a value, and no secret.

        Where rows count as the nearest secret, a text is null, too: it has no nearest one.
        """
        import pyarrow as pa

        array = pa.array(np.where(np.isfinite(values), values, np.inf))
        is_null = ~np.isfinite(values) if self._asked.outside == "nearest" else is_empty(column)
        return pa.compute.if_else(pa.array(is_null), None, array)

    def _with_labels(self, table: Any, column: Any) -> Any:
        import pyarrow as pa

        labels = labels_of(column)
        if self._asked.outside == "other":
            if OTHER not in self.space.labels:
                raise InvalidProblem("there is no category for all other values: choose something else for these rows")
            known = set(self.space.labels)
            labels = [label if label is None or label in known else OTHER for label in labels]
        self.labels = labels
        return table.set_column(self._asked.columns[0], self.names[0], pa.array(labels, pa.string()))

    def _positions(self) -> IntArray:
        """The number of each row's secret, -1 for none; where secrets are points, 0 for all."""
        if isinstance(self.space, Area):
            west, south, east, north = self.space.box or (0.0, 0.0, 0.0, 0.0)
            inside = ((self.points >= (west, south)) & (self.points <= (east, north))).all(axis=1)
            return np.where(inside, 0, -1)
        if self.is_place:
            positions = np.full(len(self.points), -1)
            finite = np.isfinite(self.points).all(axis=1)
            positions[finite] = self.space.locate(self.points[finite], outside="drop")
            return positions
        known = {label: index for index, label in enumerate(self.space.labels)}
        if isinstance(self.space, Numbers):
            return np.array([known.get(value, -1) for value in self.numbers.tolist()], dtype=np.int64)
        return np.array([known.get(label, -1) for label in self.labels], dtype=np.int64)

    @property
    def has_value(self) -> Any:
        """Whether each row has a value that a nearest secret could be found for, if any has a nearest one."""
        if self.is_place:
            return np.isfinite(self.points).all(axis=1)
        return np.isfinite(self.numbers) if isinstance(self.space, Numbers) else ~self.missing

    def nearest(self) -> IntArray:
        """The number of the secret nearest to each row's value, for rows that have one."""
        if isinstance(self.space, Area):
            return np.where(self.has_value, 0, -1)
        if self.is_place:
            positions = np.full(len(self.points), -1)
            positions[self.has_value] = self.space.locate(self.points[self.has_value], outside="nearest")
            return positions
        values = self.space.values
        order = np.argsort(values)
        middles = (values[order][1:] + values[order][:-1]) / 2
        nearest = order[np.searchsorted(middles, np.nan_to_num(self.numbers))]
        return np.where(self.has_value, nearest, -1)


def check_rows(content: bytes, stored: StoredTable, asked: ProtectionRequest) -> Json:
    """How many rows hold a secret of the mechanism, and how many hold none; the first of these, for their owner's page.

    Args:
        content: the mechanism file.
        stored: the table.
        asked: the columns.
    """
    mechanism = _mechanism(content)
    table = stored.read()
    parsed = _Secrets(mechanism, table, _checked(table, asked))
    outside = (parsed.positions < 0) & ~parsed.missing
    first = np.flatnonzero(outside)[:3].tolist()
    texts = [", ".join(str(table.column(index)[row].as_py())[:60] for index in asked.columns) for row in first]
    lines = stored.lines(first)
    return {
        "rows": table.num_rows,
        "outside": int(outside.sum()),
        "missing": int(parsed.missing.sum()),
        "has_nearest": parsed.is_place or isinstance(parsed.space, Numbers),
        "has_other": isinstance(parsed.space, Categories) and OTHER in parsed.space.labels,
        "first": [{"line": line, "text": text} for line, text in zip(lines, texts, strict=True)],
    }


def protect(content: bytes, stored: StoredTable, asked: ProtectionRequest, report: Callable[[Progress], None]) -> Json:
    """The protected table, its manifest, and what can still be read from it.

    Args:
        content: the mechanism file.
        stored: the table.
        asked: the columns, and what happens to rows without a secret.
        report: called now and then.

    Raises:
        InvalidProblem: rows have no secret and nothing was chosen for them, or no row has one.
    """
    import pyarrow as pa

    mechanism = _mechanism(content)
    table = stored.read()
    parsed = _Secrets(mechanism, table, _checked(table, asked))
    _require_secrets(parsed, stored, asked)
    place: Any = tuple(reversed(parsed.names)) if parsed.is_place else parsed.names[0]  # longitude first
    rule = Rule(
        mechanism=mechanism,
        output_form="centre" if parsed.is_place else "label",
        invalid="nearest" if asked.outside == "nearest" else "drop",
        missing="drop",
        far_share_at_most=1.0,
    )
    who = None if asked.who is None else parsed.table.column_names[_shifted(asked, parsed, asked.who)]
    source = pa.dataset.dataset(parsed.table)
    released, manifest = apply(source, {place: rule}, user=who)
    sink = _Sink(stored, asked.decimal, released.schema)
    outputs: Counter[Any] = Counter()
    read_outputs = _output_reader(mechanism, parsed)
    done, started = 0, monotonic()
    for batch in _small(released):
        sink.write(batch)
        if read_outputs is not None:
            outputs.update(read_outputs(batch))
        done += batch.num_rows
        share = done / max(manifest.rows_out, 1)
        report(Progress(job="protect", done=done, share=share, seconds=monotonic() - started))
    secrets = parsed.nearest() if asked.outside == "nearest" else parsed.positions
    return {
        "content": sink.content(),
        "ending": sink.ending,
        "manifest": json.dumps(manifest.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        "summary": _summary(manifest) | {"statistics": _statistics(mechanism, secrets[secrets >= 0], outputs)},
    }


def _mechanism(content: bytes) -> Mechanism | PointMechanism:
    loaded = load_bytes(content)
    return loaded if isinstance(loaded, PointMechanism) else finite_mechanism(loaded)


def _checked(table: Any, asked: ProtectionRequest) -> ProtectionRequest:
    if not asked.columns or len(set(asked.columns)) < len(asked.columns):
        raise InvalidProblem("choose the column to protect; for places, two different ones")
    for index in (*asked.columns, *(() if asked.who is None else (asked.who,))):
        if not 0 <= index < table.num_columns:
            raise InvalidProblem("the table has no such column: choose the file again")
    if asked.who in asked.columns:
        raise InvalidProblem("the column of the person cannot be the secret, too")
    return asked


def _require_secrets(parsed: _Secrets, stored: StoredTable, asked: ProtectionRequest) -> None:
    inside = parsed.positions >= 0
    without = np.flatnonzero(~inside)
    if asked.outside == "stop" and len(without):
        line = stored.lines([int(without[0])])[0]
        raise InvalidProblem(
            f"{len(without)} rows have no value that is one of the secrets, the first in line {line}: nothing was "
            "protected; mend them, or choose what happens to them"
        )
    has_nearest = parsed.is_place or isinstance(parsed.space, Numbers)
    if asked.outside == "nearest" and not has_nearest:
        raise InvalidProblem("categories have no nearest one: choose something else for these rows")
    if not (parsed.has_value if asked.outside == "nearest" else inside).any():
        raise InvalidProblem("no row holds any of the secrets: is this the right column, and the right design?")


def _shifted(asked: ProtectionRequest, parsed: _Secrets, index: int) -> int:
    """The number of a column after one of coordinates became two."""
    return index + (parsed.is_place and len(asked.columns) == 1 and index > asked.columns[0])


def _small(batches: Any) -> Iterator[Any]:
    for batch in batches:
        for first in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(first, BATCH_ROWS)


class _Sink:
    """Writes batches as a file of the form that the table had: Parquet, or CSV with its separator and decimal sign."""

    def __init__(self, stored: StoredTable, decimal: Decimal, schema: Any) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._decimal = decimal
        self._parquet: Any = None
        if stored.form == "parquet":
            self.ending = ".parquet"
            self._bytes = pa.BufferOutputStream()
            self._parquet = parquet.ParquetWriter(self._bytes, schema, compression="zstd")
            return
        self._separator = stored.separator if stored.form == "csv" else ";" if decimal == "comma" else ","
        self.ending = ".tsv" if self._separator == "\t" else ".csv"
        self._text = io.StringIO(newline="")
        if stored.has_mark:
            self._text.write("\ufeff")
        line_end = "\r\n" if stored.has_mark else "\n"
        self._writer = csv.writer(self._text, delimiter=self._separator, lineterminator=line_end)
        self._writer.writerow(schema.names)

    def write(self, batch: Any) -> None:
        """Add a batch."""
        if self._parquet is not None:
            self._parquet.write_batch(batch)
            return
        columns = [[self._cell(value) for value in column.to_pylist()] for column in batch.columns]
        self._writer.writerows(zip(*columns, strict=True))

    def _cell(self, value: Any) -> Any:
        if isinstance(value, float):
            text = f"{value:.10g}" if isfinite(value) else ""
            return text.replace(".", ",") if self._decimal == "comma" else text
        return "" if value is None else value

    def content(self) -> bytes:
        """The whole file."""
        if self._parquet is not None:
            self._parquet.close()
            return bytes(self._bytes.getvalue())
        return self._text.getvalue().encode()


def _output_reader(mechanism: Mechanism | PointMechanism, parsed: _Secrets) -> Callable[[Any], IntArray] | None:
    """A function that returns the numbers of the outputs in a batch; None where secrets are points."""
    if isinstance(mechanism, PointMechanism):
        return None
    outputs: Any = mechanism.observables
    if isinstance(outputs, Grid) and outputs.box is not None:
        latitude, longitude = parsed.names

        def of_places(batch: Any) -> IntArray:
            points = [batch.column(name).to_numpy(zero_copy_only=False) for name in (longitude, latitude)]
            return outputs.locate(np.stack(points, axis=1).astype(np.float64), outside="nearest")

        return of_places
    if not isinstance(outputs, Categories | Numbers):
        return None
    known = {label: index for index, label in enumerate(outputs.labels)}
    return lambda batch: np.array([known[value] for value in batch.column(parsed.names[0]).to_pylist()], dtype=np.int64)


def _cost(cost: Any) -> Json:
    return {"epsilons": dict(cost.epsilons), "any_pair": cost.any_pair}


def _summary(manifest: Manifest) -> Json:
    """What the page says of a release, in numbers."""
    account = manifest.account
    return {
        "rows_in": manifest.rows_in,
        "rows_out": manifest.rows_out,
        "rows_dropped": manifest.rows_dropped,
        "odd": [{"reason": reason, "rows": count} for (_, reason), count in sorted(manifest.counts.invalid.items())],
        "per_row": _cost(account.per_row),
        "per_user": None if account.per_user is None else _cost(account.per_user),
        "people": account.people,
        "most_rows": account.rows,
        "warnings": list(manifest.warnings),
    }


def _statistics(mechanism: Mechanism | PointMechanism, secrets: IntArray, outputs: Counter[Any]) -> Json | None:
    """Shares and means before, in the protected file, and as estimated from it; None where outputs are not labels."""
    if isinstance(mechanism, PointMechanism) or not outputs:
        return None
    space, observables = mechanism.secrets, mechanism.observables
    before = np.bincount(secrets, minlength=len(space)) / len(secrets)
    labels = observables.labels
    drawn = {labels[index]: count for index, count in outputs.items()}
    estimated = estimate(mechanism, drawn)
    after = np.zeros(len(observables))
    after[list(outputs)] = list(outputs.values())
    after /= after.sum()
    groups = _groups(space, before)
    same = observables == space
    shares = [
        {
            "name": name,
            "before": float(before[members].sum()),
            "after": float(after[members].sum()) if same else None,
            **_interval(estimated, space, members),
        }
        for name, members in groups
    ]
    means: list[Json] = []
    if isinstance(space, Numbers):
        mean = estimated.mean()
        released = float(after @ observables.values) if isinstance(observables, Numbers) else None
        means.append(
            {
                "name": f"mean in {space.unit}" if space.unit else "mean",
                "before": float(before @ space.values),
                "after": released,
                "estimated": mean.value,
                "low": mean.low,
                "high": mean.high,
            }
        )
    return {
        "shares": shares,
        "means": means,
        "rows": len(secrets),
        "others": len(space) - sum(len(m) for _, m in groups),
    }


def _interval(estimated: FrequencyEstimate, space: Space, members: Sequence[int]) -> Json:
    share = estimated.total([space.labels[index] for index in members])
    return {"estimated": share.value, "low": share.low, "high": share.high}


def _groups(space: Space, before: FloatArray) -> list[tuple[str, list[int]]]:
    """Names and members of what is compared: ranges of numbers, or the most frequent of other secrets."""
    if isinstance(space, Numbers):
        order = np.argsort(space.values)
        ranges = [part.tolist() for part in np.array_split(order, min(MOST_BARS, len(order)))]
        ends = [(space.labels[part[0]], space.labels[part[-1]]) for part in ranges]
        return [
            (f"{low}" if low == high else f"{low} to {high}", part)
            for (low, high), part in zip(ends, ranges, strict=True)
        ]
    first = np.argsort(-before, kind="stable")[:MOST_BARS].tolist()
    return [(str(space.labels[index]), [index]) for index in first]

"""Spark, through ``mapInArrow``. Partitions have no stable order, so rows need an identity."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.accounting import ReleaseAccount
from privacygames.tables.kernel import Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_plan import ReleasePlan

COUNTS_SCHEMA = "counts string, refused string"
TAGS_SCHEMA = "low bigint, high bigint"


def release(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a Spark frame; Spark scans its rows, people and keys before."""
    plan.require_identity("Spark")
    if any(mark in name for name in frame.columns for mark in ".`"):
        raise InvalidProblem("Spark's mapInArrow takes no columns with dots or backticks in their names: rename them")
    kernel = plan.kernel(_arrow_schema(frame))
    account, counts = _prescan(frame, plan, kernel)
    manifest = plan.commit(account, counts)
    draw = _draw_function(replace(plan, ledger=None))
    return frame.mapInArrow(draw, schema=_spark_schema(frame, kernel)), manifest


def _arrow_schema(frame: Any) -> Any:
    """The Arrow types of the columns as Spark passes them: timestamps in the session's time zone."""
    from pyspark.errors import PySparkException

    try:
        return frame.limit(0).toArrow().schema
    except PySparkException:
        refused = [name for name in frame.columns if not _has_arrow_type(frame.select(f"`{name}`"))]
        if not refused:
            raise
    raise InvalidProblem(
        f"Spark cannot hand columns whose type has no counterpart in Arrow to Python: {', '.join(refused)}. "
        "Cast them, or leave them out"
    )


def _has_arrow_type(column: Any) -> bool:
    from pyspark.errors import PySparkException

    try:
        column.limit(0).toArrow()
    except PySparkException:
        return False
    return True


def _spark_schema(frame: Any, kernel: Kernel) -> Any:
    """The Spark types of the released frame: columns that stay keep theirs."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for name, origin in kernel.layout.columns:
        if origin == "output":
            fields.append(StructField(name, from_arrow_type(kernel.schema.field(name).type)))
        else:
            original = frame.schema[name]
            nullable = original.nullable or origin == "null"
            fields.append(StructField(name, original.dataType, nullable, original.metadata))
    return StructType(fields)


def _prescan(frame: Any, plan: ReleasePlan, kernel: Kernel) -> tuple[ReleaseAccount, RowCounts]:
    """Scan the rows in Spark; returns the cost of the release, and what was counted."""
    from pyspark.sql import functions

    prescan = Prescan(plan)
    for row in frame.select(*kernel.needs).mapInArrow(_scan_function(kernel), schema=COUNTS_SCHEMA).collect():
        if row["refused"] is not None:
            raise InvalidProblem(row["refused"])
        prescan.counts.add(RowCounts.from_dict(json.loads(row["counts"])))
    tagged = frame.select(*kernel.needs).mapInArrow(_tag_function(kernel), schema=TAGS_SCHEMA)
    distinct = tagged.distinct().count()  # not of the columns themselves: 007 and 7 are one identity
    if plan.keys_are_unique:
        prescan.require_distinct(distinct, prescan.counts.rows)
    totals = None
    if plan.user is not None:
        named = functions.col(f"`{plan.user}`").cast("string")
        missing = named.isNull() | (named == "")
        if frame.schema[plan.user].dataType.typeName() in ("float", "double"):
            missing |= functions.isnan(f"`{plan.user}`")
        if frame.filter(missing).limit(1).count():
            raise InvalidProblem(
                f"user column {plan.user!r} is empty in some rows (null, NaN or an empty text): nobody can be charged"
            )
        by_user = frame.groupBy(f"`{plan.user}`").count()
        most_rows, people = by_user.agg(functions.max("count"), functions.count("count")).first()
        totals = int(most_rows or 0), int(people)
        if plan.identity.per_secret:
            prescan.require_distinct(distinct, totals[1])
    return plan.account(totals), prescan.counts


def _draw_function(plan: ReleasePlan) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def draw(batches: Iterator[Any]) -> Iterator[Any]:
        kernel = None
        for batch in batches:  # types of the batches: the time zone is that of the session when Spark computes
            kernel = kernel or plan.kernel(batch.schema)
            yield from kernel.batches([batch], RowCounts())

    return draw


def _scan_function(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Yields the counts of a partition, or the error that refuses it."""

    def scan(batches: Iterator[Any]) -> Iterator[Any]:
        counts, refused = RowCounts(), None
        try:
            for batch in batches:
                columns = {name: batch.column(name) for name in kernel.needs}
                counts.add(kernel.scan(columns, batch.num_rows, None)[0])
                kernel.require_known_people(columns)
        except InvalidProblem as error:  # raised in a worker, it would be retried and wrapped in Spark's own error
            refused = str(error)
        pa = import_optional("pyarrow")
        row = {"counts": [json.dumps(counts.to_dict())], "refused": pa.array([refused], pa.string())}
        yield pa.RecordBatch.from_pydict(row)

    return scan


def _tag_function(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Yields the identity of each row, as two numbers."""

    def tag(batches: Iterator[Any]) -> Iterator[Any]:
        pa = import_optional("pyarrow")
        for batch in batches:
            columns = {name: batch.column(name) for name in kernel.needs}
            tags = kernel.tags(columns, batch.num_rows, 0).view("int64")
            yield pa.RecordBatch.from_pydict({"low": pa.array(tags[:, 0]), "high": pa.array(tags[:, 1])})

    return tag

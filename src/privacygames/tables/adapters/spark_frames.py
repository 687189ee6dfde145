"""Spark, through ``mapInArrow``. Partitions have no stable positions there: rows are told apart by key columns."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_setup import Prescan, Setup

COUNTED = "tally string, refused string"
TAGS = "low bigint, high bigint"


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A Spark frame with answers in it. People, keys and odd rows are counted by Spark before."""
    setup.require_identity("Spark")
    if any(mark in name for name in frame.columns for mark in ".`"):
        raise InvalidProblem("Spark's mapInArrow takes no columns with dots or backticks in their names: rename them")
    kernel = setup.kernel(_arrow_schema(frame))
    manifest = setup.commit(_surveyed(frame, setup, kernel))
    return frame.mapInArrow(_answering(replace(setup, ledger=None)), schema=_spark_schema(frame, kernel)), manifest


def _arrow_schema(frame: Any) -> Any:
    """The Arrow types of the columns, as Spark itself hands them over: timestamps in the session's time zone."""
    from pyspark.errors import PySparkException

    try:
        return frame.limit(0).toArrow().schema
    except PySparkException:
        refused = [name for name in frame.columns if not _reaches_arrow(frame.select(f"`{name}`"))]
        if not refused:
            raise
    raise InvalidProblem(
        f"Spark cannot hand columns whose type has no counterpart in Arrow to Python: {', '.join(refused)}. "
        "Cast them, or leave them out"
    )


def _reaches_arrow(column: Any) -> bool:
    from pyspark.errors import PySparkException

    try:
        column.limit(0).toArrow()
    except PySparkException:
        return False
    return True


def _spark_schema(frame: Any, kernel: Kernel) -> Any:
    """Spark's own types for columns that stay; answers have the types that Spark gives Arrow's."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for name, origin in kernel.layout.columns:
        if origin == "answer":
            fields.append(StructField(name, from_arrow_type(kernel.schema.field(name).type)))
        else:
            before = frame.schema[name]
            fields.append(StructField(name, before.dataType, before.nullable or origin == "null", before.metadata))
    return StructType(fields)


def _surveyed(frame: Any, setup: Setup, kernel: Kernel) -> Manifest:
    from pyspark.sql import functions

    survey = Prescan(setup)
    for row in frame.select(*kernel.needs).mapInArrow(_counting(kernel), schema=COUNTED).collect():
        if row["refused"] is not None:
            raise InvalidProblem(row["refused"])
        survey.counts.add(RowCounts.from_dict(json.loads(row["tally"])))
    tagged = frame.select(*kernel.needs).mapInArrow(_tagging(kernel), schema=TAGS)
    distinct = tagged.distinct().count()  # not of the columns themselves: 007 and 7 are one identity
    if setup.unique_wanted and distinct < survey.counts.rows:
        raise InvalidProblem(survey.not_unique(survey.counts.rows - distinct))
    totals = None
    if setup.user is not None:
        named = functions.col(f"`{setup.user}`").cast("string")
        missing = named.isNull() | (named == "")
        if frame.schema[setup.user].dataType.typeName() in ("float", "double"):
            missing |= functions.isnan(f"`{setup.user}`")
        if frame.filter(missing).limit(1).count():
            raise InvalidProblem(
                f"user column {setup.user!r} is empty in some rows (null, NaN or an empty text): nobody can be charged"
            )
        found = frame.groupBy(f"`{setup.user}`").count().agg(functions.max("count"), functions.count("count")).first()
        totals = int(found[0] or 0), int(found[1])
        if setup.identity.per_secret and distinct < totals[1]:
            raise InvalidProblem(survey.not_unique(totals[1] - distinct))
    return setup.manifest(survey.counts, totals)


def _answering(setup: Setup) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        kernel = None
        for batch in batches:  # the batches' own types: the time zone is that of the session when Spark computes
            kernel = kernel or setup.kernel(batch.schema)
            yield from kernel.batches([batch], RowCounts())

    return answered


def _counting(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        counts, refused = RowCounts(), None
        try:
            for batch in batches:
                columns = {name: batch.column(name) for name in kernel.needs}
                counts.add(kernel.survey(columns, batch.num_rows, None)[0])
                kernel.require_known(columns)
        except InvalidProblem as error:  # an error of the worker's would be tried again, and come wrapped in Spark's
            refused = str(error)
        pa = import_optional("pyarrow")
        found = {"tally": [json.dumps(counts.to_dict())], "refused": pa.array([refused], pa.string())}
        yield pa.RecordBatch.from_pydict(found)

    return counted


def _tagging(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Gives the identity of each row, as two numbers."""

    def tagged(batches: Iterator[Any]) -> Iterator[Any]:
        pa = import_optional("pyarrow")
        for batch in batches:
            columns = {name: batch.column(name) for name in kernel.needs}
            tags = kernel.tags(columns, batch.num_rows, 0).view("int64")
            yield pa.RecordBatch.from_pydict({"low": pa.array(tags[:, 0]), "high": pa.array(tags[:, 1])})

    return tagged

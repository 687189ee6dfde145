"""Spark, through ``mapInArrow``. Partitions have no stable positions there: rows are told apart by key columns."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import Kernel, Tally
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Setup, Survey

COUNTED = "tally string, refused string"


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A Spark frame with answers in it. People, keys and odd rows are counted by Spark before."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    if setup.identity.by_position:
        raise InvalidProblem(
            "Spark may compute a partition again, in another order: rows have no position there. Say with key_columns "
            "what tells them apart (an id; for Parquet files, columns selected from _metadata.file_path and .row_index)"
        )
    if any(mark in name for name in frame.columns for mark in ".`"):
        raise InvalidProblem("Spark's mapInArrow takes no columns with dots or backticks in their names: rename them")
    kernel = setup.kernel(to_arrow_schema(frame.schema))
    manifest = _surveyed(frame, setup, kernel)
    return frame.mapInArrow(_answering(kernel), schema=from_arrow_schema(kernel.schema)), manifest


def _surveyed(frame: Any, setup: Setup, kernel: Kernel) -> Manifest:
    from pyspark.sql import functions

    survey = Survey(setup)
    for row in frame.select(*kernel.needs).mapInArrow(_counting(kernel), schema=COUNTED).collect():
        if row["refused"] is not None:
            raise InvalidProblem(row["refused"])
        survey.tally.add(Tally.from_dict(json.loads(row["tally"])))
    if setup.unique_wanted:
        distinct = frame.select(*setup.identity.columns).distinct().count()
        if distinct < survey.tally.rows:
            raise InvalidProblem(survey.not_unique(survey.tally.rows - distinct))
    totals = None
    if setup.user is not None:
        named = functions.col(f"`{setup.user}`").cast("string")
        if frame.filter(named.isNull() | (named == "")).limit(1).count():
            raise InvalidProblem(f"user column {setup.user!r} is empty in some rows: nobody can be charged")
        found = frame.groupBy(f"`{setup.user}`").count().agg(functions.max("count"), functions.count("count")).first()
        totals = int(found[0] or 0), int(found[1])
    return setup.manifest(survey.tally, totals)


def _answering(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        return kernel.batches(batches, Tally())

    return answered


def _counting(kernel: Kernel) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        tally, refused = Tally(), None
        try:
            for batch in batches:
                columns = {name: batch.column(name) for name in kernel.needs}
                tally.add(kernel.survey(columns, batch.num_rows, None))
                kernel.require_known(columns)
        except InvalidProblem as error:  # an error of the worker's would be tried again, and come wrapped in Spark's
            refused = str(error)
        pa = needed_for_tables("pyarrow")
        found = {"tally": [json.dumps(tally.to_dict())], "refused": pa.array([refused], pa.string())}
        yield pa.RecordBatch.from_pydict(found)

    return counted

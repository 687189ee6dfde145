"""Which adapter is for which kind of table. Engines are never imported to find out."""

from importlib import import_module
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Setup

ADAPTERS = {
    ("pandas", "DataFrame"): "pandas_frames",
    ("geopandas", "GeoDataFrame"): "pandas_frames",
    ("polars", "DataFrame"): "polars_frames",
    ("polars", "LazyFrame"): "polars_frames",
    ("pyarrow", "Table"): "arrow_tables",
    ("pyarrow", "RecordBatch"): "arrow_tables",
    ("pyarrow", "RecordBatchReader"): "arrow_tables",
    ("pyarrow", "Dataset"): "arrow_tables",
    ("duckdb", "DuckDBPyRelation"): "duckdb_relations",
    ("dask", "DataFrame"): "dask_frames",
    ("pyspark", "DataFrame"): "spark_frames",
}


def released(frame: Any, setup: Setup, connection: Any = None) -> tuple[Any, Manifest]:
    """The same kind of table with answers in it, and the manifest."""
    for kind in type(frame).__mro__:
        adapter = ADAPTERS.get((kind.__module__.partition(".")[0].lstrip("_"), kind.__name__))
        if adapter is not None:
            return _released(adapter, frame, setup, connection)
    raise InvalidProblem(
        f"tables may be of pandas, Polars, PyArrow, DuckDB, Dask or Spark; got "
        f"{type(frame).__module__}.{type(frame).__qualname__}"
    )


def _released(adapter: str, frame: Any, setup: Setup, connection: Any) -> tuple[Any, Manifest]:
    module: Any = import_module(f"privacygames.tables.adapters.{adapter}")
    of_duckdb = adapter == "duckdb_relations"
    if of_duckdb == (connection is None):
        raise InvalidProblem("a DuckDB relation needs connection=, the one that it is of; other tables have none")
    made: tuple[Any, Manifest] = module.release(frame, setup, *([connection] if of_duckdb else []))
    return made

"""Selects the adapter for a table by the name of its type, so that only the engines in use are imported."""

from importlib import import_module
from typing import Any

from privacygames.errors import Field, InvalidProblem
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_plan import ReleasePlan

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
"""Modules by the package and name of a table's class."""


def release_table(table: Any, plan: ReleasePlan, connection: Any = None) -> tuple[Any, Manifest]:
    """Release a table: the same kind of table with outputs in place of secrets, and the manifest."""
    for kind in type(table).__mro__:
        adapter = ADAPTERS.get((kind.__module__.partition(".")[0].lstrip("_"), kind.__name__))
        if adapter is not None:
            return _release_with(adapter, table, plan, connection)
    raise InvalidProblem(
        f"tables may be of pandas, Polars, PyArrow, DuckDB, Dask or Spark; got "
        f"{type(table).__module__}.{type(table).__qualname__}"
    )


def _release_with(adapter: str, table: Any, plan: ReleasePlan, connection: Any) -> tuple[Any, Manifest]:
    module: Any = import_module(f"privacygames.tables.adapters.{adapter}")
    needs_connection = adapter == "duckdb_relations"
    if needs_connection == (connection is None):
        raise InvalidProblem(
            "a DuckDB relation needs ", Field("connection"), "=, the connection it belongs to; other tables have none"
        )
    released: tuple[Any, Manifest] = module.release(table, plan, *([connection] if needs_connection else []))
    return released

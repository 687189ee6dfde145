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
    ("dask", "DataFrame"): "dask_frames",
    ("pyspark", "DataFrame"): "spark_frames",
}


def released(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """The same kind of table with answers in it, and the manifest."""
    for kind in type(frame).__mro__:
        adapter = ADAPTERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if adapter is not None:
            module = import_module(f"privacygames.tables.adapters.{adapter}")
            made: tuple[Any, Manifest] = module.release(frame, setup)
            return made
    if type(frame).__module__.partition(".")[0].lstrip("_") == "duckdb":
        raise InvalidProblem("DuckDB relations go to privacygames.tables.apply_duckdb, with their connection")
    raise InvalidProblem(
        f"tables may be of pandas, Polars, PyArrow, Dask or Spark (DuckDB: apply_duckdb); got "
        f"{type(frame).__module__}.{type(frame).__qualname__}"
    )

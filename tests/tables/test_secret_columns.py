"""``invalid="nearest"``: rows that are moved far are counted, warned of, and refused where they are many."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privacygames as pg
from privacygames.tables import Manifest, Rule, apply, apply_files, preview_file

CITY = pg.Grid.over((13.2, 52.4, 13.6, 52.6), columns=4, rows=2)
PLACE = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(CITY)), epsilon=0.5)
TENS = pg.Numbers(range(20, 91, 10), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(TENS)), epsilon=0.1)


def near(**options: Any) -> dict[Any, Rule]:
    return {("lon", "lat"): Rule(mechanism=PLACE, output_form="centre", invalid="nearest", **options)}


def places(rows: int = 200, *, far: int = 0, exchanged: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"lon": rng.uniform(13.2, 13.6, rows), "lat": rng.uniform(52.4, 52.6, rows)})
    data.loc[: far - 1, "lon"] = 14.123
    at = slice(far, far + exchanged - 1)
    data.loc[at, ["lon", "lat"]] = data.loc[at, ["lat", "lon"]].to_numpy()
    return data.assign(id=range(rows))


def with_reader(data: pd.DataFrame, rules: Any) -> Manifest:
    table = pa.Table.from_pandas(data)
    reader, manifest = apply(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), rules)
    reader.read_all()
    return manifest


def with_duckdb(data: pd.DataFrame, rules: Any) -> Manifest:
    connection = duckdb.connect()
    return apply(connection.from_df(data), rules, key_columns="id", connection=connection)[1]


def with_dask(data: pd.DataFrame, rules: Any) -> Manifest:
    with dask.config.set(scheduler="synchronous"):
        return apply(dd.from_pandas(data, npartitions=3), rules, key_columns="id")[1]


ENGINES: dict[str, Callable[[pd.DataFrame, Any], Manifest]] = {
    "arrow": lambda data, rules: apply(pa.Table.from_pandas(data), rules)[1],
    "reader": with_reader,
    "pandas": lambda data, rules: apply(data, rules)[1],
    "polars": lambda data, rules: apply(pl.from_pandas(data), rules)[1],
    "polars lazy": lambda data, rules: apply(pl.from_pandas(data).lazy(), rules, key_columns="id")[1],
    "duckdb": with_duckdb,
    "dask": with_dask,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_with_latitude_and_longitude_exchanged_is_refused(engine: str) -> None:
    """Also where any share of rows may be far: every one of them would be at the border of the grid."""
    for options in ({}, {"far_share_at_most": 1.0}):
        with pytest.raises(Exception, match=r"200 of 200 rows.*latitude and longitude swapped") as raised:
            ENGINES[engine](places(exchanged=200), near(**options))
        assert "52." not in str(raised.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_many_far_rows_are_refused_and_few_are_counted_and_warned_of(engine: str) -> None:
    with pytest.raises(
        Exception, match=r"move 11 of 200 rows by more than one step .* above the share of 0.05"
    ) as raised:
        ENGINES[engine](places(far=11), near())
    assert "14.1" not in str(raised.value)
    for given, options in ((places(far=10), {}), (places(far=11), {"far_share_at_most": 0.06})):
        far = 10 if not options else 11
        manifest = ENGINES[engine](given, near(**options))
        if engine != "reader":  # which is read later
            assert f"lon, lat: {far} rows lay more than one step beyond the outermost secrets" in str(manifest.warnings)
        assert dict(manifest.counts.invalid) == {("lon, lat", "unknown"): far, ("lon, lat", "far"): far}
        assert f"{far} of them were moved by more than one step" in str(manifest)
        assert "14.1" not in str(manifest.to_dict())


def test_a_few_exchanged_points_are_counted() -> None:
    manifest = ENGINES["pandas"](places(exchanged=3), near())
    assert dict(manifest.counts.invalid) == {("lon, lat", reason): 3 for reason in ("unknown", "far", "exchanged")}
    assert "3 rows fit only with latitude and longitude exchanged" in str(manifest.warnings)
    with pytest.raises(pg.InvalidProblem, match=r"move 30 of 200 rows .*latitude and longitude swapped"):
        ENGINES["pandas"](places(exchanged=30), near())


def test_files_and_previews_are_refused_alike_and_nothing_is_written(tmp_path: Path) -> None:
    for name, data in (("a", places(exchanged=200)), ("b", places(far=150))):
        data.to_csv(tmp_path / f"{name}.csv", index=False)
        with pytest.raises(pg.InvalidProblem, match="of 200 rows"):
            apply_files(tmp_path / f"{name}.csv", tmp_path / "out.csv", near())
        with pytest.raises(pg.InvalidProblem, match="of 200 rows"):
            preview_file(tmp_path / f"{name}.csv", near())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]


def test_numbers_between_and_just_outside_of_the_secrets_are_not_far() -> None:
    """Ages to the nearest ten: what the option is for."""
    rule = {"age": Rule(mechanism=AGE, invalid="nearest")}
    _, manifest = apply(pa.table({"age": list(range(10, 101))}), rule)
    assert dict(manifest.counts.invalid) == {("age", "unknown"): 91 - 8}
    with pytest.raises(pg.InvalidProblem, match="move 2 of 2 rows"):
        apply(pa.table({"age": [9, 101]}), rule)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "all", True])
def test_a_share_is_between_nothing_and_all(share: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="share of rows: between 0 and 1"):
        Rule(mechanism=AGE, far_share_at_most=share)

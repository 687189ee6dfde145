"""Every engine, for real: the same input and key give the same columns, however the work is cut and how often done."""

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
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.points import design
from privacygames.tables import ReleaseKey, Rule, apply

AGES = pg.Numbers(range(20, 32), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.4)
GRID = pg.Grid.over((13.0, 52.0, 13.4, 52.2), columns=4, rows=3)
PLACE = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(GRID)), epsilon=0.5)
ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
TOWN = pg.Area(4.0, 3.0)
POINT = design(pg.PointProblem(pg.PointPrior(TOWN, [(1, 1), (3, 2)]), TOWN.lattice((3, 2))), epsilon=0.4)
RULES: dict[Any, Any] = {
    "age": Rule(mechanism=AGE, invalid="drop"),
    ("lon", "lat"): Rule(mechanism=PLACE, output_form="point"),
    ("x", "y"): POINT,
    "ill": ILL,
}
NAMES = ["id", "who", "age", "lon", "lat", "x", "y", "ill", "note"]


def frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": rng.permutation(rows) * 7,
            "who": rng.choice(["ann", "bob", "cleo", "dan"], rows),
            "age": rng.integers(18, 32, rows),  # 18 and 19 are no secrets
            "lon": rng.uniform(13.0, 13.4, rows),
            "lat": rng.uniform(52.0, 52.2, rows),
            "x": rng.uniform(-0.2, 4.2, rows),  # a little outside, too
            "y": rng.uniform(0.0, 3.0, rows),
            "ill": rng.choice(["asthma", "flu", "none"], rows),
            "note": [f"note {i}" for i in range(rows)],
        }
    )


def arrow(table: pa.Table) -> dict[str, list[Any]]:
    """The columns as plain values, whatever type of text or integer an engine prefers."""
    return {name: table[name].to_pylist() for name in NAMES}


def with_arrow(data: pd.DataFrame, **options: Any) -> pa.Table:
    return apply(pa.Table.from_pandas(data, preserve_index=False), RULES, **options)[0]


def with_batches(data: pd.DataFrame, **options: Any) -> pa.Table:
    whole = pa.Table.from_pandas(data, preserve_index=False)
    table = pa.Table.from_batches(whole.to_batches(max_chunksize=37), schema=whole.schema)
    return apply(table, RULES, **options)[0]


def with_pandas(data: pd.DataFrame, **options: Any) -> pa.Table:
    return pa.Table.from_pandas(apply(data, RULES, **options)[0], preserve_index=False)


def with_polars(data: pd.DataFrame, **options: Any) -> pa.Table:
    return apply(pl.from_pandas(data), RULES, **options)[0].to_arrow()


def with_lazy(data: pd.DataFrame, **options: Any) -> pa.Table:
    return apply(pl.from_pandas(data).lazy(), RULES, **options)[0].collect().to_arrow()


def with_streaming(data: pd.DataFrame, **options: Any) -> pa.Table:
    return apply(pl.from_pandas(data).lazy(), RULES, **options)[0].collect(engine="streaming").to_arrow()


def with_duckdb(data: pd.DataFrame, **options: Any) -> pa.Table:
    connection = duckdb.connect()
    made, _ = apply(connection.from_df(data), RULES, connection=connection, **options)
    return made.to_arrow_table()


def with_dask(data: pd.DataFrame, parts: int = 5, **options: Any) -> pa.Table:
    with dask.config.set(scheduler="threads"):
        made, _ = apply(dd.from_pandas(data, npartitions=parts, sort=False), RULES, **options)
        return pa.Table.from_pandas(made.compute(), preserve_index=False)


ENGINES: dict[str, Callable[..., pa.Table]] = {
    "batches": with_batches,
    "pandas": with_pandas,
    "polars": with_polars,
    "polars lazy": with_lazy,
    "polars streaming": with_streaming,
    "duckdb": with_duckdb,
    "dask": with_dask,
}


@pytest.mark.parametrize("options", [{"key_columns": ["id", "who"]}, {"repeat": "same"}], ids=["keys", "same"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_columns(engine: str, options: dict[str, Any]) -> None:
    key, data = ReleaseKey(), frame()
    expected = with_arrow(data, key=key, user="who", **options)
    found = ENGINES[engine](data, key=key, user="who", **options)
    assert found.column_names == expected.column_names == NAMES
    assert arrow(found) == arrow(expected)
    assert found.num_rows == int((data["age"] >= 20).sum())


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    rows=st.integers(0, 60),
    parts=st.integers(1, 7),
    seed=st.integers(0, 5),
    options=st.sampled_from([{"key_columns": "id"}, {"repeat": "same"}]),
    engine=st.sampled_from(sorted(ENGINES)),
)
def test_no_cut_and_no_engine_changes_an_answer(
    rows: int, parts: int, seed: int, options: dict[str, Any], engine: str
) -> None:
    key, data = ReleaseKey(), frame(rows, seed)
    more = {"parts": parts} if engine == "dask" else {}
    found = ENGINES[engine](data, key=key, user="who", **options, **more)
    assert arrow(found) == arrow(with_arrow(data, key=key, user="who", **options))


def test_rows_in_another_order_keep_their_answers_by_key_columns() -> None:
    key, data = ReleaseKey(), frame()
    mixed = data.sample(frac=1.0, random_state=1)
    one, _ = apply(data, RULES, key=key, key_columns="id")
    other, _ = apply(mixed, RULES, key=key, key_columns="id")
    pd.testing.assert_frame_equal(one.sort_index(), other.sort_index())


def test_without_a_key_every_release_is_another() -> None:
    one, _ = apply(frame(), RULES)
    other, _ = apply(frame(), RULES)
    assert not one["lon"].equals(other["lon"])


def test_pandas_keeps_index_dtypes_and_attributes() -> None:
    data = frame().set_index(pd.Index(np.arange(400) * 3, name="row"))
    data["note"] = data["note"].astype("category")
    data["age"] = data["age"].astype("Int32")
    data["id"] = data["id"].astype("int32[pyarrow]")
    data.attrs["from"] = "a test"
    before = data.copy(deep=True)
    released, _ = apply(data, RULES)
    pd.testing.assert_frame_equal(data, before)  # what was given is not touched
    kept = data["age"] >= 20
    pd.testing.assert_frame_equal(released[["id", "who", "note"]], data.loc[kept, ["id", "who", "note"]])
    assert released.dtypes.to_dict() == data.dtypes.to_dict()
    assert released.attrs == {"from": "a test"}


def test_pandas_categories_and_sets() -> None:
    films = pg.Sets([{"Alien"}, {"Brazil"}, {"Alien", "Brazil"}])
    film = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(films)), epsilon=1.0)
    data = frame(90)
    data["ill"] = data["ill"].astype("category")
    data["films"] = [{"Alien"}, {"Brazil", "Alien"}, frozenset({"Brazil"})] * 30
    released, _ = apply(data, {"ill": ILL, "films": film})
    assert list(released["ill"].cat.categories) == ["asthma", "flu", "none"]
    assert all(frozenset(each) in films.labels for each in released["films"])
    nulled, _ = apply(data, {"ill": Rule(mechanism=ILL, original="null")})
    assert nulled["ill"].isna().all()
    assert len(nulled["ill"].cat.categories) == 0
    assert set(nulled["ill_released"]) <= {"asthma", "flu", "none"}


def test_polars_keeps_kinds_of_columns() -> None:
    data = pl.from_pandas(frame()).with_columns(pl.col("ill").cast(pl.Categorical), pl.col("age").cast(pl.Int8))
    for made in (apply(data, RULES)[0], apply(data.lazy(), RULES, key_columns="id")[0].collect()):
        assert made.schema == data.schema


def test_a_filter_behind_a_lazy_release_sees_answers_only() -> None:
    """Pushed before the draw it would filter the originals, and tell them."""
    key, data = ReleaseKey(), pl.from_pandas(frame())
    whole, _ = apply(data, RULES, key=key, key_columns="id")
    lazy, _ = apply(data.lazy(), RULES, key=key, key_columns="id")
    for engine in ("in-memory", "streaming"):
        some = lazy.filter(pl.col("age") > 27).select("id", "age").head(20).collect(engine=engine)
        assert some.equals(whole.filter(pl.col("age") > 27).select("id", "age").head(20))


LATER: dict[str, Callable[[Any], Any]] = {
    "filter": lambda frame: frame.filter((pl.col("age") > 27) & (pl.col("id") % 3 == 0)),
    "slice": lambda frame: frame.slice(100, 50),
    "select": lambda frame: frame.select("age"),
    "count": lambda frame: frame.select(pl.len()),
    "group": lambda frame: frame.group_by("who").agg(pl.col("age").sum()).sort("who"),
}


@pytest.mark.parametrize("later", LATER)
def test_nothing_is_moved_before_a_lazy_release_where_polars_would(later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars 1 moves filters, columns and slices before a function by default; later releases do not."""
    moved = ("predicate_pushdown", "projection_pushdown", "slice_pushdown")
    original = pl.LazyFrame.map_batches

    def as_in_polars_1(self: Any, function: Any, **options: Any) -> Any:
        return original(self, function, **(dict.fromkeys(moved, True) | options))

    monkeypatch.setattr(pl.LazyFrame, "map_batches", as_in_polars_1)
    key, data = ReleaseKey(), pl.from_pandas(frame())
    whole, _ = apply(data, RULES, key=key, key_columns="id")
    lazy, _ = apply(data.lazy(), RULES, key=key, key_columns="id")
    assert LATER[later](lazy).collect().equals(LATER[later](whole.lazy()).collect())


def test_collecting_a_lazy_release_again_draws_nothing_new() -> None:
    lazy, _ = apply(pl.from_pandas(frame()).lazy(), RULES, key_columns="id")
    assert lazy.collect().equals(lazy.collect())
    joined = lazy.join(lazy, on="id", suffix="_again").collect()
    assert joined["age"].equals(joined["age_again"].rename("age"))


def test_duckdb_neither_folds_nor_draws_again() -> None:
    """Equal rows are drawn each for itself; the same row in two expressions, or two queries, once."""
    connection = duckdb.connect()
    same = connection.sql("SELECT 25 AS age, range AS row FROM range(3000)")
    released, _ = apply(same, {"age": AGE}, connection=connection, key_columns="row")
    assert len(set(released.to_arrow_table()["age"].to_pylist())) > 5
    assert released.to_arrow_table().equals(released.to_arrow_table())
    twice = released.query("r", "SELECT a.age = b.age AS alike FROM r a JOIN r b USING (row)").to_arrow_table()
    assert all(twice["alike"].to_pylist())


def test_duckdb_on_threads_gives_every_row_its_answer(tmp_path: Path) -> None:
    rows = 300_000
    table = pa.table({"age": np.random.default_rng(0).integers(20, 32, rows), "row": np.arange(rows)})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20_000)
    connection = duckdb.connect(config={"threads": 4})
    key = ReleaseKey()
    relation = connection.read_parquet(str(tmp_path / "t.parquet"))
    made, manifest = apply(relation, {"age": AGE}, connection=connection, key=key, key_columns="row")
    expected, _ = apply(table, {"age": AGE}, key=key, key_columns="row")
    assert made.order("row").to_arrow_table()["age"].to_pylist() == expected["age"].to_pylist()
    assert manifest.rows_in == rows


def test_dask_computes_again_without_drawing_again() -> None:
    with dask.config.set(scheduler="threads"):
        made, manifest = apply(dd.from_pandas(frame(), npartitions=4), RULES, key_columns="id")
        once, again = made.compute(), made.compute()
        pd.testing.assert_frame_equal(once, again)
        assert made.age.mean().compute() == once.age.mean()
    assert manifest.rows_in == 400
    assert manifest.rows_out == len(once)
    assert dict(made.dtypes) == dict(once.dtypes)


def test_dask_columns_of_objects_are_what_they_hold() -> None:
    """Lists, and texts that are no strings to Dask: its own idea of such a column says neither."""
    films = pg.Sets([{"Alien"}, {"Brazil"}, {"Alien", "Brazil"}])
    film = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(films)), epsilon=1.0)
    data = frame(90).astype({"ill": object, "who": object})
    data["films"] = [["Alien"], ["Brazil", "Alien"], ["Brazil"]] * 30
    rules, key = {"films": film, "ill": ILL}, ReleaseKey()
    expected, _ = apply(data, rules, key=key, user="who", key_columns=["who", "id"])
    with dask.config.set(scheduler="threads", **{"dataframe.convert-string": False}):
        parts = dd.from_pandas(data, npartitions=3)
        made, manifest = apply(parts, rules, key=key, user="who", key_columns=["who", "id"])
        found = made.compute()
    assert found["ill"].tolist() == expected["ill"].tolist()
    assert [sorted(each) for each in found["films"]] == [sorted(each) for each in expected["films"]]
    assert manifest.account.people == 4


def test_a_dataset_is_read_batch_by_batch(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    ds.write_dataset(table, tmp_path / "data", format="parquet", max_rows_per_file=90, max_rows_per_group=90)
    dataset, key = ds.dataset(tmp_path / "data"), ReleaseKey()
    reader, manifest = apply(dataset, RULES, key=key, user="who", key_columns="id")
    assert isinstance(reader, pa.RecordBatchReader)
    assert arrow(reader.read_all()) == arrow(apply(dataset.to_table(), RULES, key=key, user="who", key_columns="id")[0])
    assert manifest.rows_in == 400
    one_pass, later = apply(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), RULES)
    assert one_pass.read_all().num_rows == later.rows_out
    with pytest.raises(pg.InvalidProblem, match="can be read once"):
        apply(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), RULES, user="who")


def test_a_record_batch_stays_one() -> None:
    batch = pa.RecordBatch.from_pandas(frame(30), preserve_index=False)
    for some in (batch, batch.slice(0, 0)):
        made, _ = apply(some, {"ill": ILL})
        assert isinstance(made, pa.RecordBatch)
        assert made.num_rows == some.num_rows


@pytest.mark.parametrize("engine", ["batches", "pandas", "polars", "polars lazy", "duckdb", "dask"])
def test_odd_rows_key_columns_and_limits_are_refused_by_all(engine: str) -> None:
    data = frame()
    for change, options, message in (
        ({}, {"any_pair_limit": 3.0, "user": "who"}, "above any_pair_limit"),
        ({"id": 7}, {"key_columns": "id"}, "do not tell 399 rows"),
        ({"who": None}, {"user": "who"}, "user column 'who' is empty"),
        ({"lon": 99.0}, {}, "hold what is no secret"),
        ({"ill": "plague"}, {}, "hold what is no secret"),
    ):
        with pytest.raises(Exception, match=message) as raised:
            ENGINES[engine](data.assign(**change), **({"key_columns": "id"} | options))
        assert "plague" not in str(raised.value)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(pg.InvalidProblem, match="tables may be of pandas"):
        apply([1, 2], {"age": AGE})
    with pytest.raises(pg.InvalidProblem, match="needs connection="):
        apply(duckdb.connect().sql("SELECT 25 AS age"), {"age": AGE})
    with pytest.raises(pg.InvalidProblem, match="other tables have none"):
        apply(frame(), RULES, connection=duckdb.connect())
    with pytest.raises(pg.InvalidProblem, match="distinct texts"):
        apply(pd.DataFrame({0: [25]}), {"age": AGE})
    with pytest.raises(pg.InvalidProblem, match="must be a ReleaseKey"):
        apply(frame(), RULES, key=b"secret")  # type: ignore[arg-type]

"""Engines that compute later, and perhaps often: a row is drawn once, however often and in whatever order it comes."""

from collections.abc import Callable
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

import privacygames as pg
from privacygames.tables import ReleaseKey, apply

AGES = pg.Numbers(range(18, 91), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.2)
ROWS = 3000
COLLECTS = 6

rng = np.random.default_rng(0)
PEOPLE = pl.DataFrame(
    {"id": rng.permutation(ROWS), "age": rng.integers(18, 91, ROWS), "group": rng.integers(0, 9, ROWS)}
)
VISITS = pl.DataFrame({"id": rng.integers(0, ROWS, 4 * ROWS), "paid": rng.uniform(1, 20, 4 * ROWS)})


def as_answers(frame: pl.DataFrame) -> dict[int, int]:
    return dict(zip(frame["id"].to_list(), frame["age"].to_list(), strict=True))


UPSTREAM: dict[str, Callable[[], pl.LazyFrame]] = {
    "join": lambda: PEOPLE.lazy().join(VISITS.lazy().select("id").unique(), on="id"),
    "group-by": lambda: PEOPLE.lazy().join(VISITS.lazy(), on="id").group_by("id").agg(pl.col("age").first()),
    "unique": lambda: PEOPLE.lazy().select("id", "age").unique(),
    "sort": lambda: PEOPLE.lazy().sort("group"),
    "plain": PEOPLE.lazy,
}


@pytest.mark.parametrize("upstream", UPSTREAM)
def test_a_lazy_frame_without_an_identity_is_refused(upstream: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=r"a lazy frame of Polars computes .* name key_columns .* or collect"):
        apply(UPSTREAM[upstream](), {"age": AGE})


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("upstream", UPSTREAM)
def test_six_collects_of_a_lazy_frame_are_one_release(upstream: str, engine: Any) -> None:
    lazy, manifest = apply(UPSTREAM[upstream](), {"age": AGE}, key_columns="id")
    first = as_answers(lazy.collect())
    assert len(first) == manifest.rows_in
    for _ in range(COLLECTS - 1):
        assert as_answers(lazy.collect(engine=engine)) == first
    assert as_answers(lazy.sort("group" if upstream in ("sort", "plain") else "id").collect(engine=engine)) == first
    assert as_answers(lazy.filter(pl.col("id") % 3 == 0).collect()) == {i: a for i, a in first.items() if i % 3 == 0}


QUERIES = {
    "join": "SELECT p.id, p.age FROM people p JOIN (SELECT DISTINCT id FROM visits) USING (id)",
    "group-by": "SELECT p.id, min(p.age) AS age FROM people p JOIN visits USING (id) GROUP BY p.id",
    "unique": "SELECT DISTINCT id, age FROM people",
    "plain": "SELECT id, age FROM people",
}


def connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 4, "preserve_insertion_order": False})
    connection.register("people", PEOPLE.to_arrow())
    connection.register("visits", VISITS.to_arrow())
    return connection


@pytest.mark.parametrize("query", QUERIES)
def test_a_relation_is_drawn_once_or_refused(query: str) -> None:
    connection = connected()
    with pytest.raises(pg.InvalidProblem, match=r"DuckDB computes .* name key_columns"):
        apply(connection.sql(QUERIES[query]), {"age": AGE}, connection=connection)
    made, _ = apply(connection.sql(QUERIES[query]), {"age": AGE}, connection=connection, key_columns="id")
    first = as_answers(made.pl())
    assert all(as_answers(made.pl()) == first for _ in range(COLLECTS - 1))
    assert as_answers(made.order("age, id").pl()) == first


def test_dask_partitions_are_drawn_once_or_refused() -> None:
    with dask.config.set(scheduler="threads"):
        frame = dd.from_pandas(PEOPLE.to_pandas(), npartitions=5)
        with pytest.raises(pg.InvalidProblem, match=r"Dask computes .* name key_columns"):
            apply(frame, {"age": AGE})
        made, _ = apply(frame.shuffle("group"), {"age": AGE}, key_columns="id")
        first = as_answers(pl.from_pandas(made.compute()[["id", "age"]]))
        assert all(as_answers(pl.from_pandas(made.compute()[["id", "age"]])) == first for _ in range(COLLECTS - 1))


def test_the_draws_of_a_person_are_an_identity_too() -> None:
    lazy, _ = apply(PEOPLE.lazy(), {"age": AGE}, user="group", repeat="same")
    first = lazy.sort("id").collect()
    assert lazy.sort("id").collect(engine="streaming").equals(first)
    assert PEOPLE.sort("id").with_columns(a=first["age"]).group_by("group", "age").agg(pl.n_unique("a"))["a"].max() == 1


REFUSED = "rows are not among those that were looked at"


def moving(name: str) -> Any:
    """Two looks at one id give two secrets: a second release of somebody that nobody charged."""
    looks = iter(range(100))

    def later(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(age=20 + (pl.col("age") + next(looks)) % 50)

    if name == "polars":
        return PEOPLE.lazy().map_batches(later, schema=PEOPLE.schema)
    return dd.from_pandas(PEOPLE.to_pandas(), npartitions=3).map_partitions(
        lambda part: part.assign(age=20 + (part["age"] + next(looks)) % 50), meta=PEOPLE.head(0).to_pandas()
    )


def test_a_table_that_gives_other_secrets_later_is_refused() -> None:
    lazy, _ = apply(moving("polars"), {"age": AGE}, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match=REFUSED):
        lazy.collect()
    connection = connected()
    query = "SELECT id, (18 + random() * 70)::INTEGER AS age FROM people"
    made, _ = apply(connection.sql(query), {"age": AGE}, connection=connection, key_columns="id")
    with pytest.raises(duckdb.Error, match=REFUSED):
        made.fetchall()
    with dask.config.set(scheduler="synchronous"):
        parts, _ = apply(moving("dask"), {"age": AGE}, key_columns="id")
        with pytest.raises(pg.InvalidProblem, match=REFUSED):
            parts.compute()


class Moving(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow has no types
    """Other secrets at each scan, as of files that are written to meanwhile."""

    looks = 0

    def scanner(self, *given: Any, **options: Any) -> Any:
        self.looks += 1
        ages = PEOPLE.with_columns(age=20 + (pl.col("age") + self.looks) % 50)
        return ds.dataset(ages.to_arrow()).scanner(*given, **options)


def test_a_dataset_that_changed_since_is_refused() -> None:
    reader, _ = apply(Moving(PEOPLE.to_arrow()), {"age": AGE}, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match=REFUSED):
        reader.read_all()


def test_rows_that_are_fewer_later_are_no_other_release() -> None:
    """Rows that are gone were charged; what is left is as it was."""
    gone: list[int] = []
    source = PEOPLE.lazy().map_batches(lambda frame: frame.filter(~pl.col("id").is_in(gone)), schema=PEOPLE.schema)
    lazy, _ = apply(source, {"age": AGE}, key_columns="id")
    first = as_answers(lazy.collect())
    gone += range(100)
    assert as_answers(lazy.collect()) == {row: age for row, age in first.items() if row >= 100}


def test_eager_engines_draw_anew_without_a_key() -> None:
    for frame in (PEOPLE.to_pandas(), PEOPLE, PEOPLE.to_arrow()):
        one, other = (pd.Series(list(apply(frame, {"age": AGE})[0]["age"])) for _ in range(2))
        assert (one.astype(str) != other.astype(str)).mean() > 0.5


def test_a_lazy_release_is_charged_and_remembered_when_it_is_set_up() -> None:
    ledger, key = pg.tables.ReleaseLedger(budget={"per year": 0.2}), ReleaseKey()
    for _ in range(2):
        apply(PEOPLE.lazy(), {"age": AGE}, key=key, key_columns="id", ledger=ledger)
    apply(PEOPLE, {"age": AGE}, key=key, key_columns="id", ledger=ledger)
    apply(pa.table(PEOPLE.to_arrow()), {"age": AGE}, key=key, key_columns="id", ledger=ledger)
    assert ledger.state().spent["per year"] == AGE.bounds.epsilon
    assert ledger.state().releases == 1
    with pytest.raises(pg.BudgetExceeded):
        apply(PEOPLE.lazy(), {"age": AGE}, key_columns="id", ledger=ledger)

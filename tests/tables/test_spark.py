"""Spark itself: the same answers through partitions, second actions and failed tasks. ``make spark`` installs it."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privacygames as pg
from privacygames.points import design
from privacygames.tables import ReleaseKey, Rule, apply

pytest.importorskip("pyspark", reason="Spark is not installed: make spark does that")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: make spark installs it"),
]

AGES = pg.Numbers(range(20, 32), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.4)
ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
TOWN = pg.Area(4.0, 3.0)
POINT = design(pg.PointProblem(pg.PointPrior(TOWN, [(1, 1), (3, 2)]), TOWN.lattice((3, 2))), epsilon=0.4)
RULES: dict[Any, Any] = {"age": Rule(mechanism=AGE, invalid="drop"), "ill": ILL, ("x", "y"): POINT}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2,4]")  # two threads; a task may fail three times
        for name, value in (
            ("spark.ui.enabled", "false"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.sql.execution.arrow.pyspark.enabled", "true"),
        ):
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "who": rng.choice(["ann", "bob", "cleo"], rows),
            "age": rng.integers(18, 32, rows),
            "ill": rng.choice(["asthma", "flu", "none"], rows),
            "x": rng.uniform(-0.2, 4.2, rows),
            "y": rng.uniform(0.0, 3.0, rows),
        }
    )


def sorted_rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_spark_gives_what_pandas_gives_in_every_partitioning_and_action(spark: Any) -> None:
    key, data = ReleaseKey(), frame()
    options: dict[str, Any] = {"key": key, "key_columns": "id", "user": "who"}
    expected, told = apply(data, RULES, **options)
    wanted = sorted(expected.itertuples(index=False, name=None))
    for parts in (1, 5):
        released, manifest = apply(spark.createDataFrame(data).repartition(parts), RULES, **options)
        assert sorted_rows(released) == wanted
        assert sorted_rows(released) == wanted  # a second action draws nothing new
        assert manifest.rows_out == told.rows_out
        assert manifest.per_user == told.per_user
        assert manifest.counts.invalid == told.counts.invalid
    assert released.schema.simpleString() == "struct<id:bigint,who:string,age:bigint,ill:string,x:double,y:double>"
    again = released.filter("age > 25").join(released.select("id", "age"), on=["id", "age"]).count()
    assert again == int((expected["age"] > 25).sum())


def test_a_task_failed_on_purpose_loses_nothing_and_draws_nothing_twice(spark: Any, tmp_path: Path) -> None:
    key, data = ReleaseKey(), frame()
    expected, _ = apply(data, RULES, key=key, key_columns="id")
    released, _ = apply(spark.createDataFrame(data).repartition(4), RULES, key=key, key_columns="id")
    marker = str(tmp_path / "failed-once")

    def fail_once(batches: Any) -> Any:
        """After its first batch was computed, the first task to come here dies; Spark runs it again."""
        for batch in batches:
            yield batch
            try:
                Path(marker).touch(exist_ok=False)
            except FileExistsError:
                continue
            raise RuntimeError("on purpose")

    through = released.mapInArrow(fail_once, schema=released.schema)
    assert sorted_rows(through) == sorted(expected.itertuples(index=False, name=None))
    assert Path(marker).exists()


def test_what_spark_cannot_do_is_refused(spark: Any) -> None:
    data = spark.createDataFrame(frame(20))
    with pytest.raises(pg.InvalidProblem, match="an identity"):
        apply(data, RULES)
    with pytest.raises(pg.InvalidProblem, match="do not tell 17 rows"):
        apply(data, RULES, key_columns="who")
    with pytest.raises(pg.InvalidProblem, match="above any_pair_limit"):
        apply(data, RULES, key_columns="id", user="who", any_pair_limit=1.0)
    with pytest.raises(pg.InvalidProblem, match=r"age: \d+ of \d+ rows hold what is no secret"):
        apply(data.selectExpr("id", "99 AS age"), {"age": AGE}, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match="user column 'who' is empty"):
        apply(data.selectExpr("id", "25 AS age", "'' AS who"), {"age": AGE}, key_columns="id", user="who")
    with pytest.raises(pg.InvalidProblem, match="dots or backticks"):
        apply(data.withColumnRenamed("who", "w.ho"), RULES, key_columns="id")


TYPES = {
    "zoned": "timestamp '2021-03-28 02:30:00'",
    "local": "timestamp_ntz '2021-03-28 02:30:00'",
    "date": "date '2021-03-28'",
    "days": "interval 3 day",
    "clock": "interval '1 02:03:04.5' day to second",
    "decimal": "cast(12345678901234567890.12 as decimal(30, 2))",
    "binary": "cast('x' as binary)",
    "char": "cast('x' as char(3))",
    "list": "array(1, null, 3)",
    "empty": "cast(null as array<string>)",
    "times": "array(timestamp '2021-03-28 02:30:00')",
    "struct": "named_struct('a', 1, 'b', timestamp '2021-03-28 02:30:00')",
    "map": "map('k', cast(1 as tinyint))",
    "nan": "double('NaN')",
    "nothing": "cast(null as double)",
    "short": "cast(7 as smallint)",
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_column_without_a_rule_comes_back_as_it_was(spark: Any, zone: str) -> None:
    """Timestamps of either kind among them, wherever the session says it is."""
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        columns = ", ".join(f"{value} AS {name}" for name, value in TYPES.items())
        data = spark.sql(f"SELECT id, array('flu', 'plague')[id % 2] AS ill, {columns} FROM range(6)")
        rule = Rule(mechanism=ILL, invalid="drop", original="null")
        released, manifest = apply(data, {"ill": rule}, key_columns="id")
        assert manifest.rows_out == 3
        for name in TYPES:
            assert released.schema[name] == data.schema[name]
        kept = data.filter("id % 2 = 0").orderBy("id").select(*TYPES).collect()
        assert repr(released.orderBy("id").select(*TYPES).collect()) == repr(kept)
        other = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # set up in one zone, computed in another
        assert released.select("zoned").collect() == data.filter("id % 2 = 0").select("zoned").collect()
        spark.conf.set("spark.sql.session.timeZone", other)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_timestamp_may_tell_rows_apart(spark: Any) -> None:
    data = spark.sql("SELECT timestamp_seconds(id) AS at, 'flu' AS ill FROM range(9)")
    released, _ = apply(data, {"ill": ILL}, key_columns="at")
    assert released.orderBy("at").collect() == released.orderBy("at").collect()


def test_a_type_that_spark_hands_to_nobody_is_refused_by_name(spark: Any) -> None:
    data = spark.sql("SELECT id, 'flu' AS ill, interval 3 month AS months FROM range(3)")
    with pytest.raises(pg.InvalidProblem, match=r"no counterpart in Arrow.*months"):
        apply(data, {"ill": ILL}, key_columns="id")


def test_spark_has_the_identities_of_other_engines(spark: Any) -> None:
    """Texts that read as numbers are these numbers; rows and people that only so differ are refused."""
    data, secret = frame(60).assign(age=25), bytes(range(32))
    padded = spark.createDataFrame(data.assign(id=[f"{each:04d}" for each in data["id"]]))
    expected, _ = apply(data, {"age": AGE}, key=ReleaseKey(secret), key_columns="id")
    released, _ = apply(padded, {"age": AGE}, key=ReleaseKey(secret), key_columns="id")
    assert [row["age"] for row in released.orderBy("id").collect()] == expected["age"].tolist()
    two = spark.createDataFrame(pd.DataFrame({"id": ["7", "007"], "age": [25, 26]}))
    with pytest.raises(pg.InvalidProblem, match="do not tell 1 rows"):
        apply(two, {"age": AGE}, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match="1 people in id are named as others are"):
        apply(two, {"age": AGE}, user="id", repeat="same")
    ledger = pg.tables.ReleaseLedger(budget={"per year": 0.6})
    for _ in range(2):  # the same release
        apply(padded, {"age": AGE}, key=ReleaseKey(secret), key_columns="id", ledger=ledger)
    with pytest.raises(pg.BudgetExceeded):
        apply(padded, {"age": AGE}, key_columns="id", ledger=ledger)


def test_rows_of_parquet_files_are_told_apart_by_file_and_position(spark: Any, tmp_path: Path) -> None:
    key, data = ReleaseKey(), frame()[["age", "ill", "x", "y"]]
    data.to_parquet(tmp_path / "in.parquet")
    read = spark.read.parquet(str(tmp_path / "in.parquet"))
    told = read.selectExpr("*", "_metadata.file_path AS file", "_metadata.row_index AS row")
    released, manifest = apply(told, RULES, key=key, key_columns=["file", "row"])
    assert manifest.rows_in == len(data)
    assert sorted_rows(released.repartition(3)) == sorted_rows(released)


def test_the_page_about_spark_runs(spark: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text()
    blocks = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 1
    assert spark is not None  # getOrCreate() finds it
    exec(compile(blocks[0], "spark.md", "exec"), {})

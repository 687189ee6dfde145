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
RULES: dict[Any, Any] = {"age": Rule(mechanism=AGE, invalid="drop"), "ill": ILL}


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
        assert manifest.epsilon_per_user == told.epsilon_per_user
        assert manifest.tally.odd == told.tally.odd
    assert released.schema.simpleString() == "struct<id:bigint,who:string,age:bigint,ill:string>"
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
    with pytest.raises(pg.InvalidProblem, match="rows have no position there"):
        apply(data, RULES)
    with pytest.raises(pg.InvalidProblem, match="do not tell 17 rows"):
        apply(data, RULES, key_columns="who")
    with pytest.raises(pg.InvalidProblem, match="above the limit"):
        apply(data, RULES, key_columns="id", user="who", epsilon_limit=1.0)
    with pytest.raises(pg.InvalidProblem, match=r"age: \d+ of \d+ rows hold what is no secret"):
        apply(data.selectExpr("id", "99 AS age"), {"age": AGE}, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match="user column 'who' is empty"):
        apply(data.selectExpr("id", "25 AS age", "'' AS who"), {"age": AGE}, key_columns="id", user="who")
    with pytest.raises(pg.InvalidProblem, match="dots or backticks"):
        apply(data.withColumnRenamed("who", "w.ho"), RULES, key_columns="id")


def test_rows_of_parquet_files_are_told_apart_by_file_and_position(spark: Any, tmp_path: Path) -> None:
    key, data = ReleaseKey(), frame()[["age", "ill"]]
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

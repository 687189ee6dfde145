"""Columns that no rule is for come back as they were, from every engine: values, types, categories, zones, nulls."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.tables import Rule, apply, apply_files

ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
DROP = {"ill": Rule(mechanism=ILL, invalid="drop")}
SECRETS = ["flu", "plague", "none"]
"""The second is no secret: its rows are dropped."""


def six(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(6)]


NAN = float("nan")
COLUMNS: dict[str, Any] = {
    "bool": pa.array(six(True, None, False)),
    "int8": pa.array(six(1, None, -3), pa.int8()),
    "int64": pa.array(six(2**62 + 1, None, -5)),
    "uint64": pa.array(six(2**64 - 1, None, 5), pa.uint64()),
    "half": pa.array(np.array(six(1.5, np.nan, 2.0), dtype=np.float16)),
    "float32": pa.array(six(1.1, None, NAN, float("inf")), pa.float32()),
    "float64": pa.array(six(1.1, None, NAN, -0.0)),
    "decimal": pa.array(six(Decimal("1.10"), None, Decimal("-12345678901234567890.12")), pa.decimal128(30, 2)),
    "decimal256": pa.array(six(Decimal("1.10"), None), pa.decimal256(50, 2)),
    "string": pa.array(six("a", None, "", 'q"x')),
    "large_string": pa.array(six("a", None, ""), pa.large_string()),
    "string_view": pa.array(six("a", None, ""), pa.string_view()),
    "binary": pa.array(six(b"a\x00", None, b"")),
    "fixed_binary": pa.array(six(b"abcd", None), pa.binary(4)),
    "date32": pa.array(six(dt.date(2020, 1, 1), None)),
    "date64": pa.array(six(dt.date(2020, 1, 1), None), pa.date64()),
    "time32": pa.array(six(dt.time(1, 2, 3), None), pa.time32("s")),
    "time64": pa.array(six(dt.time(1, 2, 3, 4), None), pa.time64("us")),
    "timestamp_s": pa.array(six(1, None), pa.timestamp("s")),
    "timestamp_us": pa.array(six(1_700_000_000_123_456, None), pa.timestamp("us")),
    "timestamp_ns": pa.array(six(1_700_000_000_123_456_789, None), pa.timestamp("ns")),
    "timestamp_zone": pa.array(six(1_700_000_000_123_456, None), pa.timestamp("us", tz="Europe/Berlin")),
    "duration": pa.array(six(5, None), pa.duration("ms")),
    "interval": pa.array(six((1, 2, 3), None), pa.month_day_nano_interval()),
    "null": pa.nulls(6),
    "list": pa.array(six(["a", "b"], None, [], [None])),
    "large_list": pa.array(six([1, 2], None, []), pa.large_list(pa.int32())),
    "fixed_list": pa.array(six([1.0, 2.0], None), pa.list_(pa.float32(), 2)),
    "nested_list": pa.array(six([[1], [2, None]], None, [])),
    "list_of_views": pa.array(six(["a"], None), pa.list_(pa.string_view())),
    "struct": pa.array(six({"a": 1, "b": "x"}, None, {"a": None, "b": "y"})),
    "list_of_structs": pa.array(six([{"a": 1, "b": "x"}], None, [])),
    "map": pa.array(six([("k", 1)], None, []), pa.map_(pa.string(), pa.int32())),
    "categories": pa.array(six("x", None, "y")).dictionary_encode(),
    "ordered": pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 1, 2, 0], pa.int8()), pa.array(["low", "middle", "high", "unused"]), ordered=True
    ),
    "categories_of_int": pa.array(six(7, None, 3)).dictionary_encode(),
}
IMPOSSIBLE = {
    "pandas": ["list_of_views"],
    "polars": ["decimal256", "interval"],
    "polars lazy": ["decimal256", "interval"],
    "duckdb": ["half", "decimal256"],
    "parquet": ["interval"],
    "dask": ["list_of_views"],
}
"""Types that an engine does not have, or that PyArrow cannot hand to it."""


def table(name: str) -> pa.Table:
    return pa.table({"id": range(6), "ill": six(*SECRETS), name: COLUMNS[name]}, metadata={"made": "by hand"})


def pandas_table(name: str) -> pd.DataFrame:
    return table(name).to_pandas()


def of_arrow(name: str, _: Path) -> tuple[Any, Any]:
    return table(name)[name], apply(table(name), DROP)[0][name]


def of_reader(name: str, _: Path) -> tuple[Any, Any]:
    given = table(name)
    reader = pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=2))
    return given[name], apply(reader, DROP)[0].read_all()[name]


def of_pandas(name: str, _: Path) -> tuple[Any, Any]:
    given = pandas_table(name)
    return given[name], apply(given, DROP)[0][name]


def of_polars(name: str, _: Path) -> tuple[Any, Any]:
    given = pl.from_arrow(table(name))
    assert isinstance(given, pl.DataFrame)
    return given[name], apply(given, DROP)[0][name]


def of_polars_lazy(name: str, _: Path) -> tuple[Any, Any]:
    given = pl.from_arrow(table(name))
    assert isinstance(given, pl.DataFrame)
    return given[name], apply(given.lazy(), DROP, key_columns="id")[0].collect()[name]


def of_duckdb(name: str, _: Path) -> tuple[Any, Any]:
    connection = duckdb.connect()
    given = connection.from_arrow(table(name))
    made, _unused = apply(given, DROP, key_columns="id", connection=connection)
    assert made.types == given.types
    return given.to_arrow_table()[name], made.to_arrow_table()[name]


def of_dask(name: str, _: Path) -> tuple[Any, Any]:
    with dask.config.set(scheduler="synchronous", **{"dataframe.convert-string": False}):
        given = dd.from_pandas(pandas_table(name), npartitions=2)
    with dask.config.set(scheduler="synchronous"):  # where Dask makes texts of objects, wherever it may
        made, _unused = apply(given, DROP, key_columns="id")
        found = made.compute()[name]
        assert made.dtypes[name] == found.dtype
        return given.compute()[name], found


def of_parquet(name: str, folder: Path) -> tuple[Any, Any]:
    pq.write_table(table(name), folder / "in.parquet", row_group_size=2)
    apply_files(folder / "in.parquet", folder / "out.parquet", DROP)
    made = pq.read_table(folder / "out.parquet")
    assert made.schema.metadata[b"made"] == b"by hand"
    return pq.read_table(folder / "in.parquet")[name], made[name]


ENGINES: dict[str, Callable[[str, Path], tuple[Any, Any]]] = {
    "arrow": of_arrow,
    "reader": of_reader,
    "pandas": of_pandas,
    "polars": of_polars,
    "polars lazy": of_polars_lazy,
    "duckdb": of_duckdb,
    "dask": of_dask,
    "parquet": of_parquet,
}


def require_same(before: Any, after: Any) -> None:
    """The rows that stay, of the very same type and values; NaN and null are two things."""
    keep = [at for at in range(len(before)) if SECRETS[at % 3] != "plague"]
    if isinstance(before, pd.Series):
        pd.testing.assert_series_equal(after, before.iloc[keep])
        kinds = [type(value) for value in before.iloc[keep]]
        assert [type(value) for value in after] == kinds
        if isinstance(before.dtype, pd.CategoricalDtype):
            assert list(after.cat.categories) == list(before.cat.categories)
            assert after.cat.ordered == before.cat.ordered
    elif isinstance(before, pl.Series):
        assert after.dtype == before.dtype
        assert after.equals(before[keep], check_dtypes=True, null_equal=True)
    else:
        assert after.type == before.type
        values = before.to_pylist()
        assert repr(after.to_pylist()) == repr([values[at] for at in keep])
        if pa.types.is_dictionary(before.type):
            assert after.chunk(0).dictionary.equals(before.chunk(0).dictionary)


@pytest.mark.parametrize(
    ("engine", "name"),
    [(engine, name) for engine in ENGINES for name in COLUMNS if name not in IMPOSSIBLE.get(engine, ())],
)
def test_a_column_without_a_rule_comes_back_as_it_was(engine: str, name: str, tmp_path: Path) -> None:
    require_same(*ENGINES[engine](name, tmp_path))


VALUES: dict[str, tuple[Any, Any]] = {
    "integers": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "floats": (st.floats(), pa.float64()),
    "texts": (st.text(max_size=5), pa.string()),
    "bytes": (st.binary(max_size=5), pa.binary()),
    "times": (st.integers(-(2**62), 2**62), pa.timestamp("ns", tz="America/New_York")),
    "lists": (st.lists(st.none() | st.text(max_size=2), max_size=3), pa.list_(pa.string())),
    "structs": (
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 9)}),
        pa.struct([("a", pa.int8())]),
    ),
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), kind=st.sampled_from(sorted(VALUES)), engine=st.sampled_from(["arrow", "pandas", "polars"]))
def test_any_values_come_back_as_they_were(data: Any, kind: str, engine: str) -> None:
    strategy, type_of = VALUES[kind]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=12))
    column = pa.array(values, type_of, from_pandas=False)
    given = pa.table({"ill": [SECRETS[at % 3] for at in range(len(values))], "x": column})
    if engine == "arrow":
        require_same(given["x"], apply(given, DROP)[0]["x"])
    elif engine == "pandas":
        frame = given.to_pandas()
        require_same(frame["x"], apply(frame, DROP)[0]["x"])
    else:
        polars = pl.from_arrow(given)
        assert isinstance(polars, pl.DataFrame)
        require_same(polars["x"], apply(polars, DROP)[0]["x"])


ORDER = ["none", "flu", "asthma"]
"""How the column declares its categories: not the order of the mechanism's labels."""


def test_ordered_categories_keep_the_order_that_their_column_declares() -> None:
    """With the mechanism's order, comparisons of released values would be wrong without a word."""
    column = pd.Series(pd.Categorical(six("flu", "none"), categories=[*ORDER, "rare disease"], ordered=True))
    wanted = pd.CategoricalDtype(ORDER, ordered=True)  # without what is no answer: it may be somebody's secret
    frame = pd.DataFrame({"ill": column, "id": range(6)})
    released, _ = apply(frame, {"ill": ILL})
    assert released["ill"].dtype == wanted
    plain, _ = apply(frame.astype({"ill": str}), {"ill": Rule(mechanism=ILL)})
    assert set(plain["ill"]) <= set(ORDER)
    with dask.config.set(scheduler="synchronous"):
        made, _ = apply(dd.from_pandas(frame, npartitions=2), {"ill": ILL}, key_columns="id")
        assert made.dtypes["ill"] == made.compute()["ill"].dtype == wanted
    arrow, _ = apply(pa.table({"ill": pa.array(column)}), {"ill": ILL})
    assert arrow["ill"].type.ordered
    assert arrow["ill"].chunk(0).dictionary.to_pylist() == ORDER
    kinds: dict[str, Any] = {"ill": pl.Enum([*ORDER, "rare disease"]), "id": pl.Int64}
    enum = pl.DataFrame({"ill": six("flu", "none"), "id": range(6)}, schema=kinds)
    lazy, _ = apply(enum.lazy(), {"ill": ILL}, key_columns="id")
    for some in (apply(enum, {"ill": ILL})[0], lazy.collect()):
        assert some.schema["ill"] == pl.Enum(ORDER)


def test_the_answers_are_the_same_whatever_the_order_of_categories() -> None:
    key = pg.tables.ReleaseKey()
    texts = pd.DataFrame({"ill": six("flu", "none", "asthma"), "id": range(6)})
    expected, _ = apply(texts, {"ill": ILL}, key=key, key_columns="id")
    for order in (ORDER, ORDER[::-1], ["plague", *ORDER]):
        ordered = texts.astype({"ill": pd.CategoricalDtype(order, ordered=True)})
        released, _ = apply(ordered, {"ill": ILL}, key=key, key_columns="id")
        assert released["ill"].astype(str).tolist() == expected["ill"].tolist()


def test_an_order_without_every_answer_is_refused_and_one_of_other_answers_goes() -> None:
    frame = pd.DataFrame({"ill": pd.Categorical(["flu"], categories=["none", "flu"], ordered=True)})
    with pytest.raises(pg.InvalidProblem, match="1 of the 3 possible outputs are none of them") as raised:
        apply(frame, {"ill": ILL})
    assert "flu" not in str(raised.value)
    pairs = pg.Subsets.all(ILLS, at_most=2)
    problem = pg.Problem(pg.Prior.uniform(ILLS), np.zeros((len(pairs), 3)), observables=pairs)
    grouped = pg.Mechanism.from_probabilities(problem, np.full((3, len(pairs)), 1 / len(pairs)))
    released, _ = apply(frame, {"ill": grouped})
    assert not released["ill"].cat.ordered


def test_categories_of_numbers_stay_categories() -> None:
    grades = pg.Numbers([1, 2, 3])
    grade = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(grades)), epsilon=1.0)
    frame = pd.DataFrame({"grade": pd.Categorical([3, 1, 2], categories=[3, 2, 1], ordered=True)})
    released, _ = apply(frame, {"grade": grade})
    assert released["grade"].dtype == frame["grade"].dtype


def test_what_pandas_notes_of_a_secret_column_does_not_outlive_it(tmp_path: Path) -> None:
    """It counts the categories that occur, and a type that answers do not have cannot be read back."""
    ages = pg.Numbers(range(20, 30))
    observables = ages.intervals(3)
    problem = pg.Problem(pg.Prior.uniform(ages), observables=observables)
    age = pg.Mechanism.from_probabilities(problem, np.full((10, len(observables)), 1 / len(observables)))
    frame = pd.DataFrame(
        {
            "age": pd.array([20, 21], dtype="Int64"),
            "paid": pd.array([1, None], dtype="Int64"),
            "ill": pd.Categorical(["flu", "none"], categories=["flu", "none", "rare disease"]),
        }
    )
    frame.to_parquet(tmp_path / "in.parquet")
    apply_files(tmp_path / "in.parquet", tmp_path / "out.parquet", {"age": age, "ill": ILL})
    assert b"num_categories" not in pq.read_schema(tmp_path / "out.parquet").metadata[b"pandas"]
    made = pd.read_parquet(tmp_path / "out.parquet")
    assert set(made["age"]) <= set(observables.labels)
    assert made["paid"].dtype == "Int64"
    enum = pl.DataFrame({"ill": ["flu"]}, schema={"ill": pl.Enum([*ORDER, "rare disease"])}).to_arrow()
    released, _ = apply(enum, {"ill": ILL})
    assert "rare disease" not in f"{released.schema.field('ill').metadata}"

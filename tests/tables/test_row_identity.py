"""One row, one key, one answer: through whatever engine or file it comes, and in whatever type, or a refusal."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.tables import ReleaseKey, apply, apply_files
from privacygames.tables.row_identity import value_tags

AGES = pg.Numbers(range(20, 52), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.05)
KEY = ReleaseKey(bytes(range(32)))
MAY = datetime(2024, 5, 1)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def tags(values: pa.Array) -> list[tuple[int, ...]]:
    return [tuple(each) for each in value_tags(values, "k", lambda kind: KEY.derive("value", kind)).tolist()]


SAME: dict[str, list[pa.Array]] = {
    "integers": [
        *(pa.array([7, 0], kind) for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64())),
        *(pa.array([7.0, -0.0], kind) for kind in (pa.float32(), pa.float64())),
        pa.array([Decimal("7.00"), Decimal("0.00")]),
        pa.array([7, 0]).dictionary_encode(),
        *(pa.array(["7", "0"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        *(pa.array(each) for each in (["007", "-0"], ["+7", "00"], [" 7", "0.0"], ["7.0", "0e9"], [".7e1", "0."])),
        pa.array([b"7", b"0"]),
    ],
    "large integers": [
        pa.array([2**63 - 1, -(10**18)], pa.int64()),
        pa.array([Decimal(2**63 - 1), Decimal(-(10**18))], pa.decimal128(38, 0)),
        pa.array(["9223372036854775807", "-1e18"]),
    ],
    "beyond 64 bits": [
        pa.array([2**63, 2**64 - 1], pa.uint64()),
        pa.array([Decimal(2**63), Decimal(2**64 - 1)], pa.decimal256(40, 1)),
        pa.array(["9223372036854775808", "018446744073709551615.0"]),
    ],
    "fractions": [
        pa.array([Decimal("1.50"), Decimal("-0.01")]),
        pa.array(["1.5", "-0.01"]),
        pa.array(["+15e-1", "-.010"]),
    ],
    "days": [
        pa.array([date(2024, 5, 1), date(1969, 12, 31)]),
        pa.array([date(2024, 5, 1), date(1969, 12, 31)], pa.date64()),
        *(pa.array([MAY, datetime(1969, 12, 31)], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        pa.array(["2024-05-01", "1969-12-31"]),
        pa.array(["2024-05-01 00:00:00", "1969-12-31T00:00"]),
    ],
    "times": [
        *(pa.array([NOON], pa.timestamp(unit, tz=zone)) for unit in ("s", "ns") for zone in ("UTC", "Europe/Paris")),
        pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        pa.array([NOON.astimezone(timezone(timedelta(hours=2))).isoformat()]),
        *(
            pa.array([f"2024-05-01{text}"])
            for text in ("T12:00Z", " 12:00:00.000000000", " 14:00:00 +0200", "T14:00+02")
        ),
    ],
    "truth": [pa.array([True, False]), pa.array(["true", "False"]), pa.array(["T", "f"]).dictionary_encode()],
    "texts": [
        pa.array(["ann", "é"]),
        pa.array(["ann", "é"], pa.large_string()),
        pa.array(["ann", "é"]).dictionary_encode(),
        pa.array(["x", "ann", "é"]).dictionary_encode()[1:],
        pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["é", "ann"], pa.string_view())),
        pa.array([b"ann", "é".encode()], pa.large_binary()),
    ],
}


@pytest.mark.parametrize("values", SAME)
def test_what_says_the_same_is_the_same_identity(values: str) -> None:
    first, *others = SAME[values]
    for other in others:
        assert tags(other) == tags(first), other.type
    assert len(set(tags(first))) == len(first)


def test_what_says_something_else_is_another_identity() -> None:
    texts = [
        "7",
        "7.5",
        "-7",
        "7a",
        "1e7",
        "1e-7",
        "true",
        "ann",
        "Ann",
        "2024-05-01",
        "2024-05-01 12:00",
        "2024-5-1",
        ".",
    ]
    texts += [
        "e5",
        "-",
        "2024-13-01",
        "9223372036854775808",
        "1714521600000000",
        "1714521600",
        "\u0667",
        "1e9999999",
        "ann ",
    ]
    assert len(set(tags(pa.array(texts)))) == len(texts)


NUMERALS = st.from_regex(r"[+-]?(0{0,2}[0-9]{1,4}(\.[0-9]{0,3})?|\.[0-9]{1,3})(e[+-]?[0-9]{1,2})?", fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMERALS, min_size=2, max_size=2), st.integers(-3, 3))
def test_numerals_are_one_identity_where_they_are_one_number(numerals: list[str], shift: int) -> None:
    one, other = numerals
    moved = f"{Decimal(one).scaleb(-shift):f}e{shift}"
    found = tags(pa.array([one, other, moved]))
    assert found[0] == found[2]
    assert (found[0] == found[1]) == (Decimal(one) == Decimal(other))


def with_pandas(frame: pd.DataFrame, _: Path, options: dict[str, Any]) -> Any:
    return apply(frame, {"age": AGE}, **options)[0]


def with_polars(frame: pd.DataFrame, _: Path, options: dict[str, Any]) -> Any:
    return apply(pl.from_pandas(frame), {"age": AGE}, **options)[0].to_pandas()


def with_lazy(frame: pd.DataFrame, _: Path, options: dict[str, Any]) -> Any:
    return apply(pl.from_pandas(frame).lazy(), {"age": AGE}, **options)[0].collect(engine="streaming").to_pandas()


def with_polars_csv(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    table = pl.scan_csv(folder / "in.csv", try_parse_dates=True)
    return apply(table, {"age": AGE}, **options)[0].collect().to_pandas()


def with_duckdb(frame: pd.DataFrame, _: Path, options: dict[str, Any]) -> Any:
    connection = duckdb.connect()
    return apply(connection.from_df(frame), {"age": AGE}, connection=connection, **options)[0].df()


def with_duckdb_csv(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    connection = duckdb.connect()
    relation = connection.read_csv(str(folder / "in.csv"), header=True)
    return apply(relation, {"age": AGE}, connection=connection, **options)[0].df()


def with_dask(frame: pd.DataFrame, _: Path, options: dict[str, Any]) -> Any:
    with dask.config.set(scheduler="synchronous"):
        return apply(dd.from_pandas(frame, npartitions=2), {"age": AGE}, **options)[0].compute()


def with_pandas_csv(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    return apply(pd.read_csv(folder / "in.csv"), {"age": AGE}, **options)[0]


def with_arrow_csv(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    return apply(pa_csv.read_csv(folder / "in.csv"), {"age": AGE}, **options)[0].to_pandas()


def with_csv_file(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    apply_files(folder / "in.csv", folder / "out.csv", {"age": AGE}, **options)
    return pd.read_csv(folder / "out.csv", dtype={"k": str})


def with_parquet_file(_: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    apply_files(folder / "in.parquet", folder / "out.parquet", {"age": AGE}, **options)
    return pq.read_table(folder / "out.parquet").to_pandas()


def with_parquet_folder(frame: pd.DataFrame, folder: Path, options: dict[str, Any]) -> Any:
    """In other files, the last rows first."""
    (folder / "parts").mkdir()
    half, schema = len(frame) // 2, pq.read_schema(folder / "in.parquet")
    for name, part in (("z", frame[:half]), ("a", frame[half:])):
        pq.write_table(pa.Table.from_pandas(part, schema, preserve_index=False), folder / "parts" / f"{name}.parquet")
    apply_files(folder / "parts", folder / "out", {"age": AGE}, **options)
    return pa.concat_tables([pq.read_table(each) for each in sorted((folder / "out").glob("*.parquet"))]).to_pandas()


DOORS: dict[str, Callable[[pd.DataFrame, Path, dict[str, Any]], Any]] = {
    "pandas": with_pandas,
    "polars": with_polars,
    "polars lazy": with_lazy,
    "polars csv": with_polars_csv,
    "duckdb": with_duckdb,
    "duckdb csv": with_duckdb_csv,
    "dask": with_dask,
    "pandas csv": with_pandas_csv,
    "arrow csv": with_arrow_csv,
    "csv file": with_csv_file,
    "parquet file": with_parquet_file,
    "parquet folder": with_parquet_folder,
}


def answers(door: str, frame: pd.DataFrame, options: dict[str, Any]) -> dict[int, int]:
    """The answer of every row by its number, which is no key."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        frame.to_csv(folder / "in.csv", index=False)
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "in.parquet")
        made = DOORS[door](frame, folder, options)
        return dict(zip(made["n"].astype(int).tolist(), made["age"].astype(int).tolist(), strict=True))


def table_of(keys: list[Any]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"n": range(len(keys)), "k": keys, "age": rng.integers(20, 52, len(keys))})


PLAIN: dict[str, list[Any]] = {
    "integers": [*range(-3, 20), 2**40],
    "padded": [f"{i:05d}" for i in range(20)],
    "texts": [f"user-{i}" for i in range(20)],
    "days": [date(2024, 1, 1) + timedelta(days=i) for i in range(40)],
    "times": [MAY + timedelta(hours=5 * i) for i in range(20)],
}


@pytest.mark.parametrize("keys", PLAIN)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_answers(door: str, keys: str) -> None:
    frame, secret = table_of(PLAIN[keys]), ReleaseKey().derive("a secret")
    expected = answers("pandas", frame, {"key": ReleaseKey(secret), "key_columns": "k"})
    assert answers(door, frame, {"key": ReleaseKey(secret), "key_columns": "k"}) == expected


NASTY = st.one_of(
    st.text(alphabet="0123456789.eE+-tTfF: /", min_size=1, max_size=8),
    st.sampled_from(
        ["NA", "nan", "inf", "1e400", "1e-400", "1.00000000000000000001", "01/05/2024", "0x1F", "1_000", "t"]
    ),
    st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:00)?", fullmatch=True),
    st.decimals(-1000, 1000, places=2).map(str),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=6, unique=True), st.permutations(sorted(DOORS)))
def test_any_texts_get_the_same_answers_by_every_door_or_are_refused(keys: list[str], doors: list[str]) -> None:
    """Readers make of texts what they like; under one key, nothing that makes another release of them comes out."""
    frame, key = table_of(keys), ReleaseKey()
    first: dict[int, int] | None = None
    for door in doors[:4]:
        try:
            found = answers(door, frame, {"key": key, "key_columns": "k"})
        except pg.InvalidProblem:
            continue
        first = first or found
        assert found == first, door


def test_texts_that_a_reader_takes_for_one_number_are_one_row() -> None:
    for options, message in (
        ({"key_columns": "k"}, "do not tell 1 rows from others.*such as 007 and 7"),
        ({"repeat": "same", "user": "k"}, "1 people in k are named as others are"),
    ):
        for door in ("pandas", "polars lazy", "duckdb", "dask"):
            with pytest.raises(pg.InvalidProblem, match=message):
                answers(door, table_of(["7", "007", "8"]), options)


def test_key_columns_have_no_order() -> None:
    frame, secret = table_of([*range(9)]).assign(day="mon"), bytes(32)
    one, _ = apply(frame, {"age": AGE}, key=ReleaseKey(secret), key_columns=["k", "day"])
    other, _ = apply(frame, {"age": AGE}, key=ReleaseKey(secret), key_columns=["day", "k"])
    pd.testing.assert_frame_equal(one, other)


def test_a_key_is_for_rows_with_an_identity(tmp_path: Path) -> None:
    """Positions are another identity for each order, file name and engine."""
    frame = table_of([*range(9)])
    frame.to_parquet(tmp_path / "in.parquet")
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(pg.InvalidProblem, match="name key_columns that tell every row"):
            apply(table, {"age": AGE}, key=ReleaseKey())
    with pytest.raises(pg.InvalidProblem, match="name key_columns that tell every row"):
        apply_files(tmp_path / "in.parquet", tmp_path / "out.parquet", {"age": AGE}, key=ReleaseKey())

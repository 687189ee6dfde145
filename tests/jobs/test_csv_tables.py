"""Tables and the manifest: what is written comes back."""

from math import inf
from pathlib import Path

import pytest

from privacygames.jobs import Table, number, read_table, where, write_table
from privacygames_study.manifest import read_manifest
from study_tables import ABOUT


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    table: Table = [
        {"user": "user 1", "cost": 0.1 + 0.2, "count": 3, "reused": True, "epsilon": inf, "gap": None},
        {"user": 'a "quoted", name', "cost": 1e-300, "count": -1, "reused": False, "epsilon": 2.0, "gap": 0.0},
    ]
    write_table(tmp_path / "t.csv", table, tuple(table[0]))
    assert read_table(tmp_path / "t.csv") == table
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_columns_are_written_in_the_order_given_and_missing_values_stay_empty(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"b": 1, "a": 2, "other": 3}, {"a": 4}], ("a", "b"))
    assert (tmp_path / "t.csv").read_text() == "a,b\n2,1\n4,\n"


def test_rows_are_chosen_by_value_and_numbers_must_be_numbers() -> None:
    table: Table = [{"kind": "x", "value": 1}, {"kind": "y", "value": 2.5}, {"kind": "y", "value": None}]
    assert where(table, kind="y") == table[1:]
    assert number(table[1], "value") == 2.5
    with pytest.raises(TypeError, match="'value'"):
        number(table[2], "value")


def test_the_manifest_comes_back(tmp_path: Path) -> None:
    ABOUT.write(tmp_path)
    assert read_manifest(tmp_path) == ABOUT

"""Data goes one way: a release is checked once, its cost is computed once, and its manifest is built once."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privacygames as pg
from privacygames.tables import apply, apply_files, manifest, release_plan

AGES = pg.Numbers(range(20, 30), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.5)
DATA = {"id": [1, 2, 3], "who": ["a", "a", "b"], "age": [20, 25, 29]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each step of a release runs."""
    counts: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        original = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, call)

    counted(release_plan, "Manifest")
    counted(release_plan, "column_rules")
    counted(release_plan, "resolve_identity")
    counted(release_plan, "charge_of")
    counted(manifest, "describe_rule")
    return counts


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, lambda data: pl.DataFrame(data).lazy()])
@pytest.mark.parametrize("user", ["who", None])
def test_a_table_is_released_in_one_pass(calls: Counter[str], make: Any, user: str | None) -> None:
    _, result = apply(make(DATA), {"age": AGE}, key_columns="id", user=user)
    assert dict(calls) == {"Manifest": 1, "column_rules": 1, "resolve_identity": 1, "charge_of": 1}
    assert result.rows_out == 3


def test_files_are_released_in_one_pass(calls: Counter[str], tmp_path: Path) -> None:
    pd.DataFrame(DATA).to_csv(tmp_path / "in.csv", index=False)
    apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE}, key_columns="id", user="who")
    assert {name: calls[name] for name in ("Manifest", "column_rules", "resolve_identity", "charge_of")} == {
        "Manifest": 1,
        "column_rules": 1,
        "resolve_identity": 1,
        "charge_of": 1,
    }

"""Estimates of memory respect what a container may use."""

from pathlib import Path

import pytest

import privacygames as pg
from privacygames.solvers import memory


def test_a_container_has_less_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = memory.available_gigabytes()
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "LIMITS", (str(limit), str(tmp_path / "none")))
    limit.write_text("max\n")
    assert memory.available_gigabytes() >= machine
    limit.write_text(f"{64 * 2**20}\n")
    assert memory.available_gigabytes() == 1 / 16
    with pytest.raises(pg.TooLarge, match=r"this machine has 0") as caught:
        pg.design(pg.Problem(pg.Prior.uniform(pg.Grid(15, 15)), cost="euclidean"), epsilon=1.0)
    assert caught.value.status is pg.Status.TOO_LARGE

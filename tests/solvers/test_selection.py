"""Where the automatic choice solves: on the host, on a GPU where there is one and it pays, or as it is told."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.solvers import choose, selection, use_device
from privacygames.threads import DEVICE_VARIABLE

NO_GPU = find_spec("torch") is None

if not NO_GPU:
    import torch

    NO_GPU = not torch.cuda.is_available()

BOUNDS = pg.Bounds(epsilon=1.0)


def grid(side: int) -> pg.Problem:
    return pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost="euclidean")


@pytest.mark.parametrize(("columns", "rows", "blocks"), [(2, 2, False), (3, 2, False), (4, 2, True), (4, 3, True)])
def test_highs_solves_only_the_smallest_problems(columns: int, rows: int, blocks: bool) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(columns, rows)), cost="euclidean")
    assert isinstance(choose(problem, BOUNDS), pg.Interior) is blocks
    name = pg.design(problem, epsilon=1.0).certificate.provenance.solver
    assert name.startswith("blocks" if blocks else "HiGHS")


@pytest.fixture(autouse=True)
def told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "auto")  # what a test sets is undone
    monkeypatch.setenv("PRIVACYGAMES_THREADS", "1")


@pytest.mark.parametrize(("side", "gpu", "device"), [(7, True, "host"), (15, True, "cuda"), (15, False, "host")])
def test_a_gpu_where_it_is_here_and_pays(side: int, gpu: bool, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def interior(device: str) -> pg.Interior:
        made.append(device)
        return pg.Interior()

    monkeypatch.setattr(selection, "gpu_fits", lambda _: gpu)
    monkeypatch.setattr(selection, "Interior", interior)
    choose(grid(side), BOUNDS)
    assert made == [device]


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: pip install 'privacygames[gpu]'")
def test_a_device_that_was_told() -> None:
    use_device("cpu")
    assert choose(grid(6), BOUNDS) == pg.Interior(device="cpu")
    assert ", on cpu" in pg.design(grid(5), epsilon=1.0).certificate.provenance.solver
    use_device("host")
    assert choose(grid(6), BOUNDS) == pg.Interior()
    use_device("auto")
    assert choose(grid(6), BOUNDS) == pg.Interior()


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: pip install 'privacygames[gpu]'")
def test_a_fleet_on_a_device(tmp_path: Path) -> None:
    people = {"a": pg.Prior.from_counts(pg.Grid(5, 5), range(1, 26)), "b": pg.Prior.uniform(pg.Grid(5, 5))}
    made = pg.fleet.design(people, out=tmp_path / "there", epsilon=1.0, jobs=1, device="cpu")
    plain = pg.fleet.design(people, out=tmp_path / "here", epsilon=1.0, jobs=1)
    for name in people:
        ours, theirs = made[name].certificate, plain[name].certificate
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-6)
        assert ", on cpu" in ours.provenance.solver
        assert ", on" not in theirs.provenance.solver
    with pytest.raises(pg.InvalidProblem, match="device is 'gpu'"):
        pg.fleet.design(people, out=tmp_path / "nowhere", epsilon=1.0, device="gpu")
    assert os.environ[DEVICE_VARIABLE] == "auto"


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("device", ["cuda", "gpu"])
def test_the_command_line_names_what_is_missing(device: str, tmp_path: Path) -> None:
    problem = tmp_path / "problem.toml"
    problem.write_text("[grid]\ncolumns = 3\nrows = 3\n[bounds]\nepsilon = 1.0\n")
    out = tmp_path / "found.pgm"
    found = CliRunner().invoke(app, ["design", str(problem), "--out", str(out), "--device", device])
    assert found.exit_code != 0
    assert "device" in found.output
    assert not out.exists()


class FakeCuda:
    """As much of PyTorch as is asked whether a GPU has room."""

    def __init__(self, free: int) -> None:
        self.cuda, self.free = self, free

    def is_available(self) -> bool:
        return self.free > 0

    def device(self, name: str) -> str:
        return name


@pytest.mark.parametrize(("free", "fits"), [(0, False), (10**9, False), (10**10, True)])
def test_a_gpu_needs_room(free: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", FakeCuda(free))
    monkeypatch.setattr(selection, "find_spec", lambda _: True)
    monkeypatch.setattr(selection, "device_free", lambda _: (free, free))
    assert selection.gpu_fits(10**9) is fits


def test_a_pytorch_that_does_not_work_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not selection.gpu_fits(1)

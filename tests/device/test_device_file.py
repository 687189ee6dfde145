"""Files for devices: what they hold and what not, what they disclose, and which mechanisms and files are refused."""

import json
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import privacygames as pg
from device.cases import BOX, mechanisms, secrets_of
from privacygames.cli.app import app

AGES = pg.Numbers(range(18, 24), unit="years")
COUNTS = [5, 1, 2, 9, 4, 7]


def ages(counts: list[int], **measures: Any) -> pg.Mechanism:
    return pg.design(pg.Problem(pg.Prior.from_counts(AGES, counts), cost="absolute", **measures), epsilon=0.5)


@pytest.mark.parametrize("name", list(mechanisms()))
def test_a_file_holds_the_same_weights_and_guarantee(name: str, tmp_path: Path) -> None:
    mechanism = mechanisms()[name]
    pg.device.write(tmp_path / "file.pgd", mechanism)
    on_device = pg.device.read(tmp_path / "file.pgd")
    assert np.array_equal(on_device.weights, mechanism.weights)
    assert (on_device.epsilon, on_device.within) == (mechanism.bounds.epsilon, mechanism.bounds.within)
    assert on_device.size == (tmp_path / "file.pgd").stat().st_size
    assert (tmp_path / "file.pgd").stat().st_mode & 0o077 == 0
    assert len(on_device.outputs) == len(mechanism.observables)
    for secret in secrets_of(name, on_device):
        assert on_device.draw(secret) in on_device.outputs


@pytest.fixture(scope="module")
def of_ages() -> pg.device.DeviceMechanism:
    return pg.device.decode(pg.device.encode(ages(COUNTS)))


@given(uniform=st.integers(0, 2**62 - 1))
def test_a_draw_is_the_one_of_the_weights(of_ages: pg.device.DeviceMechanism, uniform: int) -> None:
    word = (uniform << 2).to_bytes(8, "little")
    cumulative = np.cumsum(of_ages.weights[3]).tolist()
    expected = next(index for index, total in enumerate(cumulative) if total > uniform)
    assert of_ages.draw(21, lambda count: word[:count]).index == expected


def test_neither_prior_nor_cost_is_in_a_file() -> None:
    grid = pg.Grid.over(BOX, columns=3, rows=2)
    mechanism = pg.design(pg.Problem(pg.Prior.from_counts(grid, COUNTS), cost="euclidean"), epsilon=0.5)
    content = pg.device.encode(mechanism)
    own = [*mechanism.problem.prior.probabilities.tolist(), mechanism.certificate.cost, *map(float, COUNTS)]
    assert all(struct.pack("<d", number) not in content for number in own)
    assert pg.device.encode(pg.PublicMechanism.of(mechanism)) == content


def test_a_file_is_private_unless_its_mechanism_is_the_same_for_everybody() -> None:
    uniform, grid = [1] * 6, pg.Grid.over(BOX, columns=3, rows=2)
    elsewhere = pg.Grid.over((6.501, 46.44, 6.74, 46.6), columns=3, rows=2)
    told = [
        pg.device.disclosure_of(each).is_private
        for each in (
            ages(uniform),
            ages(COUNTS),
            ages(uniform, distinguishability=AGES.distance("absolute") * 2),
            pg.PublicMechanism.of(ages(uniform)),
            pg.design(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), epsilon=0.5),
            pg.design(pg.Problem(pg.Prior.uniform(elsewhere), cost="euclidean"), epsilon=0.5),
        )
    ]
    assert told == [False, True, True, True, False, True]
    first_lines = pg.device.encode(ages(COUNTS)).split(b"\n")[:2]
    assert first_lines == [b"privacygames device 1", b"private: computed from the prior"]


def test_a_design_for_points_is_private_unless_its_prior_is_uniform() -> None:
    area = pg.Area.over((6.5, 46.44, 6.52, 46.46))
    outputs = pg.Grid.over((6.5, 46.44, 6.52, 46.46), columns=2, rows=2)
    places = pg.PointPrior(area, [(6.505, 46.45), (6.515, 46.451)])
    told = []
    for prior in (pg.PointPrior.uniform(area, points=4), places):
        mechanism = pg.design(pg.PointProblem(prior, outputs, mesh=pg.points.Mesh(area, 1, 1)), epsilon=0.5)
        told.append(pg.device.disclosure_of(mechanism).is_private)
    assert told == [False, True]


def test_mechanisms_that_no_device_can_hold_are_refused() -> None:
    problem = pg.Problem(pg.Prior.uniform(AGES))
    with pytest.raises(pg.InvalidProblem, match="guarantees none"):
        pg.device.encode(pg.design(problem, distortion=0.3))
    mixed = pg.Categories(["a", 1, frozenset("b")])
    with pytest.raises(pg.InvalidProblem, match="all numbers, all texts or all sets"):
        pg.device.encode(pg.design(pg.Problem(pg.Prior.uniform(mixed)), epsilon=1.0))
    far = pg.Space.from_distances("ab", [[0, 1e13], [1e13, 0]])
    with pytest.raises(pg.InvalidProblem, match="rescale"):
        pg.device.encode(pg.baselines.uniform(pg.Problem(pg.Prior.uniform(far), cost="hamming")))
    long = pg.Categories(["a", "b" * 1001])
    with pytest.raises(pg.TooLarge, match="1000"):
        pg.device.encode(pg.design(pg.Problem(pg.Prior.uniform(long)), epsilon=1.0))


@pytest.mark.parametrize("name", ["grid", "points"])
def test_a_damaged_file_is_refused_and_none_of_it_repeated(name: str, tmp_path: Path) -> None:
    content = pg.device.encode(mechanisms()[name])
    for damaged in (b"", content[:-1], content + b"\0", content[:200] + b"?" + content[201:], b"privacygames" * 9):
        with pytest.raises(pg.InvalidFile) as raised:
            pg.device.decode(damaged)
        assert "?" not in str(raised.value)
    with pytest.raises(pg.UnreadableFile):
        pg.device.read(tmp_path / "none.pgd")


def test_a_smaller_epsilon_is_not_believed() -> None:
    content = bytearray(pg.device.encode(ages(COUNTS))[:-32])
    at = content.index(b"\n", content.index(b"\n") + 1) + 3
    content[at : at + 8] = struct.pack("<d", 0.25)
    with pytest.raises(pg.GuaranteeViolated):
        pg.device.decode(bytes(content) + sha256(content).digest())


def test_the_command_states_size_and_disclosure(tmp_path: Path) -> None:
    ages(COUNTS).save(tmp_path / "ages.pgm")
    out = tmp_path / "ages.pgd"
    run = CliRunner()
    done = run.invoke(app, ["device", "export", str(tmp_path / "ages.pgm"), "--out", str(out), "--json"])
    told = json.loads(done.stdout)
    assert told["bytes"] == out.stat().st_size
    assert told["disclosure"] == "private: computed from the prior"
    assert run.invoke(app, ["device", "export", str(tmp_path / "ages.pgm"), "--out", str(out)]).exit_code == 3
    verified = run.invoke(app, ["device", "verify", str(out), "--json"])
    assert json.loads(verified.stdout)["digest"] == told["digest"]
    out.write_bytes(out.read_bytes()[:-1])
    assert run.invoke(app, ["device", "verify", str(out)]).exit_code == 7


def test_the_package_has_the_version_of_the_library() -> None:
    package = json.loads((Path(__file__).parents[2] / "device" / "package.json").read_text())
    assert package["version"] == pg.__version__
    assert package["devDependencies"]
    assert "dependencies" not in package
    assert all(version[0].isdigit() for version in package["devDependencies"].values())  # pinned

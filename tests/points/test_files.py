"""Files of mechanisms for points, read like all others; positions by the names of their coordinates."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privacygames as pg
from privacygames.mechanism_files import load_any, load_bytes, load_finite

BOX = (6.55, 46.50, 6.68, 46.56)
STATIONS = [(6.58, 46.52), (6.63, 46.54)]  # longitude, latitude


@pytest.fixture(scope="module")
def mechanism() -> pg.PointMechanism:
    area = pg.Area.over(BOX)
    return pg.design(pg.PointProblem(pg.PointPrior(area, STATIONS), STATIONS), epsilon=0.5)


def test_one_entry_reads_every_kind(mechanism: pg.PointMechanism, tmp_path: Path) -> None:
    mechanism.save(tmp_path / "points.pgm")
    loaded = pg.load(tmp_path / "points.pgm", pg.PointMechanism)
    assert isinstance(loaded, pg.PointMechanism)
    assert (loaded.digest, loaded.certificate) == (mechanism.digest, mechanism.certificate)
    assert pg.verify(tmp_path / "points.pgm") == mechanism.certificate
    assert isinstance(load_bytes(mechanism.to_bytes()), pg.PointMechanism)
    assert isinstance(load_any(tmp_path / "points.pgm"), pg.PointMechanism)
    with pytest.raises(pg.InvalidProblem, match="for cells or labels only"):
        load_finite(tmp_path / "points.pgm")
    with pytest.raises(pg.InvalidFile, match=r"read it with load$"):
        pg.load_public(tmp_path / "points.pgm")
    with pytest.raises(pg.TooLarge, match="at most 3 are taken here"):
        load_bytes(mechanism.to_bytes(), max_size=3)


def test_a_public_file_has_no_prior(mechanism: pg.PointMechanism, tmp_path: Path) -> None:
    public = pg.points.PublicPointMechanism.of(mechanism)
    public.save(tmp_path / "public.pgm")
    loaded = pg.load_public(tmp_path / "public.pgm", pg.points.PublicPointMechanism)
    assert isinstance(loaded, pg.points.PublicPointMechanism)
    assert isinstance(load_any(tmp_path / "public.pgm"), pg.points.PublicPointMechanism)
    assert (loaded.digest, loaded.certificate) == (public.digest, public.certificate)
    assert "0.5 per km between any two points" in str(loaded.certificate)
    with pytest.raises(pg.InvalidFile, match="load_public"):
        pg.load(tmp_path / "public.pgm")
    assert b'"prior"' in (tmp_path / "public.pgm").read_bytes()  # named as withheld
    assert mechanism.problem.prior.probabilities.tobytes() not in (tmp_path / "public.pgm").read_bytes()


def test_labels_are_read_without_the_package_of_points(tmp_path: Path) -> None:
    pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30])))).save(tmp_path / "m.pgm")
    code = "import sys, privacygames as pg; pg.load(sys.argv[1]); print('privacygames.points' in sys.modules)"
    command = [sys.executable, "-c", code, str(tmp_path / "m.pgm")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("public", [False, True])
def test_positions_have_names(mechanism: pg.PointMechanism, public: bool) -> None:
    sampler = pg.points.PublicPointMechanism.of(mechanism) if public else mechanism
    for seed in range(20):
        named = sampler.sample_at(latitude=46.53, longitude=6.6, generator=np.random.default_rng(seed))
        assert named == sampler.sample((6.6, 46.53), np.random.default_rng(seed))
        assert (named.longitude, named.latitude) == tuple(named)
        assert BOX[1] <= named.latitude <= BOX[3]
    assert sampler.sample_at(latitude=-33.87, longitude=151.21).latitude > 46  # moved to the area


@pytest.mark.parametrize(
    ("latitude", "longitude", "message"),
    [
        (6.6, 46.53, "inside with latitude and longitude swapped"),
        (float("nan"), 6.6, "latitude must be a number of degrees, from -90 to 90"),
        (116.4, 39.9, "latitude must be a number of degrees, from -90 to 90"),
        (46.53, 181.0, "longitude must be a number of degrees, from -180 to 180"),
        ("46.53", 6.6, "latitude must be a number"),
        (None, 6.6, "latitude must be a number"),
        (True, 6.6, "latitude must be a number"),
    ],
)
def test_wrong_positions_are_named_and_not_shown(
    mechanism: pg.PointMechanism, latitude: float, longitude: float, message: str
) -> None:
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        mechanism.sample_at(latitude=latitude, longitude=longitude)
    assert not any(text in str(caught.value) for text in ("46.53", "6.6", "116.4", "39.9", "181"))


def test_positions_in_degrees_are_for_areas_over_degrees() -> None:
    town = pg.PointProblem(pg.PointPrior(pg.Area(2.0, 1.0), [(0.5, 0.5)]), [(0.5, 0.5), (1.5, 0.5)])
    hours = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 24.0), [8.5]), [8.0, 16.0])
    for problem, coordinates in ((town, "kilometres"), (hours, "numbers")):
        with pytest.raises(pg.InvalidProblem, match=f"takes degrees.*{coordinates}.*use sample"):
            pg.design(problem, epsilon=1.0).sample_at(latitude=46.53, longitude=6.6)


def test_a_design_whose_time_is_up_is_still_verified() -> None:
    """The time limit had passed before the lower bound was begun, which was an error about time_limit."""
    problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    certificate = pg.design(problem, epsilon=0.5, time_limit=1e-6).certificate
    assert (certificate.bound, certificate.bounds.epsilon) == (None, 0.5)


def test_the_kind_of_a_file_is_said_by_who_reads_it(mechanism: pg.PointMechanism, tmp_path: Path) -> None:
    mechanism.save(tmp_path / "points.pgm")
    with pytest.raises(pg.InvalidProblem, match=r"holds a PointMechanism, not a Mechanism: pass pg\.PointMechanism"):
        pg.load(tmp_path / "points.pgm")

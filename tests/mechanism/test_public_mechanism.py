"""Mechanisms without prior and cost: the guarantee of ε is verified, and nothing else is disclosed."""

from pathlib import Path

import numpy as np
import pytest

import privacygames as pg
from privacygames.mechanism import read_container, write_container

GRID = pg.Grid(3, 2)
PRIOR = pg.Prior.from_counts(GRID, [5, 1, 0, 2, 9, 1])
MECHANISM = pg.design(pg.Problem(PRIOR), epsilon=1.0, distortion=0.4)


def test_a_file_holds_neither_prior_nor_cost(tmp_path: Path) -> None:
    public = pg.PublicMechanism.of(MECHANISM)
    public.save(tmp_path / "public.pgm")
    header, arrays = read_container(tmp_path / "public.pgm")
    assert set(arrays) == {"weights", "distinguishability"}
    assert header["promises"] == {"epsilon": 1.0, "within": None}
    content = (tmp_path / "public.pgm").read_bytes()
    assert PRIOR.probabilities.tobytes() not in content
    assert MECHANISM.certificate.hashes.prior.encode() not in content
    again = pg.load_public(tmp_path / "public.pgm")
    assert isinstance(again, pg.PublicMechanism)
    assert again.digest == public.digest
    assert np.array_equal(again.weights, MECHANISM.weights)
    assert again.secrets == GRID
    assert "cannot be verified" in str(again.certificate)
    assert again.certificate.largest_ratio <= 1
    assert again.sample("cell-4") in GRID.labels


def test_weights_that_break_the_guarantee_are_refused(tmp_path: Path) -> None:
    pg.PublicMechanism.of(MECHANISM).save(tmp_path / "public.pgm")
    header, arrays = read_container(tmp_path / "public.pgm")
    header.pop("arrays")
    header.pop("format")
    weights = arrays["weights"].copy()
    row = weights[0]
    row[:] = 0
    row[0] = 2**62
    write_container(tmp_path / "broken.pgm", header, {**arrays, "weights": weights})
    with pytest.raises(pg.GuaranteeViolated):
        pg.load_public(tmp_path / "broken.pgm")


def test_each_kind_of_file_names_its_reader(tmp_path: Path) -> None:
    pg.PublicMechanism.of(MECHANISM).save(tmp_path / "public.pgm")
    MECHANISM.save(tmp_path / "whole.pgm")
    with pytest.raises(pg.InvalidFile, match="load_public"):
        pg.load(tmp_path / "public.pgm")
    with pytest.raises(pg.InvalidFile, match="read it with load"):
        pg.load_public(tmp_path / "whole.pgm")


@pytest.mark.parametrize(
    "change", [{"bits": "62"}, {"secrets": {"kind": "grid", "columns": 9, "rows": 9}}, {"promises": {}}]
)
def test_a_file_that_does_not_fit_together_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    pg.PublicMechanism.of(MECHANISM).save(tmp_path / "public.pgm")
    header, arrays = read_container(tmp_path / "public.pgm")
    header = {key: value for key, value in header.items() if key not in ("arrays", "format")} | change
    write_container(tmp_path / "other.pgm", header, arrays)
    with pytest.raises(pg.InvalidFile):
        pg.load_public(tmp_path / "other.pgm")


def test_without_epsilon_nothing_is_left_to_verify() -> None:
    plain = pg.design(pg.Problem(PRIOR), distortion=0.4)
    with pytest.raises(pg.InvalidProblem, match="nothing is left to verify"):
        pg.PublicMechanism.of(plain)

"""Whom a study is about, on coarser grids, and what better informed adversaries believe of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames_study import coarsen, informed_prior, select_people
from support import priors

GRID = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
COUNTS = pg.traces.VisitCounts({"ann": {0: 3, 1: 1}, "bob": {0: 10}, "cat": {2: 4, 3: 2, 5: 1}})


def test_people_are_known_by_rank_only() -> None:
    people = select_people(COUNTS, GRID, 2)
    assert [(person.label, person.visits) for person in people] == [("user 1", 10), ("user 2", 7)]
    assert people[1].prior.probabilities == pytest.approx(np.array([0, 0, 4, 2, 0, 1]) / 7)
    assert not any(name in repr(people) for name in COUNTS.users)


def test_people_can_be_named_or_left_out_for_being_seen_in_few_cells() -> None:
    assert [person.visits for person in select_people(COUNTS, GRID, ["ann", "cat", "ann"])] == [7, 4]
    assert [person.visits for person in select_people(COUNTS, GRID, 10, cells=2)] == [7, 4]
    with pytest.raises(pg.InvalidProblem, match="4 cells"):
        select_people(COUNTS, GRID, 10, cells=4)


def test_a_coarser_prior_adds_up_blocks() -> None:
    grid = pg.Grid(columns=4, rows=6, width=4.0, height=6.0)
    counts = np.arange(24)
    coarse = coarsen(pg.Prior.from_counts(grid, counts), most=6)
    assert isinstance(coarse.space, pg.Grid)
    assert (coarse.space.columns, coarse.space.rows) == (2, 3)
    assert (coarse.space.width, coarse.space.height) == (4.0, 6.0)
    # the south-west block holds cells 0, 1 (first row) and 4, 5 (second row)
    assert coarse.probabilities[0] == pytest.approx((0 + 1 + 4 + 5) / counts.sum())
    assert coarse.probabilities[5] == pytest.approx((18 + 19 + 22 + 23) / counts.sum())


def test_the_paper_s_grid_becomes_ten_by_five() -> None:
    prior = coarsen(pg.Prior.uniform(pg.Grid(columns=20, rows=15, width=15.0, height=8.0)), most=60)
    assert isinstance(prior.space, pg.Grid)
    assert (prior.space.columns, prior.space.rows) == (10, 5)


def test_evidence_on_the_likeliest_places() -> None:
    prior = pg.Prior(GRID, [0.5, 0.2, 0.1, 0.1, 0.1, 0.0])
    # weights 0.5·3, 0.2·3, 0.1, 0.1, 0.1, 0
    assert informed_prior(prior, 3.0, 2).probabilities == pytest.approx(np.array([1.5, 0.6, 0.1, 0.1, 0.1, 0]) / 2.4)
    assert informed_prior(prior, 1.0, 2).probabilities == pytest.approx(prior.probabilities)


@given(priors(6), st.sampled_from([1.5, 4.0, 100.0]), st.integers(1, 6))
def test_more_evidence_never_leaves_more_uncertainty(probabilities: np.ndarray, strength: float, places: int) -> None:
    prior = pg.Prior(GRID, probabilities)
    assert informed_prior(prior, strength, places).entropy() <= prior.entropy() + 1e-12

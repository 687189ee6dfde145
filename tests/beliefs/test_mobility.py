"""Mobility: chains from visits, checked strictly; a belief moves by the right power."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import privacygames as pg
from sharing import chains
from support import Array, priors

SPACE = pg.Categories("abc")
CHAIN = np.array([[0.5, 0.5, 0.0], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])


@given(chains(3), priors(3), st.integers(0, 40))
def test_elapsed_time_moves_a_belief_by_the_right_power(chain: Array, belief: Array, steps: int) -> None:
    moved = pg.Mobility(SPACE, chain).advance(pg.Prior(SPACE, belief), steps)
    by_hand = belief
    for _ in range(steps):
        by_hand = np.array([sum(by_hand[x] * chain[x, y] for x in range(3)) for y in range(3)])
    assert moved.probabilities == pytest.approx(by_hand, abs=1e-12)


def test_many_steps_in_hours_and_sparse_matrices_agree_with_small_steps() -> None:
    grid = pg.Grid(10, 10)
    trace = [f"cell-{cell}" for cell in np.random.default_rng(1).integers(0, 100, 400)]
    mobility = pg.Mobility.from_visits(grid, trace, smoothing=0.5, toward="neighbours")
    assert sparse.issparse(mobility.matrices[0])
    belief = pg.Prior.uniform(grid)
    slow = belief
    for _ in range(100):
        slow = mobility.advance(slow)
    assert mobility.advance(belief, 100).probabilities == pytest.approx(slow.probabilities, rel=1e-9)
    dense = mobility.matrices[0].toarray()
    assert mobility == pg.Mobility(grid, dense)
    assert mobility.transition(0, 7) == pytest.approx(np.linalg.matrix_power(dense, 7))


def test_by_the_hour_of_the_day() -> None:
    stay, swap = np.eye(2), np.eye(2)[::-1]
    matrices = [swap if hour == 3 else stay for hour in range(24)]
    zurich = pg.Mobility(pg.Categories("ab"), matrices, step=1800, timezone="Europe/Zurich")
    known = pg.Prior(pg.Categories("ab"), [1, 0])
    at = datetime(2024, 1, 1, 1, 0, tzinfo=UTC)  # 2 o'clock in Zurich: the next two steps stay, the third swaps
    assert zurich.advance(known, 2, start=at)["a"] == 1
    assert zurich.advance(known, 3, start=at)["a"] == 0
    assert zurich.advance(known, 4, start=at)["a"] == 1
    assert zurich.transition(zurich.slot(at), 3) == pytest.approx(swap)
    with pytest.raises(pg.InvalidProblem, match="give start"):
        zurich.advance(known)
    with pytest.raises(pg.InvalidProblem, match="are times in seconds"):
        zurich.advance(known, 10**9, start=at)
    with pytest.raises(pg.InvalidProblem, match="outside the calendar"):
        zurich.advance(known, 1, start=-1e11)
    with pytest.raises(pg.InvalidProblem, match="milliseconds"):
        zurich.advance(known, 1, start=at.timestamp() * 1000)


def test_from_visits_counts_moves_and_smooths_rows() -> None:
    trace = ["a", "b", "b", None, "c", "a", "b"]
    plain = pg.Mobility.from_visits(SPACE, trace, smoothing=0.0).matrices[0]
    assert plain == pytest.approx(np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0]]))
    smooth = pg.Mobility.from_visits(SPACE, trace, smoothing=2.0).matrices[0]
    prior = np.array([2, 3, 1]) / 6
    assert smooth[0] == pytest.approx((np.array([0, 2, 0]) + 2 * prior) / 4)
    unseen = pg.Mobility.from_visits(SPACE, ["a", "a"], smoothing=0.0).matrices[0]
    assert unseen[1] == pytest.approx([1, 0, 0])  # what smoothing tends to
    near = pg.Mobility.from_visits(pg.Grid(3, 1, 3.0, 1.0), ["cell-0"], smoothing=1, toward="neighbours").matrices[0]
    assert near == pytest.approx(np.array([[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 2, 1 / 2]]))


def test_from_real_visits_has_the_slots_as_steps() -> None:
    visits = pg.traces.synthetic(1)
    grid = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=6, rows=4)
    mobility = pg.Mobility.from_visits(grid, visits, by_hour=True, smoothing=1.0)
    assert mobility.step == visits.slot
    assert mobility.by_hour
    moves = visits.transitions(grid, visits.users[0])
    day = pg.Mobility.from_visits(grid, visits, smoothing=0.0).matrices[0]
    busiest = int(moves.sum(axis=1).argmax())
    assert day[busiest] == pytest.approx(moves[busiest] / moves[busiest].sum())


def test_still_is_still() -> None:
    still = pg.Mobility.still(SPACE)
    belief = pg.Prior(SPACE, [0.2, 0.3, 0.5])
    assert still.is_still
    assert still.advance(belief, 10**9) == belief
    assert not pg.Mobility(SPACE, CHAIN).is_still


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (CHAIN[:2], "shape"),
        (CHAIN * 2, "row 0 sums to 2"),
        (-CHAIN, "negative"),
        (np.full((3, 3), np.nan), "NaN"),
        ([CHAIN, CHAIN], "24"),
        ([CHAIN] * 24, "step"),
        ("x", "not an array"),
        (sparse.csr_matrix(CHAIN * 2), "row 0 sums to 2"),
        (sparse.csr_matrix(-CHAIN), "negative"),
    ],
)
def test_wrong_matrices_are_refused(matrix: object, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.Mobility(SPACE, matrix)


def test_times() -> None:
    mobility = pg.Mobility(SPACE, CHAIN, step=600)
    assert mobility.slot(1199) == 1
    assert mobility.slot(datetime(1970, 1, 1, 0, 20, tzinfo=UTC)) == 2
    with pytest.raises(pg.InvalidProblem, match="time zone"):
        mobility.slot(datetime(1970, 1, 1))
    with pytest.raises(pg.InvalidProblem, match="counted in steps"):
        pg.Mobility(SPACE, CHAIN).slot(datetime(1970, 1, 1, tzinfo=UTC))
    for odd in (float("nan"), float("inf"), "now", None, True):
        with pytest.raises(pg.InvalidProblem, match="a time must be"):
            mobility.slot(odd)  # type: ignore[arg-type]

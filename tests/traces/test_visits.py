"""What visits and counts say about cells, priors and moves."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from support import shared

BOX = (6.0, 46.0, 7.0, 47.0)
GRID = pg.Grid.over(BOX, columns=2, rows=2)


def visits_of(places: str, times: list[int], slot: int | None = 600) -> pg.traces.Visits:
    """One user's visits: a, b, c, d are the four cells, x is elsewhere."""
    where = {"a": (46.2, 6.2), "b": (46.2, 6.8), "c": (46.8, 6.2), "d": (46.8, 6.8), "x": (10.0, 10.0)}
    return pg.traces.Visits(
        user=np.zeros(len(places), dtype=np.int64),
        time=np.array(times),
        latitude=np.array([where[place][0] for place in places]),
        longitude=np.array([where[place][1] for place in places]),
        users=("anna",),
        slot=slot,
    )


def test_counts_and_prior() -> None:
    visits = visits_of("aabxd", [0, 600, 1200, 1800, 2400])
    assert visits.counts(GRID, "anna").tolist() == [2, 1, 0, 1]
    assert visits.prior(GRID, "anna").probabilities.tolist() == [0.5, 0.25, 0.0, 0.25]
    assert visits.prior(GRID, "anna", smoothing=1.0).probabilities.tolist() == [3 / 8, 2 / 8, 1 / 8, 2 / 8]
    with pytest.raises(pg.InvalidProblem, match=r"Grid.over"):
        visits.counts(pg.Grid(2, 2), "anna")
    with pytest.raises(pg.UnknownLabel) as caught:
        visits.prior(GRID, "a secret name")
    assert "secret" not in str(caught.value)
    with pytest.raises(pg.InvalidProblem, match="no visits to estimate a prior from"):
        visits_of("x", [0]).prior(GRID, "anna")


def test_transitions_are_between_neighbouring_visits_only() -> None:
    visits = visits_of("aabxdca", [0, 600, 1500, 2100, 2700, 3601, 4300])
    moves = np.zeros((4, 4), dtype=int)
    moves[0, 0] = moves[0, 1] = moves[2, 0] = 1  # a→a, a→b (900 s apart), c→a; d→c is 901 s apart
    assert visits.transitions(GRID, "anna").tolist() == moves.tolist()
    moves[3, 2] = 1
    assert visits.transitions(GRID, "anna", within=901).tolist() == moves.tolist()
    with pytest.raises(pg.InvalidProblem, match="no slots"):
        visits_of("ab", [0, 1], slot=None).transitions(GRID, "anna")
    assert visits_of("ab", [0, 1], slot=None).transitions(GRID, "anna", within=1)[0, 1] == 1
    with pytest.raises(pg.InvalidProblem, match="within is 0"):
        visits.transitions(GRID, "anna", within=0)
    with pytest.raises(pg.InvalidProblem, match="coarser grid"):
        visits.transitions(pg.Grid.over(BOX, columns=200, rows=200), "anna")


def test_one_users_moves_do_not_run_into_the_next() -> None:
    both = pg.traces.Visits(
        user=np.array([0, 0, 1]),
        time=np.array([0, 600, 601]),
        latitude=np.array([46.2, 46.2, 46.8]),
        longitude=np.array([6.2, 6.2, 6.8]),
        users=("anna", "ben"),
        slot=600,
    )
    assert both.transitions(GRID, "anna").sum() == 1
    assert both.transitions(GRID, "ben").sum() == 0
    assert both.busiest(5, GRID) == ["anna", "ben"]
    assert both.busiest(1, GRID) == ["anna"]
    assert both.busiest(5, GRID, cells=2) == []
    with pytest.raises(pg.InvalidProblem, match="k is -1"):
        both.busiest(-1, GRID)


def test_visits_cannot_be_changed_nor_made_up_wrongly() -> None:
    visits = visits_of("ab", [0, 600])
    with pytest.raises(ValueError, match="read-only"):
        visits.latitude[0] = 0.0
    with pytest.raises(TypeError):
        visits.skipped["same slot"] = 1  # type: ignore[index]
    with pytest.raises(pg.InvalidProblem, match="sorted"):
        visits_of("ab", [600, 0])
    with pytest.raises(pg.InvalidProblem, match="same length"):
        visits_of("ab", [0])
    with pytest.raises(pg.InvalidProblem, match="positions in users"):
        pg.traces.Visits(np.array([1]), np.array([0]), np.array([0.0]), np.array([0.0]), users=("anna",))


def test_counts_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv.gz"
    path.write_bytes(gzip.compress(b"user,cell,visits,filled\nb,0,3,5\na,3,1,1\nb,0,2,2\nb,2,0,9\n\na,0,1,1\n"))
    counts = pg.traces.read_counts(path)
    assert counts.users == ("a", "b")
    assert counts.counts(GRID, "b").tolist() == [5, 0, 0, 0]
    assert counts.prior(GRID, "a").probabilities.tolist() == [0.5, 0, 0, 0.5]
    assert counts.prior(pg.Grid(2, 2), "a")["cell-3"] == 0.5
    assert counts.busiest(2, GRID) == ["b", "a"]
    assert counts.busiest(2, GRID, cells=2) == ["a"]
    assert pg.traces.read_counts(path, visits="filled").counts(GRID, "b").tolist() == [7, 0, 9, 0]
    assert repr(counts) == "VisitCounts(2 users)"
    with pytest.raises(pg.InvalidProblem, match="beyond the 2 of this grid"):
        counts.counts(pg.Grid(2, 1), "a")
    with pytest.raises(pg.UnknownLabel, match="none of the 2 users"):
        counts.counts(GRID, "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,cell,visits\na,3,1\na,3\n", "line 3 has 2 cells"),
        ("user,cell,visits\na,3,-71\n", "line 2: needs a user, and whole numbers"),
        ("user,cell,visits\n,3,71\n", "line 2: needs a user"),
        ("user,cell,visits\na,3.5,71\n", "line 2: needs a user"),
        ("user,place,visits\n", "no column 'cell'; it has user, place, visits"),
        ("a,3,71\n", "starts with data"),
        ("a,b,0.71\n", "starts with data"),
        ("a,b,71.5 north\n", "no column 'user'; it has what does not look like names"),
        ("user,cell,visits\n", "holds no counts"),
        ("", "holds no counts"),
    ],
)
def test_counts_are_read_whole_or_not_at_all(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        pg.traces.read_counts(path)
    assert "71" not in str(caught.value)
    with pytest.raises(pg.InvalidProblem, match=r"gone.csv cannot be read: there is no such file"):
        pg.traces.read_counts(tmp_path / "gone.csv")


def test_points_and_counts_of_real_people_agree() -> None:
    """The same people as points, one for each ten minutes of the local clock, and as counts made elsewhere."""
    box = tuple(json.loads(shared("data", "windows.json").read_text())["usp_saopaulo"]["bounds_west_south_east_north"])
    grid = pg.Grid.over(box, columns=20, rows=15)
    counted = pg.traces.read_counts(shared("data", "usp_saopaulo_cell_counts.csv"))
    points = shared("data", "usp_saopaulo_window.csv")
    visits = pg.traces.read(points, format="table", window=box, timezone="America/Sao_Paulo")
    assert visits.users == counted.users
    assert len(visits) == visits.rows  # nothing outside, and never two in a slot
    moved = sum(np.abs(visits.counts(grid, user) - counted.counts(grid, user)).sum() for user in counted.users)
    assert moved <= 2  # one point's coordinates were rounded across an edge


def test_people_with_little_data_borrow_from_everybody() -> None:
    grid = pg.Grid(2, 2)
    counts = pg.traces.VisitCounts({"ann": {0: 90, 1: 10}, "bob": {3: 4}, "eve": {2: 1}})
    assert counts.pooled_prior(grid).probabilities == pytest.approx(np.array([0.9, 0.1, 1.0, 1.0]) / 3)
    assert counts.pooled_prior(grid, without="ann").probabilities.tolist() == [0.0, 0.0, 0.5, 0.5]
    borrowed = counts.prior(grid, "eve", pooling=3.0).probabilities  # one visit of her own, three of ann's and bob's
    assert borrowed == pytest.approx((np.array([0, 0, 1, 0]) + 3 * np.array([0.45, 0.05, 0.0, 0.5])) / 4)
    assert counts.prior(grid, "eve") == counts.prior(grid, "eve", pooling=0.0)
    with pytest.raises(pg.InvalidProblem, match="pooling is -1"):
        counts.prior(grid, "eve", pooling=-1)
    with pytest.raises(pg.InvalidProblem, match="no other user has visits"):
        pg.traces.VisitCounts({"ann": {0: 1}}).prior(grid, "ann", pooling=1.0)


def test_visits_outside_are_dropped_moved_or_refused() -> None:
    grid = pg.Grid.over((6.5, 46.5, 6.7, 46.6), columns=2, rows=1)
    visits = pg.traces.Visits(
        user=np.zeros(3, dtype=np.int64),
        time=np.arange(3),
        latitude=np.array([46.55, 46.55, 46.9]),
        longitude=np.array([6.55, 6.65, 6.9]),
        users=("ann",),
    )
    assert visits.counts(grid, "ann").tolist() == [1, 1]
    assert visits.counts(grid, "ann", outside="nearest").tolist() == [1, 2]
    assert visits.prior(grid, "ann", outside="nearest").probabilities == pytest.approx([1 / 3, 2 / 3])
    with pytest.raises(pg.InvalidProblem, match="1 of 3 points lie outside"):
        visits.counts(grid, "ann", outside="error")


def test_visits_of_some_days_and_hours() -> None:
    # 1 January 1970 was a Thursday: a on Thursday 01:00, b on Thursday 23:30, c on Saturday 12:00, d on Monday 05:00.
    hour, day = 3600, 86_400
    visits = visits_of("abcd", [hour, 23 * hour + 1800, 2 * day + 12 * hour, 4 * day + 5 * hour])
    assert visits.during(days="weekdays").counts(GRID, "anna").tolist() == [1, 1, 0, 1]
    assert visits.during(days="weekends").counts(GRID, "anna").tolist() == [0, 0, 1, 0]
    assert visits.during(days=[0, 5]).counts(GRID, "anna").tolist() == [0, 0, 1, 1]
    assert visits.during(hours=(22, 6)).counts(GRID, "anna").tolist() == [1, 1, 0, 1]
    assert visits.during(hours=(6, 22)).counts(GRID, "anna").tolist() == [0, 0, 1, 0]
    assert visits.during(days="weekdays", hours=(0, 5)).counts(GRID, "anna").tolist() == [1, 0, 0, 0]
    # In Tokyo, nine hours ahead, b is on Friday morning and c on Saturday at nine in the evening.
    assert visits.during(hours=(20, 24), zone="Asia/Tokyo").counts(GRID, "anna").tolist() == [0, 0, 1, 0]
    assert visits.during(days=[4], zone="Asia/Tokyo").counts(GRID, "anna").tolist() == [0, 1, 0, 0]
    wrong: list[dict[str, Any]] = [{"days": "mondays"}, {"days": [7]}, {"days": []}]
    wrong += [{"hours": (3, 3)}, {"hours": (0, 25)}, {"hours": 3}]
    for given in wrong:
        with pytest.raises(pg.InvalidProblem, match=r"days|hours"):
            visits.during(**given)


def test_resampled_priors_are_of_as_many_visits() -> None:
    visits = visits_of("aaab", [0, 600, 1200, 1800])
    for prior in visits.bootstrap_priors(GRID, "anna", 5, generator=np.random.default_rng(0)):
        shares = prior.probabilities * 4
        assert shares.tolist() == np.round(shares).tolist()
        assert shares[2:].tolist() == [0.0, 0.0]

"""Invented people: the same for the same seed, and like real ones in what matters."""

from datetime import UTC, datetime

import numpy as np
import pytest

import privacygames as pg

GRID = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=20, rows=15)


def test_the_window_is_as_large_as_the_papers() -> None:
    assert GRID.width == pytest.approx(15.0, rel=1e-3)
    assert GRID.height == pytest.approx(8.0, rel=1e-3)


def test_the_same_seed_gives_the_same_people_however_many() -> None:
    some, more, others = (
        pg.traces.synthetic(users, days=days, seed=seed) for users, days, seed in ((3, 10, 7), (9, 10, 7), (3, 10, 8))
    )
    mine = more.user < 3
    for name in ("user", "time", "latitude", "longitude"):
        assert getattr(some, name).tolist() == getattr(more, name)[mine].tolist()
    assert some.users == more.users[:3]
    assert some.latitude.tolist()[:20] != others.latitude.tolist()[:20]
    again = pg.traces.synthetic(3, days=10, seed=7)
    assert again.longitude.tolist() == some.longitude.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_they_go_about_like_real_people(seed: int) -> None:
    """Real ones in windows of this size: 12 to 222 cells, 1.1 to 5.7 bits, 6 to 81 % in the commonest cell."""
    visits = pg.traces.synthetic(seed=seed)
    counts = [visits.counts(GRID, user) for user in visits.users]
    cells = sorted(int(np.count_nonzero(each)) for each in counts)
    bits = [visits.prior(GRID, user).entropy() for user in visits.users]
    top = [each.max() / each.sum() for each in counts]
    assert sum(each.sum() for each in counts) == len(visits) == visits.rows  # all in the window
    assert 10 <= cells[0] <= 35
    assert 75 <= cells[-1] <= 180
    assert 2 <= np.median(bits) <= 4.5
    assert max(bits) - min(bits) > 2
    assert 0.15 <= np.median(top) <= 0.6


def test_nights_are_spent_at_home_and_weekdays_differ_from_weekends() -> None:
    visits = pg.traces.synthetic(20, seed=1)
    for user in range(20):
        mine = visits.user == user
        hour = visits.time[mine] // 3600 % 24
        weekday = np.array([datetime.fromtimestamp(second, UTC).weekday() for second in visits.time[mine]])
        cells = GRID.locate(np.stack([visits.longitude[mine], visits.latitude[mine]], axis=1))
        night = cells[(hour >= 2) & (hour < 6)]
        home = np.bincount(night).argmax()
        assert (night == home).mean() > 0.5
        office = (hour >= 9) & (hour < 16)
        noon = [np.bincount(cells[office & days], minlength=300) for days in (weekday < 5, weekday >= 5)]
        at_work, at_weekend = (each / each.sum() for each in noon)
        assert np.abs(at_work - at_weekend).sum() > 0.2


def test_ways_are_seen_and_moves_are_short() -> None:
    visits = pg.traces.synthetic(seed=2)
    assert visits.slot == 600
    assert len(set(zip(visits.user.tolist(), (visits.time // 600).tolist(), strict=True))) == len(visits)
    for user in visits.users:
        moves = visits.transitions(GRID, user)
        rows, columns = np.nonzero(moves)
        assert moves.sum() > moves.trace() > 0
        assert (
            GRID.distance("euclidean")[rows, columns].max() < 25 / 6 + 1.5
        )  # ten minutes at 25 km/h, and two cells' halves


@pytest.mark.parametrize(
    "options", [{"users": 0}, {"users": 2.5}, {"days": 0}, {"seed": -1}, {"users": 10**6}, {"window": (1, 0, 0, 1)}]
)
def test_impossible_people(options: dict[str, int]) -> None:
    with pytest.raises(pg.InvalidProblem):
        pg.traces.synthetic(**options)  # type: ignore[arg-type]

"""Time: windows are as good as the clock, and what a wrong clock does is known, refused or put right."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Memoised, Releases, timeline
from sharing import PROBLEM, STREET, WALK

FIXED = pg.design(PROBLEM, epsilon=0.7)
NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "system_time", lambda: NOW)


def hourly(ledger: Ledger | Path | None = None, **options: object) -> Releases:
    return Releases(
        PROBLEM, WALK, mechanism=FIXED, budget=Budget(0.7, every=3600), ledger=ledger, **options  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_time_ahead_of_the_clock_is_refused_and_nothing_is_written() -> None:
    releases = hourly()
    for ahead in (301.0, 86_400.0, 3e9):
        with pytest.raises(pg.InvalidProblem, match=r"ahead of this machine's clock.*clock_tolerance=None"):
            releases.release("cell-0", at=NOW + ahead)
        with pytest.raises(pg.InvalidProblem, match="ahead"):
            releases.preview(at=NOW + ahead)
    assert releases.ledger.head().release_count == 0
    assert releases.release("cell-0", at=NOW + 299.0).number == 1
    strict = hourly(clock_tolerance=0)
    with pytest.raises(pg.InvalidProblem, match="the tolerance is 0 s"):
        strict.release("cell-0", at=NOW + 1.0)
    with pytest.raises(pg.InvalidProblem, match="clock_tolerance"):
        hourly(clock_tolerance=-1)


def test_a_far_future_time_freezes_windows_until_the_clock_is_corrected(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    frozen = hourly(path, clock_tolerance=None)
    frozen.release("cell-0", at=NOW + 1e9)
    releases = hourly(path)
    for later in (0.0, 7200.0):  # stands still: hours do not pass
        with pytest.raises(pg.BudgetExceeded):
            hourly(path).release("cell-0", at=NOW + later - 7200.0)
    assert releases.ledger.correct_clock(NOW - 7000.0) == pytest.approx(1e9 + 7000)
    assert releases.ledger.correct_clock(NOW) == 0.0  # the ledger is behind: nothing to correct
    with pytest.raises(pg.BudgetExceeded):  # the charge counts as made at the correction, and no earlier
        releases.release("cell-0", at=NOW - 3400.0)
    release = releases.release("cell-0", at=NOW - 3399.0)
    assert (release.time, release.remarks) == (NOW - 3399.0, ())
    assert len(releases.observations()) == 2
    found = Ledger.open_existing(path).verify()
    assert (found.releases, found.events) == (2, 4)


def test_a_corrected_clock_keeps_what_a_jump_forward_had_refreshed() -> None:
    """A jump by a day refreshes the hour, which nobody can see; when it is put right, both hours count."""
    releases = hourly(clock_tolerance=None)
    releases.release("cell-0", at=NOW)
    assert releases.release("cell-0", at=NOW + 86_400.0).balances[1].charged == 0.7
    releases.ledger.correct_clock(NOW + 60.0)
    assert float(releases.ledger.spent(releases.accounts, NOW + 60.0)[1].amount) == 1.4
    with pytest.raises(pg.BudgetExceeded, match=r"-0\.7 of 0\.7"):
        releases.release("cell-0", at=NOW + 61.0)
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-0", at=NOW + 3660.0)
    assert releases.release("cell-0", at=NOW + 3661.0).number == 3
    assert releases.ledger.verify().releases == 3


def test_memoised_places_move_with_the_clock() -> None:
    policy = Memoised(b"0123456789abcdef")
    releases = hourly(clock_tolerance=None, policy=policy)
    releases.release("cell-0", at=NOW + 86_400.0)
    releases.ledger.correct_clock(NOW)
    assert float(releases.ledger.spent(releases.accounts, NOW + 3600.0)[1].amount) == 0.7
    assert float(releases.ledger.spent(releases.accounts, NOW + 3600.1)[1].amount) == 0.0
    assert releases.ledger.verify().releases == 1


def test_steps_have_no_clock() -> None:
    releases = Releases(PROBLEM, WALK, mechanism=FIXED)
    for _ in range(3):
        releases.release("cell-0")
    with pytest.raises(pg.InvalidProblem, match="counts steps"):
        releases.ledger.correct_clock(1.0)


def test_zones_and_equal_times() -> None:
    """One moment is one moment in every zone; a moment without a zone is none; many may share one."""
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    still = pg.Mobility.still(STREET)
    releases = Releases(PROBLEM, still, mechanism=FIXED, budget=Budget(2.1, every=3600))
    times: list[float | datetime] = [noon, noon.astimezone(timezone(timedelta(hours=9))), noon.timestamp()]
    assert {releases.release("cell-0", at=at).time for at in times} == {noon.timestamp()}
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-0", at=noon)
    with pytest.raises(pg.InvalidProblem, match="time zone"):
        releases.release("cell-0", at=datetime(2024, 5, 1, 14))
    autumn = pg.Mobility(STREET, WALK.matrices[0], step=3600, timezone="Europe/Zurich")
    twice = Releases(PROBLEM, autumn, mechanism=FIXED, budget=Budget(0.7, every=3600))
    first = datetime.fromisoformat("2024-10-27T02:30:00+02:00")
    twice.release("cell-0", at=first)
    second = datetime.fromisoformat("2024-10-27T02:30:00+01:00")  # the same on the wall, an hour later
    with pytest.raises(pg.BudgetExceeded):
        twice.release("cell-0", at=second)
    assert twice.release("cell-0", at=second + timedelta(seconds=1)).number == 2

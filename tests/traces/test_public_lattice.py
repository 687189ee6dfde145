"""Boxes around places: on lines that are the same for all, and depending on no place beyond the strip it is in."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import privacygames as pg

STRIP = 0.02
Points = list[tuple[float, float]]
POINTS = st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=1, max_size=60)
IN_ONE_TOWN = st.lists(st.tuples(st.floats(6.5, 6.75), st.floats(46.4, 46.6)), min_size=1, max_size=60)


def visits_at(points: Points, whose: list[int] | None = None) -> pg.traces.Visits:
    count = len(points)
    longitude, latitude = np.array(points, dtype=float).T
    user, time = np.array(whose or [0] * count), 600 * np.arange(count)
    return pg.traces.Visits(user, time, latitude, longitude, users=("ann", "ben")[: user.max() + 1], slot=600)


def strip_of(degrees: float, end: int) -> int:
    return min(int(np.floor(degrees * 50)), 50 * end - 1)


def elsewhere_in_its_strip(degrees: float, end: int, share: float) -> float:
    """Another coordinate of the same strip of 0.02°."""
    moved = (strip_of(degrees, end) + 0.01 + 0.98 * share) / 50
    assume(strip_of(moved, end) == strip_of(degrees, end))
    return moved


@given(st.one_of(POINTS, IN_ONE_TOWN), st.data())
def test_a_box_depends_on_strips_alone(points: Points, data: st.DataObject) -> None:
    """Every visit may be anywhere else in its strips: the box is the same, bit for bit."""
    shares = data.draw(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=len(points), max_size=len(points)))
    moved = [
        (elsewhere_in_its_strip(x, 180, share), elsewhere_in_its_strip(y, 90, other))
        for (x, y), (share, other) in zip(points, shares, strict=True)
    ]
    assert visits_at(points).public_box() == visits_at(moved).public_box()


@given(st.one_of(POINTS, IN_ONE_TOWN))
def test_edges_are_lines_of_the_lattice_around_nearly_all_places(points: Points) -> None:
    visits = visits_at(points)
    box = visits.public_box("ann")
    assert pg.traces.is_public_box(box)
    west, south, east, north = box
    for low, high, values in ((west, east, visits.longitude), (south, north, visits.latitude)):
        beyond = np.ceil(len(points) / 100) if len(points) >= 20 else 0
        assert (values < low).sum() <= beyond
        assert (values > high).sum() <= beyond
        strips = round((high - low) / STRIP)
        if not {abs(low), abs(high)} & {90.0, 180.0}:
            width = 2 ** max(0, int(np.ceil(np.log2(strips / 8))))  # at most eight strips, as wide as needed for that
            assert round(low / STRIP) % width == round(high / STRIP) % width == 0
    pg.Grid.over(box, columns=4, rows=3)  # is a box


@given(st.lists(st.tuples(st.floats(6.5, 6.75), st.floats(46.4, 46.6)), min_size=19, max_size=60))
def test_no_edge_rests_on_one_visit_among_many(points: Points) -> None:
    """One visit at the other end of the world is outside, once there are twenty."""
    west, south, _, _ = visits_at([*points, (-170.0, -80.0)]).public_box()
    assert west > 6
    assert south > 46


@pytest.mark.parametrize("points", [[(180.0, 90.0)], [(-180.0, -90.0)], [(-180.0, -90.0), (180.0, 90.0)], [(0.0, 0.0)]])
def test_ends_of_the_world(points: Points) -> None:
    visits = visits_at(points)
    west, south, east, north = visits.public_box()
    assert -180 <= west < east <= 180
    assert -90 <= south < north <= 90
    assert visits.counts(pg.Grid.over((west, south, east, north), columns=2, rows=2), "ann").sum() == len(points)


def test_other_windows_are_not_public() -> None:
    assert not pg.traces.is_public_box((6.532, 46.495, 6.728, 46.567))
    with pytest.raises(pg.InvalidProblem, match="no visits"):
        visits_at([(1.0, 1.0)]).before(0).public_box()


def test_somebody_elses_places_do_not_count() -> None:
    both = visits_at([(6.6, 46.5), (151.2, -33.9)], [0, 1])
    assert both.public_box("ann") == (6.6, 46.5, 6.62, 46.52)
    assert both.public_box() != both.public_box("ann")

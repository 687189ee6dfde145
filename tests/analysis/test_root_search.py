"""Closing in on an edge: known functions, how many trials it takes, and functions that are hard to read."""

from collections.abc import Callable
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames.analysis.root_search import SearchTrial, narrow


class Watched:
    """A function of one argument as trials, counted; unsure within ``blur`` of zero."""

    def __init__(self, function: Callable[[float], float], blur: float = 0.0) -> None:
        self.function, self.blur, self.count = function, blur, 0

    def __call__(self, at: float) -> SearchTrial:
        self.count += 1
        value = self.function(at)
        return SearchTrial(at, None if abs(value) <= self.blur else value)


@given(edge=st.floats(0.011, 99), precision=st.sampled_from([1e-2, 1e-4, 1e-6]), upward=st.booleans())
def test_the_edge_of_a_smooth_function_is_found_from_both_sides(edge: float, precision: float, upward: bool) -> None:
    sign = 1 if upward else -1
    watched = Watched(lambda at: sign * log(edge / at) * (2 + log(edge / at)) if at < edge else -sign * log(at / edge))
    low, high = SearchTrial(0.01, watched(0.01).excess), SearchTrial(100.0, watched(100.0).excess)
    failing, holding = narrow(watched, low, high, precision) if upward else narrow(watched, high, low, precision)
    below, above = sorted((failing.argument, holding.argument))
    assert below <= edge <= above <= below * (1 + precision * 1.001)
    assert watched.count <= 2 + 2 * 24


def test_a_straight_line_takes_few_trials() -> None:
    watched = Watched(lambda at: log(2.0 / at))
    narrow(watched, SearchTrial(0.5, log(4)), SearchTrial(9.0, log(2 / 9)), 1e-6)
    assert watched.count <= 4


def test_a_step_is_halved_until_it_is_narrow() -> None:
    watched = Watched(lambda at: 1000.0 if at < 3 else -1e-9)
    failing, holding = narrow(watched, SearchTrial(0.1, 1000.0), SearchTrial(40.0, -1e-9), 1e-3)
    assert failing.argument < 3 <= holding.argument <= failing.argument * 1.0010001
    assert watched.count <= 45


def test_where_it_cannot_be_told_both_sides_are_tried() -> None:
    watched = Watched(lambda at: 2 - at, blur=1e-4)
    failing, holding = narrow(watched, SearchTrial(1.0, 1.0), SearchTrial(3.0, -1.0), 1e-3)
    assert failing.argument < 2 < holding.argument <= failing.argument * 1.0010001
    with pytest.raises(pg.SolveFailed, match=r"between 1\.[4-9]\d* and 2\.[3-9]\d*,"):
        narrow(Watched(lambda at: 2 - at, blur=0.3), SearchTrial(1.0, 1.0), SearchTrial(3.0, -1.0), 1e-3)

"""Random channels, priors and gains in exact fractions, for the tests of leakage."""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

import privacygames as pg
from privacygames.leakage import Channel


def channel_of(
    rows: Sequence[Sequence[int | Fraction]], secrets: pg.Space | None = None, *, normalised: bool = False
) -> Channel:
    """The channel whose rows are in these proportions; with ``normalised`` they are taken as they are."""
    space = secrets or pg.Categories([f"s{i}" for i in range(len(rows))])
    outputs = pg.Categories([f"o{i}" for i in range(len(rows[0]))])
    exact = [[Fraction(entry) if normalised else Fraction(entry) / sum(row) for entry in row] for row in rows]
    return Channel(space, outputs, exact)


@st.composite
def proportions(draw: st.DrawFn, size: int) -> list[int]:
    """Integers, 0 or more, that are not all zero."""
    values = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    return values if any(values) else [1, *values[1:]]


@st.composite
def channels(draw: st.DrawFn, *, secrets: int, outputs: int, space: pg.Space | None = None) -> Channel:
    """Channels with small denominators, zeros and equal rows among them."""
    return channel_of([draw(proportions(outputs)) for _ in range(secrets)], space)


@st.composite
def priors(draw: st.DrawFn, size: int) -> list[Fraction]:
    """Exact priors; some exclude secrets."""
    values = draw(proportions(size))
    return [Fraction(value, sum(values)) for value in values]

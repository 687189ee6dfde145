"""The sums behind the bound: large multipliers cancel, and what is left is right to the last digits."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privacygames.certificates.exact_sums import exact_products, exact_sums

NUMBERS = st.floats(1e-60, 1e60)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_products_are_exact(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array(each) for each in zip(*pairs, strict=True))
    high, low = exact_products(first, second)
    for a, b, top, rest in zip(first, second, high, low, strict=True):
        assert Fraction(float(top)) + Fraction(float(rest)) == Fraction(float(a)) * Fraction(float(b))


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1e30, 1e30)), max_size=40), st.floats(1e-20, 1.0))
def test_sums_are_as_close_as_they_say(terms: list[tuple[int, float]], small: float) -> None:
    """Each number comes with its opposite at the same place, so that nothing but ``small`` is left there."""
    places = [place for place, _ in terms] * 2 + [0, 1, 2, 3]
    numbers = [value for _, value in terms] + [-value for _, value in terms] + [small] * 4
    found, unsure = exact_sums(np.array(places), np.array(numbers), 4)
    for place in range(4):
        exact = sum((Fraction(n) for p, n in zip(places, numbers, strict=True) if p == place), Fraction(0))
        assert abs(Fraction(float(found[place])) - exact) <= Fraction(float(unsure[place]))
    assert (unsure <= 1e-15 * small + 1e-40 * max(map(abs, numbers))).all()

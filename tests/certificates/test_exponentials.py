"""Numbers below and above exponentials, against rational arithmetic with a proved enclosure."""

from fractions import Fraction
from math import inf, isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import exp_enclosure
from privacygames.certificates.exponentials import exact_enclosure, rough_enclosure

factors = st.floats(1e-12, 1e3)


@given(factors, factors)
@settings(max_examples=400)
def test_both_enclose_the_true_value(epsilon: float, separation: float) -> None:
    exponent = Fraction(epsilon) * Fraction(separation)
    rough = tuple(float(edge[0]) for edge in rough_enclosure(epsilon, np.array([separation])))
    for below, above in (rough, exact_enclosure(epsilon, separation)):
        assert below >= 1
        if exponent <= 60:
            low, high = exp_enclosure(exponent)
            assert Fraction(below) <= high
            assert isinf(above) or Fraction(above) >= low
            if exponent <= 50:
                assert above <= below * (1 + 2.0**-39)
        else:
            assert below <= exp_enclosure(Fraction(51))[1]
            assert above >= 1e21


@pytest.mark.parametrize("separation", [0.0, 49.9999999, 50.0, 50.0000001, 699.9, 700.1, 1e4, 1e60, inf])
def test_at_the_edges(separation: float) -> None:
    below, above = (float(edge[0]) for edge in rough_enclosure(1.0, np.array([separation])))
    sharp = exact_enclosure(1.0, separation)
    assert below <= sharp[1]
    assert above >= sharp[0]
    assert (below == inf) == (separation == inf)
    assert below >= 1.0
    if separation == 0:
        assert (below, sharp[0]) == (1.0, 1.0)

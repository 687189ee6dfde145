from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg

SPACE = pg.Categories(["a", "b", "c"])


def test_from_visits_counts_and_mappings_agree() -> None:
    visits = pg.Prior.from_visits(SPACE, ["a", "c", "a"])
    assert visits.probabilities.tolist() == [2 / 3, 0, 1 / 3]
    assert pg.Prior.from_visits(SPACE, {"a": 2, "c": 1}).probabilities.tolist() == visits.probabilities.tolist()
    assert pg.Prior.from_counts(SPACE, [2, 0, 1]).probabilities.tolist() == visits.probabilities.tolist()
    assert visits["a"] == 2 / 3


def test_smoothing_adds_to_every_count() -> None:
    assert pg.Prior.from_visits(SPACE, ["a"], smoothing=1.0).probabilities.tolist() == [0.5, 0.25, 0.25]
    assert pg.Prior.from_visits(SPACE, [], smoothing=1.0).probabilities.tolist() == [1 / 3] * 3


def test_entropy() -> None:
    assert pg.Prior.uniform(SPACE).entropy() == pytest.approx(log2(3))
    assert pg.Prior(SPACE, [1, 0, 0]).entropy() == 0.0


@given(
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3).filter(
        lambda counts: sum(counts) > 0 and all(c == 0 or c > 1e-60 for c in counts)
    )
)
def test_normalised_and_kept_bit_for_bit(counts: list[float]) -> None:
    prior = pg.Prior.from_counts(SPACE, counts)
    assert prior.probabilities.sum() == pytest.approx(1.0)
    assert (pg.Prior(SPACE, prior.probabilities).probabilities == prior.probabilities).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.6, -0.1], "negative"),
        ([0.5, np.nan, 0.5], "NaN"),
        ([np.inf, 0, 0], "infinite"),
        ([0.5, 0.4, 0.0], "sums to 0.9, not 1; pass counts to Prior.from_counts"),
        ([0.5, 0.5], r"shape \(2,\), but \(3,\) is needed"),
        ([[1, 0, 0]], "shape"),
        ("abc", "not an array of numbers"),
    ],
)
def test_bad_priors(weights: object, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.Prior(SPACE, weights)  # type: ignore[arg-type]


def test_bad_counts() -> None:
    with pytest.raises(pg.InvalidProblem, match="no visits"):
        pg.Prior.from_visits(SPACE, [])
    with pytest.raises(pg.InvalidProblem, match="smoothing is -1"):
        pg.Prior.from_visits(SPACE, ["a"], smoothing=-1)
    with pytest.raises(pg.InvalidProblem, match="negative"):
        pg.Prior.from_counts(SPACE, [1, -1, 0])
    with pytest.raises(pg.UnknownLabel, match="position 1") as caught:
        pg.Prior.from_visits(SPACE, ["a", "hidden place"])
    assert "hidden" not in str(caught.value)


def test_posterior_by_bayes() -> None:
    prior = pg.Prior(SPACE, [0.5, 0.25, 0.25])
    assert prior.posterior([0.1, 0.2, 0.0]).probabilities == pytest.approx(np.array([0.5, 0.5, 0.0]))
    tiny = prior.posterior([1e-320, 0.0, 0.0])
    assert tiny.probabilities.tolist() == [1.0, 0.0, 0.0]
    sure = pg.Prior(SPACE, [0.0, 0.5, 0.5])  # what it excludes does not set the scale
    assert sure.posterior([1.0, 3e-70, 1e-70]).probabilities == pytest.approx([0.0, 0.75, 0.25])


@pytest.mark.parametrize("likelihood", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.7]])
def test_an_impossible_observation_has_no_posterior(likelihood: list[float]) -> None:
    with pytest.raises(pg.InvalidProblem, match="impossible under this belief"):
        pg.Prior(SPACE, [0.5, 0.5, 0.0]).posterior(likelihood)

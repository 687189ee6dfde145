"""Labels and counts as people hand them over: what pandas, Polars and NumPy make of them is understood, or refused."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import privacygames as pg

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

CELLS = pg.Categories("abc")
VISITS = ["a", "a", "b", "a", "c", "a", "b"]
EXPECTED = [4 / 7, 2 / 7, 1 / 7]
AGES = pg.Numbers(range(1, 6))


@pytest.mark.parametrize(
    "visits",
    [
        VISITS,
        tuple(VISITS),
        iter(VISITS),
        np.array(VISITS),
        pandas.Series(VISITS),
        pandas.Series(VISITS, index=range(10, 17)),
        pandas.Series(VISITS, dtype="category"),
        pandas.Index(VISITS),
        polars.Series(VISITS),
        pyarrow.array(VISITS),
        pyarrow.chunked_array([VISITS[:3], VISITS[3:]]),
        {"a": 4, "b": 2, "c": 1},
        Counter(VISITS),
        pandas.Series(VISITS).value_counts(),
        pandas.Series(VISITS).value_counts(normalize=True),
        pandas.Series({"a": 4, "b": 2, "c": 1}),
        pandas.Series({"a": 4.0, "b": 2.0, "c": 1.0}, name="visits"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_way_to_give_visits_means_the_same(visits: Any) -> None:
    prior = pg.Prior.from_visits(CELLS, visits)
    assert prior.probabilities == pytest.approx(EXPECTED)


def test_counts_of_numbers_are_counts() -> None:
    """The counts themselves are labels of the space: this used to give a wrong prior without a word."""
    ages = pandas.Series([1, 1, 1, 2, 2, 5])
    prior = pg.Prior.from_visits(AGES, ages.value_counts())
    assert prior.probabilities == pytest.approx(np.array([3, 2, 0, 0, 1]) / 6)
    assert pg.Prior.from_visits(AGES, ages.value_counts().rename("n").to_dict()) == prior
    assert pg.Prior.from_visits(AGES, [1, 1, 1, 2, 2, 5]) == prior


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        (pandas.Series([1, 2, 3], index=[1, 2, 3]), "may mean counts by label"),
        (pandas.Series([1, 1, 2]).value_counts().rename("n"), "may mean counts by label"),
        (pandas.DataFrame({"cell": [1, 2]}), "a table was given"),
        (polars.DataFrame({"cell": [1, 2]}), "a table was given"),
        (np.array([[1, 2], [3, 4]]), "shape"),
        (np.array(3), "one single value"),
        (3, "one single value"),
        ("3", "one single value"),
        ({1: "many"}, "not an array of numbers"),
        (pandas.Series(["x", "y"]), "not one of the 5 labels"),
        (pandas.Series({9: 1, 8: 2}), "may mean counts by label"),
        (pandas.Series({9: 1, 8: 20}), "not one of the 5 labels"),
    ],
    ids=lambda given: str(type(given).__name__),
)
def test_what_is_unclear_is_refused(visits: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.Prior.from_visits(AGES, visits)


@pytest.mark.parametrize(
    "secrets",
    [[1, 3, 5], (1, 3, 5), np.array([1, 3, 5]), pandas.Series([1, 3, 5]), polars.Series([1, 3, 5]), range(1, 6, 2)],
    ids=lambda given: type(given).__name__,
)
def test_several_secrets_get_as_many_answers(secrets: Any) -> None:
    truth = pg.baselines.identity(pg.Problem(pg.Prior.uniform(AGES)))
    assert truth.sample(secrets) == [1, 3, 5]


@pytest.mark.parametrize("secret", [3, 3.0, np.int64(3), np.float32(3), np.array(3)], ids=repr)
def test_one_secret_gets_one_answer(secret: Any) -> None:
    assert pg.baselines.identity(pg.Problem(pg.Prior.uniform(AGES))).sample(secret) == 3


@pytest.mark.parametrize("secrets", [np.array([[1, 2]]), pandas.DataFrame({"a": [1]}), {1: 2}, None, object()])
def test_what_is_no_secret_is_refused(secrets: Any) -> None:
    with pytest.raises(pg.InvalidProblem):
        pg.baselines.identity(pg.Problem(pg.Prior.uniform(AGES))).sample(secrets)

import numpy as np
import pytest

import privacygames as pg

SPACE = pg.Numbers([1, 2, 4])
PRIOR = pg.Prior.uniform(SPACE)


def test_measures_by_name_matrix_and_function_agree() -> None:
    by_name = pg.Problem(PRIOR, cost="absolute", distance="absolute")
    by_function = pg.Problem(PRIOR, cost=lambda o, s: abs(o - s), distance=lambda guess, s: abs(guess - s))
    by_matrix = pg.Problem(PRIOR, cost=by_name.cost, distance=by_name.distance.tolist())
    for other in (by_function, by_matrix):
        assert (other.cost == by_name.cost).all()
        assert (other.distance == by_name.distance).all()


def test_defaults() -> None:
    problem = pg.Problem(PRIOR)
    assert (problem.cost == 1 - np.eye(3)).all()
    assert (problem.distance == SPACE.distance("absolute")).all()
    assert (problem.distinguishability == problem.distance).all()
    assert problem.observables is SPACE


def test_a_function_is_called_observable_first() -> None:
    problem = pg.Problem(PRIOR, cost=lambda o, s: 10 * o + s)
    assert problem.cost[0, 2] == 14


def test_a_function_of_a_set_gets_its_members() -> None:
    pairs = pg.Subsets(SPACE, [[1, 2], [4]])
    problem = pg.Problem(PRIOR, cost=lambda group, s: len(group) if s in group else 10, observables=pairs)
    assert problem.cost.tolist() == [[2, 2, 10], [10, 10, 1]]


def test_a_problem_is_frozen() -> None:
    problem = pg.Problem(PRIOR)
    given = np.ones((3, 3))
    copied = pg.Problem(PRIOR, cost=given)
    given[0, 0] = 5
    assert copied.cost[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.cost[0, 0] = 1


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ({"cost": np.ones((2, 3))}, r"the cost has shape \(2, 3\), but \(3, 3\) is needed"),
        ({"cost": -np.ones((3, 3))}, "the cost contains negative"),
        ({"cost": np.full((3, 3), np.nan)}, "the cost contains NaN"),
        ({"cost": np.full((3, 3), np.inf)}, "the cost is infinite"),
        ({"cost": "jaccard"}, "Numbers knows no distance 'jaccard'; choose from absolute, hamming"),
        ({"distance": np.ones((3, 3))}, "the distance must have a zero diagonal"),
        ({"distance": np.zeros((3, 2))}, "the distance has shape"),
        ({"distance": np.array([[0, np.inf, 1], [1, 0, 1], [1, 1, 0]])}, "the distance is infinite"),
        ({"distinguishability": np.ones((3, 3))}, "the distinguishability must have a zero diagonal"),
        ({"cost": lambda o, s: "dear"}, "the cost is not an array of numbers"),
    ],
)
def test_bad_measures(measures: dict[str, object], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.Problem(PRIOR, **measures)  # type: ignore[arg-type]


def test_a_problem_starts_with_a_prior() -> None:
    with pytest.raises(pg.InvalidProblem, match="starts with a Prior"):
        pg.Problem(SPACE)  # type: ignore[arg-type]


def test_unconnected_places_may_be_distinguished_but_not_measured() -> None:
    graph = pg.Graph([("a", "b")], nodes=["c"])
    with pytest.raises(pg.InvalidProblem, match="the distance is infinite"):
        pg.Problem(pg.Prior.uniform(graph))
    problem = pg.Problem(pg.Prior.uniform(graph), distance="hamming", distinguishability="shortest path")
    assert np.isinf(problem.distinguishability).any()

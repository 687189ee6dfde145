"""Values never change, and are equal exactly when their content is."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import privacygames as pg

GRID = pg.Grid(3, 2, 3.0, 2.0)
DISTANCES = [[0.0, 1.0], [2.0, 0.0]]

SPACES: dict[str, Callable[[], pg.Space]] = {
    "grid": lambda: pg.Grid(3, 2, 3.0, 2.0),
    "over degrees": lambda: pg.Grid.over((6.5, 46.5, 6.6, 46.6), columns=3, rows=2),
    "numbers": lambda: pg.Numbers([1, 2, 3], unit="years"),
    "categories": lambda: pg.Categories("abc"),
    "sets": lambda: pg.Sets([{"a"}, {"a", "b"}]),
    "graph": lambda: pg.Graph([("a", "b"), ("b", "c", 2.0)]),
    "distances": lambda: pg.Space.from_distances("ab", DISTANCES),
    "subsets": lambda: pg.Grid(3, 2, 3.0, 2.0).blocks(2, 1),
    "labels": lambda: pg.Space("abc"),
}

OTHERS: dict[str, list[pg.Space]] = {
    "grid": [pg.Grid(2, 3, 3.0, 2.0), pg.Grid(3, 2, 3.0, 2.5), pg.Grid(3, 2, 3.0, 2.0, box=(0, 0, 1, 1))],
    "over degrees": [pg.Grid.over((6.5, 46.5, 6.6, 46.7), columns=3, rows=2)],
    "numbers": [pg.Numbers([1, 2, 3]), pg.Numbers([1, 2, 4], unit="years"), pg.Categories(["1", "2", "3"])],
    "categories": [pg.Categories("acb"), pg.Space("abc")],
    "sets": [pg.Sets([{"a", "b"}, {"a"}])],
    "graph": [
        pg.Graph([("a", "b"), ("b", "c", 3.0)]),
        pg.Graph([("a", "b"), ("b", "c", 2.0)], directed=True),
        pg.Categories("abc"),
    ],
    "distances": [pg.Space.from_distances("ab", [[0.0, 1.0], [3.0, 0.0]]), pg.Space.from_distances("ba", DISTANCES)],
    "subsets": [
        pg.Grid(3, 2, 3.0, 2.0).blocks(2, 1, aggregation="max"),
        pg.Grid(3, 2, 3.0, 2.0).blocks(3, 1),
        pg.Grid(3, 2, 3.0, 9.0).blocks(2, 1),
    ],
    "labels": [pg.Space("abd"), pg.Categories("abc")],
}


@pytest.mark.parametrize("kind", SPACES)
def test_spaces_are_equal_by_content(kind: str) -> None:
    one, same = SPACES[kind](), SPACES[kind]()
    assert one == same
    assert hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(one)) == one
    assert {one, same} == {one}
    for other in OTHERS[kind]:
        assert one != other
        assert len({one, other}) == 2


@pytest.mark.parametrize("kind", SPACES)
def test_spaces_cannot_be_changed(kind: str) -> None:
    space = SPACES[kind]()
    for name in [*vars(space), "anything"]:
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(space, name, None)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del space.labels


def test_arrays_inside_values_cannot_be_written_to() -> None:
    problem = pg.Problem(pg.Prior.uniform(GRID))
    mechanism = pg.design(problem, epsilon=1.0)
    arrays = [
        problem.prior.probabilities,
        problem.cost,
        problem.distance,
        problem.distinguishability,
        mechanism.probabilities,
        mechanism.weights,
        pg.Numbers([1, 2]).values,
        pg.Space.from_distances("ab", DISTANCES).matrix,
        *GRID.blocks(2, 1).members,
    ]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True


def test_priors_and_problems_are_equal_by_content() -> None:
    def problem(*, cost: str = "hamming", counts: tuple[int, ...] = (1, 2, 3, 4, 5, 6)) -> pg.Problem:
        return pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2, 3.0, 2.0), counts), cost=cost)

    assert problem() == problem()
    assert hash(problem()) == hash(problem())
    assert problem().prior == problem().prior
    assert problem() != problem(cost="euclidean")
    assert problem() != problem(counts=(6, 5, 4, 3, 2, 1))
    assert problem().prior != problem(counts=(6, 5, 4, 3, 2, 1)).prior
    assert problem() != pg.Problem(problem().prior, observables=GRID.blocks(3, 2))
    assert pickle.loads(pickle.dumps(problem())) == problem()
    with pytest.raises(AttributeError, match="cannot be changed"):
        problem().cost = np.zeros((6, 6))
    assert pg.Bounds(epsilon=1.0) == pg.Bounds(epsilon=1)
    assert len({pg.Bounds(epsilon=1.0), pg.Bounds(epsilon=2.0)}) == 2


def test_with_prior_shares_the_matrices() -> None:
    problem = pg.Problem(pg.Prior.uniform(GRID), cost="euclidean")
    prior = pg.Prior.from_counts(GRID, [1, 2, 3, 4, 5, 6])
    changed = problem.with_prior(prior)
    assert changed == pg.Problem(prior, cost="euclidean")
    assert changed.cost is problem.cost
    assert changed.distance is problem.distance
    assert changed.distinguishability is problem.distinguishability
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        problem.with_prior(pg.Prior.uniform(pg.Grid(2, 3, 3.0, 2.0)))
    with pytest.raises(pg.InvalidProblem, match="must be a Prior"):
        problem.with_prior([0.5, 0.5])  # type: ignore[arg-type]


def test_certificates_are_hashable_and_digests_name_what_is_released() -> None:
    problem = pg.Problem(pg.Prior.uniform(GRID))
    one, same = (pg.design(problem, epsilon=1.0) for _ in range(2))
    assert one.certificate == same.certificate
    assert hash(one.certificate) == hash(same.certificate)
    assert one.digest == same.digest
    others = [
        pg.design(problem, epsilon=1.1),
        pg.design(problem, epsilon=1.0, distortion=0.5),
        pg.design(problem.with_prior(pg.Prior.from_counts(GRID, [1, 2, 3, 4, 5, 6])), epsilon=1.0),
    ]
    assert len({mechanism.digest for mechanism in [one, *others]}) == 4


@pytest.mark.parametrize(
    "other",
    [
        pg.Problem(pg.Prior.uniform(pg.Grid(5, 6))),
        pg.Problem(pg.Prior.uniform(pg.Grid(6, 5, 6.0, 5.5))),
        pg.Problem(pg.Prior.uniform(pg.Categories([f"cell-{number}" for number in range(30)]))),
    ],
    ids=["turned", "stretched", "other kind"],
)
def test_labels_that_look_alike_are_not_enough(other: pg.Problem) -> None:
    mechanism = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Grid(6, 5))))
    for call in (
        lambda: pg.evaluate(mechanism, other),
        lambda: pg.attacks.optimal(mechanism, other),
        lambda: pg.attacks.minmax(mechanism, other),
        lambda: pg.metrics.worst_cost(mechanism, other),
        lambda: pg.baselines.remap(mechanism, other),
        lambda: mechanism.posterior("cell-0", other.prior),
        lambda: pg.evaluate(mechanism, mechanism.problem, adversary_prior=other.prior),
        lambda: pg.metrics.posterior_entropy(mechanism, other.prior),
        lambda: pg.compare(other, {"one": mechanism}),
    ):
        with pytest.raises(pg.InvalidProblem, match=r"different secrets|other secrets"):
            call()

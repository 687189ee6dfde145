import numpy as np
import pytest

import privacygames as pg


def test_numbers() -> None:
    ages = pg.Numbers(range(17, 20))
    assert ages.labels == (17, 18, 19)
    assert ages.distance("absolute").tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert ages.distance("absolute", pg.Numbers([17.5])).tolist() == [[0.5, 0.5, 1.5]]
    assert ages.index(np.int64(18)) == 1
    with pytest.raises(pg.InvalidProblem, match="takes numbers only"):
        pg.Numbers(["a"])  # type: ignore[list-item]


def test_intervals() -> None:
    intervals = pg.Numbers(range(17, 22)).intervals(2)
    assert intervals.labels == ("17–18", "19–20", "21")
    assert [set(group) for group in intervals.elements] == [{17, 18}, {19, 20}, {21}]
    with pytest.raises(pg.InvalidProblem, match="whole number of values, at least 1"):
        pg.Numbers([1]).intervals(0)


def test_categories_know_hamming_only() -> None:
    space = pg.Categories(["flu", "cold"])
    assert space.distance("hamming").tolist() == [[0, 1], [1, 0]]
    assert space.distance_names == ("hamming",)
    assert space.distance("hamming", pg.Categories(["cold", "none"])).tolist() == [[1, 0], [1, 1]]


def test_sets_by_jaccard() -> None:
    space = pg.Sets([{"Alien"}, {"Alien", "Brazil"}, set(), {"Brazil"}])
    jaccard = space.distance("jaccard")
    assert jaccard[0].tolist() == [0, 0.5, 1, 1]
    assert jaccard[2, 2] == 0
    assert jaccard == pytest.approx(jaccard.T)
    assert space.index({"Brazil", "Alien"}) == 1
    with pytest.raises(pg.InvalidProblem, match="takes sets of texts"):
        pg.Sets(["Alien"])


def test_graph_by_shortest_path() -> None:
    graph = pg.Graph([("a", "b", 2.0), ("b", "c"), ("a", "c", 10.0), ("b", "a", 5.0)], nodes=["lonely"])
    assert graph.labels == ("lonely", "a", "b", "c")
    paths = graph.distance("shortest path")
    assert paths[1].tolist() == [np.inf, 0, 2, 3]
    assert (paths == paths.T).all()
    one_way = pg.Graph([("a", "b")], directed=True).distance("shortest path")
    assert one_way.tolist() == [[0, 1], [np.inf, 0]]
    for bad in ("ab", ("a",), ("a", "b", 0), ("a", "b", -1), ("a", "b", "far")):
        with pytest.raises(pg.InvalidProblem, match="edge"):
            pg.Graph([bad])


def test_given_distances() -> None:
    space = pg.Space.from_distances(["a", "b"], [[0, 3], [1, 0]])
    assert space.distance("given").tolist() == [[0, 3], [1, 0]]
    assert space.default_distance == "given"
    assert space.distance("given", pg.Space(["b"])).tolist() == [[1, 0]]
    for bad, message in (
        ([[0, 1]], "shape"),
        ([[1, 1], [1, 0]], "zero diagonal"),
        ([[0, -1], [1, 0]], "negative"),
        ([[0, np.nan], [1, 0]], "NaN"),
        ("x", "not an array"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message):
            pg.Space.from_distances(["a", "b"], bad)  # type: ignore[arg-type]


def test_empty_duplicate_and_strange_labels() -> None:
    with pytest.raises(pg.InvalidProblem, match="at least one label"):
        pg.Categories([])
    with pytest.raises(pg.InvalidProblem, match="distinct"):
        pg.Categories(["a", "b", "a"])
    for bad in (None, True, ("a",), float("nan"), frozenset([1])):
        with pytest.raises(pg.InvalidProblem, match="label"):
            pg.Categories([bad])  # type: ignore[list-item]


def test_unknown_labels_are_not_repeated() -> None:
    space = pg.Categories(["flu", "cold"])
    with pytest.raises(pg.UnknownLabel, match="not one of the 2 labels") as caught:
        space.indices(["flu", "a very private thing"])
    assert "private" not in str(caught.value)
    assert "position 1" in str(caught.value)
    with pytest.raises(pg.UnknownLabel):
        space.index(["unhashable"])


def test_subsets_read_three_ways() -> None:
    space = pg.Numbers([0, 1, 4])
    pairs = [[0, 1], [1, 4]]
    mean, most, least = (
        space.distance("absolute", pg.Subsets(space, pairs, aggregation=reading)).tolist()
        for reading in ("mean", "max", "min")
    )
    assert mean == [[0.5, 0.5, 3.5], [2.5, 1.5, 1.5]]
    assert most == [[1, 1, 4], [4, 3, 3]]
    assert least == [[0, 0, 3], [1, 0, 0]]
    hamming = space.distance("hamming", pg.Subsets(space, pairs))
    assert hamming.tolist() == [[0.5, 0.5, 1], [1, 0.5, 0.5]]
    assert pg.Subsets(space, pairs).labels == ("{0, 1}", "{1, 4}")


def test_all_subsets_is_the_powerset_without_the_empty_set() -> None:
    space = pg.Categories("abcd")
    assert len(pg.Subsets.all(space)) == 15
    assert len(pg.Subsets.all(space, at_most=2)) == 10
    with pytest.raises(pg.InvalidProblem, match="subsets"):
        pg.Subsets.all(pg.Numbers(range(40)))


def test_bad_subsets() -> None:
    space = pg.Categories("abc")
    with pytest.raises(pg.InvalidProblem, match="at least one member"):
        pg.Subsets(space, [["a"], []])
    with pytest.raises(pg.UnknownLabel):
        pg.Subsets(space, [["z"]])
    with pytest.raises(pg.InvalidProblem, match="aggregation"):
        pg.Subsets(space, [["a"]], aggregation="median")  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="2 labels"):
        pg.Subsets(space, [["a"]], labels=["x", "y"])
    with pytest.raises(pg.InvalidProblem, match="another space"):
        pg.Problem(pg.Prior.uniform(pg.Categories("abd")), observables=pg.Subsets(space, [["a"]]))


def test_the_powerset_can_answer() -> None:
    """Answering with everything, when any member will do, costs nothing and reveals nothing."""
    space = pg.Categories("abc")
    problem = pg.Problem(pg.Prior.uniform(space), observables=pg.Subsets.all(space, aggregation="min"))
    mechanism = pg.design(problem, epsilon=0.1, distortion=pg.max_distortion(problem))
    assert mechanism.certificate.cost == pytest.approx(0.0, abs=1e-9)
    mean = pg.Problem(pg.Prior.uniform(space), observables=pg.Subsets.all(space))
    assert pg.design(mean, epsilon=0.1).certificate.cost == pytest.approx(2 / (2 + np.exp(0.1)), rel=1e-6)


def test_distances_between_different_kinds_need_a_matrix() -> None:
    with pytest.raises(pg.InvalidProblem, match="is not defined; give a matrix or a function"):
        pg.Grid(2, 2).distance("euclidean", pg.Categories("ab"))

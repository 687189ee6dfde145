"""Products: every combination once, and distances that add."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg

AGES = pg.Numbers([30, 40, 55], unit="years")
ILLS = pg.Categories(["asthma", "flu"])


def test_labels_and_distances_by_hand() -> None:
    both = pg.Product([AGES, ILLS], scales=[0.1, 2.0])
    assert both.labels[:3] == ("30 | asthma", "30 | flu", "40 | asthma")
    distance = both.distance("sum")
    pairs: list[Any] = list(both.elements)
    for row, (age, ill) in enumerate(pairs):
        for column, (other, another) in enumerate(pairs):
            assert distance[row, column] == pytest.approx(0.1 * abs(age - other) + 2.0 * (ill != another))


@settings(deadline=None, derandomize=True)
@given(sizes=st.lists(st.integers(1, 4), min_size=2, max_size=4), data=st.data())
def test_positions_split_and_join(sizes: list[int], data: st.DataObject) -> None:
    space = pg.Product([pg.Numbers(range(size)) for size in sizes])
    assert len(space) == np.prod(sizes)
    at = np.array(data.draw(st.lists(st.integers(0, len(space) - 1))), dtype=np.int64)
    split = space.split(at)
    assert np.array_equal(space.join(split), at)
    for position, parts in zip(at, zip(*split, strict=True), strict=True):
        named = [str(space.parts[part].labels[index]) for part, index in enumerate(parts)]
        assert space.labels[position] == " | ".join(named)


def test_a_coarser_product_is_answered_and_kept_in_a_file(tmp_path: Path) -> None:
    both = pg.Product([AGES, ILLS])
    coarse = pg.Product([AGES.intervals(2), ILLS])
    problem = pg.Problem(pg.Prior.uniform(both), cost="sum", observables=coarse)
    expected = AGES.intervals(2).aggregate(AGES.distance("absolute"))[0, 2] + 1.0
    assert problem.cost[coarse.index("30–40 | flu"), both.index("55 | asthma")] == expected
    mechanism = pg.design(problem, epsilon=1.0)
    mechanism.save(tmp_path / "both.pgm")
    again = pg.load(tmp_path / "both.pgm")
    assert again.secrets == both
    assert again.observables == coarse
    assert again.digest == mechanism.digest


def test_a_problem_file_may_have_a_product(tmp_path: Path) -> None:
    from privacygames.problem import ProblemFile

    path = tmp_path / "p.toml"
    path.write_text(
        '[space]\nkind = "product"\nscales = [0.1, 1]\n'
        'parts = [{ kind = "numbers", from = 20, to = 22 }, { kind = "categories", labels = ["a", "b"] }]\n'
        "[prior]\nuniform = true\n"
    )
    problem = ProblemFile(path).problem
    assert problem.space == pg.Product([pg.Numbers([20, 21, 22]), pg.Categories("ab")], scales=[0.1, 1])
    assert problem.distance[0, 5] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([AGES],), "two parts or more"),
        (([AGES, "ab"],), "must be a Space"),
        (([pg.Numbers(range(2000)), pg.Numbers(range(2000))],), "at most 1000000"),
    ],
)
def test_wrong_parts_are_refused(arguments: tuple[list[pg.Space]], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.Product(*arguments)


@pytest.mark.parametrize("scales", [[1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, "2"]])
def test_wrong_scales_are_refused(scales: list[float]) -> None:
    with pytest.raises(pg.InvalidProblem, match="positive numbers"):
        pg.Product([AGES, ILLS], scales=scales)

"""Spaces as plain tables: everything that defines them survives, and nothing wrong is built."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames.spaces import LabelBudget, decode_space, encode_space
from test_immutable import SPACES


@pytest.mark.parametrize("kind", SPACES)
def test_a_space_survives(kind: str) -> None:
    space = SPACES[kind]()
    table = json.loads(json.dumps(encode_space(space)))
    assert decode_space(table) == space
    assert decode_space(table, size=len(space)) == space
    with pytest.raises(pg.InvalidProblem, match="where 99 are needed"):
        decode_space(table, size=99)


def test_subsets_refer_to_the_secrets_beside_them() -> None:
    grid = pg.Grid(3, 2)
    blocks = grid.blocks(2, 2)
    table = encode_space(blocks, secrets=grid)
    assert table["of"] == "secrets"
    assert decode_space(table, secrets=pg.Grid(3, 2)) == blocks
    with pytest.raises(pg.InvalidProblem, match="of must be a space"):
        decode_space(table)


def test_a_matrix_can_be_kept_elsewhere() -> None:
    space = pg.Space.from_distances(["a", frozenset({"b", "c"})], [[0.0, 1.5], [2.0, 0.0]])
    kept = {}

    def store(matrix: Any) -> str:
        kept["elsewhere"] = matrix
        return "elsewhere"

    table = encode_space(space, store=store)
    assert table["matrix"] == "elsewhere"
    assert decode_space(table, matrices=kept) == space


def test_spaces_of_one_document_share_an_allowance() -> None:
    """Small tables describe any amount of labels: subsets of a large grid, parts of parts."""
    one_cell = {"kind": "subsets", "of": {"kind": "grid", "columns": 30, "rows": 30}, "members": [[0]]}
    table = {"kind": "product", "parts": [one_cell] * 4}
    assert len(decode_space(table)) == 1
    with pytest.raises(pg.TooLarge, match="more labels than may be built"):
        decode_space(table, allowance=LabelBudget(250_000))
    shared = LabelBudget(250_000)
    decode_space(one_cell, allowance=shared)
    decode_space(one_cell, allowance=shared)
    with pytest.raises(pg.TooLarge):
        decode_space(one_cell, allowance=shared)


def test_names_that_multiply_are_refused() -> None:
    long = pg.Categories(["x" * 10**6, *map(str, range(200))])
    with pytest.raises(pg.TooLarge, match="characters in all"):
        pg.Subsets(long, [[long.labels[0], label] for label in long.labels[1:]])
    with pytest.raises(pg.TooLarge, match="characters in all"):
        pg.Product([long, pg.Numbers(range(101))])


labels = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
    st.integers(-(2**52), 2**52),
    st.frozensets(st.text(st.characters(codec="utf-8"), max_size=3), max_size=3),
)


@given(st.lists(labels, min_size=1, max_size=6, unique=True))
def test_any_labels_survive(given_labels: list[Any]) -> None:
    for space in (pg.Space(given_labels), pg.Categories(given_labels)):
        assert decode_space(json.loads(json.dumps(encode_space(space)))) == space


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "needs a kind"),
        ({"kind": "sphere"}, "needs a kind: one of grid, numbers"),
        ({"kind": ["grid"]}, "needs a kind"),
        ({"kind": "grid", "rows": 2}, r"\[space\] needs 'columns'"),
        ({"kind": "grid", "columns": 2, "rows": True}, "rows must be a whole number"),
        ({"kind": "grid", "columns": 2, "rows": 2, "depth": 2}, "has no key 'depth'"),
        ({"kind": "grid", "columns": 10**9, "rows": 10**9}, "at most 1000000 cells"),
        ({"kind": "grid", "columns": 2, "rows": 2, "box": [1, 2]}, "box must be"),
        ({"kind": "grid", "columns": 2, "rows": 2, "box": [5, 2, 1, 3]}, "the box must be"),
        ({"kind": "numbers", "values": [1], "from": 1}, "not both"),
        ({"kind": "numbers", "from": 1, "to": 9, "step": 0}, "step must be 1 or more"),
        ({"kind": "numbers", "from": 1, "to": 10**12}, "more than 1000000 numbers"),
        ({"kind": "numbers", "values": ["a"]}, "takes numbers only"),
        ({"kind": "categories", "labels": "abc"}, "labels must be a list"),
        ({"kind": "categories", "labels": []}, "at least one label"),
        ({"kind": "categories", "labels": [None]}, "a label must be"),
        ({"kind": "sets", "sets": [1]}, "takes sets of texts"),
        ({"kind": "graph", "edges": [["a"]]}, "an edge is"),
        ({"kind": "graph", "edges": [["a", "b", -1]]}, "positive number"),
        ({"kind": "graph", "edges": [["a", "b"]], "directed": "no"}, "directed must be true or false"),
        ({"kind": "distances", "labels": ["a"], "matrix": "nowhere"}, "wrong type"),
        ({"kind": "distances", "labels": ["a"], "matrix": [[1]]}, "zero diagonal"),
        ({"kind": "subsets", "of": {"kind": "labels", "labels": ["a"]}, "members": [[1]]}, "wrong type"),
        ({"kind": "subsets", "of": {"kind": "labels", "labels": ["a"]}, "members": [[-1]]}, "lists of positions"),
        ({"kind": "subsets", "of": {"kind": "labels", "labels": ["a"]}, "members": [[0]], "reading": "sum"}, "reading"),
    ],
)
def test_what_is_wrong_is_named(table: object, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        decode_space(table)
    assert str(caught.value).startswith("[space]")

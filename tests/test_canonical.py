"""One encoding of labels: the same bytes for equal values, in every process; and no others for values that differ."""

import doctest
import json
import math
import os
import subprocess
import sys
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames import canonical
from privacygames.canonical import digest_of, encode
from privacygames.mechanism import certify
from privacygames.spaces import space_digest
from test_immutable import SPACES

LENGTH = bytes(7)


def kind_of(value: object) -> str:
    """The name of a case, the same in every process: what ``repr`` shows of sets and objects is not."""
    return type(value).__name__


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, b"N"),
        (True, b"B\x01"),
        (False, b"B\x00"),
        (0, b"I" + LENGTH + b"\x01\x00"),
        (-1, b"I" + LENGTH + b"\x01\xff"),
        (255, b"I" + LENGTH + b"\x02\x00\xff"),
        (2**64, b"I" + LENGTH + b"\x09\x01" + bytes(8)),
        (2.0, b"I" + LENGTH + b"\x01\x02"),
        (0.5, b"F\x3f\xe0" + bytes(6)),
        (-math.inf, b"F\xff\xf0" + bytes(6)),
        ("é", b"S" + LENGTH + b"\x02\xc3\xa9"),
        (b"\x00", b"Y" + LENGTH + b"\x01\x00"),
        ((1, "a"), b"T" + LENGTH + b"\x02I" + LENGTH + b"\x01\x01S" + LENGTH + b"\x01a"),
        ({"b", "a"}, b"E" + LENGTH + b"\x02S" + LENGTH + b"\x01aS" + LENGTH + b"\x01b"),
        ({"a": None}, b"M" + LENGTH + b"\x01S" + LENGTH + b"\x01aN"),
    ],
    ids=kind_of,
)
def test_the_bytes_are_those_of_the_page(value: object, expected: bytes) -> None:
    assert encode(value) == expected


plain = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)


@given(plain, plain)
def test_encodings_are_equal_exactly_where_dictionary_keys_are(one: object, other: object) -> None:
    assert (encode(one) == encode(other)) == (one == other)
    assert one == other or not encode(one).startswith(encode(other))


@given(st.lists(st.text(max_size=3), max_size=5), st.randoms())
def test_the_order_of_a_set_and_of_a_mapping_means_nothing(texts: list[str], random: Any) -> None:
    shuffled = random.sample(texts, len(texts))
    assert encode(set(texts)) == encode(frozenset(shuffled))
    assert encode(dict.fromkeys(texts, 1)) == encode(dict.fromkeys(shuffled, 1.0))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (np.float64(0.1), 0.1),
        (np.int8(7), 7),
        (np.str_("a"), "a"),
        (np.bool_(True), True),
        ([1, "a"], (1.0, "a")),
        (2**70, float(2**70)),
    ],
)
def test_equal_values_have_one_encoding(one: object, other: object) -> None:
    assert encode(one) == encode(other)


@pytest.mark.parametrize("one", [1, 1.0, np.int64(1)])
@pytest.mark.parametrize("other", [True, "1", b"1", (1,), None, 1 + 2**-52])
def test_different_kinds_have_different_encodings(one: object, other: object) -> None:
    assert encode(one) != encode(other)


def test_texts_are_not_normalised() -> None:
    assert encode("\u00e9") != encode("e\u0301")
    spaces = [pg.Categories(["\u00e9", "x"]), pg.Categories(["e\u0301", "x"])]
    assert spaces[0] != spaces[1]
    assert space_digest(spaces[0]) != space_digest(spaces[1])


@pytest.mark.parametrize(
    "odd",
    [
        math.nan,
        Fraction(1, 2),
        date(2026, 1, 1),
        np.datetime64("2026-01-01"),
        np.zeros(2),
        object(),
        np.longdouble(1),
        1j,
    ],
    ids=kind_of,
)
def test_what_has_no_encoding_is_refused(odd: object) -> None:
    with pytest.raises(TypeError, match="no canonical encoding"):
        encode([odd])


def test_the_examples_hold() -> None:
    assert doctest.testmod(canonical) == (0, 3)


# Labels.


class Word(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "Word"

    __str__ = __repr__


class Count(int):
    pass


@pytest.mark.parametrize(
    ("given_label", "plain_label"),
    [
        (np.str_("a"), "a"),
        (Word("a"), "a"),
        (Count(3), 3),
        (np.float32(0.5), 0.5),
        (-0.0, 0.0),
        ({np.str_("a"), Word("b")}, frozenset("ab")),
    ],
)
def test_labels_are_exactly_plain_values(given_label: Any, plain_label: Any) -> None:
    """A subclass has a text of its own, which would be another label, and another digest, than the one saved."""
    spaces = [pg.Categories([label, "z"]) for label in (given_label, plain_label)]
    label = spaces[0].labels[0]
    assert type(label) is type(plain_label)
    assert repr(label) == repr(spaces[1].labels[0]) or isinstance(label, frozenset)
    assert space_digest(spaces[0]) == space_digest(spaces[1])
    if isinstance(label, frozenset):
        assert {type(text) for text in label} == {str}


@pytest.mark.parametrize(
    "odd", [True, np.bool_(False), np.datetime64(1, "ns"), np.timedelta64(3, "D"), date(2026, 1, 1), b"a", math.nan]
)
def test_what_is_no_label_is_refused(odd: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="a label"):
        pg.Categories([odd])


SPACE = pg.Categories("ab")


@pytest.mark.parametrize(
    "build",
    [
        lambda: pg.Categories({"a", "b"}),
        lambda: pg.Numbers(frozenset({1, 2})),
        lambda: pg.Sets({frozenset("a"), frozenset("b")}),
        lambda: pg.Graph({("a", "b"), ("b", "c")}),
        lambda: pg.Graph([("a", "b")], nodes={"a", "b"}),
        lambda: pg.Subsets(SPACE, {("a",), ("a", "b")}),
        lambda: pg.Subsets(SPACE, [["a"], ["b"]], labels={"x", "y"}),
        lambda: pg.Space.from_distances({"a", "b"}, [[0, 1], [1, 0]]),
        lambda: pg.Adversary.from_table("x", SPACE, {("a", "red"), ("b", "blue")}),
    ],
)
def test_a_set_is_refused_where_an_order_is_needed(build: Any) -> None:
    """Each process would go through it in another order: another space, other draws."""
    with pytest.raises(pg.InvalidProblem, match="must be in an order"):
        build()


def test_members_of_a_subset_may_be_a_set() -> None:
    assert pg.Subsets(SPACE, [{"a", "b"}]) == pg.Subsets(SPACE, [["b", "a"]])


@pytest.mark.parametrize("kind", SPACES)
def test_equal_spaces_have_one_digest_and_no_other_space_has_it(kind: str) -> None:
    assert space_digest(SPACES[kind]()) == space_digest(SPACES[kind]())
    assert [each for each in SPACES if space_digest(SPACES[each]()) == space_digest(SPACES[kind]())] == [kind]


def test_names_of_labels_do_not_depend_on_what_python_can_print() -> None:
    """``repr`` escapes what this Python's Unicode does not know; the name of a product's label must not."""
    unknown = "\u0378"  # assigned to nothing: printed or escaped, depending on the release of Unicode
    product = pg.Product([pg.Categories([unknown, "x"]), pg.Numbers([1])])
    assert product.labels[0] == f"{unknown} | 1"
    assert pg.Subsets(pg.Categories([unknown]), [[unknown]]).labels == (f"{{{unknown}}}",)


def test_products_of_equal_parts_with_other_labels_are_not_equal() -> None:
    whole, real = (pg.Product([pg.Numbers(values), SPACE]) for values in ([1, 2], [1.0, 2.0]))
    assert whole.labels != real.labels
    assert whole != real


# Every process, every release.

GOLDEN = {
    "numbers": "48774588f6db4828c85d6872b126ec8586527d29f2277d8be04980d6e129261c",
    "grid": "d1500b5253f4d0a65f17494931c4581455cd7eccea7f66ca87aff98fa4c6f522",
    "categories": "75522513efe916372b0b53df4fc57a0f582acd8dc2f65bcc969f47307622d223",
    "sets": "dbacabe6d07863b9b3781ece5f4ab7f1730a34eaa97be1ed7cc53618dc07052b",
    "graph": "bcbc27654f20442a4b4c91f4633af249eee0f9ac50a2466c3979e8637be03384",
    "distances": "9745645df7295650987a6432c0c0eaf47d21b1c2357eb72a2ee44e230259fc44",
    "product": "60a8dd980775f9fdf0528867efd2a8cf1d22b9da7642d4693f431bedd8df28f6",
    "subsets": "21ff9af5ed53cf06af9ab006defae15b31f8e42cc583d5c9004dafd9bee8ed3a",
}
"""Digests as they are stored: should one change, ledgers cannot be reopened, and keys draw other answers."""


def golden_spaces() -> dict[str, pg.Space]:
    films = pg.Sets([{"Alien", "Brazil"}, {"Élan"}, set()])
    return {
        "numbers": pg.Numbers([np.float64(0.1), int(np.int8(-3)), 2.0**-60, 1e15], unit="km"),
        "grid": pg.Grid(3, 2, 1.5, 0.25),
        "categories": pg.Categories(["flu", np.str_("Erkältung"), "", "e\u0301", "\U0001fae8"]),
        "sets": films,
        "graph": pg.Graph([("a", "b"), ("b", frozenset({"c", "d"}), 2.5)], directed=True),
        "distances": pg.Space.from_distances(
            ["a", 7, frozenset({"b"})], np.array([[0, 1, 2], [1, 0, np.inf], [3, 1, 0]])
        ),
        "product": pg.Product([films, pg.Numbers([1, 2])], scales=(0.1, 1)),
        "subsets": pg.Subsets(films, [films.labels[2:], films.labels[1::-1]], aggregation="max"),
    }


def test_digests_stay_what_they_are() -> None:
    assert {name: space_digest(space) for name, space in golden_spaces().items()} == GOLDEN
    problem = pg.Problem(pg.Prior(golden_spaces()["sets"], [0.5, 0.25, 0.25]), cost="hamming", distance="hamming")
    weights = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]], np.int64) << 60
    adversary = pg.Adversary("curious", errors=[[0.0, 1.0, 1.0]], guesses=pg.Categories([frozenset({"x", "y"})]))
    against = pg.Bounds(epsilon=1.0, within=2.0, distortion={adversary: 0.25}, worst_cost_at_most=0.75)
    found = [certify(problem, bounds, weights, origin="given") for bounds in (pg.Bounds(epsilon=1.0), against)]
    public = pg.PublicMechanism.of(found[0])
    assert [found[0].digest, found[1].digest, public.digest, adversary.digest] == [
        "f490439e7d0db2e7996fb43c5636a97609cf6575d2c9d7524f415ed89c1c2d30",
        "e55d89c0168d03977b4fa2e284ab35af2a1f79c02444549cf251b63a9ee9097e",
        "e0396f39411abda6f4a021d01cca6e7050fa5a2c19454482a1c31ea22013787d",
        "7829140cc589db55fecdcac7d7052ae383ca4defdffe3c0b160e1e6a62e80ab0",
    ]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What processes with several hash seeds say, one after the other over one folder."""
    folder = tmp_path_factory.mktemp("processes")
    runs = [("0", "forward"), ("8", "backward"), ("12345", "forward"), ("random", "backward")]
    return [_reported(folder, seed, order) for seed, order in runs]


def _reported(folder: Path, seed: str, order: str) -> dict[str, Any]:
    script = Path(__file__).with_name("process_report.py")
    found = subprocess.run(
        [sys.executable, str(script), str(folder), order],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return dict(json.loads(found.stdout))


@pytest.mark.slow
def test_every_process_has_the_same_digests_draws_ledgers_and_fleets(reports: list[dict[str, Any]]) -> None:
    first, *others = reports
    for other in others:
        assert {name: other[name] == first[name] for name in first} == dict.fromkeys(first, True)


def test_digests_for_different_purposes_differ() -> None:
    assert digest_of("a", "b") != digest_of("b", "a") != digest_of("a", "b", None)

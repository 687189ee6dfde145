"""What is read in bulk, block by block, is what a plain loop over the rows finds; and blocks change no draw."""

from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.tables import ReleaseKey, Rule, apply
from privacygames.tables.kernel import Kernel
from privacygames.tables.row_identity import RowIdentity
from privacygames.tables.rules import column_rules
from privacygames.tables.secret_columns import MISSING, UNKNOWN, SecretReader

BOX = (116.2, 39.8, 116.5, 40.0)
BLOCKS = {
    "privacygames.tables.secret_columns.BLOCK": 7,
    "privacygames.tables.kernel.BLOCK": 7,
    "privacygames.tables.adapters.pandas_frames.BLOCK": 7,
    "privacygames.tables.release_key.PART_ROWS": 5,
    "privacygames.tables.estimates.ROWS_AT_ONCE": 9,
    "privacygames.mechanism.sampling.BLOCK": 3,
}
"""Sizes so small that a few rows make several blocks."""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in BLOCKS.items():
        monkeypatch.setattr(name, size)


# Places


def plain_cell(grid: pg.Grid, x: float | None, y: float | None, *, nearest: bool = False) -> int:
    """The cell of one point, by the arithmetic of floats, one number at a time."""
    if x is None or y is None or x != x or y != y:
        return MISSING
    west, south, east, north = grid.box or (0.0, 0.0, grid.width, grid.height)
    steps = []
    for value, low, high, count in ((x, west, east, grid.columns), (y, south, north, grid.rows)):
        fraction = (value - low) / (high - low)
        if nearest and abs(x) != inf and abs(y) != inf:
            fraction = min(max(fraction, 0.0), 1.0)
        if not 0 <= fraction <= 1:
            return UNKNOWN
        steps.append(min(int(fraction * count), count - 1))
    return steps[0] + grid.columns * steps[1]


def near_borders(low: float, high: float, count: int) -> list[float]:
    """Every border of the parts of an axis, and the floats beside it."""
    borders = [low + (high - low) * k / count for k in range(count + 1)]
    return [value for border in borders for value in (nextafter(border, -inf), border, nextafter(border, inf))]


@pytest.mark.parametrize("grid", [pg.Grid.over(BOX, columns=20, rows=15), pg.Grid(7, 3, 1.1, 0.3), pg.Grid(1, 1)])
@pytest.mark.parametrize("nearest", [False, True])
def test_cells_at_every_border_are_those_of_plain_arithmetic(grid: pg.Grid, *, nearest: bool) -> None:
    west, south, east, north = grid.box or (0.0, 0.0, grid.width, grid.height)
    odd = [nan, inf, -inf, 1e300, 0.0, -0.0, None]
    xs = [*near_borders(west, east, grid.columns), *odd]
    ys = [*near_borders(south, north, grid.rows), *odd]
    pairs = [(x, y) for x in xs for y in ys]
    columns = {"x": pa.array([x for x, _ in pairs]), "y": pa.array([y for _, y in pairs])}
    positions = SecretReader(grid, ("x", "y")).positions(columns, nearest=nearest)
    assert positions.tolist() == [plain_cell(grid, x, y, nearest=nearest) for x, y in pairs]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["doubles", "floats", "nulls", "dictionary", "slice"]))
@settings(max_examples=30)
def test_cells_of_any_column_of_numbers(seed: int, kind: str) -> None:
    grid, rng = pg.Grid.over(BOX, columns=9, rows=4), np.random.default_rng(seed)
    rows = int(rng.integers(0, 60))
    axes = [rng.uniform(low - 0.05, high + 0.05, rows) for low, high in ((116.2, 116.5), (39.8, 40.0))]
    arrays = [pa.array(axis.astype(np.float32) if kind == "floats" else axis) for axis in axes]
    if kind == "nulls":
        arrays = [pa.array(axis, mask=rng.random(rows) < 0.3) for axis in axes]
    elif kind == "dictionary":
        arrays = [array.dictionary_encode() for array in arrays]
    elif kind == "slice":
        arrays = [pa.concat_arrays([array.slice(0, rows // 2), array]).slice(rows // 2) for array in arrays]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privacygames.tables.secret_columns.BLOCK", 7)
        positions = SecretReader(grid, ("x", "y")).positions(dict(zip("xy", arrays, strict=True)))
    pairs = zip(*(array.to_pylist() for array in arrays), strict=True)
    assert positions.tolist() == [plain_cell(grid, x, y) for x, y in pairs]


# Numbers


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=20, unique=True) | st.permutations(range(-3, 9)),
    st.lists(st.integers(-60, 60) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1, -(2**53)]) | st.none()),
    st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.float64()]),
)
def test_numbers_are_found_whatever_their_order_and_type(labels: list[int], values: list[Any], kind: Any) -> None:
    space = pg.Numbers(labels)
    low, high = (0, 2**64 - 1) if kind == pa.uint64() else (-(2**63), 2**63 - 1)
    if kind != pa.float64() and kind != pa.uint64():
        limit = 2 ** (kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1))
        low, high = (0 if pa.types.is_unsigned_integer(kind) else -limit), limit - 1
    fitting = [value for value in values if value is None or low <= value <= high]
    array = pa.array(
        [None if value is None else float(value) for value in fitting] if kind == pa.float64() else fitting, kind
    )
    expected = [
        MISSING if value is None else space.labels.index(value) if value in labels else UNKNOWN for value in fitting
    ]
    assert SecretReader(space, "n").positions({"n": array}).tolist() == expected


# Sets

ITEM = {"plain": pa.string(), "large": pa.large_string(), "views": pa.string_view()}
LISTS = {"list": pa.list_, "large list": pa.large_list, "list view": pa.list_view}


def universe(size: int) -> list[str]:
    return [f"film {number}" for number in range(size)]


@given(st.data())
@settings(max_examples=150)
def test_sets_in_any_column_of_lists_are_those_of_a_plain_loop(data: st.DataObject) -> None:
    """Also with repetitions, nulls, unknown texts, hidden rows and as many texts as a mask's words have bits."""
    texts = universe(data.draw(st.sampled_from([1, 3, 63, 64, 65, 130])))
    some = st.lists(st.sampled_from(texts), max_size=5)
    labels = data.draw(st.lists(some.map(frozenset), min_size=1, max_size=12, unique=True))
    row = some | st.sampled_from([sorted(label) for label in labels]) | st.none()
    row |= st.lists(st.sampled_from([texts[0], "other", "", None]), max_size=4)
    rows = data.draw(st.lists(row, max_size=40))
    kind = data.draw(st.sampled_from(sorted(LISTS)))
    item = data.draw(st.sampled_from([*sorted(ITEM), "dictionary"]))
    array = pa.array(rows, LISTS[kind](ITEM.get(item, pa.string())))
    if item == "dictionary" and kind == "list":
        encoded = array.values.dictionary_encode()
        array = pa.ListArray.from_arrays(
            array.offsets, encoded, mask=pa.array([row is None for row in rows], pa.bool_())
        )
    first = data.draw(st.integers(0, len(rows)))
    index = {label: position for position, label in enumerate(labels)}
    expected = [MISSING if row is None else index.get(frozenset(row), UNKNOWN) for row in rows[first:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privacygames.tables.secret_columns.BLOCK", 7)
        positions = SecretReader(pg.Sets(labels), "films").positions({"films": array.slice(first)})
    assert positions.tolist() == expected


def test_sets_of_more_texts_than_a_mask_has() -> None:
    texts = universe(1100)
    labels = [frozenset(texts), frozenset(texts[:-1]), frozenset[str]()]
    rows = [texts, texts[:-1], [], None, texts[1:], [*texts, texts[0]]]
    positions = SecretReader(pg.Sets(labels), "films").positions({"films": pa.array(rows)})
    assert positions.tolist() == [0, 1, 2, MISSING, UNKNOWN, 0]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_(pa.null()), pa.list_(pa.binary())])
def test_lists_of_what_is_no_text_hold_no_secret_but_the_empty_set(kind: pa.DataType) -> None:
    sets = pg.Sets([{"Alien"}, set()])
    values = {pa.list_(pa.int64()): 1, pa.list_(pa.null()): None, pa.list_(pa.binary()): b"Alien"}
    array = pa.array([[], [values[kind]], None], kind)
    assert SecretReader(sets, "films").positions({"films": array}).tolist() == [1, UNKNOWN, MISSING]


def test_a_list_that_is_null_may_hide_values() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 3]), pa.array(["Alien", "Brazil", "x"]), mask=pa.array([False, True, False])
    )
    positions = SecretReader(pg.Sets([{"Alien"}, set()]), "films").positions({"films": hidden})
    assert positions.tolist() == [0, MISSING, 1]


FILMS = pg.Sets([{"Alien"}, {"Brazil"}, {"Alien", "Brazil"}, set()])
FILM = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(FILMS)), epsilon=2.0)


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, lambda row: np.array(row, dtype=object)])
def test_pandas_objects_draw_as_the_same_lists_of_arrow_do(kind: Any) -> None:
    rng, key = np.random.default_rng(1), ReleaseKey()
    rows = [sorted(FILMS.labels[number]) for number in rng.integers(0, 4, 300)]
    given_rows: list[Any] = [kind(row) for row in rows]
    for row, missing in ((3, None), (5, nan), (8, pd.NA)):
        rows[row], given_rows[row] = None, missing  # type: ignore[call-overload]
    frame = pd.DataFrame({"id": range(300), "films": pd.Series(given_rows, dtype=object)})
    table = pa.table({"id": range(300), "films": pa.array(rows, pa.list_(pa.string()))})
    rules = {"films": Rule(mechanism=FILM, missing="null")}
    of_frame, of_table = (apply(each, rules, key=key, key_columns="id")[0] for each in (frame, table))
    assert [None if each is None else list(each) for each in of_frame["films"]] == of_table["films"].to_pylist()
    with pytest.raises(ValueError, match="read-only"):  # one array for all rows that hold the same set
        of_frame["films"].dropna().iloc[0][:] = "Alien"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rows", [0, 20])
@pytest.mark.parametrize("first", [set(), [], None])
def test_pandas_sets_of_which_whole_blocks_are_empty_or_missing(first: Any, rows: int) -> None:
    given_rows: list[Any] = [first] * rows + [frozenset({"Alien"})] + [None] * rows
    frame = pd.DataFrame({"films": pd.Series(given_rows, dtype=object)})
    released, _ = apply(frame, {"films": Rule(mechanism=FILM, missing="null")})
    assert released["films"].isna().tolist() == [row is None for row in given_rows]


def test_pandas_sets_and_lists_may_be_mixed_but_not_with_texts() -> None:
    rows: list[Any] = [{"Alien"}, ["Brazil", "Alien"], frozenset(), None]
    frame = pd.DataFrame({"films": pd.Series(rows, dtype=object)})
    released, manifest = apply(frame, {"films": Rule(mechanism=FILM, missing="drop")})
    assert (len(released), manifest.counts.dropped) == (3, 1)
    for other in ("Alien", 3, {1, "Alien"}, [["Alien"]]):
        frame = pd.DataFrame({"films": pd.Series([{"Alien"}, other], dtype=object)})
        with pytest.raises(pg.InvalidProblem, match="'films' holds values of several kinds") as raised:
            apply(frame, {"films": FILM})
        assert "Alien" not in str(raised.value)


def test_pandas_categories_draw_as_texts_do() -> None:
    ills = pg.Categories(["flu", "none"])
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ills)), epsilon=1.0)
    texts, key = pd.DataFrame({"id": range(200), "ill": ["flu", "none"] * 100}), ReleaseKey()
    released = [
        apply(texts.astype({"ill": kind}), {"ill": mechanism}, key=key, key_columns="id")[0]["ill"].tolist()
        for kind in (object, "string", "category")
    ]
    assert released[0] == released[1] == released[2]


# Draws

MECHANISMS: dict[str, tuple[Any, pg.Sampleable]] = {
    "age": ("age", pg.baselines.geometric(pg.Problem(pg.Prior.uniform(pg.Numbers(range(20, 30)))), epsilon=0.5)),
    "cell": (("x", "y"), pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid(4, 3, 2.0, 1.0))), epsilon=0.6)),
    "film": ("films", FILM),
}


def rows_of_secrets(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "id": pa.array(np.arange(rows)),
        "age": pa.array(rng.integers(18, 32, rows)),
        "x": pa.array(rng.uniform(-0.2, 2.2, rows)),
        "y": pa.array(rng.uniform(-0.1, 1.1, rows), mask=rng.random(rows) < 0.05),
        "films": pa.array([["Alien"], ["Brazil", "Brazil"], None, ["Dune"], []]).take(
            pa.array(rng.integers(0, 5, rows))
        ),
    }


@pytest.mark.parametrize(
    ("name", "form"), [*((name, "label") for name in MECHANISMS), ("age", "point"), ("cell", "point")]
)
@pytest.mark.parametrize("identity", [RowIdentity(), RowIdentity(("id",))], ids=["by position", "by key"])
@pytest.mark.parametrize("invalid", ["drop", "null"])
def test_blocks_change_no_output(name: str, form: Any, identity: RowIdentity, invalid: Any) -> None:
    """A row has the same output in a small block as in a large one, and whether others are dropped or stay."""
    place, mechanism = MECHANISMS[name]
    columns, key = rows_of_secrets(100), ReleaseKey()
    into = ["a", "b"] if (name, form) == ("cell", "point") else "a"

    def draw(treatment: Any) -> dict[int, tuple[Any, ...]]:
        rule = Rule(mechanism=mechanism, invalid=treatment, output_form=form, into=into)
        kernel = Kernel(column_rules({place: rule}), key, identity, None, pa.table(columns).schema)
        outputs = kernel.draw(columns, 100, 1000)
        kept = np.arange(100) if outputs.keep is None else np.flatnonzero(outputs.keep)
        lists = [outputs.columns[column].to_pylist() for column in sorted(outputs.columns)]
        return dict(zip(kept.tolist(), zip(*lists, strict=True), strict=True))

    plain = draw("null")
    expected = {row: output for row, output in plain.items() if invalid == "null" or output[0] is not None}
    assert len(expected) < 100 or invalid == "null"
    assert draw(invalid) == expected
    with pytest.MonkeyPatch.context() as patch:
        for constant, size in BLOCKS.items():
            patch.setattr(constant, size)
        assert draw(invalid) == expected


@pytest.mark.usefixtures("small_blocks")
def test_no_row_and_no_row_that_stays() -> None:
    rules = {"age": Rule(mechanism=MECHANISMS["age"][1], invalid="drop"), "films": Rule(mechanism=FILM)}
    for ages in ([], [99] * 20):
        table = pa.table(
            {"age": pa.array(ages, pa.int64()), "films": pa.array([[]] * len(ages), pa.list_(pa.string()))}
        )
        released, manifest = apply(table, rules)
        assert (released.num_rows, manifest.counts.dropped) == (0, len(ages))
        assert released.schema.field("films").type == pa.list_(pa.string())
        frame, _ = apply(pd.DataFrame({"age": pd.Series(ages, dtype="int64")}), {"age": rules["age"]})
        assert len(frame) == 0


# Estimates


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("form", ["plain", "chunked", "dictionary", "slice"])
def test_an_arrow_column_of_outputs_counts_as_its_list_does(form: str) -> None:
    rng = np.random.default_rng(3)
    numbers, ills = pg.Numbers(range(20, 24)), pg.Categories(["flu", "none", "asthma"])
    cases: list[tuple[pg.Space, Any]] = [
        (numbers, pa.array(rng.integers(20, 24, 500))),
        (numbers, pa.array(rng.integers(20, 24, 500).astype(np.float32))),
        (ills, pa.array(rng.choice(["flu", "none", "asthma"], 500))),
        (FILMS, pa.array([sorted(FILMS.labels[number]) for number in rng.integers(0, 4, 500)])),
    ]
    for space, array in cases:
        mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(space)), epsilon=1.0)
        labels = [frozenset(value) if isinstance(value, list) else value for value in array.to_pylist()]
        column = array
        if form == "chunked":
            column = pa.chunked_array([array.slice(0, 10), array.slice(10, 0), array.slice(10)])
        elif form == "dictionary" and not pa.types.is_list(array.type):
            column = array.dictionary_encode()
        elif form == "slice":
            column = pa.concat_arrays([array, array]).slice(500)
        estimates = [pg.estimate(mechanism, outputs).frequencies.tolist() for outputs in (column, labels)]
        assert estimates[0] == estimates[1]


def test_what_is_no_output_in_an_arrow_column_is_said_with_its_position() -> None:
    numbers = pg.Numbers(range(20, 24))
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(numbers)), epsilon=1.0)
    for value in (77, None):
        with pytest.raises(pg.UnknownLabel, match="at position 2") as raised:
            pg.estimate(mechanism, pa.chunked_array([[20, 21], [value]]))
        assert "77" not in str(raised.value)
    with pytest.raises(pg.InvalidProblem, match="no outputs"):
        pg.estimate(mechanism, pa.array([], pa.int64()))

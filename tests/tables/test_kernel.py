"""The kernel on Arrow tables: exact draws, every form of answer, originals, and rows that are no secrets."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import privacygames as pg
from privacygames.tables import ReleaseKey, Rule, apply
from privacygames.tables.release_key import KeyedBits
from privacygames.tables.row_identity import RowIdentity

AGES = pg.Numbers(range(20, 30), unit="years")
GRID = pg.Grid.over((13.0, 52.0, 13.4, 52.2), columns=4, rows=3)
ILLS = pg.Categories(["asthma", "flu", "none"])
PARTS: dict[str, pg.Space] = {"age": AGES, "ill": ILLS}
FILMS = pg.Sets([{"Alien"}, {"Brazil"}, {"Alien", "Brazil"}])


def uniform(
    space: pg.Space, epsilon: float = 0.7, observables: pg.Space | None = None, **measures: Any
) -> pg.Mechanism:
    return pg.design(pg.Problem(pg.Prior.uniform(space), observables=observables, **measures), epsilon=epsilon)


AGE = uniform(AGES)
ILL = uniform(ILLS)
PLACE = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(GRID)), epsilon=0.5)
INTERVALS = uniform(AGES, observables=AGES.intervals(3), cost="absolute")


def table(rows: int = 50, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {
        "id": pa.array(np.arange(rows)),
        "age": pa.array(rng.integers(20, 30, rows), pa.int16()),
        "lon": pa.array(rng.uniform(13.0, 13.4, rows)),
        "lat": pa.array(rng.uniform(52.0, 52.2, rows)),
        "ill": pa.array(rng.choice(["asthma", "flu", "none"], rows)).dictionary_encode(),
        "films": pa.array([[["Alien"], ["Brazil"], ["Brazil", "Alien"]][i] for i in rng.integers(0, 3, rows)]),
        "note": pa.array([None if i % 7 == 0 else f"n{i}" for i in range(rows)], pa.large_string()),
    }
    made = pa.table(columns)
    field = made.schema.field("note").with_metadata({b"about": b"notes"})
    return made.cast(made.schema.set(6, field)).replace_schema_metadata({b"made": b"by hand"})


def test_draws_fit_the_weights_exactly() -> None:
    """Chi-square of half a million unseeded draws for each secret against the integers themselves."""
    rows = 300_000
    for secret in (20, 25):
        released, _ = apply(pa.table({"age": pa.array(np.full(rows, secret))}), {"age": AGE})
        seen = np.bincount(released["age"].to_numpy() - 20, minlength=10)
        expected = AGE.weights[AGES.index(secret)] / 2**AGE.bits * rows
        used = expected > 0
        assert seen[~used].sum() == 0
        assert chisquare(seen[used], expected[used] / expected[used].sum() * rows).pvalue > 1e-7


def test_each_draw_is_the_one_that_the_row_s_bits_ask_for() -> None:
    """Row by row: the first observable whose cumulative weight exceeds the row's 62 bits, by plain integers."""
    key, data = ReleaseKey(), table(200)
    released, _ = apply(data, {"age": AGE}, key=key, key_columns="id")
    bits = KeyedBits(key.derive("draw", AGE.digest, "1", "age", "columns", "id"))
    tags = RowIdentity(("id",)).tags(key, {"id": data["id"].combine_chunks()}, 200, 0)
    for tag, age, answer in zip(tags, data["age"].to_pylist(), released["age"].to_pylist(), strict=True):
        at = AGES.index(age)
        word = int(bits.words(tag.reshape(1, 2), np.array([at]))[0]) >> 2
        total, chosen = 0, 0
        for chosen, weight in enumerate(AGE.weights[at].tolist()):  # noqa: B007
            total += weight
            if total > word:
                break
        assert AGES.labels[chosen] == answer


def test_other_columns_order_types_and_metadata_stay() -> None:
    data = table()
    released, manifest = apply(
        data, {"age": AGE, "ill": ILL, ("lon", "lat"): Rule(mechanism=PLACE, output_form="centre")}
    )
    assert released.schema.equals(data.schema, check_metadata=True)
    for name in ("id", "films", "note"):
        assert released[name].equals(data[name])
    assert manifest.rows_in == manifest.rows_out == 50
    assert set(released["ill"].to_pylist()) <= set(ILLS.labels)


@pytest.mark.parametrize("original", ["replace", "drop", "null"])
def test_what_becomes_of_originals(original: Any) -> None:
    data = table()
    released, _ = apply(
        data, {"age": Rule(mechanism=AGE, original=original)}, key=ReleaseKey(bytes(32)), key_columns="id"
    )
    plain, _ = apply(data, {"age": AGE}, key=ReleaseKey(bytes(32)), key_columns="id")
    names = {
        "replace": data.column_names,
        "drop": [name for name in data.column_names if name != "age"] + ["age_released"],
        "null": [*data.column_names, "age_released"],
    }[original]
    assert released.column_names == names
    answers = released["age" if original == "replace" else "age_released"]
    assert answers.to_pylist() == plain["age"].to_pylist()
    if original == "null":
        assert released["age"].null_count == 50
        assert released["age"].type == pa.int16()


def test_forms_of_answers() -> None:
    data, key = table(), ReleaseKey()

    def answered(place: Any, mechanism: pg.Mechanism, form: Any, **options: Any) -> pa.Table:
        return apply(data, {place: Rule(mechanism=mechanism, output_form=form, **options)}, key=key, key_columns="id")[
            0
        ]

    labels = answered("age", INTERVALS, "label")["age"].to_pylist()
    assert set(labels) <= set(INTERVALS.observables.labels)
    bounds = answered("age", INTERVALS, "bounds")
    assert bounds.column_names[1:3] == ["age_low", "age_high"]
    assert [
        f"{low}–{high}" if low < high else f"{low}"
        for low, high in zip(bounds["age_low"].to_pylist(), bounds["age_high"].to_pylist(), strict=True)
    ] == labels
    sets = answered("age", INTERVALS, "set")["age"].to_pylist()
    assert [min(each) for each in sets] == bounds["age_low"].to_pylist()
    centres = answered("age", INTERVALS, "centre")["age"].to_pylist()
    assert centres == [float(np.mean(each)) for each in sets]
    points = answered("age", INTERVALS, "point")["age"].to_pylist()
    assert all(point in each for point, each in zip(points, sets, strict=True))
    cells = answered(("lon", "lat"), PLACE, "label", into="cell")["cell"].to_pylist()
    for form, into in (("centre", None), ("point", None)):
        made = answered(("lon", "lat"), PLACE, form, into=into)
        found = GRID.cells(np.stack([made["lon"].to_numpy(), made["lat"].to_numpy()], axis=1))
        assert found == cells
    box = answered(("lon", "lat"), PLACE, "bounds", into=["w", "s", "e", "n"])
    assert [
        GRID.cell(((w + e) / 2, (s + n) / 2)) for w, s, e, n in zip(*(box[i].to_pylist() for i in "wsen"), strict=True)
    ] == cells


def test_points_in_a_grid_of_whole_numbers_are_no_whole_numbers() -> None:
    grid = pg.Grid(3, 2, 6.0, 4.0)  # centres at 1, 3, 5
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(grid)), epsilon=1.0)
    data = pa.table({"x": [1, 5], "y": [1, 3]})
    centres, _ = apply(data, {("x", "y"): Rule(mechanism=mechanism, output_form="centre")})
    points, _ = apply(data, {("x", "y"): Rule(mechanism=mechanism, output_form="point")})
    assert centres.schema.field("x").type == pa.int64()
    assert points.schema.field("x").type == pa.float64()


def test_numbered_nodes_have_no_nearest_one() -> None:
    nodes = pg.Graph([(1, 2), (2, 9)])
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(nodes)), epsilon=1.0)
    with pytest.raises(pg.InvalidProblem, match="only places and numbers"):
        apply(pa.table({"node": [3]}), {"node": Rule(mechanism=mechanism, invalid="nearest")})
    released, _ = apply(pa.table({"node": [9, 2]}), {"node": mechanism})
    assert set(released["node"].to_pylist()) <= {1, 2, 9}


def test_points_are_spread_over_the_whole_cell() -> None:
    many = pa.table({"x": np.full(4000, 13.05), "y": np.full(4000, 52.05)})
    constant = pg.baselines.constant(pg.Problem(pg.Prior.uniform(GRID)))
    released, _ = apply(many, {("x", "y"): Rule(mechanism=constant, output_form="point")})
    corners = np.array(GRID.outline(GRID.cell((released["x"][0].as_py(), released["y"][0].as_py()))))
    for axis, name in enumerate("xy"):
        low, high = corners[:, axis].min(), corners[:, axis].max()
        share = (released[name].to_numpy() - low) / (high - low)
        assert share.min() >= 0
        assert share.max() <= 1
        assert chisquare(np.histogram(share, bins=10, range=(0, 1))[0]).pvalue > 1e-7


def test_columns_that_belong_together_are_one_secret() -> None:
    both = pg.Product([AGES, ILLS], scales=[0.2, 1.0])
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(both), cost="sum"), epsilon=1.0)
    data, key = table(500), ReleaseKey()
    released, manifest = apply(data, {("age", "ill"): mechanism}, key=key, key_columns="id")
    assert released.schema.equals(data.schema)
    at = both.join([np.array([space.index(each) for each in data[name].to_pylist()]) for name, space in PARTS.items()])
    tags = RowIdentity(("id",)).tags(key, {"id": data["id"].combine_chunks()}, 500, 0)
    words = KeyedBits(key.derive("draw", mechanism.digest, "2", "age", "ill", "columns", "id")).words(tags, at)
    expected = [both.labels[drawn] for drawn in mechanism.sampler().draw_with(at, words)]
    made = [f"{age} | {ill}" for age, ill in zip(released["age"].to_pylist(), released["ill"].to_pylist(), strict=True)]
    assert made == expected
    joined = [both.labels[position] for position in at]
    plain, _ = apply(pa.table({"both": joined}), {"both": mechanism})
    assert set(plain["both"].to_pylist()) <= set(both.labels)
    assert list(manifest.per_row.epsilons.values()) == [mechanism.bounds.epsilon]
    with_places = pg.Product([pg.Grid.over((13.0, 52.0, 13.4, 52.2), columns=2, rows=1), ILLS])
    nested = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(with_places)), epsilon=1.0)
    out, _ = apply(data, {(("lon", "lat"), "ill"): Rule(mechanism=nested, into=["cell", "ill"])})
    assert "lon" not in out.column_names
    assert set(out["cell"].to_pylist()) <= {"cell-0", "cell-1"}


def test_sets_of_texts() -> None:
    mechanism = uniform(FILMS)
    released, _ = apply(table(), {"films": mechanism})
    assert all(frozenset(each) in FILMS.labels for each in released["films"].to_pylist())


ODD = pa.table({"age": pa.array([20, None, 99, 29, float("nan"), 24.6]), "n": pa.array(range(6))})


def test_odd_rows_are_an_error_that_says_where_and_not_what() -> None:
    with pytest.raises(pg.InvalidProblem, match="2 of 6 rows have no value, the first at row 1") as raised:
        apply(ODD, {"age": AGE})
    with pytest.raises(pg.InvalidProblem, match=r"2 of 4 rows hold what is no secret .* row 1 .*'nearest'") as other:
        apply(ODD.filter(pa.array([True, False, True, True, False, True])), {"age": AGE})
    assert "99" not in f"{raised.value} {other.value}"


@pytest.mark.parametrize(
    ("options", "rows", "nulls"),
    [
        ({"invalid": "drop"}, [0, 3], []),
        ({"invalid": "null"}, list(range(6)), [1, 2, 4, 5]),
        ({"invalid": "nearest", "missing": "drop", "far_share_at_most": 0.2}, [0, 2, 3, 5], []),
        ({"invalid": "drop", "missing": "null"}, [0, 1, 3, 4], [1, 3]),
    ],
)
def test_odd_rows_are_counted_and_never_silent(options: dict[str, Any], rows: list[int], nulls: list[int]) -> None:
    released, manifest = apply(ODD, {"age": Rule(mechanism=AGE, **options)})
    assert released["n"].to_pylist() == rows
    assert [at for at, age in enumerate(released["age"].to_pylist()) if age is None] == nulls
    counted = manifest.to_dict()["rows"]
    assert (counted["in"], counted["out"], counted["dropped"]) == (6, len(rows), 6 - len(rows))
    odd = {entry["reason"]: (entry["rows"], entry["became"]) for entry in counted["odd"]}
    assert odd.pop("far", None) == ((1, "nearest") if options["invalid"] == "nearest" else None)
    invalid = options["invalid"]
    assert odd == {"missing": (2, options.get("missing", invalid)), "unknown": (2, invalid)}
    if "null" in options.values():
        assert any("null" in warning for warning in manifest.warnings)


def test_the_nearest_secret_is_the_nearest() -> None:
    options: dict[str, Any] = {"key": ReleaseKey(), "key_columns": "id"}
    near = {"age": Rule(mechanism=AGE, invalid="nearest", far_share_at_most=0.5)}
    odd, _ = apply(pa.table({"age": [99.0, -5.0, 24.6, 24.5], "id": range(4)}), near, **options)
    even, manifest = apply(pa.table({"age": [29.0, 20.0, 25.0, 24.0], "id": range(4)}), near, **options)
    assert odd.equals(even)
    assert not manifest.counts.invalid


def test_what_is_infinitely_far_is_near_to_nothing() -> None:
    grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    place = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(grid)), epsilon=0.5)
    for far in (np.inf, -np.inf):
        with pytest.raises(pg.InvalidProblem, match="1 of 2 rows hold what is no secret"):
            apply(pa.table({"age": [25.0, far]}), {"age": Rule(mechanism=AGE, invalid="nearest")})
        near = Rule(mechanism=place, invalid="nearest", into="cell", far_share_at_most=0.5)
        with pytest.raises(pg.InvalidProblem, match="1 of 2 rows hold what is no secret"):
            apply(pa.table({"x": [1.0, far], "y": [1.0, 1.0]}), {("x", "y"): near})
    moved, manifest = apply(pa.table({"x": [1.0, 9.0], "y": [1.0, 1.0]}), {("x", "y"): near})
    assert moved.num_rows == 2
    assert dict(manifest.counts.invalid) == {("x, y", "unknown"): 1, ("x, y", "far"): 1}


def test_in_a_product_only_what_has_a_nearest_one_is_moved() -> None:
    both = pg.Product([AGES, ILLS])
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(both)), epsilon=1.0)
    rule = Rule(mechanism=mechanism, invalid="nearest", far_share_at_most=1.0)
    key = ReleaseKey()
    odd, even = (
        apply(
            pa.table({"age": ages, "ill": ["flu", "none"], "id": [0, 1]}),
            {("age", "ill"): rule},
            key=key,
            key_columns="id",
        )[0]
        for ages in ([99, 3], [29, 20])
    )
    assert odd.equals(even)
    with pytest.raises(pg.InvalidProblem, match="1 of 1 rows hold what is no secret") as raised:
        apply(pa.table({"age": [25], "ill": ["plague"]}), {("age", "ill"): rule})
    assert "'nearest'" not in str(raised.value)


def test_rows_left_out_do_not_change_the_others() -> None:
    whole, _ = apply(table(), {"age": AGE}, key=ReleaseKey(bytes(32)), key_columns="id")
    some = pa.array([i % 3 > 0 for i in range(50)])
    ages = pa.array(
        [age if keep else None for age, keep in zip(table()["age"].to_pylist(), some.to_pylist(), strict=True)]
    )
    data = table().set_column(1, "age", ages)
    dropped, _ = apply(data, {"age": Rule(mechanism=AGE, invalid="drop")}, key=ReleaseKey(bytes(32)), key_columns="id")
    assert dropped["age"].to_pylist() == whole["age"].filter(some).to_pylist()


def test_swapped_coordinates_are_noticed() -> None:
    with pytest.raises(pg.InvalidProblem, match="longitude comes first"):
        apply(table(), {("lat", "lon"): Rule(mechanism=PLACE, output_form="centre")})


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "give the rules as"),
        ({"nobody": AGE}, "no column 'nobody'"),
        ({"age": "a mechanism"}, "needs a Mechanism"),
        ({"note": AGE}, "need numbers"),
        ({"age": ILL}, "are texts"),
        ({("lon", "lat"): PLACE}, "say with into"),
        ({("age", "ill"): AGE}, "takes one column"),
        ({"age": Rule(mechanism=AGE, into="note")}, "two columns note"),
        ({"age": Rule(mechanism=AGE, into=["a", "b"])}, "into names 2"),
        ({"age": Rule(mechanism=AGE), ("age", "ill"): uniform(pg.Product([AGES, ILLS]))}, "one rule only"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        apply(table(), rules)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": ILL, "invalid": "nearest"}, "only places and numbers"),
        ({"mechanism": ILL, "output_form": "centre"}, "needs places or numbers"),
        ({"mechanism": AGE, "output_form": "set"}, "observables that are sets"),
        ({"mechanism": AGE, "output_form": "guess"}, "output_form is 'guess'"),
        ({"mechanism": AGE, "original": "keep"}, "original is 'keep'"),
        ({"mechanism": AGE, "invalid": "ignore"}, "invalid is 'ignore'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: Any, message: str) -> None:
    column = "ill" if options["mechanism"] is ILL else "age"
    with pytest.raises(pg.InvalidProblem, match=message):
        apply(table(), {column: Rule(**options)})


def test_a_dictionary_never_keeps_original_values() -> None:
    """A category that nobody's answer is must not be seen among the categories either."""
    data = pa.table({"ill": pa.array(["asthma", "rare disease", "flu"]).dictionary_encode()})
    for original in ("replace", "null", "drop"):
        released, _ = apply(data, {"ill": Rule(mechanism=ILL, invalid="null", original=original)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, released.schema) as writer:
            writer.write_table(released)
        assert b"rare disease" not in sink.getvalue().to_pybytes()


def test_an_empty_table_stays_one() -> None:
    released, manifest = apply(
        table().slice(0, 0), {"age": AGE, ("lon", "lat"): Rule(mechanism=PLACE, output_form="point")}
    )
    assert released.schema.equals(table().schema)
    assert (released.num_rows, manifest.rows_in) == (0, 0)

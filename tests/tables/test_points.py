"""Mechanisms for points on tables: exact draws, points outside, wrong columns, costs, files and previews."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.points import Mesh, PublicPointMechanism, design
from privacygames.tables import ReleaseKey, ReleaseLedger, Rule, apply, apply_files, preview, preview_file

BOX = (13.2, 52.4, 13.4, 52.5)
CITY = pg.Area.over(BOX)
OUTPUTS = pg.Grid.over(BOX, columns=3, rows=2)
DAY = pg.Interval(0.0, 24.0, unit="hours")
COLUMNS = ("lon", "lat")


def designed(outputs: Any, mesh: Mesh | None = None, epsilon: float = 0.4) -> pg.PointMechanism:
    prior = pg.PointPrior(CITY, CITY.coordinates(CITY.lattice((6, 5))))
    return design(pg.PointProblem(prior, outputs, mesh=mesh), epsilon=epsilon, prove_bound=False)


PLACE = designed(OUTPUTS)
REFINED = designed(OUTPUTS, Mesh(CITY, 3, 2).refined([0]))
HOUR = design(
    pg.PointProblem(pg.PointPrior(DAY, np.arange(24.0)), list(range(0, 25, 3))), epsilon=0.5, prove_bound=False
)


def table(rows: int = 60, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    (west, south), (east, north) = CITY.corners
    return pa.table(
        {
            "id": np.arange(rows),
            "who": rng.choice(["ann", "bob", "cleo"], rows),
            "lon": rng.uniform(west, east, rows),
            "lat": rng.uniform(south, north, rows),
            "hour": rng.uniform(0.0, 24.0, rows),
        }
    )


def fits(seen: NDArray[Any], probabilities: NDArray[np.float64]) -> bool:
    """Whether counts fit probabilities; rare outputs are counted together with the rarest of the others."""
    expected = probabilities * seen.sum()
    order = np.argsort(expected)
    last = int((expected < 10).sum())
    pooled = [np.append(counts[order][: last + 1].sum(), counts[order][last + 1 :]) for counts in (seen, expected)]
    return bool(chisquare(*pooled).pvalue > 1e-7)


def places(released: pa.Table) -> NDArray[np.float64]:
    return np.stack([released[name].to_numpy() for name in COLUMNS], axis=1)


def with_points(points: Any) -> pa.Table:
    lon, lat = np.array(points, dtype=np.float64).T
    return pa.table({"id": np.arange(len(lon)), "lon": pa.array(lon, from_pandas=True), "lat": lat})


@pytest.mark.parametrize("mechanism", [PLACE, REFINED], ids=["regular", "refined"])
def test_outputs_fit_the_probabilities(mechanism: pg.PointMechanism) -> None:
    """Chi-square at a corner, on the edges of cells, inside one, and outside of the area."""
    rows, corners = 40_000, [low[:2] for low in CITY.coordinates(mechanism.mesh.bounds[0])]
    for point in [*corners[1:4], (13.2701, 52.4333), (13.4, 52.5), (13.405, 52.45)]:
        released, _ = apply(
            with_points(np.tile(point, (rows, 1))), {COLUMNS: Rule(mechanism=mechanism, output_form="label", into="at")}
        )
        seen = np.bincount(OUTPUTS.indices(released["at"].to_pylist()), minlength=len(OUTPUTS))
        assert fits(seen, mechanism.probabilities([point])[0])


def test_numbers_of_an_interval_are_one_column() -> None:
    rows, numbers = 40_000, list(range(0, 25, 3))
    for point in (0.0, 6.7, 24.0):
        released, manifest = apply(pa.table({"hour": np.full(rows, point)}), {"hour": HOUR})
        assert manifest.per_row.epsilons == {"per hour": 0.5}
        seen = np.bincount(np.searchsorted(numbers, released["hour"].to_numpy()), minlength=len(numbers))
        assert fits(seen, HOUR.probabilities([point])[0])
    whole, _ = apply(pa.table({"hour": pa.array([3, 14], pa.int16())}), {"hour": HOUR})
    assert whole.schema.field("hour").type == pa.int16()


def test_two_columns_of_coordinates_become_two() -> None:
    data = table()
    released, manifest = apply(data, {COLUMNS: PLACE})
    assert released.schema.equals(data.schema)
    centres = [OUTPUTS.centre(label) for label in OUTPUTS.labels]
    assert np.abs(places(released)[:, None] - centres).max(axis=2).min(axis=1).max() < 1e-12
    assert not manifest.counts.invalid
    key = ReleaseKey()

    def written(form: Any, into: Any = None) -> pa.Table:
        rule = Rule(mechanism=PLACE, output_form=form, into=into)
        return apply(data, {COLUMNS: rule}, key=key, key_columns="id")[0]

    labels = written("label", "cell")["cell"].to_pylist()
    assert OUTPUTS.cells(places(written("centre"))) == OUTPUTS.cells(places(written("point"))) == labels
    assert written("bounds", ["w", "s", "e", "n"]).column_names[2:6] == ["w", "s", "e", "n"]


def test_outputs_that_are_points_are_written_as_they_were_given() -> None:
    given = [(13.2100001, 52.41), (13.3, 52.4700003), (13.37, 52.49)]
    mechanism = designed(given)
    for form in ("centre", "point"):
        released, _ = apply(table(), {COLUMNS: Rule(mechanism=mechanism, output_form=form)})
        assert {tuple(place) for place in places(released).tolist()} <= set(given)
    named = designed(pg.Places(given, labels=["zoo", "lake", "park"], degrees=True))
    released, _ = apply(table(), {COLUMNS: Rule(mechanism=named, output_form="label", into="at")})
    assert set(released["at"].to_pylist()) <= {"zoo", "lake", "park"}


def test_the_type_of_the_columns_stays_where_it_can() -> None:
    data = table().to_pandas()
    for kind, expected in (("float32", "float32"), ("category", "float64")):
        released, _ = apply(data.astype({"lon": kind, "lat": kind}), {COLUMNS: PLACE})
        assert released[list(COLUMNS)].dtypes.astype(str).tolist() == [expected] * 2


@settings(max_examples=20, deadline=None, derandomize=True)
@given(order=st.permutations(range(30)), cut=st.integers(0, 30))
def test_a_row_gets_its_output_in_any_order_and_cut(order: list[int], cut: int) -> None:
    key, data = ReleaseKey(bytes(range(32))), table(30)
    rules: dict[Any, Any] = {COLUMNS: REFINED, "hour": HOUR}
    expected = apply(data, rules, key=key, key_columns="id")[0]
    mixed = data.take(order)
    parts = pa.concat_tables([mixed.slice(0, cut), mixed.slice(cut)])
    found = apply(parts, rules, key=ReleaseKey(bytes(range(32))), key_columns="id")[0]
    assert found.equals(expected.take(order).cast(found.schema))


def test_processes_with_other_hash_seeds_draw_the_same(tmp_path: Path) -> None:
    PLACE.save(tmp_path / "place.pgm")
    code = (
        "import sys, numpy as np, pyarrow as pa, privacygames as pg\n"
        "mechanism = pg.load(sys.argv[1], pg.PointMechanism)\n"
        "lon, lat = np.random.default_rng(0).uniform([13.2, 52.4], [13.4, 52.5], (50, 2)).T\n"
        "table = pa.table({'id': range(50), 'lon': lon, 'lat': lat})\n"
        "key = pg.tables.ReleaseKey(bytes(32))\n"
        "out, _ = pg.tables.apply(table, {('lon', 'lat'): mechanism}, key=key, key_columns='id')\n"
        "print(out.select(['lon', 'lat']).to_pydict())\n"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / "place.pgm"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(drawn) == 1
    assert len(set(drawn.pop())) > 5


def test_points_outside_are_moved_to_the_edge_and_counted() -> None:
    inside, outside = [(13.25, 52.45)] * 20, [(13.4, 52.45), (13.41, 52.45), (13.41, 52.55)]
    edge = [(13.4, 52.45), (13.4, 52.45), (13.4, 52.5)]
    key, rule = ReleaseKey(bytes(32)), Rule(mechanism=PLACE)
    moved, manifest = apply(with_points(inside + outside), {COLUMNS: rule}, key=key, key_columns="id")
    as_edge, told = apply(with_points(inside + edge), {COLUMNS: rule}, key=ReleaseKey(bytes(32)), key_columns="id")
    assert moved.equals(as_edge)
    assert dict(manifest.counts.invalid) == {("lon, lat", "unknown"): 2, ("lon, lat", "far"): 1}
    assert "lon, lat: 2 rows were outside: nearest" in str(manifest)
    assert any("1 rows lay more than one step beyond" in warning for warning in manifest.warnings)
    assert not told.counts.invalid


@pytest.mark.parametrize(("invalid", "rows", "nulls"), [("drop", 20, 0), ("null", 22, 2)])
def test_points_outside_are_left_out_if_asked(invalid: Any, rows: int, nulls: int) -> None:
    data = with_points([(13.25, 52.45)] * 20 + [(13.41, 52.45), (np.nan, 52.45)])
    released, manifest = apply(data, {COLUMNS: Rule(mechanism=PLACE, invalid=invalid)})
    assert (released.num_rows, released["lat"].null_count) == (rows, nulls)
    assert dict(manifest.counts.invalid) == {("lon, lat", "unknown"): 1, ("lon, lat", "missing"): 1}


GOOD = [(13.25, 52.45)] * 3


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([*GOOD, (np.nan, 52.4567)], {}, r"1 of 4 rows have no value, the first at row 3 .* missing='drop' or 'null'"),
        ([*GOOD, (13.2567, np.inf)], {}, r"1 of 4 rows hold what is no point of Area.* invalid='drop' or 'null'"),
        ([*GOOD, (13.2567, 90.1234)], {}, "1 of 4 rows hold what is no point"),
        ([*GOOD, (193.2567, 52.45)], {}, "1 of 4 rows hold what is no point"),
        ([*GOOD, (13.4567, 52.45)], {"invalid": "error"}, "1 of 4 rows hold what is no point.*or 'nearest'"),
        ([*GOOD, (13.4567, 52.45)], {}, "would move 1 of 4 rows by more than one step .* a larger area"),
        ([(52.4567, 13.25)] * 3, {}, r"move 3 of 3 rows .*latitude and longitude swapped.*swap the two columns"),
        ([(52.4567, 13.25)] * 3, {"far_share_at_most": 1.0}, "latitude and longitude swapped"),
    ],
)
def test_wrong_points_are_refused_and_never_shown(points: Any, options: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message) as refused:
        apply(with_points(points), {COLUMNS: Rule(mechanism=PLACE, **options)})
    assert "567" not in str(refused.value)


def test_swapped_coordinates_that_are_not_on_the_earth_are_noticed_too() -> None:
    beijing = pg.Area.over((116.2, 39.8, 116.3, 39.9))
    problem = pg.PointProblem(pg.PointPrior(beijing, [(116.25, 39.85)]), [(116.22, 39.82), (116.28, 39.88)])
    mechanism = design(problem, epsilon=0.3, prove_bound=False)
    with pytest.raises(pg.InvalidProblem, match="longitude comes first"):
        apply(with_points([(39.85, 116.25)] * 3), {COLUMNS: mechanism})


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"lon": PLACE}, "takes two columns"),
        ({("lon", "lat", "hour"): PLACE}, "takes two columns"),
        ({("hour", "lon"): HOUR}, "takes one column"),
        ({("lon", "who"): PLACE}, "'who' is of type string, but the secrets of the mechanism need numbers"),
        ({COLUMNS: Rule(mechanism=PLACE, output_form="label")}, "say with into"),
        ({COLUMNS: Rule(mechanism=PLACE, output_form="set", into="at")}, "observables that are sets"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        apply(table(), rules)


def test_what_is_charged(tmp_path: Path) -> None:
    """Each row of a person costs ε, with ``repeat="same"`` too: coordinates are counted as if all were distinct."""
    data = pa.table({"who": ["ann"] * 3 + ["bob"], "lon": [13.25, 13.25, 13.26, 13.3], "lat": [52.45] * 4})
    ledger = ReleaseLedger.create(tmp_path / "points.ledger", budget={"per km": 2.0})
    options: dict[str, Any] = {"user": "who", "repeat": "same", "key": ReleaseKey(), "ledger": ledger}
    released, manifest = apply(data, {COLUMNS: PLACE}, **options)
    assert places(released)[0].tolist() == places(released)[1].tolist()
    assert manifest.per_user is not None
    assert manifest.per_user.epsilons == {"per km": pytest.approx(1.2)}
    assert manifest.charge is not None
    assert manifest.charge.spent["per km"] == pytest.approx(1.2)
    again, charged_once = apply(data, {COLUMNS: PLACE}, **options)
    assert again.equals(released)
    assert charged_once.charge is not None
    assert charged_once.charge.spent == manifest.charge.spent
    with pytest.raises(pg.BudgetExceeded):
        apply(data, {COLUMNS: PLACE}, user="who", ledger=ledger)
    with pytest.raises(pg.InvalidProblem, match="above per_unit_limit=1"):
        apply(data, {COLUMNS: PLACE}, user="who", per_unit_limit=1.0)
    metre = data.set_column(1, "lon", pa.array([13.25001, 13.25, 13.26, 13.3]))
    with pytest.raises(pg.InvalidProblem, match="of other rows or other values"):
        apply(metre, {COLUMNS: PLACE}, user="who", repeat="same", key=options["key"])


def test_places_a_metre_apart_are_drawn_for_themselves() -> None:
    people = 2000
    lon = np.repeat(13.25, 2 * people) + np.tile([0.0, 1.5e-5], people)
    data = pa.table({"who": np.repeat(np.arange(people), 2), "lon": lon, "lat": np.full(2 * people, 52.45)})
    released = places(apply(data, {COLUMNS: PLACE}, user="who", repeat="same")[0]).reshape(people, 2, 2)
    same = (released[:, 0] == released[:, 1]).all(axis=1).mean()
    expected = float((PLACE.probabilities([(13.25, 52.45)])[0] ** 2).sum())
    assert abs(same - expected) < 6 * np.sqrt(expected * (1 - expected) / people)


def test_a_manifest_says_nothing_of_the_prior() -> None:
    public = PublicPointMechanism.of(PLACE)
    data, key = table(), ReleaseKey(bytes(32))
    one, with_prior = apply(data, {COLUMNS: PLACE}, key=key, key_columns="id")
    other, without = apply(data, {COLUMNS: public}, key=ReleaseKey(bytes(32)), key_columns="id")
    assert one.equals(other)
    (column,), (public_column,) = with_prior.to_dict()["columns"], without.to_dict()["columns"]
    assert column == public_column
    assert column["secrets"] is None
    assert column["certificate"]["region"]["box"] == list(BOX)
    assert column["promises"]["epsilon"] == 0.4
    assert set(column["certificate"]) == {"region", "resolution"}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_files_get_what_tables_get(tmp_path: Path, ending: str) -> None:
    data = table(200)
    source, out = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    frame = data.to_pandas()
    if ending == ".csv":
        frame.to_csv(source, index=False)
    else:
        frame.to_parquet(source, index=False)
    rules: dict[Any, Any] = {COLUMNS: PLACE, "hour": HOUR}
    expected, _ = apply(data, rules, key=ReleaseKey(bytes(32)), key_columns="id")
    apply_files(source, out, rules, key=ReleaseKey(bytes(32)), key_columns="id", jobs=2)
    released = pd.read_csv(out) if ending == ".csv" else pd.read_parquet(out)
    for name in (*COLUMNS, "hour"):
        assert released[name].tolist() == expected[name].to_pylist()


def test_the_command_takes_files_of_mechanisms_for_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(200).to_pandas().to_csv("in.csv", index=False)
    PLACE.save("place.pgm")
    PublicPointMechanism.of(HOUR).save("hour.pgm")
    Path("rules.toml").write_text(
        '[[rule]]\ncolumns = ["lon", "lat"]\nmechanism = "place.pgm"\nmissing = "drop"\n\n'
        '[[rule]]\ncolumns = ["hour"]\nmechanism = "hour.pgm"\n'
    )

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["apply", *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    told = json.loads(run("rules.toml", "in.csv", "out.csv", "--user", "who", "--json"))
    counted = {each["counted"]: each["epsilon"] for each in told["epsilon"]["per_row"]["epsilon"]}
    assert counted == {"per km": 0.4, "per hour": 0.5}
    released = pd.read_csv("out.csv")
    assert released.columns.tolist() == ["id", "who", "lon", "lat", "hour"]
    assert set(released["hour"]) <= set(range(0, 25, 3))
    run("place.pgm", "in.csv", "one.csv", "--columns", "lon,lat")
    assert "distance in km, mean" in run("place.pgm", "in.csv", "--columns", "lon,lat", "--preview")
    swapped = CliRunner().invoke(app, ["apply", "place.pgm", "in.csv", "two.csv", "--columns", "lat,lon"])
    assert swapped.exit_code == 3
    assert "swap the two columns" in swapped.stderr
    assert not Path("two.csv").exists()


def test_a_preview_tells_what_releases_then_show(tmp_path: Path) -> None:
    data, rows = table(3000), 3000
    points = places(data)
    told = {each.statistic: each for each in preview(PLACE, points).statistics}
    released = places(apply(data, {COLUMNS: PLACE})[0])
    off = np.linalg.norm(CITY.project(points) - CITY.project(released), axis=1)
    mean = told["distance in km, mean"].released
    assert mean == pytest.approx(off.mean(), abs=6 * off.std() / np.sqrt(rows))
    hours = data["hour"].to_numpy()
    by_hour = {each.statistic: each for each in preview(HOUR, hours).statistics}
    assert by_hour["mean"].truth == pytest.approx(hours.mean())
    mean_hour = apply(data, {"hour": HOUR})[0]["hour"].to_numpy().mean()
    assert by_hour["mean"].released == pytest.approx(mean_hour, abs=0.5)
    frame = data.to_pandas()
    frame.loc[:9, "lon"] = np.nan
    frame.to_csv(tmp_path / "in.csv", index=False)
    (from_file,) = preview_file(tmp_path / "in.csv", {COLUMNS: PLACE})
    assert (from_file.rows_read, from_file.rows_left_out) == (rows - 10, 10)
    for empty in (lambda: preview(HOUR, []), lambda: preview_file(tmp_path / "in.csv", {"who": HOUR})):
        with pytest.raises(pg.InvalidProblem):
            empty()


def test_frequencies_of_points_are_not_estimated() -> None:
    with pytest.raises(pg.InvalidProblem, match=r"finitely many secrets.*at_points"):
        pg.estimate(PLACE, ["cell-0"])  # type: ignore[arg-type]

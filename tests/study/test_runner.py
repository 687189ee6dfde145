"""A whole tiny study: its rows against direct computations, and nothing finished is ever done again."""

import json
from pathlib import Path

import pytest

import privacygames as pg
import privacygames_study as study
from interruptions import Counting
from privacygames.jobs import Table, number, where
from privacygames_study import Person, Settings, Store, compute, read_manifest, read_table, run
from privacygames_study import tasks as tasks_module
from privacygames_study.runner import CELLS
from support import optimum_by_hand

GRID = pg.Grid(columns=3, rows=2, width=6.0, height=4.0)
PEOPLE = [
    Person("user 1", pg.Prior(GRID, [0.4, 0.1, 0.2, 0.05, 0.25, 0.0]), 100),
    Person("user 2", pg.Prior(GRID, [0.0, 0.3, 0.3, 0.2, 0.1, 0.1]), 50),
]
SETTINGS = Settings(
    epsilons=(0.3, 0.6),
    epsilons_2=(0.6,),
    shares=(0.4,),
    epsilons_3=(0.6,),
    step=0.8,
    strengths=(3.0,),
    epsilons_approximation=(0.6,),
    radii=(2.5,),
    coarse_cells=6,
)


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return compute(PEOPLE, SETTINGS)


def test_scenario_1_follows_the_six_steps(tables: dict[str, Table]) -> None:
    table = tables["scenario-1"]
    assert len(table) == 2 * 2 * 3
    for person in PEOPLE:
        problem = pg.Problem(person.prior)
        for epsilon in SETTINGS.epsilons:
            rows = {str(row["mechanism"]): row for row in where(table, user=person.label, epsilon=epsilon)}
            reached = pg.evaluate(pg.design(problem, epsilon=epsilon), problem).distortion
            for row in rows.values():
                assert number(row, "d_m_km") == pytest.approx(reached, rel=2e-5)
                assert number(row, "privacy_km") == pytest.approx(reached, rel=2e-5)
                assert number(row, "bayesian_km") >= number(row, "privacy_km") - 1e-9
            threshold = number(rows["distortion"], "d_m_km")
            for mechanism, bounds in (
                ("differential", {"epsilon": epsilon}),
                ("distortion", {"distortion": threshold}),
                ("joint", {"epsilon": epsilon, "distortion": threshold}),
            ):
                assert number(rows[mechanism], "cost") == pytest.approx(optimum_by_hand(problem, **bounds), abs=2e-6)
            assert rows["joint"]["reused"] is True


def test_scenario_2_asks_for_more_than_the_differential_mechanism_gives(tables: dict[str, Table]) -> None:
    for row in where(tables["scenario-2"], mechanism="joint"):
        alone = where(tables["scenario-2"], mechanism="differential", user=row["user"])[0]
        most = number(where(tables["users"], user=row["user"])[0], "blind_km")
        reached = number(alone, "privacy_km")
        assert number(row, "d_m_km") == pytest.approx(reached + 0.4 * (most - reached), rel=1e-9)
        assert row["reused"] is False
        assert number(row, "privacy_km") >= number(row, "d_m_km") - 1e-9
        prior = next(person.prior for person in PEOPLE if person.label == row["user"])
        by_hand = optimum_by_hand(pg.Problem(prior), epsilon=0.6, distortion=number(row, "d_m_km"))
        assert number(row, "cost") == pytest.approx(by_hand, abs=2e-6)


def test_scenario_3_has_every_threshold_up_to_the_largest(tables: dict[str, Table]) -> None:
    for person in PEOPLE:
        problem = pg.Problem(person.prior)
        rows = where(tables["scenario-3"], user=person.label, mechanism="joint")
        *asked, last = [number(row, "d_m_km") for row in rows]
        assert asked == pytest.approx([0.8 * step for step in range(1, len(asked) + 1)])
        assert asked[-1] < last <= asked[-1] + 0.8 + 1e-9
        assert last == pytest.approx(pg.max_distortion(problem), rel=1.1e-5)
        assert last < pg.max_distortion(problem)
        for row in rows:
            by_hand = optimum_by_hand(problem, epsilon=0.6, distortion=number(row, "d_m_km"))
            assert number(row, "cost") == pytest.approx(by_hand, abs=2e-6)
    reused = {row["reused"] for row in where(tables["scenario-3"], mechanism="joint")}
    assert reused == {True, False}


def test_the_prior_table_is_about_adversaries_who_are_right(tables: dict[str, Table]) -> None:
    table = tables["prior"]
    assert len(table) == 2 * 2 * 3 * 2
    row = where(table, user="user 1", epsilon=0.3, mechanism="differential", strength=3.0)[0]
    problem = pg.Problem(PEOPLE[0].prior)
    likelihood = [3.0, 1.0, 1.0, 1.0, 3.0, 1.0]  # cells 0 and 4 are the likeliest
    sharper = PEOPLE[0].prior.posterior(likelihood)
    report = pg.evaluate(pg.design(problem, epsilon=0.3), problem, adversary_prior=sharper, truth=sharper)
    assert number(row, "privacy_km") == pytest.approx(report.distortion, rel=1e-6)
    assert number(row, "blind_km") == pytest.approx(report.distortion_from_prior, rel=1e-9)
    assert number(row, "entropy_bits") == pytest.approx(sharper.entropy())


def test_approximations_stand_beside_the_exact_design(tables: dict[str, Table]) -> None:
    table = tables["approximation"]
    assert [(row["user"], row["kind"]) for row in table] == [
        (user, kind) for user in ("user 1", "user 2") for kind in ("secrets", "ratios", "both")
    ]
    for row in table:
        assert number(row, "error_km") == number(row, "exact_privacy_km") - number(row, "privacy_km")
        assert number(row, "cost") <= number(row, "exact_cost") + 1e-6  # fewer constraints
        assert number(row, "exact_epsilon") <= 0.6 + 1e-9
        assert str(row["solver"]).startswith("HiGHS")  # six cells: HiGHS designs them exactly, too
        assert row["solver"] == row["exact_solver"]
        if row["kind"] != "both":  # every guess constraint is there: d_m is kept
            assert number(row, "privacy_km") >= number(row, "d_m_km") - 1e-9


def test_a_second_run_does_nothing_and_changes_nothing(tmp_path: Path) -> None:
    first = run(PEOPLE, SETTINGS, tmp_path, data="tiny", read_as="counts")
    assert first.fresh == first.manifest.designs == len(list((tmp_path / CELLS).iterdir()))
    before = {path: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    again = Counting()
    second = run(PEOPLE, SETTINGS, tmp_path, data="tiny", read_as="counts", workers=again)
    assert (second.fresh, again.worked) == (0, 0)
    assert {path: path.read_bytes() for path in (tmp_path / "tables").iterdir()} == before
    assert {path.stem for path in before} == {"users", *SETTINGS.parts, "claims"}
    for name, table in second.tables.items():
        assert read_table(tmp_path / "tables" / f"{name}.csv") == table
    assert read_manifest(tmp_path).designs == first.manifest.designs


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path, tables: dict[str, Table]) -> None:
    part = Counting(patience=5)
    with pytest.raises(KeyboardInterrupt):
        run(PEOPLE, SETTINGS, tmp_path, data="tiny", read_as="counts", workers=part)
    assert len(list((tmp_path / CELLS).glob("*.json"))) == 5
    rest = Counting()
    seen: list[pg.Progress] = []
    study = run(PEOPLE, SETTINGS, tmp_path, data="tiny", read_as="counts", workers=rest, progress=seen.append)
    assert part.worked + rest.worked == study.manifest.designs
    assert seen[0].done == 6
    assert seen[-1].done == seen[-1].total == study.manifest.designs
    assert [row["status"] for row in study.tables["scenario-3"]] == [row["status"] for row in tables["scenario-3"]]


def test_a_result_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    settings = Settings(epsilons=(0.6,), parts=("scenario-1",))
    run(PEOPLE[:1], settings, tmp_path, data="tiny", read_as="counts")
    first, second = sorted((tmp_path / CELLS).iterdir())
    first.write_text('{"status": "done", "cost"')
    second.write_text("[]")
    again = Counting()
    run(PEOPLE[:1], settings, tmp_path, data="tiny", read_as="counts", workers=again)
    assert again.worked == 2
    assert json.loads(first.read_text())["status"] == "done"


def test_a_folder_holds_one_study(tmp_path: Path) -> None:
    """Nothing of an earlier one, of other people, stays beside it; what is finished does."""
    both = Settings(epsilons=(0.6,), strengths=(3.0,), parts=("scenario-1", "prior"))
    one = Settings(epsilons=(0.6,), strengths=(3.0,), parts=("prior",))
    study.publish(run(PEOPLE[:1], both, tmp_path, data="tiny", read_as="counts"), tmp_path)
    assert {path.name for path in (tmp_path / "figures").glob("bayesian.*")}
    study.publish(run(PEOPLE[1:], one, tmp_path, data="other", read_as="counts"), tmp_path)
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == {"users", "prior", "claims"}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"prior.png", "prior.pdf", "prior.csv"}
    assert set(study.read_study(tmp_path).tables) == {"users", "prior"}
    assert len(list((tmp_path / CELLS).iterdir())) == 2 * 2


def test_what_one_part_made_another_uses(tmp_path: Path) -> None:
    store = Store(tmp_path)
    compute(PEOPLE, Settings(epsilons=(0.6,), strengths=(3.0,), parts=("scenario-1",)), store=store)
    more = Counting()
    compute(PEOPLE, Settings(epsilons=(0.6,), strengths=(3.0,), parts=("prior",)), store=store, workers=more)
    assert more.worked == 0


def test_failures_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:

    def sometimes(problem: pg.Problem, bounds: pg.Bounds, **_: object) -> pg.Mechanism:
        if bounds.epsilon == 0.3 or (bounds.epsilon is not None and bounds.distortion):
            raise pg.SolveFailed("no luck", status=pg.Status.NUMERICAL)
        return pg.design(problem, epsilon=bounds.epsilon, distortion=bounds.problem_distortion)

    monkeypatch.setattr(tasks_module, "design_bounds", sometimes)
    tables = compute(PEOPLE, SETTINGS)
    failed = where(tables["scenario-1"], epsilon=0.3)
    assert [(row["mechanism"], row["status"], row["cost"]) for row in failed] == [
        ("differential", "failed: NUMERICAL", None)
    ] * 2
    assert {row["status"] for row in where(tables["scenario-2"], mechanism="joint")} == {"failed: NUMERICAL"}
    assert {row["status"] for row in where(tables["scenario-2"], mechanism="distortion")} == {"done"}
    assert all(row["error_km"] is None for row in tables["approximation"])
    assert where(tables["prior"], epsilon=0.3) == []
    study.check_claims(tables)


def test_a_study_is_of_a_grid(tmp_path: Path) -> None:
    ages = Person("user 1", pg.Prior.uniform(pg.Numbers(range(1, 4))), 3)
    with pytest.raises(pg.InvalidProblem, match="cells of a Grid"):
        run([ages], Settings(), tmp_path / "out", data="ages", read_as="counts")
    assert not (tmp_path / "out").exists()


def test_nobody_is_not_a_study() -> None:
    with pytest.raises(pg.InvalidProblem, match="one person"):
        compute([], SETTINGS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilons": ()},
        {"epsilons_2": (0.5, float("inf"))},
        {"epsilons_3": (0.5, -1.0)},
        {"radii": (2.0, 3.0, 2.0)},
        {"shares": (1.5,)},
        {"strengths": (0.5,)},
        {"step": 0.0},
        {"places": 0},
        {"coarse_cells": 0},
        {"parts": ("scenario-9",)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(pg.InvalidProblem):
        Settings(**wrong)  # type: ignore[arg-type]

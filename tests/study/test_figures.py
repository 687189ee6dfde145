"""Figures of a study: files, captions whose numbers are those of the tables, and tables with holes."""

from pathlib import Path

import pytest

from privacygames.jobs import Table, read_table
from privacygames_study.figures import PLANS, DrawnFigure, draw
from privacygames_study.figures.captions import duration, rounded
from privacygames_study.figures.style import MARKS
from study_tables import approximation, failed, manifest, scenario_1, tables

NAMES = ["privacy-epsilon", "cost-privacy", "bayesian", "attacks", "joint-privacy", "sorted-privacy", "sorted-cost"]
NAMES += ["prior", "robust", "approximation-error", "approximation-time", "approximation-epsilon"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DrawnFigure]:
    return {figure.name: figure for figure in draw(tables(), manifest(), tmp_path_factory.mktemp("study") / "figures")}


def caption_of(name: str, given: dict[str, Table], folder: Path) -> str:
    (caption,) = (figure.caption for figure in draw(given, manifest(), folder) if figure.name == name)
    return caption


def test_every_figure_of_the_paper_in_three_files(drawn: dict[str, DrawnFigure]) -> None:
    assert list(drawn) == NAMES
    for name, figure in drawn.items():
        png, pdf, data = figure.files
        assert [path.name for path in figure.files] == [f"{name}.png", f"{name}.pdf", f"{name}.csv"]
        assert png.read_bytes().startswith(b"\x89PNG")
        assert pdf.read_bytes().startswith(b"%PDF")
        assert read_table(data)


@pytest.mark.parametrize("name", NAMES)
def test_captions_state_data_users_and_grid(drawn: dict[str, DrawnFigure], name: str) -> None:
    grid = "3 × 2" if name.startswith("approximation") else "4 × 3"
    where = f"Data: Tiny town (synthetic people), 2 users; grid of {grid} cells over 6 × 4.5 km."
    assert where in drawn[name].caption
    assert "failed" not in drawn[name].caption


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("privacy-epsilon", "from 2.50 km at ε = 0.3 per km to 0.90 km at ε = 0.6; there 1 of 2 users are below 1 km"),
        ("cost-privacy", "differential costs 0.25 more than distortion. Joint and differential differ by less than"),
        ("bayesian", "Of 4 points, 4 lie above the diagonal, 0 on it (within 0.01 km) and 0 below."),
        ("attacks", "differential 0.38 km in the median, between 0.20 and 0.75; distortion 0 km; joint 0.38 km"),
        ("joint-privacy", "within 0.01 km, in 1 of 1 comparisons; the larger one is differential in 0 of 1."),
        ("sorted-privacy", "within 0.01 km, in 3 of 3 comparisons; the larger one is differential in 1 of 3."),
        (
            "sorted-cost",
            "within 0.01, in 2 of 3 comparisons; the larger one is differential in 3 of 3. In the rest joint's",
        ),
        ("sorted-cost", "is higher, by 0.12."),
        ("sorted-cost", "In 1 of 3 the joint mechanism is the differential one, which reaches d_m by itself."),
        ("robust", "prior only: Of 2 points, 0 lie above the diagonal, 0 on it (within 0.01 km) and 2 below."),
        ("robust", "every adversary: Of 2 points, 0 lie above the diagonal, 2 on it (within 0.01 km) and 0 below."),
        ("robust", "These cost 20.0 percent more than the guarantee against the prior only."),
        ("prior", "(red): Of 2 points, 0 lie above the diagonal, 2 on it (within 0.01 km) and 0 below."),
        (
            "prior",
            "With 10 times the evidence the median falls from 1.00 to 0.75 km with differential and from 1.00 to 0.50",
        ),
        ("approximation-error", "ratios and guesses pruned: median 0.50 km at a radius of 1 km, 0.25 km at 2 km."),
        (
            "approximation-time",
            "ecret–secret pruned (blocks): median 0.10 s at a radius of 1 km, 0.40 s at 2 km, 0.40 s with all, by the",
        ),
        (
            "approximation-time",
            "ratios and guesses pruned (HiGHS): median 0.10 s at a radius of 1 km, 0.40 s at 2 km, 10 s with all, by",
        ),
        (
            "approximation-epsilon",
            "in 12 of 12 cases over all radii. Secret–secret pruned: 2.00 times the nominal ε at a radius of 1 km",
        ),
        ("approximation-epsilon", "ratios and guesses pruned: infinite in 2 of 2 at a radius of 1 km."),
    ],
)
def test_captions_say_what_is_to_be_seen(drawn: dict[str, DrawnFigure], name: str, seen: str) -> None:
    assert seen in drawn[name].caption


def test_data_behind_a_figure(drawn: dict[str, DrawnFigure]) -> None:
    rows = read_table(drawn["sorted-cost"].files[2])
    assert [row["comparison"] for row in rows] == [1, 2, 3]
    assert [row["joint_cost"] for row in rows] == [0.5, 0.5, 0.625]
    assert {row["differential_cost"] for row in rows} == {0.5}
    assert len(read_table(drawn["bayesian"].files[2])) == 4


def test_the_same_tables_make_the_same_files(drawn: dict[str, DrawnFigure], tmp_path: Path) -> None:
    (again, *_rest) = draw({"scenario-1": scenario_1(), "users": tables()["users"]}, manifest(), tmp_path)
    for old, new in zip(drawn["privacy-epsilon"].files, again.files, strict=True):
        assert old.read_bytes() == new.read_bytes()


def test_failed_designs_are_counted_and_left_out(tmp_path: Path) -> None:
    table = scenario_1()
    hole = failed(table[:1]) + table[1:]
    caption = caption_of("bayesian", {"scenario-1": hole}, tmp_path)
    assert "Of 3 points" in caption
    assert caption.endswith("1 of 12 designs of this part failed; they are not drawn.")


@pytest.mark.parametrize("empty", ["no rows", "all failed"])
def test_a_table_without_results_makes_figures_that_say_so(empty: str, tmp_path: Path) -> None:
    given = {name: [] if empty == "no rows" else failed(table) for name, table in tables().items() if name != "prior"}
    given["prior"] = []
    figures = draw(given, manifest(), tmp_path)
    assert [figure.name for figure in figures] == NAMES
    for figure in figures:
        assert "No result to draw." in figure.caption
        assert "Tiny town" in figure.caption
        assert read_table(figure.files[2]) == []


def test_parts_that_were_not_run_have_no_figures(tmp_path: Path) -> None:
    figures = draw({"prior": tables()["prior"]}, manifest(), tmp_path)
    assert [figure.name for figure in figures] == ["prior"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prior.csv", "prior.pdf", "prior.png"]


def test_one_user_one_epsilon(tmp_path: Path) -> None:
    one = {name: [row for row in table if row["user"] == "user 1"] for name, table in tables().items()}
    one["scenario-1"] = one["scenario-1"][:3]
    one["prior"] = [row for row in one["prior"] if row["strength"] == 1.0]
    figures = {figure.name: figure.caption for figure in draw(one, manifest(users=1), tmp_path)}
    assert list(figures) == NAMES
    assert "At ε = 0.3 per km it is 2.00 km; there 0 of 1 users are below 1 km" in figures["privacy-epsilon"]
    assert "1 user;" in figures["prior"]
    assert "Attackers who know more" not in figures["prior"]


def test_approximations_on_two_grids_with_enough_values_for_boxes(tmp_path: Path) -> None:
    table = approximation(users=6, grids=((3, 2), (4, 3)))
    figures = {figure.name: figure.caption for figure in draw({"approximation": table}, manifest(), tmp_path)}
    assert "grid of 3 × 2 and 4 × 3 cells" in figures["approximation-time"]
    assert "guesses pruned on 4 × 3 (HiGHS): median 0.10 s" in figures["approximation-time"]


def test_times_of_different_solvers_are_not_drawn(tmp_path: Path) -> None:
    table = [row | {"exact_solver": "blocks"} for row in approximation()]
    caption = caption_of("approximation-time", {"approximation": table}, tmp_path)
    assert "pruned (blocks)" in caption
    assert "HiGHS" not in caption


def test_an_infinite_epsilon_is_told_beside_the_finite_ones(tmp_path: Path) -> None:
    table = [row | {"realised_epsilon": 0.0} if row["user"] == "user 1" else row for row in approximation()]
    caption = caption_of("approximation-epsilon", {"approximation": table}, tmp_path)
    assert "guesses pruned: infinite in 1 of 2 and 0 times the nominal ε in the other 1 at a radius of 1" in caption


def test_figure_names_and_mechanism_colours_are_unique() -> None:
    assert [plan.name for plan in PLANS] == NAMES
    assert len({mark.colour for mark in MARKS.values()}) == len({mark.marker for mark in MARKS.values()}) == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-1e-9, "0"),
        (0.0312, "0.031"),
        (-0.25, "−0.25"),
        (9.876, "9.88"),
        (123.4, "123"),
        (12345.6, "12,346"),
    ],
)
def test_numbers_in_sentences(value: float, text: str) -> None:
    assert rounded(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.42, "0.42 s"), (9.96, "10.0 s"), (76.1, "76 s"), (150.0, "2 min"), (3600.0, "1 h"), (12000.0, "3 h 20 min")],
)
def test_times_in_sentences(value: float, text: str) -> None:
    assert duration(value) == text

"""How results show themselves: HTML that a parser accepts, LaTeX without raw characters, frames with all values."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames.display import Displayed, ShownTable

VOID_CHARACTERS = re.compile(r"(?<!\\)[&%$#_{}]")


class Cells(HTMLParser):
    """The cells of a table, line by line, and the tags that are open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.lines, self.seen = list[str](), list[list[str]](), set[str]()
        self.feed(text)
        self.close()
        assert self.tags == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.seen.add(tag)
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.tags[-1] in ("td", "th"):
            self.lines[-1][-1] += data


@pytest.fixture(scope="module")
def results() -> dict[str, Displayed]:
    problem = pg.Problem(pg.Prior.from_counts(pg.Categories(["flu & cold", "<b>none</b>", "cold_1"]), [1, 2, 3]))
    mechanism = pg.baselines.randomised_response(problem, epsilon=1.0)
    line = pg.Interval(0.0, 4.0)
    points = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    on_points = pg.design(points, epsilon=0.5)
    return {
        "problem": problem,
        "mechanism": mechanism,
        "certificate": mechanism.certificate,
        "report": pg.evaluate(mechanism, problem),
        "comparison": pg.compare(problem, {"randomised": mechanism}),
        "estimate": pg.estimate(mechanism, {"flu & cold": 10, "<b>none</b>": 20, "cold_1": 30}),
        "points' certificate": on_points.certificate,
        "points' report": pg.evaluate(on_points, points),
        "points' comparison": pg.compare(points, epsilon=0.5, names=["planar-laplace"]),
    }


KINDS = (
    *("problem", "mechanism", "certificate", "report", "comparison", "estimate"),
    *("points' certificate", "points' report", "points' comparison"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_html_holds_the_texts_and_nothing_else(results: dict[str, Displayed], kind: str) -> None:
    shown = results[kind].shown()
    cells = Cells(results[kind]._repr_html_())
    expected = [list(line) for line in ([shown.headings] if any(shown.headings) else []) + list(shown.lines)]
    assert cells.lines == expected
    assert cells.seen <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize("kind", KINDS)
def test_latex_has_as_many_cells_and_no_raw_characters(results: dict[str, Displayed], kind: str) -> None:
    shown, lines = results[kind].shown(), results[kind].to_latex().splitlines()
    rows = [line.removesuffix(r" \\") for line in lines if line.endswith(r"\\")]
    assert len(rows) == len(shown.lines) + any(shown.headings)
    for row in rows:
        cells = row.split(" & ")
        assert len(cells) == len(shown.headings)
        for cell in cells:
            assert not VOID_CHARACTERS.search(re.sub(r"\$\\[a-z]+\$|\\[a-z]+\{\}", "", cell))


def test_frames_hold_the_numbers(results: dict[str, Displayed]) -> None:
    pytest.importorskip("pandas")
    report = results["report"]
    assert isinstance(report, pg.Report)
    assert results["report"].to_pandas()["cost"].tolist() == [report.cost]
    comparison = results["comparison"].to_pandas()
    assert comparison["adversary"].tolist() == ["knows the prior", "knows nothing"]
    assert comparison["cost"].tolist() == [report.cost, report.cost]
    estimate = results["estimate"].to_pandas()
    assert (estimate["low"] <= estimate["frequency"]).all()
    assert estimate["secret"].tolist() == ["flu & cold", "<b>none</b>", "cold_1"]
    assert results["certificate"].to_pandas().columns.tolist() == ["name", "value"]


def test_a_long_estimate_says_what_it_leaves_out() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(60))), cost="absolute")
    mechanism = pg.baselines.randomised_response(problem, epsilon=5.0)
    lines = pg.estimate(mechanism, np.arange(60).tolist()).shown().lines
    assert (len(lines), lines[-1][0]) == (51, "and 10 more")


def test_an_empty_table_is_a_table() -> None:
    assert Cells(ShownTable("nothing", ("a", "b"), []).html()).lines == [["a", "b"]]

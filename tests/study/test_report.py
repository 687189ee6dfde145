"""The report: well-formed, linked only to what is there, and no text in it can become markup."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from privacygames.jobs import Table, Value, write_table
from privacygames_study import report
from privacygames_study.figures import PLANS, DrawnFigure
from study_tables import manifest, tables

NASTY = "<script>alert('&')</script>\"'"
CLAIM: dict[str, Value] = {
    "claim": "a",
    "source": "paper",
    "figure": "prior",
    "statement": "It holds.",
    "holds": 3,
    "cases": 4,
    "share": 0.75,
    "tolerance": "1 m",
    "evidence": "median 1",
    "verdict": "holds",
}


VOID = {"img", "link", "meta"}
"""Elements that have no end tag."""


class Reader(HTMLParser):
    """Checks that every tag is closed in order; keeps ids, links and the words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.tags: set[str] = set()
        self.badges: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.pictures += [given["src"]] if "src" in given else []
        self.badges += [given["class"].removeprefix("badge ")] if given.get("class", "").startswith("badge") else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self.open and self.open[-1] == "style" else data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def figures_of(given: dict[str, Table], folder: Path) -> list[DrawnFigure]:
    """Figures whose files are there, if empty: the report does not look into them."""
    folder.mkdir()
    figures = []
    for plan in PLANS:
        if plan.table in given:
            files = tuple(folder / f"{plan.name}.{kind}" for kind in ("png", "pdf", "csv"))
            for path in files:
                path.touch()
            figures.append(DrawnFigure(plan.name, plan.title, f"caption of {plan.name} for {NASTY}", files))
    return figures


def written(folder: Path, claims: Table, given: dict[str, Table] | None = None, **changes: object) -> Reader:
    setting, given = manifest(**changes), tables() if given is None else given
    (folder / "tables").mkdir()
    for name, table in given.items():
        write_table(folder / "tables" / f"{name}.csv", table, tuple(table[0]) if table else ("user",))
    setting.write(folder)
    path = report.write(folder, setting, given, claims, figures_of(given, folder / "figures"))
    assert path == folder / "report.html"
    return read(path)


def test_whole_report(tmp_path: Path) -> None:
    page = written(tmp_path, [CLAIM])
    assert len(page.ids) == len(set(page.ids))
    assert len(page.links) > 11 * 4
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (tmp_path / unquote(link)).is_file(), link
    assert {"figures/prior.png", "figures/prior.pdf", "figures/prior.csv", "tables/prior.csv", "study.json"} <= set(
        page.links
    )
    assert not page.tags & {"script", "link", "iframe"}
    assert len(page.pictures) == 12
    assert all(picture.startswith("data:image/png;base64,") for picture in page.pictures)  # one file, figures inside
    for said in ("Tiny town", "4 × 3 cells over 6 × 4.5 km", "1 h 7 min", "100 s on a machine with 2 cores", "3 of 4"):
        assert said in page.text
    assert "The quick version" not in page.text


def test_verdicts_are_badges(tmp_path: Path) -> None:
    verdicts = ["holds", "holds except in 3 of 90", "does not hold in 40 of 90", "not tested"]
    claims: Table = [CLAIM | {"verdict": verdict} for verdict in verdicts]
    page = written(tmp_path, claims, {})
    assert page.badges == ["holds", "except", "fails", "untested"] * 2
    for verdict in verdicts:
        assert verdict in page.text


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    claims: Table = [dict.fromkeys(CLAIM, NASTY), CLAIM | {"verdict": None, "evidence": None}]
    given = tables()
    given["users"] = [row | {"user": NASTY} for row in given["users"]]
    page = written(tmp_path, claims, given, data=NASTY, format=NASTY, parts=(NASTY,), versions={NASTY: NASTY})
    assert "script" not in page.tags
    assert page.text.count(NASTY) > 20


@pytest.mark.parametrize("given", [{}, {name: [] for name in tables()}])
def test_nothing_to_report(given: dict[str, Table], tmp_path: Path) -> None:
    page = written(tmp_path, [], given)
    assert ("Not drawn, because not run: Privacy against ε" in page.text) == (not given)
    assert page.text.count("caption of") == (12 if given else 0)


def test_quick_version_says_so(tmp_path: Path) -> None:
    assert "too coarse to judge the claims" in written(tmp_path, [], {}, quick=True).text


def test_writing_again_replaces(tmp_path: Path) -> None:
    first = report.write(tmp_path, manifest(data="one"), {}, [], [])
    report.write(tmp_path, manifest(data="two"), {}, [], [])
    assert "two" in read(first).text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

"""How the work and its sources are cited: one version, one paper, and a bibliography that names every source."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privacygames.cli.app import app
from privacygames.version import VERSION

ROOT = Path(__file__).parents[1]
BIBLIOGRAPHY = ROOT / "docs" / "reference" / "bibliography.md"
PAPER = "10.1515/popets-2015-0024"

AUTHOR = r"(?:[Vv]an |de )?[A-Z][^\W\d_]+(?:[-’][A-Z][^\W\d_]+)?"
CITED = re.compile(rf"({AUTHOR})(?: et al\.|(?:,? and {AUTHOR}|, {AUTHOR})*),? \(?(?:[A-Z]{{3,4}} )?((?:19|20)\d\d)\b")
"""Such as "Andrés et al. 2013", "McSherry and Talwar 2007" or "Oya, Troncoso and Pérez-González (CCS 2017)"."""

NO_AUTHORS = {
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


def citations() -> set[tuple[str, str]]:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "README.md"]
    pages.remove(BIBLIOGRAPHY)
    found = {cited for page in pages for cited in CITED.findall(page.read_text(encoding="utf-8"))}
    return {(author, year) for author, year in found if author not in NO_AUTHORS}


def test_citations_are_recognised() -> None:
    text = "Andrés et al. 2013; McSherry and Talwar 2007; "
    text += "Oya, Troncoso and Pérez-González (CCS 2017); de Farias and Van Roy 2004"
    assert [year for _, year in CITED.findall(text)] == ["2013", "2007", "2017", "2004"]
    assert len(citations()) > 20


@pytest.mark.parametrize(("author", "year"), sorted(citations()))
def test_every_source_is_in_the_bibliography(author: str, year: str) -> None:
    lines = BIBLIOGRAPHY.read_text(encoding="utf-8").splitlines()
    assert any(author.removeprefix("de ") in line and year in line for line in lines)


def test_every_key_is_in_the_bibliography() -> None:
    keys = set(re.findall(r"\(([A-Z][A-Za-z]+\d\d)\)", BIBLIOGRAPHY.read_text(encoding="utf-8")))
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != BIBLIOGRAPHY]
    cited = {key for page in pages for key in re.findall(r"\(([A-Z][A-Za-z]+[A-Z]?\d\d)\)", page.read_text("utf-8"))}
    assert cited
    assert cited <= keys


def test_the_citation_file_names_this_version_and_the_paper() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {VERSION}" in text
    assert f"doi: {PAPER}" in text
    released = re.search(r"date-released: (\S+)", text)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert released
    assert f"## {VERSION} ({released[1]})" in changelog


def test_the_command_prints_how_to_cite() -> None:
    printed = CliRunner().invoke(app, ["--cite"]).stdout
    assert f"version = {{{VERSION}}}" in printed
    assert f"doi = {{{PAPER}}}" in printed
    assert printed.count("@") == 2

"""The documents: every public name is described, what they point to is there, and the site needs no other host."""

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
import privacygames_study
from accessibility import axe_source, violations
from privacygames_study import replays
from studio_page import CHROMIUM, chromium

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "privacygames"
STUDY = ROOT / "src" / "privacygames_study"
MODULES = (
    *("attacks", "leakage", "metrics", "plots", "points", "approximations", "baselines", "fleet", "tables", "traces"),
    *("composition", "device", "place_attacks", "policies", "tracking"),
)


def public_names() -> list[str]:
    """Everything a user may call: the package's names, and the functions and classes of its public modules."""
    names = [name for name in pg.__all__ if name not in MODULES and name != "__version__"]
    for module in MODULES:
        room = getattr(pg, module)
        listed = room.__all__
        kinds = (inspect.isclass, inspect.isfunction)
        names += [
            f"{module}.{name}"
            for name in listed
            if not name.startswith("_")
            and any(kind(getattr(room, name)) for kind in kinds)
            and getattr(pg, name, None) is not getattr(room, name)  # listed by its shorter name
        ]
    return [f"privacygames.{name}" for name in names] + [
        f"{module.__name__}.{name}"
        for module in (privacygames_study, replays, replays.plots)
        for name in getattr(module, "__all__", ("day", "homes"))
        if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
    ]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_is_in_the_reference_and_has_a_docstring(name: str) -> None:
    page = (DOCS / "reference" / "api.md").read_text()
    assert re.search(rf"^   {re.escape(name)}$", page, flags=re.MULTILINE)
    root, *parts = name.split(".")
    value: object = {"privacygames": pg, "privacygames_study": privacygames_study}[root]
    for part in parts:
        value = getattr(value, part)
    assert len(inspect.getdoc(value) or "") > 20


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_files_named_are_there(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if target != "packages.svg":  # drawn when the site is built
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    names = {path.name for path in [*SOURCE.rglob("*.py"), *STUDY.rglob("*.py"), *ROOT.glob("benchmarks/*.py")]}
    for mentioned in re.findall(r"`((?:[\w/]+/)?\w+\.py)`", text):
        place = [SOURCE / mentioned, ROOT / "src" / mentioned, ROOT / mentioned]
        assert any(each.exists() for each in place) or ("/" not in mentioned and mentioned in names), mentioned


class Loads(HTMLParser):
    """Collects what a page loads by itself: scripts, styles, pictures, frames, fonts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        wanted = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
        if tag in wanted and given.get(wanted[tag]):
            self.found.append(given[wanted[tag]] or "")
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.found.append(given.get("href") or "")


@pytest.mark.slow
def test_the_site_builds_and_asks_nothing_from_another_host(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-d", tmp_path / "doctrees", DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > 100
    for page in built:
        loads = Loads()
        loads.feed(page.read_text())
        assert [each for each in loads.found if re.match(r"(https?:)?//", each)] == [], page.name
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", style.read_text()), style.name
    formula = (tmp_path / "site" / "reference" / "generated" / "privacygames.max_distortion.html").read_text()
    assert "<math" in formula
    assert "<svg" in (tmp_path / "site" / "_images" / "packages.svg").read_text()


@pytest.mark.slow
def test_axe_finds_nothing_on_the_site(tmp_path: Path) -> None:
    """On a page of each kind, light and dark, wide and on a phone."""
    source = axe_source()
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-d", tmp_path / "doctrees", DOCS, tmp_path / "site"],
        capture_output=True,
        check=True,
    )
    pages = ("index.html", "how-to/studio.html", "theory/guarantee.html", "reference/commands.html", "glossary.html")
    looks: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}})
    found = []
    with chromium() as browser:
        for look in looks:
            page = browser.new_context(**look).new_page()
            for name in pages:
                page.goto((tmp_path / "site" / name).as_uri())
                found += [f"{name}: {each}" for each in violations(page, source)]
    assert found == []

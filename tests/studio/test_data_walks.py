"""Four people's jobs, walked to their end with their own files: a hospital's, a teacher's, a shop's, a journalist's."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import chi2

import privacygames as pg
from accessibility import axe_source, violations
from studio_files import STORES, ages, customers, hospital, route, store_visits, workbook
from studio_page import IN_CHROMIUM, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = IN_CHROMIUM
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
LOOKS = [
    pytest.param({"viewport": size, "color_scheme": scheme}, id=f"{name}-{scheme}")
    for name, size in (("desktop", DESKTOP), ("phone", PHONE))
    for scheme in ("light", "dark")
]
PATH = "#source-note:has-text('Choose a file')"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as opened:
        yield opened


def choose(visit: Visit, selector: str, name: str, content: bytes) -> None:
    visit.page.set_input_files(selector, {"name": name, "mimeType": "application/octet-stream", "buffer": content})


def protected(visit: Visit, folder: Path) -> tuple[Path, dict[str, Any], Any]:
    """Protect the file that is chosen; gives the table, the manifest and the mechanism, all of them downloaded."""
    page = visit.page
    visit.says("#protect-check", text="rows hold one of the secrets")
    page.click("#protect")
    visit.says("#protected-text", text="rows are protected")
    files = []
    for button in ("#save-protected", "#save-manifest", "[data-export=file]"):
        with page.expect_download() as download:
            page.click(button)
        files.append(folder / download.value.suggested_filename)
        download.value.save_as(files[-1])
    manifest = json.loads(files[1].read_text())
    assert files[1].name == f"{files[0].name}.manifest.json"
    mechanism: Any = pg.load(files[2])
    assert [column["mechanism"] for column in manifest["columns"]] == [mechanism.digest]
    pg.verify(files[2])
    return files[0], manifest, mechanism


def require_fit(mechanism: Any, pairs: list[tuple[Any, Any]]) -> None:
    """The outputs of each secret follow its row of the mechanism: a chi-square test, which fails once in a million."""
    counts = Counter(pairs)
    secrets = Counter(secret for secret, _ in pairs)
    statistic, freedom = 0.0, 0
    for secret, rows in secrets.items():
        expected = rows * mechanism.probabilities[mechanism.secrets.index(secret)]
        seen = np.array([counts[secret, output] for output in mechanism.observables.labels])
        assert not seen[expected == 0].any()
        often = expected >= 5
        groups = [(seen[often], expected[often]), (np.array([seen[~often].sum()]), np.array([expected[~often].sum()]))]
        tested = [(s, e) for many in groups for s, e in zip(*many, strict=True) if e > 0.5]
        statistic += sum((s - e) ** 2 / e for s, e in tested)
        freedom += max(len(tested) - 1, 0)
    assert freedom > 0
    assert chi2.sf(statistic, freedom) > 1e-6


def rows_of(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("look", LOOKS)
def test_a_privacy_officer_protects_diagnoses(
    browser: "Browser", address: str, tmp_path: Path, look: dict[str, Any]
) -> None:
    visit = Visit(browser, address, **look).opened("auto=0&source=own", PATH)
    name = f"{look['viewport']['width']}-{look['color_scheme']}"
    visit.picture(f"hospital-{name}-0-empty")
    choose(visit, "#traces", "Aufnahmen 2023.csv", hospital())
    visit.says("#source-note", text="8 secrets")
    visit.says("#traces-note", text="1501 rows read; left out: 1 unlike the other rows, 1 empty")
    visit.page.click("#bad-box summary")
    visit.says("#bad-rows tr", count=2)
    visit.picture(f"hospital-{name}-1-read")
    visit.design(1)
    visit.says("#protect-check", text="1500 of 1501 rows hold one of the secrets. 1 is empty")
    visit.picture(f"hospital-{name}-2-designed")
    file, manifest, mechanism = protected(visit, tmp_path)
    visit.picture(f"hospital-{name}-3-protected")
    assert manifest["rows"]["out"] == 1500
    text = file.read_text("utf-8-sig")
    before, after = rows_of(hospital().decode("cp1252"), ";"), rows_of(text, ";")
    whole = [row for row in before if len(row) == 7 and row[4]]
    assert after[0] == whole[0]
    assert [row[:4] + row[5:] for row in after] == [row[:4] + row[5:] for row in whole]
    require_fit(mechanism, [(old[4], new[4]) for old, new in zip(whole[1:], after[1:], strict=True)])
    visit.done()


@pytest.mark.parametrize("pasted", [False, True], ids=["workbook", "pasted"])
def test_a_teacher_protects_ages(browser: "Browser", address: str, tmp_path: Path, pasted: bool) -> None:
    visit = Visit(browser, address, viewport=PHONE if pasted else DESKTOP).opened("auto=0&source=own", PATH)
    page = visit.page
    pupils = ages(600)
    if pasted:
        page.click("#paste-box summary")
        page.fill("#pasted", "\n".join(map(str, pupils)))
        page.click("#read-pasted")
    else:
        rows: list[list[str | float]] = [[f"Kind {n}", age, 39_000 + n] for n, age in enumerate(pupils)]
        book = workbook([["Klassenliste"], ["Name", "Alter", "Geburtsdatum"], *rows], dates=[2])
        choose(visit, "#traces", "Klasse 7b.xlsx", book)
    visit.says("#traces-note", text="600 rows read")
    visit.picture(f"teacher-{pasted}-1-read")
    visit.design(1)
    file, _, mechanism = protected(visit, tmp_path)
    visit.says("#protected-statistics tbody tr:first-child", text="mean in years|mean")
    visit.picture(f"teacher-{pasted}-2-protected")
    after = rows_of(file.read_text("utf-8-sig"), ",")
    column = 0 if pasted else 1
    require_fit(mechanism, [(old, int(new[column])) for old, new in zip(pupils, after[1:], strict=True)])
    visit.done()


def test_a_product_manager_protects_stores(browser: "Browser", address: str, tmp_path: Path) -> None:
    """The prior from a report of counts, the design with it, and then the table of customers."""
    visit = Visit(browser, address).opened("auto=0&source=own", PATH)
    choose(visit, "#traces", "visits.tsv", store_visits())
    visit.says("#source-note", text="5 secrets")
    visit.design(1)
    visit.page.check("input[name=protect-table][value=other]", force=True)
    choose(visit, "#protect-file", "customers.tsv", customers())
    visit.says("#protect-check", text="1200 of 1200 rows")
    visit.picture("stores-1-other-table")
    file, manifest, mechanism = protected(visit, tmp_path)
    visit.says("#protected-text", text="Each of 900 people has at most 2 rows: ε")
    visit.says("#protected-notes", text="“customer_id” still says whose row it is")
    visit.picture("stores-2-protected")
    assert manifest["epsilon"]["per_user"] is not None
    before, after = rows_of(customers().decode(), "\t"), rows_of(file.read_text(), "\t")
    assert {row[2] for row in after[1:]} <= set(STORES)
    require_fit(mechanism, [(old[2], new[2]) for old, new in zip(before[1:], after[1:], strict=True)])
    visit.done()


@pytest.mark.parametrize("look", LOOKS[::3])
def test_a_journalist_designs_from_a_route_without_times(
    browser: "Browser", address: str, tmp_path: Path, look: dict[str, Any]
) -> None:
    visit = Visit(browser, address, **look).opened("auto=0&source=own&columns=6&rows=4", PATH)
    choose(visit, "#traces", "recherche.gpx", route())
    visit.says("#source-note", text="24 secrets")
    visit.says("#traces-note", text="400 rows read. It has no times")
    visit.design(1)
    visit.picture(f"journalist-{look['color_scheme']}")
    assert visit.page.is_hidden("#policies-card")
    file, manifest, mechanism = protected(visit, tmp_path)
    grid = mechanism.observables
    points = [[float(cell) for cell in row] for row in rows_of(file.read_text(), ",")[1:]]
    assert manifest["rows"]["out"] == len(points)
    assert 390 <= len(points) <= 400  # the box leaves out the outermost visits
    told = {tuple(np.round(point, 6)) for point in points}
    assert told <= {tuple(np.round(place[::-1], 6)) for place in grid.degrees}
    visit.done()


@pytest.mark.parametrize("look", LOOKS[::3])
def test_axe_finds_nothing_in_a_file_that_is_read_and_protected(
    browser: "Browser", address: str, look: dict[str, Any]
) -> None:
    source = axe_source()
    visit = Visit(browser, address, reduced_motion="reduce", **look).opened("auto=0&source=own", PATH)
    page, found = visit.page, list[str]()
    choose(visit, "#traces", "Aufnahmen.csv", hospital(200))
    visit.says("#source-note", text="secrets")
    page.click("#bad-box summary")
    page.click("#paste-box summary")
    found += violations(page, source)
    visit.design(1)
    visit.says("#protect-check", text="rows hold one of the secrets")
    page.click("#protect")
    visit.says("#protected-text", text="rows are protected")
    found += violations(page, source)
    visit.done()
    assert found == []


def test_columns_are_chosen_again(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=own", PATH)
    page = visit.page
    choose(visit, "#traces", "Aufnahmen.csv", hospital())
    visit.says("#source-note", text="8 secrets")
    page.select_option("#preview .roles td:nth-child(2) select", "number")
    visit.says("#source-note", text="71 secrets")
    assert page.locator("#preview .roles td:nth-child(5) select").input_value() == "ignore"
    page.select_option("#preview .roles td:nth-child(2) select", "ignore")
    visit.says("#source-error", text="say which column is the secret")
    assert page.is_disabled("#design")
    page.select_option("#preview .roles td:nth-child(3) select", "category")
    visit.says("#source-note", text="3 secrets")
    page.select_option("#has-header", "no")
    visit.says("#preview thead th:first-child", text="Column 1")
    visit.done(refusals=1)


def test_rows_outside_the_secrets(browser: "Browser", address: str, tmp_path: Path) -> None:
    """Nothing is protected where that was asked for; numbers may count as the nearest."""
    visit = Visit(browser, address).opened("auto=0&source=ages", "#picture .bar, #picture .cell")
    page = visit.page
    visit.design(1)
    visit.says("#protect-drop", text="Choose the table")
    choose(visit, "#protect-file", "ages.csv", b"age,paid\n12,1\n20,2\n30,3\n,4\nforty,5\n")
    visit.says("#protect-check", text="2 of 5 rows hold one of the secrets. 2 hold something else: “12” in row 2")
    visit.picture("outside-1")
    page.select_option("#protect-outside", "stop")
    page.click("#protect")
    visit.says("#protect-error", text="3 rows have no value that is one of the secrets, the first in line 2")
    page.select_option("#protect-outside", "nearest")
    file, manifest, _ = protected(visit, tmp_path)
    assert manifest["rows"]["out"] == 3
    assert [row[1] for row in rows_of(file.read_text(), ",")[1:]] == ["1", "2", "3"]
    visit.done()

"""Three people's jobs in Debian's Firefox, from their own file to a protected one: hospital, school and shop."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import privacygames as pg
from firefox import IN_FIREFOX, Firefox, firefox
from studio_files import DIAGNOSES, STORES, ages, customers, hospital, store_visits, workbook
from studio_server import command

pytestmark = IN_FIREFOX
START = "auto=0&source=own"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with command() as (url, _):
        yield url


def begin(page: Firefox, address: str, file: Path) -> None:
    page.open(f"{address}#{START}")
    page.says("#source-note", "Choose a file")
    page.give_file("#traces", file)


def protected(page: Firefox, folder: Path, ending: str, delimiter: str) -> list[list[str]]:
    """The rows of the protected table, whose manifest names the mechanism that is taken away beside it."""
    page.says("#protect-check", "rows hold one of the secrets")
    page.click("#protect")
    page.says("#protected-text", "rows are protected")
    table = page.taken("#save-protected", f"protected{ending}")
    manifest = json.loads(page.taken("#save-manifest", f"protected{ending}.manifest.json"))
    mechanism = folder / "taken.pgm"
    mechanism.write_bytes(page.taken("[data-export=file]", "private-mechanism.pgm"))
    pg.verify(mechanism)
    assert [column["mechanism"] for column in manifest["columns"]] == [pg.load(mechanism).digest]
    page.done()
    return list(csv.reader(io.StringIO(table.decode("utf-8-sig")), delimiter=delimiter))


def test_a_privacy_officer_protects_diagnoses(address: str, tmp_path: Path) -> None:
    file = tmp_path / "Aufnahmen 2023.csv"
    file.write_bytes(hospital())
    with firefox(address, dark=True) as page:
        page.resize(360, 740)
        begin(page, address, file)
        page.says("#source-note", "8 secrets")
        page.click("#design")
        rows = protected(page, tmp_path, ".csv", ";")
        page.picture("firefox-hospital")
    assert len(rows) == 1501
    assert {row[4] for row in rows[1:]} <= set(DIAGNOSES)
    assert rows[1][6] == "Dr. Müller"


def test_a_teacher_protects_ages(address: str, tmp_path: Path) -> None:
    pupils = ages(120)
    lines: list[list[str | float]] = [[f"Kind {n}", age] for n, age in enumerate(pupils)]
    file = tmp_path / "Klasse 7b.xlsx"
    file.write_bytes(workbook([["Name", "Alter"], *lines]))
    with firefox(address) as page:
        page.resize(1280, 900)
        begin(page, address, file)
        page.says("#traces-note", "120 rows read")
        page.click("#design")
        rows = protected(page, tmp_path, ".csv", ",")
        page.says("#protected-statistics", "mean")
        page.picture("firefox-teacher")
    assert len(rows) == 121
    assert {int(row[1]) for row in rows[1:]} <= set(range(min(pupils), max(pupils) + 1))


def test_a_product_manager_protects_stores(address: str, tmp_path: Path) -> None:
    report, table = tmp_path / "visits.tsv", tmp_path / "customers.tsv"
    report.write_bytes(store_visits())
    table.write_bytes(customers())
    with firefox(address) as page:
        page.resize(1280, 900)
        begin(page, address, report)
        page.says("#source-note", "5 secrets")
        page.click("#design")
        page.says("#explanation", "best guess")
        page.choose("input[name=protect-table][value=other]", "other")
        page.give_file("#protect-file", table)
        page.says("#protect-check", "1200 of 1200 rows")
        rows = protected(page, tmp_path, ".tsv", "\t")
        page.picture("firefox-stores")
    assert {row[2] for row in rows[1:]} <= set(STORES)

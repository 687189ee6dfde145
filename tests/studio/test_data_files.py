"""Files of strangers: what the studio takes them for, what it reads from them, and what it refuses."""

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from privacygames.studio import Limits
from studio_files import DIAGNOSES, STORES, ages, customers, hospital, route, store_visits, workbook
from studio_server import client


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


def opened(api: TestClient, content: bytes, **options: str) -> dict[str, Any]:
    answer = api.post("/api/files", content=content, params=options)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def roles(view: dict[str, Any]) -> list[str]:
    return [column["role"] for column in view["columns"]]


def read(api: TestClient, content: bytes, **changes: Any) -> dict[str, Any]:
    """What the columns of a table hold, with the roles that were guessed, or with others."""
    view = opened(api, content)
    body = {"roles": roles(view), "decimal": view["decimal"], "dates": view["dates"]} | changes
    answer = api.post(f"/api/files/{view['id']}/columns", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def as_parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink)
    return sink.getvalue()


PUPILS: list[list[str | float]] = [[f"Kind {n}", age, 39_000 + n] for n, age in enumerate(ages())]
TEACHER = workbook([["Klassenliste 7b"], ["Name", "Alter", "Geburtsdatum"], *PUPILS], dates=[2])


@pytest.mark.parametrize(
    ("content", "guessed"),
    [
        (hospital(), ["who", "ignore", "ignore", "time", "category", "ignore", "ignore"]),
        (TEACHER, ["who", "number", "time"]),
        (customers(), ["who", "time", "category", "ignore"]),
        (store_visits(), ["category", "count"]),
        ("\n".join(map(str, ages())).encode(), ["number"]),
        (b"flu\ncold\nflu\nnone\n", ["category"]),
        (b"52.1, 5.2\n52.3, 5.4\n", ["latitude", "longitude"]),
        (b"52,1234 5,1234\n52,3 5,4\n", ["position"]),
        (
            "Ort;Breitengrad;Längengrad\nA;52,123;5,123\nB;52,3;5,4\n".encode("utf-16"),
            ["ignore", "latitude", "longitude"],
        ),
        ("\ufeffid|when|y|x\n1|2024-05-01T10:00|52.123|5.123\n".encode(), ["who", "time", "latitude", "longitude"]),
        (b'sep=;\r\nage;note\r\n34;"a;b"\r\n35;x\r\n', ["number", "ignore"]),
        (as_parquet(uid=["a", "b"], lat=[52.1, 52.2], lng=[5.1, 5.2]), ["who", "latitude", "longitude"]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_what_columns_are_is_guessed(api: TestClient, content: bytes, guessed: list[str], zipped: bool) -> None:
    assert roles(opened(api, gzip.compress(content) if zipped else content)) == guessed


def test_the_preview_of_a_german_export(api: TestClient) -> None:
    view = opened(api, hospital())
    assert (view["decimal"], view["dates"], view["dates_sure"], view["header"]) == ("comma", "day-first", True, True)
    assert view["columns"][5]["name"] == "Größe in m"
    assert (view["rows"], view["left_out"]) == (1501, 1)
    assert view["bad"] == [{"line": 41, "cells": ["P-x", "1990", "m", "kaputt"], "reason": "4 cells instead of 7"}]
    assert view["first"][0][6] == "Dr. Müller"


def test_a_workbook_has_its_dates_and_titles(api: TestClient) -> None:
    view = opened(api, TEACHER)
    assert view["first"][0] == ["Kind 0", str(ages()[0]), "2006-10-10"]
    assert view["bad"][0]["cells"] == ["Klassenliste 7b"]


def test_dates_that_may_be_read_in_two_ways_are_said_to(api: TestClient) -> None:
    view = opened(api, b"who,when,lat,lon\na,03/04/2024 10:00,52.123,5.123\n")
    assert (view["dates"], view["dates_sure"]) == ("day-first", False)


def test_whether_the_first_row_names_columns_can_be_said(api: TestClient) -> None:
    content = b"flu,1\ncold,2\n"
    assert opened(api, content, header="yes")["columns"][0]["name"] == "flu"
    assert opened(api, content, header="no")["columns"][0]["name"] == "Column 1"


def test_categories_and_their_bad_rows(api: TestClient) -> None:
    values = read(api, hospital())
    assert values["tables"]["space"]["labels"] == sorted(DIAGNOSES)
    assert sum(values["tables"]["prior"]["counts"]) == 1500
    assert values["left_out"] == {"empty": 1}
    assert values["bad"][0] == {
        "line": 61, "cells": ["P-y", "1991", "w", "01.02.2023 10:00", "", "1,70", "Dr. Müller"], "reason": "empty"
    }  # fmt: skip


def test_counts_of_categories(api: TestClient) -> None:
    values = read(api, store_visits())
    assert values["tables"]["space"]["labels"] == sorted(STORES)
    assert values["tables"]["prior"]["counts"] == [9204, 6120, 5011, 1013, 2950]


def test_many_categories_are_counted_together(api: TestClient) -> None:
    values = read(api, ("illness\n" + "".join(f"rare {n % 90}\n" for n in range(900))).encode())
    assert len(values["tables"]["space"]["labels"]) == 60
    assert sum(values["tables"]["prior"]["counts"]) == 900
    assert "rarer ones count together" in values["note"]


def test_numbers_have_steps_and_no_far_off_ends(api: TestClient) -> None:
    space = read(api, TEACHER)["tables"]["space"]
    assert (space["unit"], space["values"]) == ("years", list(range(min(ages()), max(ages()) + 1)))
    wide = read(api, ("salary\n" + "".join(f"{1000 + 37 * n}\n" for n in range(200)) + "9999999\n").encode())
    steps = wide["tables"]["space"]["values"]
    assert {b - a for a, b in pairwise(steps)} == {100}
    assert steps[-1] < 10_000
    assert "1 far-off values" in wide["note"]


def test_decimal_commas_and_thousands(api: TestClient) -> None:
    assert read(api, b"gehalt;n\n1.234,5;a\n1.236,5;b\n")["tables"]["space"]["values"][0] == 1234.5


def test_one_person_of_a_table(api: TestClient) -> None:
    mood = b"who,category\n" + b"ann,good\nann,bad\nann,bad\nben,good\nben,fine\nben,good\n"
    assert [each["name"] for each in read(api, mood)["people"]] == ["ann", "ben"]
    assert read(api, mood, person="ann")["tables"]["space"]["labels"] == ["bad", "good"]


def test_places_of_one_and_of_everyone(api: TestClient) -> None:
    rows = "".join(f"{'ab'[n % 2]};{n % 28 + 1:02}.05.2024 1{n % 10}:00;52,1{n % 7}3;5,{n % 5}23\n" for n in range(60))
    places = read(api, f"Kunde;Zeit;Breite;Länge\n{rows}c;gestern;52,1;5,1\n;01.05.2024;52,1;5,1\n".encode("latin-1"))
    assert {user["name"] for user in places["users"]} == {"a", "b"}
    assert places["skipped"]["bad time"] == 1
    assert {row["reason"] for row in places["bad"]} == {"no time that can be read", "nobody named"}
    assert places["has_times"]
    for user, has_visits in ((None, False), ("a", True)):
        body = {"traces": {"id": places["id"], "user": user, "columns": 4, "rows": 3}}
        problem = api.post("/api/problems", json=body).json()
        assert problem["has_visits"] is has_visits, problem
        assert problem["has_day"] is has_visits


def test_a_route_without_times_becomes_a_problem(api: TestClient) -> None:
    view = opened(api, route())
    assert (view["kind"], view["has_times"], view["rows"]) == ("places", False, 400)
    assert (roles(view["table"]), view["table"]["rows"]) == (["latitude", "longitude"], 400)
    for secrets in ("cells", "points"):
        body = {
            "traces": {"id": view["id"], "user": view["users"][0]["name"], "columns": 4, "rows": 3, "secrets": secrets}
        }
        assert api.post("/api/problems", json=body).status_code == 201


@pytest.mark.parametrize("count", [False, True])
def test_counted_places(api: TestClient, count: bool) -> None:
    text = b"site,lat,lng,visits\na,52.123,5.123,3\nb,52.223,5.223,1\n"
    guessed = ["ignore", "latitude", "longitude", "count" if count else "ignore"]
    assert read(api, text, roles=guessed)["rows"] == (4 if count else 2)


def zipped(**parts: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), part)
    return packed.getvalue()


ENTITIES = '<!DOCTYPE x [<!ENTITY a "secret">]><workbook>&a;</workbook>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\xd0\xcf\x11\xe0 old", "save it as .xlsx"),
        (b"<html><body>hello</body></html>", "no GPX or KML"),
        (b'{"name": "hello"}', "not a Timeline"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "no table, recording or text|text cannot be read"),
        (b"\x1f\x8b\x08 broken", "damaged"),
        (b"PK\x03\x04 broken", "damaged archive"),
        (zipped(a="hello"), "unpack it"),
        (zipped(xl__workbook_xml=ENTITIES), "document type or entities"),
        (zipped(xl__workbook_xml="<workbook>"), "damaged"),
        (b"PAR1 no parquet", "damaged"),
        (b'age\n34\n"35\n' + b"36\n" * 60_000, "quotation mark"),
        (b"age;name\n", "nothing below the names|no row"),
    ],
)
def test_what_cannot_be_read_is_said_in_the_pages_words(api: TestClient, content: bytes, message: str) -> None:
    answer = api.post("/api/files", content=content)
    assert answer.status_code in (413, 422), answer.text
    told = answer.json()["error"]["message"]
    assert re.search(message, told), told
    assert "columns=" not in told
    assert "--" not in told
    assert "secret" not in told


def test_a_workbook_that_unfolds_without_end_is_refused(api: TestClient) -> None:
    bomb = zipped(xl__workbook_xml="<workbook/>", xl__sharedStrings_xml="<sst>" + " " * (80 * 2**20) + "</sst>")
    assert len(bomb) < 2**20
    answer = api.post("/api/files", content=bomb)
    assert (answer.status_code, "unfolds" in answer.text) == (413, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": ["ignore"] * 7}, "say which column is the secret"),
        ({"roles": ["number", "number", *["ignore"] * 5]}, "two columns are said to be the secret number"),
        ({"roles": ["latitude", *["ignore"] * 6]}, "which column is the longitude"),
        ({"roles": ["number", *["ignore"] * 6]}, "no row has a value"),
        ({"roles": ["ignore"] * 6 + ["category"]}, "all rows have the same value"),
        ({"roles": ["ignore"]}, "another number of columns"),
        ({"roles": ["latitude", "longitude", *["ignore"] * 5]}, "no row has a place that can be read"),
    ],
)
def test_columns_that_say_nothing_are_refused_in_the_pages_words(
    api: TestClient, changes: dict[str, Any], message: str
) -> None:
    view = opened(api, hospital())
    answer = api.post(f"/api/files/{view['id']}/columns", json=changes | {"decimal": "comma"})
    assert answer.status_code == 422
    told = answer.json()["error"]["message"]
    assert message in told
    assert "columns=" not in told
    assert "--" not in told


def test_files_are_forgotten(api: TestClient) -> None:
    name = opened(api, store_visits())["id"]
    assert api.post("/api/forget", json={"ids": [name]}).json() == {"forgotten": 1}
    assert api.post(f"/api/files/{name}/columns", json={"roles": ["category", "count"]}).status_code == 404


def test_a_timeline_of_a_phone(api: TestClient) -> None:
    stay = {
        "startTime": "2024-01-01T01:00:00+01:00", "endTime": "2024-01-01T03:00:00+01:00",
        "visit": {"topCandidate": {"placeLocation": {"latLng": "46.5°, 6.5°"}}},
    }  # fmt: skip
    view = opened(api, json.dumps({"semanticSegments": [stay]}).encode())
    assert (view["form"], view["rows"], view["has_times"]) == ("timeline", 12, True)
    assert roles(view["table"]) == ["time", "latitude", "longitude"]


def test_a_file_may_be_larger_than_a_request_in_json() -> None:
    with client(Limits(values=100, document=500)) as small:
        assert opened(small, customers(200))["rows"] == 200

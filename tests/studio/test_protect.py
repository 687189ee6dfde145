"""Protecting a table over the studio's API: every form of file and secret, rows without one, cancelling."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from privacygames.studio import Limits
from studio_server import AGES, client, described, designed
from waiting import wait_until

BOX = [13.2, 52.4, 13.6, 52.6]
GRID = {
    "space": {"kind": "grid", "columns": 3, "rows": 2, "box": BOX},
    "prior": {"counts": [1, 2, 3, 3, 2, 1]},
    "problem": {"cost": "euclidean", "distance": "euclidean"},
}
POINTS = {
    "space": {"kind": "area", "box": BOX},
    "prior": {"cells": {"columns": 3, "rows": 2}, "counts": [1, 2, 3, 3, 2, 1]},
    "observables": {"columns": 3, "rows": 2},
    "problem": {"cost": "euclidean", "distance": "euclidean"},
}
LABELS = {
    "space": {"kind": "categories", "labels": ["flu", "cold", "other (all rarer values)"]},
    "prior": {"counts": [3, 2, 1]},
    "problem": {"cost": "hamming", "distance": "hamming"},
}


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


@pytest.fixture(scope="module")
def mechanisms(api: TestClient) -> dict[str, str]:
    """A mechanism for each kind of secret."""
    bounds = {"epsilon": 0.5}
    documents = {"ages": AGES, "grid": GRID, "points": POINTS, "labels": LABELS}
    made = {name: designed(api, described(api, document), bounds=bounds) for name, document in documents.items()}
    assert {job["state"] for job in made.values()} == {"done"}, made
    return {name: job["result"]["mechanism"] for name, job in made.items()}


def request(api: TestClient, mechanism: str, content: bytes, columns: list[int], **more: Any) -> dict[str, Any]:
    view = api.post("/api/files", content=content).json()
    return {"mechanism": mechanism, "table": view["id"], "columns": columns, "decimal": view["decimal"], **more}


def protect(api: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.post("/api/protected", json=body)
    assert answer.status_code == 202, answer.text
    name = answer.json()["id"]

    def over() -> dict[str, Any] | None:
        now: dict[str, Any] = api.get(f"/api/protected/{name}").json()
        return now if now["state"] in ("done", "failed", "cancelled") else None

    return wait_until(over) or {}


def table(api: TestClient, done: dict[str, Any]) -> bytes:
    answer = api.get(f"/api/protected/{done['id']}/table")
    assert answer.headers["content-disposition"] == f'attachment; filename="protected{done["result"]["ending"]}"'
    return answer.content


def rows(content: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig")), delimiter=delimiter))


@pytest.mark.parametrize("kind", ["grid", "points"])
@pytest.mark.parametrize("form", ["two columns", "one column", "decimal commas", "parquet"])
def test_places_of_every_form(api: TestClient, mechanisms: dict[str, str], kind: str, form: str) -> None:
    places = [(52.45, 13.25), (52.55, 13.55), (52.50, 13.41)] * 20
    columns, delimiter = [1, 2], ","
    if form == "two columns":
        content = ("id,lat,lon\n" + "".join(f"{n},{y},{x}\n" for n, (y, x) in enumerate(places))).encode()
    elif form == "one column":
        content = ("id;where\n" + "".join(f'{n};"{y}, {x}"\n' for n, (y, x) in enumerate(places))).encode()
        columns, delimiter = [1], ";"
    elif form == "decimal commas":
        text = "id;Breite;Länge\n" + "".join(f"{n};{y};{x}\n".replace(".", ",") for n, (y, x) in enumerate(places))
        content, delimiter = text.encode("latin-1"), ";"
    else:
        sink = io.BytesIO()
        data = {"id": list(range(60)), "lat": [y for y, _ in places], "lon": [x for _, x in places]}
        parquet.write_table(pa.table(data), sink)
        content = sink.getvalue()
    done = protect(api, request(api, mechanisms[kind], content, columns))
    assert done["state"] == "done", done["error"]
    assert done["result"]["rows_out"] == 60
    released = table(api, done)
    if form == "parquet":
        read = parquet.read_table(io.BytesIO(released))
        assert read.schema.names == ["id", "lat", "lon"]
        pairs = list(zip(read["lat"].to_pylist(), read["lon"].to_pylist(), strict=True))
    else:
        lines = rows(released, delimiter)
        assert len(lines[0]) == 3
        pairs = [tuple(float(cell.replace(",", ".")) for cell in line[1:]) for line in lines[1:]]  # type: ignore[misc]
    west, south, east, north = BOX
    assert len(pairs) == 60
    assert all(south < y < north and west < x < east for y, x in pairs)
    assert len(set(pairs)) > 1
    assert (done["result"]["statistics"] is None) == (kind == "points")


def test_rows_without_a_secret_are_counted_first(api: TestClient, mechanisms: dict[str, str]) -> None:
    content = b"name,age\na,20\nb,99\nc,\nd,forty\ne,25\n"
    body = request(api, mechanisms["ages"], content, [1])
    found = api.post(f"/api/files/{body['table']}/check", json=body).json()
    assert (found["rows"], found["outside"], found["missing"]) == (5, 2, 1)
    assert (found["has_nearest"], found["has_other"]) == (True, False)
    assert found["first"] == [{"line": 3, "text": "99"}, {"line": 5, "text": "forty"}]


@pytest.mark.parametrize(("outside", "kept"), [("leave", ["a", "e"]), ("nearest", ["a", "b", "e"])])
def test_rows_without_a_secret_become_what_was_chosen(
    api: TestClient, mechanisms: dict[str, str], outside: str, kept: list[str]
) -> None:
    content = b"name,age\na,20\nb,99\nc,\nd,forty\ne,25\n"
    done = protect(api, request(api, mechanisms["ages"], content, [1], outside=outside))
    assert [line[0] for line in rows(table(api, done))[1:]] == kept
    assert all(line[1] in map(str, range(20, 26)) for line in rows(table(api, done))[1:])


def test_other_categories_are_counted_together(api: TestClient, mechanisms: dict[str, str]) -> None:
    content = b"who,illness\na,flu\nb,plague\nc,cold\n"
    done = protect(api, request(api, mechanisms["labels"], content, [1], outside="other", who=0))
    assert len(rows(table(api, done))) == 4
    assert (done["result"]["people"], done["result"]["most_rows"]) == (3, 1)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("ages", {"outside": "stop"}, "2 rows have no value that is one of the secrets, the first in line 3"),
        ("ages", {"columns": [0]}, "no row holds any of the secrets"),
        ("ages", {"columns": [0, 1]}, "choose one column"),
        ("ages", {"columns": [7]}, "no such column"),
        ("ages", {"who": 1}, "cannot be the secret, too"),
        ("ages", {"outside": "other", "columns": [0]}, "no row holds any of the secrets"),
        ("labels", {"outside": "nearest"}, "categories have no nearest one"),
        ("grid", {}, "no row holds any of the secrets"),
    ],
)
def test_what_cannot_be_protected_is_said(
    api: TestClient, mechanisms: dict[str, str], kind: str, changes: dict[str, Any], message: str
) -> None:
    body = request(api, mechanisms[kind], b"name,age\na,20\nb,secret-99\nc,\n", [1]) | changes
    done = protect(api, body)
    assert done["state"] == "failed"
    assert message in done["error"]["message"]
    assert "secret-99" not in str(done)
    assert api.get(f"/api/protected/{done['id']}/table").status_code == 409


def test_statistics_say_what_can_still_be_read(api: TestClient, mechanisms: dict[str, str]) -> None:
    content = ("age\n" + "20\n" * 300 + "23\n" * 700).encode()
    statistics = protect(api, request(api, mechanisms["ages"], content, [0]))["result"]["statistics"]
    mean = statistics["means"][0]
    assert mean["before"] == pytest.approx(22.1)
    assert mean["low"] <= mean["estimated"] <= mean["high"]
    assert mean["low"] <= 22.1 <= mean["high"]
    assert sum(share["before"] for share in statistics["shares"]) == pytest.approx(1)


def test_a_cancelled_file_leaves_nothing(mechanisms: dict[str, str], api: TestClient) -> None:
    body = request(api, mechanisms["ages"], ("age\n" + "20\n" * 400_000).encode(), [0])
    name = api.post("/api/protected", json=body).json()["id"]
    api.delete(f"/api/protected/{name}")
    wait_until(lambda: api.get(f"/api/protected/{name}").json()["state"] == "cancelled")
    assert api.get(f"/api/protected/{name}/manifest").status_code == 409
    assert api.post("/api/forget", json={"ids": [name, body["table"]]}).json() == {"forgotten": 2}
    assert api.get(f"/api/protected/{name}").status_code == 404


def test_a_table_with_too_many_rows_is_refused() -> None:
    with client(Limits(rows=10)) as small:
        answer = small.post("/api/files", content=b"age\n" + b"20\n" * 20)
        assert (answer.status_code, "more than 10 rows" in answer.text) == (413, True)

"""What a stranger can make a server hold: sizes are checked before anything is built, and bytes count."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from privacygames.problem import parse_problem
from privacygames.studio import Limits
from privacygames.studio.limits import bytes_of
from studio_server import AGES, client, described, designed

UNIFORM = {"prior": {"uniform": True}}
TWO = {"space": {"kind": "categories", "labels": ["a", "b"]}} | UNIFORM


def of(space: Any, **more: Any) -> Any:
    return {"space": space} | UNIFORM | more


WIDE_ATTRIBUTE = [1.0] + [0.0] * 12_000
HUGE: dict[str, Any] = {
    "cells": of({"kind": "grid", "columns": 10_000, "rows": 1}),
    "numbers": of({"kind": "numbers", "from": 0, "to": 9_999}),
    "categories": of({"kind": "categories", "labels": [f"{at}" for at in range(9_000)]}),
    "product": of({"kind": "product", "parts": [{"kind": "numbers", "from": 1, "to": 99}] * 2}),
    "subsets": of({"kind": "numbers", "from": 1, "to": 350}, observables={"at_most": 2}),
    "subsets of another space": of(
        {"kind": "numbers", "from": 1, "to": 3},
        observables={"kind": "subsets", "of": {"kind": "grid", "columns": 999, "rows": 999}, "members": [[0]]},
    ),
    "graph": of({"kind": "graph", "edges": [[f"{at}", f"{at + 1}"] for at in range(8_000)]}),
    "attribute": TWO | {"adversary": [{"name": "x", "attribute": {"given": [WIDE_ATTRIBUTE] * 2}}]},
    "guesses": TWO | {"adversary": [{"name": "x", "errors": [[0, 1]] * 5_000}]},
    "adversaries": TWO | {"adversary": [{"name": f"{at}"} for at in range(100)]},
}
"""Small documents of large problems."""

PEAK = """
import json, resource, sys
from studio_server import client

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

documents = json.load(sys.stdin)
with client() as made:
    made.post("/api/problems", json={"document": documents.pop(0)})
    before = peak()
    codes = [made.post("/api/problems", json={"document": each}).status_code for each in documents]
print(codes, peak() - before)
"""


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_is_refused_in_the_one_shape(name: str) -> None:
    with client() as made:
        answer = made.post("/api/problems", json={"document": HUGE[name]})
        assert answer.status_code == 413, answer.text
        assert answer.json()["error"]["status"] == "TOO_LARGE"
        assert "at most" in answer.json()["error"]["message"]


def test_a_dozen_small_requests_take_little_memory() -> None:
    """They took the server to gigabytes, since problems were built before they were refused."""
    documents = [AGES, *HUGE.values(), *HUGE.values()]
    assert all(len(json.dumps(each)) < 400_000 for each in documents)
    given = json.dumps(documents)
    command, folder = [sys.executable, "-c", PEAK], Path(__file__).parents[1]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, cwd=folder)
    codes, grown = done.stdout.rsplit(" ", 1)
    assert set(json.loads(codes)) == {413}
    assert int(grown) < 300


def test_the_largest_allowed_is_built() -> None:
    allowed = of({"kind": "numbers", "from": 1, "to": 20}, observables={"at_most": 2})
    with client() as made:
        assert made.post("/api/problems", json={"document": allowed}).status_code == 201
    parse_problem(of({"kind": "grid", "columns": 20, "rows": 20}), most=400)
    with pytest.raises(pg.TooLarge):
        parse_problem(of({"kind": "grid", "columns": 20, "rows": 20}), most=399)


def test_problems_are_kept_by_their_bytes() -> None:
    """Those used longest ago are forgotten; one that is too large on its own is refused."""
    large = of({"kind": "numbers", "from": 1, "to": 100})
    with client(Limits(kept_bytes=600_000)) as made:
        names = [described(made, large) for _ in range(6)]
        codes = [made.get(f"/api/problems/{name}").status_code for name in names]
        assert codes == [404, 404, 404, 404, 200, 200]
        answer = made.post("/api/problems", json={"document": of({"kind": "numbers", "from": 1, "to": 300})})
        assert answer.status_code == 413
        assert "takes more memory" in answer.json()["error"]["message"]
        assert made.get(f"/api/problems/{names[-1]}").status_code == 200


def test_tables_count_as_well_as_matrices() -> None:
    """Values that nothing reads, such as unused adversaries, take memory, too."""
    long = TWO | {"adversary": [{"name": "x", "errors": [[0.5, 1.0]] * 300}]}
    assert bytes_of(long) > 300 * 100
    with client(Limits(kept_bytes=30_000)) as made:
        assert made.post("/api/problems", json={"document": TWO}).status_code == 201
        assert made.post("/api/problems", json={"document": long}).status_code == 413


@pytest.mark.parametrize("body", [b'{"document": {"prior": [' + b"[]," * 2000 + b"[]]}}", b'{"toml": "' + b"x" * 9000])
def test_requests_are_measured_before_they_are_parsed(body: bytes) -> None:
    with client(Limits(document=8_000, values=1_000)) as made:
        answer = made.post("/api/problems", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["error"]["status"] == "TOO_LARGE"
        sent = made.post("/api/traces?form=csv", content=b"user,time,lat,lon\n" + b"a,1704067200,1,1\n" * 900)
        assert sent.status_code == 201  # files may be larger


def test_a_large_mechanism_file_is_refused_before_it_is_verified() -> None:
    space = pg.Numbers(range(30))
    content = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(space))).to_bytes()
    with client(Limits(secrets=20)) as made:
        answer = made.post("/api/verify", content=content)
        assert answer.status_code == 413
        assert "more than 20 rows" in answer.json()["error"]["message"]


def test_forgetting_forgets_what_was_made_from_it() -> None:
    rows = "".join(f"ann,2024-05-01T{h:02}:00:00Z,52.{h % 5}1,5.{h % 3}2\n" for h in range(24))
    with client() as made:
        sent = made.post("/api/traces?form=csv", content=f"user,time,lat,lon\n{rows}".encode()).json()
        body = {"traces": {"id": sent["id"], "user": "ann", "columns": 3, "rows": 2}}
        problem = made.post("/api/problems", json=body).json()["id"]
        job = designed(made, problem, bounds={"epsilon": 1.0})
        mechanism = job["result"]["mechanism"]
        other = described(made)
        assert made.post("/api/forget", json={"ids": [sent["id"]]}).json() == {"forgotten": 1}
        for path in (f"problems/{problem}", f"jobs/{job['id']}", f"mechanisms/{mechanism}/file"):
            assert made.get(f"/api/{path}").status_code == 404
        assert made.get(f"/api/problems/{other}").status_code == 200

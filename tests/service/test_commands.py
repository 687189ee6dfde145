"""``privacygames serve --fleet`` and ``privacygames store`` as commands: workers, signals, and kills under load."""

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

import privacygames as pg
from people_service import fleet_of_cells
from privacygames.cli.app import app
from waiting import GUARD, wait_until

RUN = [sys.executable, "-m", "privacygames"]
KILLS = 10
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PRIVACYGAMES_TOKEN"}


def said(*arguments: str) -> tuple[int, str]:
    """What a command that ends prints, and its status; in this process, which is faster than a new one."""
    result = CliRunner().invoke(app, list(arguments), env={"PRIVACYGAMES_TOKEN": None})
    return result.exit_code, result.output


@contextmanager
def service(fleet: str, store: str, *options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The service with two workers; gives its port and its process. It must end without being killed."""
    arguments = ["serve", "--fleet", fleet, "--store", store, "--port", "0", "--workers", "2", *options]
    process = subprocess.Popen(
        [*RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    )
    assert process.stdout is not None
    try:
        port = int(re.findall(r":(\d+)/", process.stdout.readline())[0])
        wait_until(partial(ready, port))
        yield port, process
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        process.communicate(timeout=GUARD)
    assert psutil.wait_procs(children, timeout=GUARD)[1] == []


def ready(port: int) -> bool:
    try:
        return ask(port, "GET", "/readyz")[0] == 200
    except OSError:
        return False


def ask(port: int, method: str, address: str, body: object = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, address, content, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode()
        return response.status, json.loads(text) if text[:1] == "{" else text
    finally:
        connection.close()


def test_several_workers_share_budgets_and_counters(tmp_path: Path) -> None:
    fleet, store = fleet_of_cells(tmp_path / "people"), str(tmp_path / "s.db")
    with service(fleet, store, "--budget", "8.1") as (port, process):
        codes = [ask(port, "POST", "/v1/people/ada/releases", {"secret": "cell-1"})[0] for _ in range(8)]
        assert codes == [201] * 4 + [409] * 4
        text = ask(port, "GET", "/metrics")[1]
        assert 'privacygames_releases_total{outcome="released"} 4\n' in text
        assert len(psutil.Process(process.pid).children()) >= 2
    assert process.returncode == 0
    code, text = said("store", "verify", store, "--json")
    assert (code, json.loads(text)) == (0, {"people": 1})


def test_the_commands_of_a_store(tmp_path: Path) -> None:
    fleet, store = fleet_of_cells(tmp_path / "people"), str(tmp_path / "s.db")
    assert said("store", "verify", store)[0] == 8
    tokens = str(tmp_path / "tokens")
    token = said("store", "token", tokens, "--scope", "release")[1].strip()
    assert said("store", "token", tokens, "--scope", "everything")[0] == 3
    with service(fleet, store, "--tokens", tokens) as (port, _):
        for person in ("ada", "bob"):
            address, body = f"/v1/people/{person}/releases", {"secret": "cell-1"}
            assert ask(port, "POST", address, body)[0] == 401
            headers = {"authorization": f"Bearer {token}", "idempotency-key": "k"}
            assert ask(port, "POST", address, body, **headers)[0] == 201
        assert said("store", "backup", store, str(tmp_path / "copy.db"))[0] == 0
    assert json.loads(said("store", "show", store, "--json")[1]) == {"people": 2}
    assert json.loads(said("store", "show", store, "--person", "ada", "--json")[1])["total"] == 1
    assert "total" in said("store", "show", store, "--person", "ada")[1]
    assert said("store", "copy", store, str(tmp_path / "other.db"))[0] == 0
    assert said("store", "erase", store, "--person", "ada", "--yes")[0] == 0
    assert said("store", "erase", store, "--person", "ada", "--yes")[0] == 3
    pruned = said("store", "prune", store, "--older-than", "0", "--json")[1]
    assert json.loads(pruned) == {"keys": 0, "events": 1}  # not the last release
    assert said("store", "migrate", store)[0] == said("store", "scrub", store)[0] == 0
    for name, people in (("s.db", 1), ("copy.db", 2), ("other.db", 2)):
        assert json.loads(said("store", "verify", str(tmp_path / name), "--json")[1]) == {"people": people}
    assert said("store", "key", str(tmp_path / "key"))[0] == 0
    assert said("store", "key", str(tmp_path / "key"))[0] == 3
    assert len((tmp_path / "key").read_bytes()) == 32


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    fleet = fleet_of_cells(tmp_path / "people")
    assert "go together" in said("serve", "--fleet", fleet)[1]
    assert "--fleet and --store" in said("serve", "--budget", "4")[1]
    code, text = said(
        "serve", "--fleet", fleet, "--store", str(tmp_path / "s.db"), "--host", "0.0.0.0", "--name", "a.b"
    )
    assert (code, "PRIVACYGAMES_TOKEN" in text) == (3, True)
    assert said("serve", "--fleet", str(tmp_path / "none"), "--store", str(tmp_path / "s.db"))[0] == 8


def release_all_the_time(port: int, person: str, number: int, seen: dict[str, str], stop: threading.Event) -> None:
    """Release until told to stop; every request that gets no answer is made again with its key."""
    step = 0
    while not stop.is_set():
        key = f"{number}-{step}"
        try:
            code, answer = ask(
                port, "POST", f"/v1/people/{person}/releases", {"secret": "cell-1"}, **{"idempotency-key": key}
            )
        except (OSError, http.client.HTTPException, ValueError):
            continue
        if code in (200, 201):
            seen[f"{person} {answer['number']}"] = answer["output"]
            step += 1
        else:
            assert code in (409, 503), answer
            step += code == 409


def kill_under_load(fleet: str, store: str, kills: int, kill: Callable[[int], None]) -> None:
    """Kill something again and again while four clients release; then compare what they saw with the ledgers."""
    seen: list[dict[str, str]] = [{} for _ in range(4)]
    stop = threading.Event()
    with service(fleet, store, "--budget", "1000") as (port, process):
        people = ["ada", "bob", "ada", "bob"]
        arguments = [(port, person, number, seen[number], stop) for number, person in enumerate(people)]
        threads = [threading.Thread(target=release_all_the_time, args=each) for each in arguments]
        for thread in threads:
            thread.start()
        try:
            for _ in range(kills):
                before = sum(map(len, seen))
                wait_until(lambda before=before: sum(map(len, seen)) > before + 5)  # type: ignore[misc]
                kill(process.pid)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    with pg.LedgerStore(store) as opened:
        assert opened.verify() == 2
        for person in ("ada", "bob"):
            ledger = opened.ledger(person, create=False)
            records, verified = ledger.records(), ledger.verify()
            outputs = {f"{person} {each.number}": each.report["answer"] for each in records}
            merged = {name: output for each in seen for name, output in each.items() if name.startswith(person)}
            assert merged.items() <= outputs.items()  # every output that a client saw
            assert len(merged) == sum(name.startswith(person) for each in seen for name in each)  # none twice
            assert len(records) - len(merged) <= 2  # at most what each client was waiting for
            assert Decimal(verified.spent["total"]) <= Decimal(1000)


def workers_of(pid: int) -> list[int]:
    """The workers that run; of one that was just killed nobody may have taken note yet."""
    workers = []
    for each in psutil.Process(pid).children():
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(each.cmdline()):
                workers.append(each.pid)
    return workers


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_workers_that_are_killed_under_load_lose_and_double_nothing(tmp_path: Path, url: str) -> None:
    chance = random.Random(7)

    def kill(pid: int) -> None:
        wait_until(lambda: workers_of(pid))
        os.kill(chance.choice(workers_of(pid)), signal.SIGKILL)

    kill_under_load(fleet_of_cells(tmp_path / "people"), url, KILLS, kill)


@pytest.mark.slow
def test_a_database_that_is_killed_under_load_loses_and_doubles_nothing(tmp_path: Path, server: Any) -> None:
    url = server.create("killed")

    def kill(_: int) -> None:
        server.stop("immediate")
        server.start()

    kill_under_load(fleet_of_cells(tmp_path / "people"), url, KILLS, kill)

"""Tests wait for states: none sleeps, reads a clock, or gives up so soon that a busy machine makes it fail."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from waiting import GUARD

TESTS = Path(__file__).parent
HELPER = TESTS / "waiting.py"
FUZZER = TESTS / "fuzz"
"""A program of its own: it measures whether time limits hold, and says so in its report instead of failing a test."""

LEAST = 60.0
"""Seconds that any deadlock guard must leave at least."""

CLOCKS = {"sleep", "monotonic", "perf_counter", "process_time", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
WAITS = {"timeout", "timeout_seconds"}
"""Keywords that say how long to wait for something; limits of what is tested have names of their own."""


def clocks(tree: ast.AST) -> Iterator[str]:
    """Every function of the module ``time`` that is imported or called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (alias.name for alias in node.names if alias.name in CLOCKS)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "time" and node.attr in CLOCKS:
            yield node.attr
        if isinstance(node, ast.Constant) and isinstance(node.value, str):  # a script for another process
            yield from re.findall(r"\b(?:time\.)?sleep\(", node.value)
        if isinstance(node, ast.Attribute) and node.attr in ("sleep", "wait_for_timeout"):
            yield node.attr


def short_waits(tree: ast.AST) -> Iterator[str]:
    """Every number below the least guard that is given as the time to wait for something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            named = [each.value for each in node.keywords if each.arg in WAITS]
            waited = node.args[:1] if getattr(node.func, "attr", "") in ("wait", "join", "communicate") else []
        elif isinstance(node, ast.arguments):
            named = [default for default, name in _defaults(node) if name in WAITS]
            waited = []
        else:
            continue
        for value in (*named, *waited):
            number = value.value if isinstance(value, ast.Constant) else None
            if isinstance(number, int | float) and number < LEAST:
                yield f"{number} in line {value.lineno}"


def _defaults(given: ast.arguments) -> Iterator[tuple[ast.expr, str]]:
    plain = [*given.posonlyargs, *given.args]
    for parameter, default in zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True):
        yield default, parameter.arg
    for parameter, default_or_none in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default_or_none is not None:
            yield default_or_none, parameter.arg


@pytest.mark.parametrize(
    "path", sorted(set(TESTS.rglob("*.py")) - {HELPER, *FUZZER.rglob("*.py")}), ids=lambda path: path.stem
)
def test_tests_wait_for_states_and_not_for_times(path: Path) -> None:
    """What there is instead: ``waiting.wait_until``, ``waiting.Clock``, and ``waiting.GUARD`` for what may hang."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path != Path(__file__):
        assert sorted(clocks(tree)) == []
        assert sorted(short_waits(tree)) == []


@pytest.mark.parametrize(
    "line",
    [
        "import time\ntime.sleep(1)",
        "from time import monotonic",
        "from time import perf_counter as clock",
        "SCRIPT = 'import time; time.sleep(1)'",
        "page.wait_for_timeout(100)",
    ],
)
def test_a_clock_is_noticed(line: str) -> None:
    assert list(clocks(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "process.communicate(timeout=30)",
        "subprocess.run(command, timeout=59.9)",
        "ready.wait(30)",
        "thread.join(1)",
        "def wait(until, timeout=30.0): ...",
        "def ask(*, timeout=8.0): ...",
    ],
)
def test_a_short_wait_is_noticed(line: str) -> None:
    assert list(short_waits(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["','.join(names)", "ready.wait(GUARD)", "run(timeout=300)", "wait(timeout=None)", "design(time_limit=1)"]
)
def test_what_is_no_short_wait(line: str) -> None:
    assert not list(short_waits(ast.parse(line)))


def test_guards_are_long_and_hypothesis_judges_no_times() -> None:
    assert GUARD >= 2 * LEAST
    assert settings().deadline is None

"""Node and the built package in ``device/``; tests that need them are skipped where they are absent, and say why."""

import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "device"
GUARD = 900
"""Seconds after which a program of Node is taken for one that hangs."""


def built_package() -> str:
    """The path of Node, if the package is built."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node: `make device` installs it where it can")
    if not (PACKAGE / "build" / "test" / "judge.js").is_file() or not (PACKAGE / "dist" / "index.js").is_file():
        pytest.skip("the package in device/ is not built: run `make device`")
    return node


def run_node(*arguments: str | Path) -> str:
    """What a program of Node prints; its errors fail the test."""
    command = [built_package(), *map(str, arguments)]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout

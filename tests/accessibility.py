"""axe-core, from the package that contains it, run in a page of a browser."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_source() -> str:
    """The script of axe-core; the test is skipped where the package cannot be had."""
    spec = find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("axe-playwright-python is not installed: pip install '.[dev]'")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text()


def violations(page: "Page", source: str, **options: Any) -> list[str]:
    """What axe-core finds wrong with a page as it is now: rule, and where."""
    page.evaluate(source)
    asked = {"runOnly": RULES, "rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"], **options}
    found = page.evaluate("async (options) => (await axe.run(document, options)).violations", asked)
    return [
        f"{each['id']}: {node['target']} {node['html'][:120]} {node['failureSummary'][:200]}"
        for each in found
        for node in each["nodes"]
    ]

"""Every equation label of the paper is named by a test in this folder."""

import re
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[3] / "shared" / "paper" / "privacy-games.tex"


def test_every_equation_has_a_test() -> None:
    if not PAPER.exists():
        pytest.skip("the paper's source is not beside this checkout")
    labels = set(re.findall(r"\\label\{(eq:[^}]*)\}", PAPER.read_text()))
    tests = " ".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    missing = {label for label in labels if not any(form in tests for form in (label, "…" + label[label.rfind(":") :]))}
    assert len(labels) > 30
    assert not missing

"""Every equation label of the paper is named by a test in this folder."""

import re
from pathlib import Path

from support import shared


def test_every_equation_has_a_test() -> None:
    paper = shared("paper", "privacy-games.tex")
    labels = set(re.findall(r"\\label\{(eq:[^}]*)\}", paper.read_text()))
    tests = " ".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    missing = {label for label in labels if not any(form in tests for form in (label, "…" + label[label.rfind(":") :]))}
    assert len(labels) > 30
    assert not missing

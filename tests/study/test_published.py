"""The page of results on real data says what the tables beside it say, about the claims that are checked today."""

import csv
import re
from pathlib import Path

from privacygames.study.claims import CLAIMS, OURS
from privacygames.study.evidence import Evidence

PAGE = Path(__file__).parents[2] / "docs" / "study" / "README.md"


def tables() -> list[dict[str, dict[str, str]]]:
    """The page's tables, each as columns by heading: what it says of each statement."""
    found = []
    for lines in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), re.MULTILINE):
        heading, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines())
        found.append({name: {row[0]: row[place] for row in rows} for place, name in enumerate(heading)})
    return found


def test_the_page_repeats_its_tables() -> None:
    links = dict(re.findall(r"\[([^\]]*)\]\((claims-\w+\.csv)\)", PAGE.read_text()))
    assert set(links.values()) == {path.name for path in PAGE.parent.glob("*.csv")}
    statements = {claim.name: claim.statement for claim in CLAIMS}
    ours = [claim.name for claim in OURS]
    shown, robust = tables()
    assert set(shown) == {"The paper says", *links}
    assert set(robust) <= {"", *links}
    for name, file in links.items():
        with (PAGE.parent / file).open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        # What the paper does not claim is checked where its part of the study was run.
        assert [row["claim"] for row in rows] == [*statements, *(ours if name in robust else [])]
        for row in rows:
            holds, cases = int(row["holds"]), int(row["cases"])
            verdict = Evidence([True] * holds + [False] * (cases - holds), "", "").verdict
            assert row["verdict"] == verdict
            if row["claim"] == "robust-kept":
                assert robust[name]["robust: every promise is kept"] == f"in {holds} of {cases}"
            if row["claim"] in ours:
                continue
            said = f"holds ({cases})" if verdict == "holds" else verdict
            assert shown[name].pop(statements[row["claim"]]) == said
        assert not shown[name]

"""The page of results on real data says what the tables beside it say, about the claims that are checked today."""

import csv
import re
from pathlib import Path

from privacygames.study.claims import CLAIMS
from privacygames.study.evidence import Evidence

PAGE = Path(__file__).parents[2] / "docs" / "study" / "README.md"


def columns() -> dict[str, dict[str, str]]:
    """The page's columns by heading: what it says of each statement."""
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in PAGE.read_text().splitlines()
        if line[:1] == "|"
    ]
    heading, _, *lines = rows
    return {name: {line[0]: line[place] for line in lines} for place, name in enumerate(heading)}


def test_the_page_repeats_its_tables() -> None:
    links = dict(re.findall(r"\[([^\]]*)\]\((claims-\w+\.csv)\)", PAGE.read_text()))
    assert set(links.values()) == {path.name for path in PAGE.parent.glob("*.csv")}
    statements = {claim.name: claim.statement for claim in CLAIMS}
    shown = columns()
    assert set(shown) == {"The paper says", *links}
    for name, file in links.items():
        with (PAGE.parent / file).open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        assert [row["claim"] for row in rows] == list(statements)
        for row in rows:
            holds, cases = int(row["holds"]), int(row["cases"])
            verdict = Evidence([True] * holds + [False] * (cases - holds), "", "").verdict
            assert row["verdict"] == verdict
            said = f"holds ({cases})" if verdict == "holds" else verdict
            assert shown[name].pop(statements[row["claim"]]) == said
        assert not shown[name]

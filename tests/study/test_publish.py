"""The page of results on real data says what the tables beside it say, about the claims that are checked today."""

import csv
import json
import re
from pathlib import Path

from privacygames_study.claims import CLAIMS, OURS
from privacygames_study.claims.evidence import Evidence
from privacygames_study.provenance import LIBRARIES

PAGE = Path(__file__).parents[2] / "docs" / "study" / "README.md"
ROBUST = {claim.name for claim in OURS if claim.table == "robust"}
"""Claims with a table of their own on the page."""


def tables() -> list[dict[str, dict[str, str]]]:
    """The page's tables, each as columns by heading: what it says of each statement."""
    found = []
    for lines in re.findall(r"(?:^\|.*\n)+", PAGE.read_text(), re.MULTILINE):
        heading, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines())
        found.append({name: {row[0]: row[place] for row in rows} for place, name in enumerate(heading)})
    return found


def linked(ending: str) -> dict[str, str]:
    """Data sets, and the file of each that the page links to; all files of the kind are linked to."""
    files = dict(re.findall(rf"\[([^\]]*)\]\(([\w-]+\.{ending})\)", PAGE.read_text()))
    others = {path.name for path in PAGE.parent.glob(f"points*.{ending}")}  # of the page about points
    assert set(files.values()) == {path.name for path in PAGE.parent.glob(f"*.{ending}")} - others
    return files


def test_the_page_repeats_its_tables() -> None:
    links = linked("csv")
    shown, added, robust = tables()
    assert set(shown) == {"The paper says", *links}
    assert set(added) == {"We add", *links}
    assert set(robust) <= {"", *links}
    statements = {claim.name: claim for claim in (*CLAIMS, *OURS)}
    for name, file in links.items():
        with (PAGE.parent / file).open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        # What the paper does not claim of better informed adversaries is checked where that part was run.
        wanted = [claim for claim in statements if claim not in ROBUST or name in robust]
        assert [row["claim"] for row in rows] == wanted
        for row in rows:
            claim, holds, cases = statements[row["claim"]], int(row["holds"]), int(row["cases"])
            assert row["source"] == claim.source
            verdict = Evidence([True] * holds + [False] * (cases - holds), "", "").verdict
            assert row["verdict"] == verdict
            if row["claim"] == "robust-kept":
                assert robust[name]["robust: every guarantee holds"] == f"in {holds} of {cases}"
            if row["claim"] not in ROBUST:
                said = f"holds ({cases})" if verdict == "holds" else verdict
                assert (shown if claim.source == "paper" else added)[name].pop(claim.statement) == said
        assert not shown[name]
        assert not added[name]


def test_every_table_says_which_run_it_is_from() -> None:
    """Run 2, on approximations, has a manifest; of run 1 none was kept, and the page says so."""
    manifests = linked("json")
    for name, file in linked("csv").items():
        with (PAGE.parent / file).open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        approximate = {claim.name for claim in (*CLAIMS, *OURS) if claim.table == "approximation"}
        assert {row["claim"] for row in rows if row["run"] == "2"} == approximate
        assert {row["run"] for row in rows} == {"1", "2"}
        about = json.loads((PAGE.parent / manifests[f"study of {name}"]).read_text())
        assert about["parts"] == ["approximation"]
        users = max(int(row["cases"]) for row in rows if row["claim"].startswith("small-radius"))
        assert users == about["users"] * len(about["epsilons_approximation"])
        assert re.fullmatch(r"[0-9a-f]{64}", about["data_sha256"])
        assert set(about["versions"]) == {"python", *LIBRARIES}
        assert re.fullmatch(r"[0-9a-f]{40}", about["revision"])
        assert about["command"].startswith("privacygames study --out OUT --data DATA")
        assert all(about[key] for key in ("processor", "processes", "threads", "cores", "finished", "data_bytes"))
    assert "no manifest" in PAGE.read_text()


def test_manifests_name_no_person_path_or_address() -> None:
    for path in PAGE.parent.glob("*.json"):
        assert not re.search(r"/(home|root|work|tmp|Users)\b|tcp://|users? \d", path.read_text()), path.name

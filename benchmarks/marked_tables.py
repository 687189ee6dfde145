"""Tables of measurements inside a page of the docs, between comments that name them."""

import re
from pathlib import Path

STUDY = Path(__file__).parents[1] / "docs" / "study"


def replace_table(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between ``<!-- begin name -->`` and ``<!-- end name -->``."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", flags=re.DOTALL)
    text, count = pattern.subn(lambda _: "\n".join([begin, *lines, end]), page.read_text())
    if count != 1:
        raise ValueError(f"{page.name} needs one pair of comments for {name}")
    page.write_text(text)

"""Rows of plain values as a CSV file."""

import csv
import io
import os
from collections.abc import Mapping, Sequence

from privacygames.atomic_io import write_text


def write_csv(path: str | os.PathLike[str], rows: Sequence[Mapping[str, str | float | None]]) -> None:
    """Write rows with the same keys to a CSV file, with a line of headings."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())

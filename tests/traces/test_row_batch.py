"""A format of traces from outside the library, through public names only."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

import privacygames as pg


def read_pairs(source: pg.traces.TraceSource) -> Iterator[pg.traces.RowBatch]:
    """Lines ``seconds latitude longitude`` of one user."""
    rows = np.array([line.split() for line in source.path.read_text().splitlines()], dtype=float)
    yield pg.traces.RowBatch(
        users=[source.user] * len(rows),
        times=rows[:, 0].astype(np.int64),
        latitude=rows[:, 1],
        longitude=rows[:, 2],
        lines=range(1, len(rows) + 1),
    )


OWN = pg.traces.TraceFormat(read_pairs, endings=(".pos",), user_of=lambda file, _root: file.stem, zone=UTC)


def test_a_format_of_one_s_own_is_read_like_the_others(tmp_path: Path) -> None:
    (tmp_path / "anna.pos").write_text("1704067200 46.5 6.5\n1704067300 46.6 6.6\n1704070000 99 6.6\n")
    (tmp_path / "ben.pos").write_text("1704067200 46.5 6.5\n")
    (tmp_path / "notes.txt").write_text("not a trace")
    visits = pg.traces.read(tmp_path, format=OWN)
    assert visits.users == ("anna", "ben")
    assert (len(visits), visits.rows) == (2, 4)
    assert {reason: count for reason, count in visits.skipped.items() if count} == {
        "bad coordinates": 1,
        "same slot": 1,
    }
    assert pg.traces.read(tmp_path, format=OWN, users=["ben"]).users == ("ben",)
    with pytest.raises(pg.InvalidProblem, match=r"no files ending in \.other"):
        pg.traces.read(tmp_path, format=pg.traces.TraceFormat(read_pairs, endings=(".other",)))

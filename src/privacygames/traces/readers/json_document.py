"""Recordings that are one JSON document: read at once, within limits; messages never show its content."""

import json
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

import numpy as np

from privacygames.arrays import IntArray
from privacygames.csv_reader import expansion_limit, open_decompressed
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.traces import timestamps
from privacygames.traces.readers.row_batch import RowBatch, TraceSource

MAX_DOCUMENT_BYTES = 1 << 29
"""Largest document, in bytes: parsed, it takes about ten times as much memory."""

BATCH_ROWS = 1 << 16
"""Rows of a batch."""


class Fix(NamedTuple):
    """A position: degrees, which may be NaN; unix seconds, or a text to read them from; whose it is, if it says so."""

    entry: int
    latitude: float
    longitude: float
    time: int | str
    user: str = ""


def load_document(source: TraceSource) -> Any:
    """The values of a JSON document."""
    limit = min(MAX_DOCUMENT_BYTES, expansion_limit(source.path))
    with open_decompressed(source.path, max_bytes=MAX_DOCUMENT_BYTES, max_expanded=limit) as (file, _):
        try:
            return json.loads(file.read(MAX_DOCUMENT_BYTES).decode("utf-8-sig"), parse_constant=lambda _: None)
        except (UnicodeDecodeError, json.JSONDecodeError, ValueError):
            raise InvalidProblem(f"{source.path.name} is not a whole JSON document: export it again") from None
        except RecursionError:
            raise TooLarge(f"{source.path.name} is nested more deeply than any recording") from None


def number(value: Any) -> float:
    """A number; NaN for anything else."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    except OverflowError:
        return float("nan")


def row_batch(fixes: Sequence[Fix], broken: Sequence[int], source: TraceSource, position: int) -> RowBatch:
    """Fixes as arrays."""
    return RowBatch(
        users=[fix.user or source.user for fix in fixes],
        times=_times([fix.time for fix in fixes], source.zone),
        latitude=np.array([fix.latitude for fix in fixes], dtype=np.float64),
        longitude=np.array([fix.longitude for fix in fixes], dtype=np.float64),
        lines=[fix.entry for fix in fixes],
        broken=broken,
        position=position,
    )


def _times(written: Sequence[int | str], zone: tzinfo) -> IntArray:
    times = timestamps.seconds_if_given([each if isinstance(each, str) else "-" for each in written], zone)
    for index, each in enumerate(written):
        if not isinstance(each, str):
            times[index] = each if timestamps.EARLIEST <= each < timestamps.LATEST else timestamps.UNREADABLE
    return times

"""Structured logs: one JSON object in each line, without secrets, names, addresses or tokens."""

import json
import sys
import traceback
from datetime import UTC, datetime


def log(event: str, **values: float | str | None) -> None:
    """Write a line to the standard error.

    Args:
        event: a word for what happened.
        **values: numbers, and texts of this program's own: nothing that a client sent.
    """
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stderr.write(json.dumps({"time": moment, "event": event, **values}) + "\n")
    sys.stderr.flush()


def log_error(error: BaseException) -> None:
    """Write the kind and the place of an unforeseen error: its text may contain what was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    log("error", kind=type(error).__name__, place=f"{frames[-1].name}:{frames[-1].lineno}" if frames else "unknown")

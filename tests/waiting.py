"""Waiting in tests: for a state, never for a time. The only sleep of all tests is here."""

import sys
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

import pytest

GUARD = 300.0
"""Seconds after which a test that waits is taken to be in a deadlock: far more than the slowest machine needs."""

Reached = TypeVar("Reached")


def wait_until(reached: Callable[[], Reached]) -> Reached:
    """What ``reached`` gives once that is true, asked every hundredth of a second; an error after :data:`GUARD`."""
    end = monotonic() + GUARD
    while not (found := reached()):
        assert monotonic() < end, f"not reached within {GUARD:g} seconds"
        sleep(0.01)
    return found


class Clock:
    """A clock that stands still until a test sets it, in place of ``time.monotonic`` in all of the library.

    Args:
        monkeypatch: puts the real one back when the test is over.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for name, module in list(sys.modules.items()):
            if name.startswith("privacygames.") and "monotonic" in vars(module):
                monkeypatch.setattr(module, "monotonic", self)

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now

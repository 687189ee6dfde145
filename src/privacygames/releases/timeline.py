"""Time between releases: the time a release is recorded with, and the belief at that time."""

from dataclasses import dataclass
from time import time as system_time

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Mobility, Prior, Timestamp, to_seconds
from privacygames.errors import InvalidProblem
from privacygames.releases.ledger import LedgerHead
from privacygames.tracking import advance_log_belief

CLOCK_TOLERANCE = 300.0
"""Seconds that the time of a release may be ahead of this machine's clock. Clocks set by a network differ by less, so a
window can end late by at most this much."""


@dataclass(frozen=True)
class ReleaseTime:
    """The time that a release is recorded with.

    Attributes:
        time: unix seconds, or time steps of the mobility model.
        clocked: whether ``time`` is by the clock.
        clock_behind: seconds by which the clock was behind the previous release, whose time is then used.
    """

    time: float
    clocked: bool
    clock_behind: float = 0.0


class ReleaseClock:
    """The times that releases are recorded with: by the clock, or counted in steps.

    Args:
        windows: whether there are budgets per window, which need times.
        clock_tolerance: seconds that a release may be ahead of this machine's clock; None: any number.
    """

    def __init__(self, *, windows: bool, clock_tolerance: float | None) -> None:
        self._windows, self._clock_tolerance = windows, clock_tolerance

    def release_time(self, head: LedgerHead, at: Timestamp | None) -> ReleaseTime:
        """The time of a release, never before the previous one."""
        if at is not None:
            return self._by_clock(head, to_seconds(at))
        if self._windows:
            raise InvalidProblem("a budget per window needs times: pass at=, such as time.time()")
        if head.release_count and head.clocked:
            raise InvalidProblem("earlier releases have timestamps: pass at=")
        return ReleaseTime(head.time + 1 if head.release_count else 0.0, clocked=False)

    def _by_clock(self, head: LedgerHead, time: float) -> ReleaseTime:
        ahead = time - system_time()
        if self._clock_tolerance is not None and ahead > self._clock_tolerance:
            raise InvalidProblem(
                f"at is {ahead:.0f} s ahead of this machine's clock, and every later release would be recorded at that "
                f"time; the tolerance is {self._clock_tolerance:g} s. Set the clock, or pass clock_tolerance=None "
                "for simulated times"
            )
        if head.release_count and not head.clocked:
            raise InvalidProblem("earlier releases have no timestamps: leave at out, or use a new ledger")
        behind = head.time - time if head.release_count else 0.0
        if behind > 0:
            return ReleaseTime(head.time, clocked=True, clock_behind=behind)
        return ReleaseTime(time, clocked=True)


class Timeline(ReleaseClock):
    """The passage of time between releases, and the belief at each time.

    Args:
        prior: the belief before the first release.
        mobility: how it changes over time.
        windows: whether there are budgets per window, which need times.
        clock_tolerance: seconds that a release may be ahead of this machine's clock; None: any number.
    """

    def __init__(self, prior: Prior, mobility: Mobility, *, windows: bool, clock_tolerance: float | None) -> None:
        super().__init__(windows=windows, clock_tolerance=clock_tolerance)
        self._prior, self._mobility = prior, mobility

    def release_time(self, head: LedgerHead, at: Timestamp | None) -> ReleaseTime:
        """The time of a release, never before the previous one."""
        if at is not None:
            self._mobility.slot(at)  # raises where the mobility counts in steps, and this is a datetime
        elif self._mobility.by_hour:
            raise InvalidProblem("the mobility depends on the hour of the day: pass at=")
        return super().release_time(head, at)

    def slot(self, time: float, *, clocked: bool) -> int:
        """The time step that contains a time."""
        return self._mobility.slot(time) if clocked else int(time)

    def log_belief(self, head: LedgerHead, when: ReleaseTime) -> FloatArray:
        """The logarithms of the belief at a time: that after the last release, advanced by the mobility model."""
        if head.releases_in_scope == 0:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self._prior.probabilities))
        start = self.slot(head.time, clocked=head.clocked)
        return advance_log_belief(
            head.log_belief, self._mobility, start, self.slot(when.time, clocked=when.clocked) - start
        )

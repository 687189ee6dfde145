"""Time between releases: when a release counts as made, and what is believed by then."""

from dataclasses import dataclass
from time import time as system_time

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Mobility, Moment, Prior, moment
from privacygames.errors import InvalidProblem
from privacygames.releases.entries import Head
from privacygames.tracking import log_moved

CLOCK_TOLERANCE = 300.0
"""Seconds that the time of a release may be ahead of this machine's clock: clocks of machines that are set by a network
differ by less, and a window is late by no more than that."""


@dataclass(frozen=True)
class When:
    """When a release counts as made.

    Attributes:
        time: unix seconds, or steps counted.
        clocked: which of the two.
        behind: by how many seconds the clock was behind the release before; then the time is that release's.
    """

    time: float
    clocked: bool
    behind: float = 0.0


class Timeline:
    """What passes between releases.

    Args:
        prior: what is believed before the first.
        mobility: how that moves.
        windows: whether there are budgets per window, which need times.
        clock_tolerance: how many seconds ahead of this machine's clock a release may be; None: any number.
    """

    def __init__(self, prior: Prior, mobility: Mobility, *, windows: bool, clock_tolerance: float | None) -> None:
        self._prior, self._mobility, self._windows = prior, mobility, windows
        self._clock_tolerance = clock_tolerance

    def when(self, head: Head, at: Moment | None) -> When:
        """When a release counts as made: never before the one before it."""
        if at is not None:
            return self._by_clock(head, at)
        if self._windows:
            raise InvalidProblem("a budget per window needs times: say when with at=, such as time.time()")
        if self._mobility.by_hour:
            raise InvalidProblem("the mobility depends on the hour of the day: say when with at=")
        if head.count and head.clocked:
            raise InvalidProblem("the releases before had times: say when with at=")
        return When(head.time + 1 if head.count else 0.0, clocked=False)

    def slot(self, time: float, *, clocked: bool) -> int:
        """The step of the chain a time is in."""
        return self._mobility.slot(time) if clocked else int(time)

    def belief(self, head: Head, when: When) -> FloatArray:
        """The logarithms of the belief by then: what the last release left, moved by what has passed."""
        if head.current == 0:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self._prior.probabilities))
        start = self.slot(head.time, clocked=head.clocked)
        return log_moved(head.belief, self._mobility, start, self.slot(when.time, clocked=when.clocked) - start)

    def _by_clock(self, head: Head, at: Moment) -> When:
        self._mobility.slot(at)
        time = moment(at)
        ahead = time - system_time()
        if self._clock_tolerance is not None and ahead > self._clock_tolerance:
            raise InvalidProblem(
                f"at is {ahead:.0f} s ahead of this machine's clock, and every later release would count as made then; "
                f"allowed are {self._clock_tolerance:g} s. Set the clock, or pass clock_tolerance=None for times that "
                "are made up"
            )
        if head.count and not head.clocked:
            raise InvalidProblem("the releases before had no times: leave at out, or use a new ledger")
        behind = head.time - time if head.count else 0.0
        return When(head.time, clocked=True, behind=behind) if behind > 0 else When(time, clocked=True)

"""Progress reports of long jobs, and their cancellation.

Every long job (a design, a search, a comparison, a study, reading traces) takes ``progress``, a function that it calls
now and then with a :class:`Progress`. The function stops the job by raising :class:`privacygames.Cancelled`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event

from privacygames.errors import Cancelled


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One progress report of a job; an attribute that is unknown or does not apply is None.

    Attributes:
        job: ``"design"``, ``"find"``, ``"compare"``, ``"study"`` or ``"read"``.
        done: the number of iterations, designs, mechanisms or rows finished.
        total: how many there are in all.
        share: the fraction of the work that is done, from 0 to 1.
        seconds: time since the job started.
        value: the best value so far: the cost of a mechanism, or its distortion privacy where that is maximised.
        gap: the proved relative gap between that value and the optimum.
        message: what the job is doing, in words.

    Example:
        >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
        >>> reports = []
        >>> mechanism = pg.design(problem, epsilon=1.0, progress=reports.append)
        >>> {report.job for report in reports}
        {'design'}
    """

    job: str
    done: int
    total: int | None = None
    share: float | None = None
    seconds: float = 0.0
    value: float | None = None
    gap: float | None = None
    message: str = ""


ProgressCallback = Callable[[Progress], None]
"""What a job calls with its progress, in the job's own thread: it should return quickly."""


class Cancellation:
    """A switch that stops jobs from elsewhere: another thread, a signal handler, a button.

    Example:
        >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
        >>> cancellation = pg.Cancellation()
        >>> cancellation.cancel()  # usually from another thread, while the job runs
        >>> pg.design(problem, epsilon=1.0, progress=cancellation.callback())
        Traceback (most recent call last):
            ...
        privacygames.errors.Cancelled: the job was cancelled
    """

    def __init__(self) -> None:
        self._requested = Event()

    def cancel(self) -> None:
        """Stop the jobs that were given this switch's callback, at their next progress report."""
        self._requested.set()

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._requested.is_set()

    def callback(self, then: ProgressCallback | None = None) -> ProgressCallback:
        """A ``progress`` function that raises ``Cancelled`` once :meth:`cancel` was called, and else calls ``then``."""

        def report(progress: Progress) -> None:
            if self.cancelled:
                raise Cancelled("the job was cancelled")
            if then is not None:
                then(progress)

        return report


def relabel_progress(
    job: str, callback: ProgressCallback | None, message: str, *, done: int = 0
) -> ProgressCallback | None:
    """A callback for one part of a larger job: it reports the part's progress under the larger job's name."""
    if callback is None:
        return None
    return lambda progress: callback(replace(progress, job=job, message=message, done=done))

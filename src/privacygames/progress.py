"""Progress of long jobs, and how to cancel them: one kind for all of them.

Every long job (a design, a search, a comparison, a study, reading traces) takes ``progress``, a function that is
called with a :class:`Progress` now and then. Raising :class:`privacygames.Cancelled` in it stops the job.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event

from privacygames.errors import Cancelled


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a job stands. What a job does not know, or what makes no sense for it, is None.

    Attributes:
        job: ``"design"``, ``"find"``, ``"compare"``, ``"study"`` or ``"read"``.
        done: how far it is: iterations, designs, mechanisms, rows.
        total: of how many.
        share: how much of the work is done, from 0 to 1.
        seconds: since it started.
        value: of the best so far: the cost of a mechanism, or its distortion privacy where that is maximised.
        gap: the relative gap of that to the best possible, as far as proved.
        message: what is going on, in words.
    """

    job: str
    done: int
    total: int | None = None
    share: float | None = None
    seconds: float = 0.0
    value: float | None = None
    gap: float | None = None
    message: str = ""


Watcher = Callable[[Progress], None]
"""What a job calls with its progress. It runs in the job's thread: be quick; raise ``Cancelled`` to stop the job."""


class Cancellation:
    """A switch that stops a job from elsewhere: another thread, a signal handler, a button.

    Example:
        >>> switch = Cancellation()
        >>> mechanism = design(problem, epsilon=1.0, progress=switch.watching())  # doctest: +SKIP
        >>> switch.cancel()  # in another thread: the design raises Cancelled
    """

    def __init__(self) -> None:
        self._asked = Event()

    def cancel(self) -> None:
        """Ask the jobs that watch this switch to stop."""
        self._asked.set()

    @property
    def cancelled(self) -> bool:
        """Whether it was asked for."""
        return self._asked.is_set()

    def watching(self, then: Watcher | None = None) -> Watcher:
        """A progress function that stops the job once it was asked for, and else calls ``then``."""

        def watch(now: Progress) -> None:
            if self.cancelled:
                raise Cancelled("the job was cancelled")
            if then is not None:
                then(now)

        return watch


def within_job(job: str, watcher: Watcher | None, message: str, *, done: int = 0) -> Watcher | None:
    """A watcher for a part of a larger job: what it reports is told in the larger job's words."""
    if watcher is None:
        return None
    return lambda now: watcher(replace(now, job=job, message=message, done=done))

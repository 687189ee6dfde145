"""Workers that are interrupted."""

from collections.abc import Sequence

from privacygames.jobs import Finished, Here, Job


class Counting(Here):
    """Counts what is handed out; stops as if interrupted after so many."""

    def __init__(self, patience: int = 10**6) -> None:
        self.worked, self.patience = 0, patience

    def work(self, tasks: Sequence[Job]) -> Finished:
        for result in super().work(tasks):
            if self.worked >= self.patience:
                raise KeyboardInterrupt
            self.worked += 1
            yield result

"""Work that is interrupted, or held up until something has happened."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacygames.jobs import Job, SerialExecutor, TaskResults
from waiting import wait_until


@dataclass(frozen=True)
class Gated:
    """A job that is not begun before a file exists."""

    job: Job
    gate: Path

    @property
    def key(self) -> str:
        """That of the job itself."""
        return self.job.key

    def run(self) -> Any:
        """Wait for the file, then do the job."""
        wait_until(self.gate.exists)
        return self.job.run()


@dataclass(frozen=True)
class Lethal:
    """A job that kills whichever process does it."""

    key: str = "lethal"

    def run(self) -> Any:
        """End this process."""
        os._exit(1)


class Counting(SerialExecutor):
    """Counts what is handed out; stops as if interrupted after so many."""

    def __init__(self, patience: int = 10**6) -> None:
        self.worked, self.patience = 0, patience

    def run(self, tasks: Sequence[Job]) -> TaskResults:
        for result in super().run(tasks):
            if self.worked >= self.patience:
                raise KeyboardInterrupt
            self.worked += 1
            yield result

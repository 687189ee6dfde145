"""Counters of all worker processes in one file of shared memory, as Prometheus reads them. No label is a person's."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROUTES = ("release", "stored_release", "sample", "balance", "put_person", "erase_person", "operation", "other")
"""What requests are for; the address itself has a person's name and is never a label."""

CLASSES = ("2xx", "4xx", "5xx")
OUTCOMES = ("released", "repeated", "refused", "failed")
"""What became of a release: a new output; a stored one, for its key; no room in a budget; or another error."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
SIZES = (1, 2, 4, 8, 16, 32, 64)

HISTOGRAMS = {
    "privacygames_release_seconds": ("Seconds from a release's request to its response.", SECONDS),
    "privacygames_commit_seconds": ("Seconds of a transaction of the store, with its draws.", SECONDS),
    "privacygames_commit_releases": ("Releases in one transaction of the store.", SIZES),
}


def _cells() -> list[str]:
    """The name and labels of every number."""
    cells = [f'privacygames_requests_total{{route="{route}",class="{each}"}}' for route in ROUTES for each in CLASSES]
    cells += [f'privacygames_releases_total{{outcome="{each}"}}' for each in OUTCOMES]
    cells += ["privacygames_fleet_generations_total"]
    for name, (_, bounds) in HISTOGRAMS.items():
        cells += [f'{name}_bucket{{le="{bound:g}"}}' for bound in bounds]
        cells += [f'{name}_bucket{{le="+Inf"}}', f"{name}_sum", f"{name}_count"]
    return cells


CELLS = {name: number for number, name in enumerate(_cells())}
"""The position of each number in a worker's part of the file."""

HELP = {
    "privacygames_requests_total": ("counter", "Requests by what they are for and the class of their status."),
    "privacygames_releases_total": ("counter", "Releases by what became of them."),
    "privacygames_fleet_generations_total": ("counter", "Generations of the fleet that workers switched to."),
    **{name: ("histogram", text) for name, (text, _) in HISTOGRAMS.items()},
}


class Metrics:
    """The counters of one worker, and the sums over all of them.

    Args:
        file: shared by all workers; None: this process alone counts.
        worker: the number of this worker, from 0.
        workers: how many there are.

    >>> from privacygames.service.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.count("privacygames_releases_total", outcome="released")
    >>> 'privacygames_releases_total{outcome="released"} 1' in metrics.text()
    True
    """

    def __init__(self, file: Path | None = None, worker: int = 0, workers: int = 1) -> None:
        size = 8 * len(CELLS) * workers
        if file is None:
            memory: mmap.mmap = mmap.mmap(-1, size)
        else:
            with file.open("r+b") as opened:
                opened.truncate(size)
                memory = mmap.mmap(opened.fileno(), size)
        self._all = np.frombuffer(memory, dtype="<f8").reshape(workers, len(CELLS))
        self._own = self._all[worker]

    def count(self, name: str, amount: float = 1.0, /, **labels: str) -> None:
        """Add to a counter."""
        listed = ",".join(f'{label}="{value}"' for label, value in labels.items())
        self._own[CELLS[f"{name}{{{listed}}}" if listed else name]] += amount

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram."""
        for bound in HISTOGRAMS[name][1]:
            if value <= bound:
                self.count(f"{name}_bucket", le=f"{bound:g}")
        self.count(f"{name}_bucket", le="+Inf")
        self.count(f"{name}_sum", value)
        self.count(f"{name}_count")

    def text(self) -> str:
        """The sums over all workers, in Prometheus's text format."""
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        totals = self._all.sum(axis=0)
        before = ""
        for name, position in CELLS.items():
            family = next(each for each in HELP if name.startswith(each))
            if family != before:
                kind, text = HELP[family]
                yield f"# HELP {family} {text}\n# TYPE {family} {kind}\n"
                before = family
            yield f"{name} {totals[position]:.10g}\n"

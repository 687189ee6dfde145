"""Finished tasks, kept: one small file each, there whole or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path

from privacygames.atomic_io import write_text
from privacygames.jobs.csv_tables import Measured


class Store:
    """A folder of results by key; what is in it is not computed again.

    A file that cannot be read (a disk that was full, a copy cut short) counts as not there.

    Args:
        folder: where; made if need be. None keeps results in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, Measured] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._known = dict(_read(folder))

    @property
    def results(self) -> dict[str, Measured]:
        """Everything known, by key."""
        return self._known

    def add(self, key: str, measured: Measured) -> None:
        """Keep a result, at once."""
        self._known[key] = measured
        if self._folder is not None:
            write_text(self._folder / f"{key}.json", json.dumps(measured))

    def __contains__(self, key: str) -> bool:
        return key in self._known


def _read(folder: Path) -> Iterator[tuple[str, Measured]]:
    for path in sorted(folder.glob("*.json")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(values, dict) and "status" in values:
            yield path.stem, values

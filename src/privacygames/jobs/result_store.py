"""Storage of results of finished tasks: one small JSON file each, written atomically."""

import json
from collections.abc import Iterator
from pathlib import Path

from privacygames.atomic_io import write_text
from privacygames.jobs.csv_tables import Measurements


class Store:
    """A folder of results by key, so that finished tasks are not computed again.

    A file that cannot be read (truncated by a full disk, say) counts as missing.

    Args:
        folder: the folder, created if necessary. None: results are kept in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._results: dict[str, Measurements] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._results = dict(_read(folder))

    @property
    def results(self) -> dict[str, Measurements]:
        """All results by key."""
        return self._results

    def add(self, key: str, measurements: Measurements) -> None:
        """Store a result immediately."""
        self._results[key] = measurements
        if self._folder is not None:
            write_text(self._folder / f"{key}.json", json.dumps(measurements))

    def __contains__(self, key: str) -> bool:
        return key in self._results


def _read(folder: Path) -> Iterator[tuple[str, Measurements]]:
    for path in sorted(folder.glob("*.json")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(values, dict) and "status" in values:
            yield path.stem, values

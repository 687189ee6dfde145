"""The ledger of one person: every release and its charges in one SQLite file, safe against crashes and processes."""

import os
from pathlib import Path

from privacygames.errors import InvalidFile, UnreadableFile
from privacygames.releases.ledger.sqlite_file import LedgerFile


class Ledger(LedgerFile):
    """The releases of one person's secret, with their charges and what each budget has left, in one file.

    The output and the charges of a release are committed together, with full synchronisation, before the output is
    returned. Any number of processes may use one file at once. No true secret is ever written to it. Its outputs, times
    and beliefs concern the owner, who alone may read the file.

    The file is one hash chain of events. All events are checked on the first query after opening, and later ones before
    they count. Sums are recomputed from the events, never read.

    Args:
        path: the file, created if necessary. None keeps the ledger in memory until the process ends.

    >>> with pg.Ledger("ada.ledger") as ledger:
    ...     ledger.verify().releases
    0
    """

    @classmethod
    def open_existing(cls, path: str | os.PathLike[str]) -> "Ledger":
        """The ledger in a file that must exist already."""
        file = Path(path)
        if not file.is_file():
            raise UnreadableFile(path, "there is no such ledger")
        if file.stat().st_size == 0:
            raise InvalidFile(f"{file.name} is empty: it is not a ledger, or its contents were lost")
        return cls(path)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        contents = "closed" if self._closed else f"{self.head().release_count} releases"
        return f"Ledger({self.name!r}, {contents})"

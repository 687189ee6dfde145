"""What a store needs of a database: transactions that lock people, statements, and errors of one kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.releases.store.schema import VERSION, statements

Row = tuple[Any, ...]


class Database(ABC):
    """One connection to the database of a store; a store lets one thread use it at a time.

    Args:
        name: of the database, for messages: it contains no password.
    """

    types: ClassVar[dict[str, str]]
    """The types of this database, by the names that the tables are written with."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Translate the errors of the database into those of the library."""

    @abstractmethod
    def connect(self) -> None:
        """Connect, unless there is a connection."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""

    @abstractmethod
    def begin_writing(self) -> None:
        """Begin a transaction that writes, after :meth:`connect`."""

    @abstractmethod
    def begin_reading(self) -> None:
        """Begin a transaction whose reads all see one state."""

    @abstractmethod
    def commit(self) -> None:
        """Commit: when this returns, what was written survives a crash."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction; no error where the connection was lost."""

    @abstractmethod
    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement returns; ``?`` stands for each value."""

    @abstractmethod
    def write_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement that writes, for each row of values."""

    @abstractmethod
    def lock(self, names: Sequence[str]) -> None:
        """Let no other transaction write the ledgers of these people until this one ends."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Whether the tables of a store exist."""

    @abstractmethod
    def require_intact(self) -> None:
        """Refuse a database that is damaged, where that can be told."""

    @abstractmethod
    def scrub(self) -> None:
        """Remove the bytes of deleted rows from the database's files, as far as it can."""

    def backup(self, path: Path) -> None:  # noqa: ARG002 - of SQLite's
        """Write a copy of the database while it is in use."""
        raise InvalidProblem(f"{self.name} is backed up with PostgreSQL's own pg_dump: see docs/how-to/store.md")

    def version(self) -> int:
        """The version of the tables; 0 where there are none."""
        return int(self.rows("SELECT version FROM store")[0][0]) if self.has_tables() else 0

    def prepare(self, *, migrate: bool) -> None:
        """Create the tables of a new store, and refuse tables of another version; or migrate older ones.

        Args:
            migrate: whether older tables are brought to the present version.
        """
        version = self.version()
        if version == VERSION:
            return
        if version > VERSION:
            raise InvalidFile(f"{self.name} is of version {version}: upgrade privacygames, which reads up to {VERSION}")
        if version and not migrate:
            raise InvalidFile(
                f"{self.name} is of version {version}, and this release writes {VERSION}: stop what uses it, make a "
                "backup, and run `privacygames store migrate`"
            )
        self.begin_writing()
        try:
            self.lock_tables()
            for statement in statements(self.version(), self.types):  # another process may have been faster
                self.rows(statement)
            self.commit()
        except BaseException:
            self.rollback()
            raise

    @abstractmethod
    def lock_tables(self) -> None:
        """Let no other process create or change the tables until the transaction ends."""

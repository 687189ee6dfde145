"""The store: the ledgers of many people in one database, SQLite or PostgreSQL.

- ``store.py``: :class:`LedgerStore`, what callers use, and :class:`StoredLedger`, one person's ledger with the rules of
  ``releases/ledger/base.py``;
- ``rows.py``: the rows of one ledger inside a transaction; what is written is sent at its end;
- ``database.py``: what is needed of a database; ``sqlite.py`` and ``postgresql.py``: the two there are;
- ``schema.py``: the tables, and migrations from each version to the next.
"""

from privacygames.releases.store.schema import VERSION
from privacygames.releases.store.store import KEY_SECONDS, LedgerStore, StoredLedger

__all__ = ["KEY_SECONDS", "VERSION", "LedgerStore", "StoredLedger"]

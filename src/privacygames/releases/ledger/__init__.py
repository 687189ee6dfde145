"""The ledger: one SQLite file that holds every release of a secret and its charges, as a hash chain of events.

- ``ledger.py``: :class:`Ledger`, what callers use;
- ``base.py``: :class:`BaseLedger`, the rules, whatever stores the rows (``privacygames.store`` has many people's in one
  database); ``rows.py``: what it asks of the rows;
- ``sqlite_file.py``, ``file_rows.py``: the file: durable transactions, many processes at once, tables and versions;
- ``events.py``: what an event holds, and the hash chain;
- ``balances.py``: every account recomputed from the events, each event checked before it counts;
- ``scope.py``: the problem, mobility and budgets that a ledger is about, and recorded changes of them;
- ``old_versions.py``: ledgers of earlier versions, verified and rewritten when they are opened.
"""

from privacygames.releases.ledger.balances import AccountTerms, LedgerBalances, VerifiedLedger, max_log_ratio
from privacygames.releases.ledger.base import BaseLedger
from privacygames.releases.ledger.events import (
    NO_BELIEF,
    Event,
    LedgerHead,
    ReleaseEntry,
    ReleaseRecord,
    initial_chain_hash,
)
from privacygames.releases.ledger.file_rows import require_intact
from privacygames.releases.ledger.ledger import Ledger
from privacygames.releases.ledger.rows import LedgerRows
from privacygames.releases.ledger.scope import (
    LedgerScope,
    WhenChanged,
    fixed_scope,
    format_1_scope,
    ledger_scope,
    point_scope,
)
from privacygames.releases.ledger.sqlite_file import LOCK_TIMEOUT, PRAGMAS, create_missing, translated

__all__ = [
    "LOCK_TIMEOUT",
    "NO_BELIEF",
    "PRAGMAS",
    "AccountTerms",
    "BaseLedger",
    "Event",
    "Ledger",
    "LedgerBalances",
    "LedgerHead",
    "LedgerRows",
    "LedgerScope",
    "ReleaseEntry",
    "ReleaseRecord",
    "VerifiedLedger",
    "WhenChanged",
    "create_missing",
    "fixed_scope",
    "format_1_scope",
    "initial_chain_hash",
    "ledger_scope",
    "max_log_ratio",
    "point_scope",
    "require_intact",
    "translated",
]

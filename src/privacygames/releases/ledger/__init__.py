"""The ledger: one SQLite file that holds every release of a secret and its charges, as a hash chain of events.

- ``ledger.py``: :class:`Ledger`, what callers use;
- ``sqlite_file.py``: the file: durable transactions, many processes at once, tables and versions;
- ``events.py``: what an event holds, how it is written and read, the hash chain;
- ``balances.py``: every account recomputed from the events, each event checked before it counts;
- ``scope.py``: the problem, mobility and budgets that a ledger is about, and recorded changes of them;
- ``old_versions.py``: ledgers of earlier versions, verified and rewritten when they are opened.
"""

from privacygames.releases.ledger.balances import AccountTerms, LedgerBalances, VerifiedLedger, max_log_ratio
from privacygames.releases.ledger.events import NO_BELIEF, LedgerHead, ReleaseEntry, ReleaseRecord
from privacygames.releases.ledger.ledger import Ledger
from privacygames.releases.ledger.scope import LedgerScope, WhenChanged, format_1_scope, ledger_scope, point_scope

__all__ = [
    "NO_BELIEF",
    "AccountTerms",
    "Ledger",
    "LedgerBalances",
    "LedgerHead",
    "LedgerScope",
    "ReleaseEntry",
    "ReleaseRecord",
    "VerifiedLedger",
    "WhenChanged",
    "format_1_scope",
    "ledger_scope",
    "max_log_ratio",
    "point_scope",
]

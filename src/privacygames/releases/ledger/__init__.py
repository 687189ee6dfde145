"""The ledger: one SQLite file that holds every release of a secret and its charges, as a hash chain of events.

- ``ledger.py``: :class:`Ledger`, what callers use;
- ``sqlite_file.py``: the file: durable transactions, many processes at once, tables and versions;
- ``events.py``: what an event holds, how it is written and read, the hash chain;
- ``balances.py``: every account recomputed from the events, each event checked before it counts;
- ``subject.py``: the problem, mobility and budgets a ledger is about, and recorded changes of them;
- ``old_versions.py``: ledgers of earlier versions, verified and rewritten when they are opened.
"""

from privacygames.releases.ledger.balances import LedgerBalances, VerifiedLedger, any_pair
from privacygames.releases.ledger.events import LedgerHead, ReleaseEntry, ReleaseRecord
from privacygames.releases.ledger.ledger import Ledger
from privacygames.releases.ledger.subject import WhenChanged, format_1_subject, subject_of

__all__ = [
    "Ledger",
    "LedgerBalances",
    "LedgerHead",
    "ReleaseEntry",
    "ReleaseRecord",
    "VerifiedLedger",
    "WhenChanged",
    "any_pair",
    "format_1_subject",
    "subject_of",
]

"""Sharing over time: beliefs that move, budgets that are kept."""

from privacygames.releases import policies, replays, tracking
from privacygames.releases.budgets import Budget
from privacygames.releases.elapsed import CLOCK_TOLERANCE
from privacygames.releases.entries import Record, Verified
from privacygames.releases.ledger_state import LedgerBalances
from privacygames.releases.ledger_store import Ledger
from privacygames.releases.policies import EvenSpread, Fixed, Memoised, Policy, Predictive
from privacygames.releases.previews import Preview
from privacygames.releases.pursuits import Pursuit
from privacygames.releases.released import Balance, Pursued, Release
from privacygames.releases.releasing import Releases
from privacygames.releases.replays import Days, Replayed, days_of, replay
from privacygames.releases.three_claims import Claims
from privacygames.releases.tracking import Observations, Track
from privacygames.releases.ways import WAYS

__all__ = [
    "CLOCK_TOLERANCE",
    "WAYS",
    "Balance",
    "Budget",
    "Claims",
    "Days",
    "EvenSpread",
    "Fixed",
    "Ledger",
    "LedgerBalances",
    "Memoised",
    "Observations",
    "Policy",
    "Predictive",
    "Preview",
    "Pursued",
    "Pursuit",
    "Record",
    "Release",
    "Releases",
    "Replayed",
    "Track",
    "Verified",
    "days_of",
    "policies",
    "replay",
    "replays",
    "tracking",
]

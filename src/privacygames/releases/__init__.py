"""Sharing over time: beliefs that move, budgets that are kept."""

from privacygames.releases import tracking
from privacygames.releases.budgets import Budget
from privacygames.releases.entries import Verified
from privacygames.releases.ledger_store import Ledger
from privacygames.releases.policies import EvenSpread, Fixed, Memoised, Policy, Predictive
from privacygames.releases.released import Balance, Release
from privacygames.releases.releasing import Preview, Releases
from privacygames.releases.three_claims import Claims
from privacygames.releases.tracking import Observations, Track

__all__ = [
    "Balance",
    "Budget",
    "Claims",
    "EvenSpread",
    "Fixed",
    "Ledger",
    "Memoised",
    "Observations",
    "Policy",
    "Predictive",
    "Preview",
    "Release",
    "Releases",
    "Track",
    "Verified",
    "tracking",
]

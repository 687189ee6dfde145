"""Sharing over time: beliefs that move, budgets that are kept."""

from privacygames.releases.budgets import Budget
from privacygames.releases.entries import Record, Verified
from privacygames.releases.guarantees import Guarantees
from privacygames.releases.inference_targets import InferenceTarget
from privacygames.releases.ledger_state import LedgerBalances
from privacygames.releases.ledger_store import Ledger
from privacygames.releases.policies import Choice, EvenSpread, Fixed, Memoised, Policy, Predictive, PublicState
from privacygames.releases.previews import Preview
from privacygames.releases.release import Balance, Release, TargetResult
from privacygames.releases.session import Releases, WhenSpent
from privacygames.releases.timeline import CLOCK_TOLERANCE

__all__ = [
    "CLOCK_TOLERANCE",
    "Balance",
    "Budget",
    "Choice",
    "EvenSpread",
    "Fixed",
    "Guarantees",
    "InferenceTarget",
    "Ledger",
    "LedgerBalances",
    "Memoised",
    "Policy",
    "Predictive",
    "Preview",
    "PublicState",
    "Record",
    "Release",
    "Releases",
    "TargetResult",
    "Verified",
    "WhenSpent",
]

"""Releases of one secret over time, against the belief at each time, within budgets of ε.

One release, in the order in which :class:`Releases` (``session.py``) performs it:

1. ``timeline.py`` gives the time of the release and advances the belief to it; ``ledger/`` gives what was spent.
2. ``policies.py`` chooses a mechanism from this public information. ``design_cache.py`` designs it or reuses a design;
   ``inference_targets.py`` adds adversaries who guess an earlier secret or an attribute.
3. ``budgets.py`` computes the charges (exact sums: ``decimal_epsilon.py``). If a budget has no room, nothing is drawn.
4. ``sampling.py`` draws the output: the only module that uses the secret.
5. ``ledger/`` commits output, charges, likelihood and belief in one transaction, or reports that another process wrote
   meanwhile, and steps 1 to 4 are repeated under a lock. Only then ``release.py`` returns the :class:`Release`.

``guarantees.py`` states what all releases together guarantee; ``validation.py`` checks the arguments.
"""

from privacygames.releases.budgets import Budget
from privacygames.releases.guarantees import Guarantees
from privacygames.releases.inference_targets import InferenceTarget
from privacygames.releases.ledger import Ledger, LedgerBalances, ReleaseRecord, VerifiedLedger
from privacygames.releases.policies import Choice, EvenSpread, Fixed, Memoised, Policy, Predictive, PublicState
from privacygames.releases.release import Balance, Preview, Release, TargetResult
from privacygames.releases.session import Releases
from privacygames.releases.timeline import CLOCK_TOLERANCE
from privacygames.releases.validation import WhenSpent

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
    "Release",
    "ReleaseRecord",
    "Releases",
    "TargetResult",
    "VerifiedLedger",
    "WhenSpent",
]

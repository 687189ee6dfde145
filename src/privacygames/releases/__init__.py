"""Releases of one secret over time, against the belief at each time, within budgets of ε.

One release, in the order in which :class:`Releases` (``session.py``) performs it. :class:`PointReleases`
(``point_session.py``), for secrets that are points, and :class:`FixedReleases` (``fixed_session.py``), for cells and
labels with one mechanism, maintain no belief. All are sessions of ``ledger_session.py``.

1. ``timeline.py`` gives the time of the release and advances the belief to it; ``ledger/`` gives what was spent.
2. ``policies.py`` chooses a mechanism from this public information. ``design_cache.py`` designs it or reuses a design;
   ``inference_targets.py`` adds adversaries who guess an earlier secret or an attribute.
3. ``budgets.py`` computes the charges (exact sums: ``decimal_epsilon.py``; budgets with a delta: ``approximate.py``).
   If a budget has no room, nothing will be drawn: the release is refused, or step 4 takes an output that does not
   depend on the secret (``when_spent``).
4. In the ledger's transaction, once the head is confirmed unchanged, ``sampling.py`` draws the output. If the head
   changed, nothing is drawn and steps 1–3 are repeated under a lock. A memoised output is computed first and its charge
   checked afterwards, because the charge depends on whether its secret was charged before.
5. ``ledger/`` commits output, charges, likelihood and belief in the same transaction. Only then ``release.py`` returns
   the :class:`Release`.

The secret is used in these modules: ``session.py`` converts it to its index, ``point_session.py`` checks that it is a
point; ``ledger_session.py`` looks up the charge of a memoised secret by its keyed mark; ``sampling.py`` computes that
mark, and draws.

``guarantees.py`` states what all releases together guarantee, and ``place_guarantee.py`` what memoised ones guarantee
about a place; ``validation.py`` checks the arguments.
"""

from privacygames.releases.budgets import Budget
from privacygames.releases.fixed_session import FixedReleases
from privacygames.releases.guarantees import Guarantees
from privacygames.releases.inference_targets import InferenceTarget
from privacygames.releases.ledger import Ledger, LedgerBalances, ReleaseRecord, VerifiedLedger
from privacygames.releases.place_guarantee import PlaceGuarantee
from privacygames.releases.point_session import PointReleases
from privacygames.releases.policies import (
    BudgetPolicy,
    Choice,
    EvenSpread,
    Fixed,
    FrequentPlaces,
    Memoised,
    Policy,
    Predictive,
    PublicState,
)
from privacygames.releases.release import Balance, FixedPreview, PointPreview, Preview, Release, TargetResult
from privacygames.releases.session import Releases
from privacygames.releases.store import LedgerStore, StoredLedger
from privacygames.releases.timeline import CLOCK_TOLERANCE
from privacygames.releases.validation import WhenSpent

__all__ = [
    "CLOCK_TOLERANCE",
    "Balance",
    "Budget",
    "BudgetPolicy",
    "Choice",
    "EvenSpread",
    "Fixed",
    "FixedPreview",
    "FixedReleases",
    "FrequentPlaces",
    "Guarantees",
    "InferenceTarget",
    "Ledger",
    "LedgerBalances",
    "LedgerStore",
    "Memoised",
    "PlaceGuarantee",
    "PointPreview",
    "PointReleases",
    "Policy",
    "Predictive",
    "Preview",
    "PublicState",
    "Release",
    "ReleaseRecord",
    "Releases",
    "StoredLedger",
    "TargetResult",
    "VerifiedLedger",
    "WhenSpent",
]

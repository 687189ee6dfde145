"""Which policy for weeks of sharing: all policies replayed on people's days, attacked, and one recommended.

- ``people.py``: a model learned from each person's earlier days, and the later days to release;
- ``day_budget.py``: what fits into a day's budget, of ε or of (ε, δ);
- ``replayed_policies.py``: what each policy shows of a trace, what it charges, and the likelihoods of what it shows;
- ``policy_attacks.py``: the attacks on that, on the present place and on home;
- ``comparison.py``: :func:`compare_policies`, its rows, and the rule of the recommendation.
"""

from privacygames.policy_comparison.comparison import (
    MATTERS,
    REPLAYED_NOISE,
    Matters,
    PolicyComparison,
    PolicyRow,
    compare_policies,
)
from privacygames.policy_comparison.people import PersonDays, learn_days
from privacygames.policy_comparison.replayed_policies import RENEW_SHARES, TEST_SHARE

__all__ = [
    "MATTERS",
    "RENEW_SHARES",
    "REPLAYED_NOISE",
    "TEST_SHARE",
    "Matters",
    "PersonDays",
    "PolicyComparison",
    "PolicyRow",
    "compare_policies",
    "learn_days",
]


def __dir__() -> list[str]:
    return __all__

"""Accounts of many releases together: exact privacy losses, their composition, and filters for adaptive choices.

- ``error_curves.py``: the exact curve that says how well two rows of weights can be told apart, and hulls of many;
- ``dominating_pairs.py``: the pair of distributions that stands for a mechanism within a distance;
- ``grid_losses.py``: losses on multiples of a step, rounded to one side; ``tilted_sums.py``: their sums, by FFT;
- ``compositions.py``: δ and ε of many releases, as proved upper and lower bounds;
- ``renyi.py``: Rényi divergences, which add up even where mechanisms are chosen adaptively;
- ``filters.py``: what may still be released within a budget, whatever choices depended on;
- ``release_counts.py``: how many releases of a mechanism a budget buys.

The theorems are in docs/theory/composition.md.
"""

from privacygames.composition.compositions import Bracket, Composition
from privacygames.composition.dominating_pairs import (
    DominatingPair,
    bounded_variation_pair,
    dominating_pair,
    loss_pair,
    randomised_response_pair,
)
from privacygames.composition.filters import DeclaredFilter, PrivacyFilter, PureFilter, RenyiFilter
from privacygames.composition.release_counts import ReleaseCounts, releases_within
from privacygames.composition.renyi import (
    LARGEST_ORDER,
    SMALLEST_ORDER,
    best_order,
    exact_renyi_limit,
    renyi_divergence,
    renyi_limit,
)

__all__ = [
    "LARGEST_ORDER",
    "SMALLEST_ORDER",
    "Bracket",
    "Composition",
    "DeclaredFilter",
    "DominatingPair",
    "PrivacyFilter",
    "PureFilter",
    "ReleaseCounts",
    "RenyiFilter",
    "best_order",
    "bounded_variation_pair",
    "dominating_pair",
    "exact_renyi_limit",
    "loss_pair",
    "randomised_response_pair",
    "releases_within",
    "renyi_divergence",
    "renyi_limit",
]


def __dir__() -> list[str]:
    return __all__

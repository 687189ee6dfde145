"""Policies: how each release of a :class:`privacygames.Releases` is chosen, and what it is charged.

A policy of your own is a subclass of :class:`Policy`: from the :class:`PublicState` before a release it makes a
:class:`Choice`, which a later look at the secret does not change.
"""

from privacygames.releases import (
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

__all__ = [
    "BudgetPolicy",
    "Choice",
    "EvenSpread",
    "Fixed",
    "FrequentPlaces",
    "Memoised",
    "Policy",
    "Predictive",
    "PublicState",
]


def __dir__() -> list[str]:
    return __all__

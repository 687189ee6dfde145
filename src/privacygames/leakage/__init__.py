"""Quantitative information flow: what outputs tell an adversary about the secret, for one prior or for every one.

Theory, sources and proofs: docs/theory/leakage.md. Measures that are rational numbers return floats; their ``exact``
returns the fraction: ``leakage.additive_leakage.exact(mechanism, prior)``.
"""

from privacygames.leakage.capacities import (
    Capacity,
    additive_capacity,
    additive_gain_capacity,
    additive_vulnerability_capacity,
    bayes_capacity,
    min_capacity,
    multiplicative_capacity,
)
from privacygames.leakage.channel import Channel
from privacygames.leakage.composition import cascade, parallel, visible_choice
from privacygames.leakage.decide_refinement import refinement
from privacygames.leakage.gains import Gain
from privacygames.leakage.hypers import Hyper, hyper
from privacygames.leakage.measures import (
    additive_leakage,
    guessing_entropy,
    min_entropy_leakage,
    multiplicative_leakage,
    posterior_guessing_entropy,
    posterior_vulnerability,
    prior_vulnerability,
    shannon_leakage,
)
from privacygames.leakage.refinement_proof import Refinement
from privacygames.leakage.shannon_capacity import shannon_capacity

__all__ = [
    "Capacity",
    "Channel",
    "Gain",
    "Hyper",
    "Refinement",
    "additive_capacity",
    "additive_gain_capacity",
    "additive_leakage",
    "additive_vulnerability_capacity",
    "bayes_capacity",
    "cascade",
    "guessing_entropy",
    "hyper",
    "min_capacity",
    "min_entropy_leakage",
    "multiplicative_capacity",
    "multiplicative_leakage",
    "parallel",
    "posterior_guessing_entropy",
    "posterior_vulnerability",
    "prior_vulnerability",
    "refinement",
    "shannon_capacity",
    "shannon_leakage",
    "visible_choice",
]


def __dir__() -> list[str]:
    return __all__

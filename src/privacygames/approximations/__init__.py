"""Cheaper ways to a mechanism than the exact program, none of which breaks a promise unknowingly.

Leaving constraints out (``prune``, ``sampled``) is a relaxation: what it costs is a lower bound on the exact
optimum, and the mechanism found may break the ε asked for. ``repair=True``, the default, restores it; the certificate
then promises the ε asked for, and states the distortion, the cost, how much of that the repair took
(``provenance.repair_cost``) and the gap to the exact optimum. With ``repair=False`` the certificate promises the ε
that is realised instead. ``spanner``, ``early`` and ``fewer_answers`` keep the promise by construction.
"""

from privacygames.approximations.methods import early, prune, sampled, spanner
from privacygames.approximations.output_subset import fewer_answers

__all__ = ["early", "fewer_answers", "prune", "sampled", "spanner"]


def __dir__() -> list[str]:
    return __all__

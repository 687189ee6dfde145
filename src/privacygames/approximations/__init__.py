"""Cheaper ways to a mechanism than the exact program, none of which breaks a promise unknowingly.

Leaving constraints out (``prune``, ``sample_pairs``) is a relaxation: what it costs is a lower bound on the exact
optimum, and the mechanism found may break the ε asked for. ``repair=True``, the default, restores it; the certificate
then promises the ε asked for, and states the distortion, the cost, how much of that the repair took
(``provenance.repair_cost``) and the gap to the exact optimum. With ``repair=False`` the certificate promises the ε
that is realised instead. ``spanner``, ``early_stopping`` and ``fewer_outputs`` keep the promise by construction.
"""

from privacygames.approximations.methods import early_stopping, prune, sample_pairs, spanner
from privacygames.approximations.output_subset import fewer_outputs

__all__ = ["early_stopping", "fewer_outputs", "prune", "sample_pairs", "spanner"]


def __dir__() -> list[str]:
    return __all__

"""Approximations of the exact design for large problems; each documents its guarantees and its loss of optimality.

Leaving constraints out (``prune``, ``sample_pairs``) is a relaxation: its cost is a lower bound on the exact optimum,
and the mechanism may violate the target ε. ``repair=True``, the default, restores it; the certificate then
guarantees the target ε, and states the distortion, the cost, how much of the cost the repair added
(``provenance.repair_cost``) and the gap to the exact optimum. With ``repair=False`` the certificate guarantees the
realised ε instead. ``spanner``, ``early_stopping`` and ``fewer_outputs`` satisfy the constraints by construction.
"""

from privacygames.approximations.methods import early_stopping, prune, sample_pairs, spanner
from privacygames.approximations.output_subset import fewer_outputs

__all__ = ["early_stopping", "fewer_outputs", "prune", "sample_pairs", "spanner"]


def __dir__() -> list[str]:
    return __all__

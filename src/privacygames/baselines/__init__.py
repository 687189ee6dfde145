"""Mechanisms to compare with: the well-known ones, none of which needs an optimiser.

Each is certified for what its exact weights really keep: the certificate's ε is the *realised* one, in the problem's
distinguishability, whatever ε the mechanism was asked for (that one is named in the certificate's provenance).
"""

from privacygames.baselines.exponential_mechanism import exponential, randomised_response
from privacygames.baselines.integer_noise import geometric, staircase
from privacygames.baselines.planar import planar_laplace, planar_laplace_noise
from privacygames.baselines.trivial import cheapest, constant, identity, remap, uniform

__all__ = [
    "cheapest",
    "constant",
    "exponential",
    "geometric",
    "identity",
    "planar_laplace",
    "planar_laplace_noise",
    "randomised_response",
    "remap",
    "staircase",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__

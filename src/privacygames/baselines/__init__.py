"""Mechanisms to compare with: the well-known ones, none of which needs an optimiser.

Each is certified for what its exact weights really keep: the certificate's ε is the *realised* one, in the problem's
distinguishability, whatever ε the mechanism was asked for (that one is named in the certificate's provenance).
"""

from privacygames.baselines.metric import exponential, randomised_response
from privacygames.baselines.plain import cheapest, constant, identity, remap, uniform
from privacygames.baselines.planar import planar_laplace, planar_laplace_noise
from privacygames.baselines.ranges import geometric, staircase

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

"""Baselines: well-known mechanisms to compare with, none of which needs an optimiser.

Each is certified for the guarantee that its exact weights realise: the certificate's ε is the *realised* one, in the
problem's distinguishability, whatever ε was the mechanism's parameter (the certificate's provenance names that).
"""

from privacygames.baselines.exponential_mechanism import exponential, randomised_response
from privacygames.baselines.integer_noise import geometric, staircase
from privacygames.baselines.planar import planar_laplace, planar_laplace_noise
from privacygames.baselines.plateau_noise import PlateauNoise
from privacygames.baselines.registry import BASELINES, REMAP, RESERVED, Baseline, baseline_names, register
from privacygames.baselines.trivial import cheapest, constant, identity, remap, uniform

__all__ = [
    "BASELINES",
    "REMAP",
    "RESERVED",
    "Baseline",
    "PlateauNoise",
    "baseline_names",
    "cheapest",
    "constant",
    "exponential",
    "geometric",
    "identity",
    "planar_laplace",
    "planar_laplace_noise",
    "randomised_response",
    "register",
    "remap",
    "staircase",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__

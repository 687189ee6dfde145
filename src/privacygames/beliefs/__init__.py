"""Beliefs about secrets: the prior, and the Markov model by which beliefs change over time."""

from privacygames.beliefs.mobility import Mobility, Timestamp, to_seconds
from privacygames.beliefs.moves import Moves
from privacygames.beliefs.point_prior import MOST_POINTS, PointPrior
from privacygames.beliefs.prior import Prior, conditional_entropy, entropy, information

__all__ = [
    "MOST_POINTS",
    "Mobility",
    "Moves",
    "PointPrior",
    "Prior",
    "Timestamp",
    "conditional_entropy",
    "entropy",
    "information",
    "to_seconds",
]

"""What an adversary believes about secrets, and how such a belief moves."""

from privacygames.beliefs.mobility import Mobility, Moment, moment
from privacygames.beliefs.moves import Moves
from privacygames.beliefs.prior import Prior, entropy

__all__ = ["Mobility", "Moment", "Moves", "Prior", "entropy", "moment"]

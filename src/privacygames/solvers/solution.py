"""What a solver returns: probabilities, multipliers that bound the optimum, and how it went."""

from dataclasses import dataclass
from enum import StrEnum

from privacygames.arrays import FloatArray
from privacygames.multipliers import Multipliers


class Status(StrEnum):
    """How a solve ended; the value is advice."""

    OPTIMAL = "optimal"
    INFEASIBLE = "no mechanism meets these bounds: loosen one of them"
    TIME_LIMIT = "time limit reached: raise time_limit or loosen tolerance"
    NUMERICAL = "numerical trouble: rescale distances or costs, or loosen epsilon"


@dataclass(frozen=True)
class Solution:
    """A solver's answer before it is repaired and certified.

    ``probabilities`` may miss the bounds by the solver's tolerance; ``multipliers`` may be slightly off as
    well. Neither is trusted: the repair fixes the first, the certificate bounds the optimum with the second.
    """

    probabilities: FloatArray
    multipliers: Multipliers
    status: Status
    solver: str


@dataclass(frozen=True)
class Progress:
    """Where a solve stands: what a progress callback is given.

    ``value`` is the cost of the best mechanism so far, or its distortion privacy where that is maximised; ``ratios``
    is how many ratios the Newton matrix sees.
    """

    iteration: int
    value: float
    gap: float
    seconds: float
    ratios: int

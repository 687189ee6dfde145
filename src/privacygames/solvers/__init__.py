"""Engines that solve the programs, each a small object with a ``solve`` method returning a Solution."""

from privacygames.solvers.highs import Highs
from privacygames.solvers.solution import Solution, Status

__all__ = ["Highs", "Solution", "Status"]

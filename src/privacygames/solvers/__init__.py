"""Engines that solve the programs, each a small object with a ``solve`` method returning a Solution."""

from privacygames.solvers.choice import Engine, choose
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior import Interior
from privacygames.solvers.solution import Progress, Solution, Status

__all__ = ["Engine", "Highs", "Interior", "Progress", "Solution", "Status", "choose"]

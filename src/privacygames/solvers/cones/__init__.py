"""A block interior-point method for second-order cones, for mechanisms whose secrets are points."""

from privacygames.solvers.cones.interior_point import solve_cone_program
from privacygames.solvers.cones.program import ConeProgram, ConeSolution, CostLimit, WorstCost

__all__ = ["ConeProgram", "ConeSolution", "CostLimit", "WorstCost", "solve_cone_program"]

"""A block interior-point method for second-order cones, for mechanisms whose secrets are points."""

from privacygames.solvers.cones.interior_point import ConeProgram, ConeSolution, solve_cone_program

__all__ = ["ConeProgram", "ConeSolution", "solve_cone_program"]

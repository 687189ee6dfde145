"""Solvers of the design programs: the protocol, HiGHS, the block interior-point method, and the choice between them."""

from typing import TYPE_CHECKING

from privacygames.lazy_names import lazy_names
from privacygames.solvers.highs import Highs, read_dual_solution, refuse_too_large
from privacygames.solvers.interior import Interior, InteriorSettings, dominating_observables, implied_pairs
from privacygames.solvers.protocol import Solution, SolveOptions, Solver
from privacygames.solvers.scaling import Scaling, solve_scaled
from privacygames.solvers.selection import choose, temporary_device, use_device
from privacygames.solvers.solve_estimate import SolveEstimate

if TYPE_CHECKING:
    from privacygames.solvers.concave import maximise
    from privacygames.solvers.cones import ConeProgram, ConeSolution, CostLimit, WorstCost, solve_cone_program
    from privacygames.solvers.minmax import minmax_attack
    from privacygames.solvers.minmax_pairs import minmax_pairs_attack
else:  # a design on a grid needs none of these
    __getattr__ = lazy_names(
        __name__,
        {
            "concave": ["maximise"],
            "cones": ["ConeProgram", "ConeSolution", "CostLimit", "WorstCost", "solve_cone_program"],
            "minmax": ["minmax_attack"],
            "minmax_pairs": ["minmax_pairs_attack"],
        },
    )

__all__ = [
    "ConeProgram",
    "ConeSolution",
    "CostLimit",
    "Highs",
    "Interior",
    "InteriorSettings",
    "Scaling",
    "Solution",
    "SolveEstimate",
    "SolveOptions",
    "Solver",
    "WorstCost",
    "choose",
    "dominating_observables",
    "implied_pairs",
    "maximise",
    "minmax_attack",
    "minmax_pairs_attack",
    "read_dual_solution",
    "refuse_too_large",
    "solve_cone_program",
    "solve_scaled",
    "temporary_device",
    "use_device",
]

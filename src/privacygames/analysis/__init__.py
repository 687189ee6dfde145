"""Reports on a mechanism, comparisons of several, the search for the tightest bound, and ties among optima."""

from privacygames.analysis.adversary_results import HEADINGS as STAND_HEADINGS
from privacygames.analysis.adversary_results import stand_cells
from privacygames.analysis.bound_search import SearchResult, tightest_bound
from privacygames.analysis.calibration import calibrated_baselines, matched_at
from privacygames.analysis.comparison import Comparison, Row, compare, trade_off, usual_adversaries
from privacygames.analysis.evaluation import Report, evaluate
from privacygames.analysis.findings import (
    AdversaryError,
    BestGuess,
    Finding,
    Limitation,
    OddsBound,
    OptimalityGap,
    Quantity,
    Severity,
    UnboundedOdds,
    factor,
    remarks,
)
from privacygames.analysis.formatting import amount, percent
from privacygames.analysis.tie_breaking import TieBreak, break_ties
from privacygames.problem import (
    UNTRUE,
    WRONG,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    measure_scale,
)

__all__ = [
    "STAND_HEADINGS",
    "UNTRUE",
    "WRONG",
    "AdversaryError",
    "BestGuess",
    "Comparison",
    "Finding",
    "Limitation",
    "OddsBound",
    "OptimalityGap",
    "Quantity",
    "Report",
    "Row",
    "Scale",
    "SearchResult",
    "Severity",
    "TieBreak",
    "UnboundedOdds",
    "amount",
    "break_ties",
    "calibrated_baselines",
    "compare",
    "cost_scale",
    "distance_scale",
    "distinguishability_scale",
    "evaluate",
    "factor",
    "matched_at",
    "measure_scale",
    "percent",
    "remarks",
    "stand_cells",
    "tightest_bound",
    "trade_off",
    "usual_adversaries",
]

"""Reports on a mechanism, comparisons of several, the search for the tightest bound, and ties among optima."""

from privacygames.analysis.adversary_results import ADVERSARY_HEADINGS, adversary_cells
from privacygames.analysis.bound_search import TightestBound, tightest_bound
from privacygames.analysis.calibration import calibrated_baselines, target_text
from privacygames.analysis.comparison import Comparison, compare, default_adversaries, trade_off
from privacygames.analysis.comparison_rows import ComparisonRow
from privacygames.analysis.evaluation import Report, evaluate
from privacygames.analysis.findings import (
    AdversaryError,
    BestGuess,
    ConstantOutputs,
    ExactGuesses,
    FalseClaims,
    Finding,
    Limitation,
    NothingTold,
    NoUse,
    OddsBound,
    OptimalityGap,
    Quantity,
    SettledOdds,
    Severity,
    UnboundedOdds,
    factor,
    usefulness_warnings,
)
from privacygames.analysis.formatting import format_amount, format_percent
from privacygames.analysis.point_comparison import PointComparison, PointComparisonRow
from privacygames.analysis.point_evaluation import PointReport
from privacygames.analysis.tie_breaking import TieBreak, break_ties
from privacygames.problem import (
    HAMMING_COST,
    HAMMING_DISTANCE,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    measure_scale,
)

__all__ = [
    "ADVERSARY_HEADINGS",
    "HAMMING_COST",
    "HAMMING_DISTANCE",
    "AdversaryError",
    "BestGuess",
    "Comparison",
    "ComparisonRow",
    "ConstantOutputs",
    "ExactGuesses",
    "FalseClaims",
    "Finding",
    "Limitation",
    "NoUse",
    "NothingTold",
    "OddsBound",
    "OptimalityGap",
    "PointComparison",
    "PointComparisonRow",
    "PointReport",
    "Quantity",
    "Report",
    "Scale",
    "SettledOdds",
    "Severity",
    "TieBreak",
    "TightestBound",
    "UnboundedOdds",
    "adversary_cells",
    "break_ties",
    "calibrated_baselines",
    "compare",
    "cost_scale",
    "default_adversaries",
    "distance_scale",
    "distinguishability_scale",
    "evaluate",
    "factor",
    "format_amount",
    "format_percent",
    "measure_scale",
    "target_text",
    "tightest_bound",
    "trade_off",
    "usefulness_warnings",
]

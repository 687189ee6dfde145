"""Attacks, metrics and reports; the best parameter, ties among optima, and mechanisms side by side."""

from privacygames.analysis import attacks, metrics
from privacygames.analysis.attacks import Attack
from privacygames.analysis.comparison import Comparison, Row, compare, trade_off, usual_adversaries
from privacygames.analysis.evaluation import Report, evaluate
from privacygames.analysis.finder import Found, find
from privacygames.analysis.matching import contenders, matched_at
from privacygames.analysis.quantities import amount, percent
from privacygames.analysis.remarks import remarks
from privacygames.analysis.stands import HEADINGS as STAND_HEADINGS
from privacygames.analysis.stands import stand_cells
from privacygames.analysis.ties import TieBreak, break_ties
from privacygames.problem import (
    UNTRUE,
    WRONG,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    scale_of,
)

__all__ = [
    "STAND_HEADINGS",
    "UNTRUE",
    "WRONG",
    "Attack",
    "Comparison",
    "Found",
    "Report",
    "Row",
    "Scale",
    "TieBreak",
    "amount",
    "attacks",
    "break_ties",
    "compare",
    "contenders",
    "cost_scale",
    "distance_scale",
    "distinguishability_scale",
    "evaluate",
    "find",
    "matched_at",
    "metrics",
    "percent",
    "remarks",
    "scale_of",
    "stand_cells",
    "trade_off",
    "usual_adversaries",
]

"""Results for people: findings with their sentences, labels of axes, and pages."""

from privacygames.presentation.coordinates import output_json, output_text, point_json, point_text
from privacygames.presentation.explanation import (
    Explanation,
    adversary_error,
    cost_label,
    distortion_label,
    epsilon_label,
    explain,
    explain_comparison,
    limitations,
)
from privacygames.presentation.optional_imports import needed
from privacygames.presentation.pages import render

__all__ = [
    "Explanation",
    "adversary_error",
    "cost_label",
    "distortion_label",
    "epsilon_label",
    "explain",
    "explain_comparison",
    "limitations",
    "needed",
    "output_json",
    "output_text",
    "point_json",
    "point_text",
    "render",
]

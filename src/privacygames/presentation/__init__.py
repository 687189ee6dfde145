"""Results for people: sentences, names of axes, figures, pages."""

from privacygames.presentation.explanation import (
    cost_label,
    distortion_label,
    epsilon_label,
    explain,
    explain_comparison,
)
from privacygames.presentation.optional_imports import needed
from privacygames.presentation.pages import render

__all__ = ["cost_label", "distortion_label", "epsilon_label", "explain", "explain_comparison", "needed", "render"]

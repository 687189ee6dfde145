"""Results for people: sentences, names of axes, figures, pages."""

from privacygames.presentation import plots
from privacygames.presentation.explanation import explain, explain_comparison
from privacygames.presentation.optional_imports import needed
from privacygames.presentation.pages import render

__all__ = ["explain", "explain_comparison", "needed", "plots", "render"]

"""Results for people: sentences, names of axes, figures, pages."""

from privacygames.presentation import plots
from privacygames.presentation.optional import needed
from privacygames.presentation.pages import render
from privacygames.presentation.words import compared_in_words, in_words

__all__ = ["compared_in_words", "in_words", "needed", "plots", "render"]

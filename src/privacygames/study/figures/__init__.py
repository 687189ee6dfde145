"""The figures of a study: each as PNG, PDF and the rows behind it, with a caption made from the same rows."""

from privacygames.study.figures.draw import PLANS, Figure, draw

__all__ = ["PLANS", "Figure", "draw"]

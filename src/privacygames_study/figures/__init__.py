"""The figures of a study: each as PNG, PDF and the rows behind it, with a caption made from the same rows."""

from privacygames_study.figures.captions import count, plain, seconds, size, tidy
from privacygames_study.figures.draw import PLANS, DrawnFigure, draw
from privacygames_study.figures.figure_rows import columns, distinct, done

__all__ = [
    "PLANS",
    "DrawnFigure",
    "columns",
    "count",
    "distinct",
    "done",
    "draw",
    "plain",
    "seconds",
    "size",
    "tidy",
]

"""The figures of a study: each as PNG, PDF and the rows behind it, with a caption made from the same rows."""

from privacygames_study.figures.captions import counted_noun, duration, kilometres, parameter, rounded
from privacygames_study.figures.draw import PLANS, DrawnFigure, draw
from privacygames_study.figures.rows import columns, distinct, done

__all__ = [
    "PLANS",
    "DrawnFigure",
    "columns",
    "counted_noun",
    "distinct",
    "done",
    "draw",
    "duration",
    "kilometres",
    "parameter",
    "rounded",
]

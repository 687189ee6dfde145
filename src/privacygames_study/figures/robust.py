"""The figure of distortion mechanisms with guarantees against better informed adversaries."""

import numpy as np

from privacygames.jobs import Table, where
from privacygames_study.figures.captions import diagonal_sentence, median_range
from privacygames_study.figures.plan import FigurePlan
from privacygames_study.figures.rows import columns, side_by_side, wide
from privacygames_study.figures.style import Axes, Canvas, canvas, diagonal_panel, legend

KEYS = ("user", "epsilon", "strength")
MECHANISMS = ("differential", "distortion", "robust")
PRIVACY = wide(("privacy_km",), MECHANISMS)
COST = wide(("cost",), MECHANISMS)
LOOKS = {
    "distortion": ("guarantee against the prior only", {"facecolors": "none", "edgecolors": "#d55e00"}),
    "robust": ("guarantees against every adversary", {"c": "#0072b2", "edgecolors": "white"}),
}


def _draw_rows(rows: Table) -> Canvas:
    figure = canvas((9.4, 5.3))
    left, right = figure.subplots(1, 2)
    x = "with differential obfuscation"
    _panel(left, [row for row in rows if row["strength"] != 1], PRIVACY, "distortion privacy (km)", x)
    _panel(right, where(rows, strength=1), COST, "cost (share of changed outputs)", x)
    left.set_title("Better informed adversaries", fontsize=10)
    right.set_title("Cost", fontsize=10)
    legend(figure, left.collections)
    return figure


def _panel(axes: Axes, rows: Table, names: tuple[str, ...], what: str, x: str) -> None:
    """Both kinds of distortion obfuscation against the differential one."""
    values = columns(rows, *names)
    diagonal_panel(axes, (f"{what}\n{x}", f"{what}\nwith distortion obfuscation"), values)
    for y, (label, look) in zip(values[1:], LOOKS.values(), strict=True):
        axes.scatter(values[0], y, s=34 if "c" not in look else 18, linewidths=0.9, zorder=2, label=label, **look)


def _describe(rows: Table) -> str:
    informed = [row for row in rows if row["strength"] != 1]
    differential, distortion, robust = columns(informed, *PRIVACY)
    costs = dict(zip(MECHANISMS, columns(where(rows, strength=1), *COST), strict=True))
    extra = 100 * (costs["robust"] - costs["distortion"]) / np.maximum(costs["distortion"], 1e-12)
    sentences = [
        f"Guarantee against the prior only: {diagonal_sentence(differential, distortion)}" if informed else "",
        f"Guarantees against every adversary: {diagonal_sentence(differential, robust)}" if informed else "",
        f"These cost {median_range(extra, 'percent')} more than the guarantee against the prior only."
        if costs["distortion"].all()
        else "",
    ]
    return " ".join(filter(None, sentences))


ROBUST = (
    FigurePlan(
        "robust",
        "Guarantees against better informed adversaries",
        "robust",
        (*KEYS, *PRIVACY, *COST),
        "Distortion mechanisms that guarantee the differential one's privacy, against an adversary with the prior only "
        "and against each adversary with more evidence as well; a point per user, ε and strength of the evidence on "
        "the left, and per user and ε on the right.",
        lambda tables: side_by_side(tables["robust"], KEYS, ("privacy_km", "cost"), needs=(*PRIVACY, *COST)),
        _draw_rows,
        _describe,
    ),
)

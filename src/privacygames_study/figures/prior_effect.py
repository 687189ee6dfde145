"""The figure of the effect of the prior: adversaries better informed than the mechanism was designed for."""

import numpy as np

from privacygames.jobs import Table, where
from privacygames_study.figures.captions import diagonal_sentence, parameter, rounded
from privacygames_study.figures.plan import FigurePlan
from privacygames_study.figures.rows import columns, side_by_side, wide
from privacygames_study.figures.style import RED, SQUARE, Canvas, canvas, diagonal_panel, legend

KEYS = ("user", "epsilon", "strength")
ENTROPIES = ("prior_entropy_bits", "entropy_bits")
PAIR = wide(("privacy_km",), ("distortion", "differential"))


def _draw_rows(rows: Table) -> Canvas:
    figure = canvas(SQUARE)
    names = ("with distortion obfuscation", "with differential obfuscation")
    values = columns(rows, *PAIR)
    axes = diagonal_panel(figure.subplots(), (f"distortion privacy (km)\n{name}" for name in names), values)
    same = where(rows, strength=1)
    informed = [row for row in rows if row["strength"] != 1]
    axes.scatter(
        *columns(informed, *PAIR),
        s=30,
        facecolors="none",
        edgecolors="#555555",
        linewidths=0.8,
        zorder=2,
        label="better informed adversary",
    )
    axes.scatter(
        *columns(same, *PAIR),
        s=22,
        c=RED,
        edgecolors="white",
        linewidths=0.4,
        zorder=3,
        label="adversary's prior = design prior",
    )
    legend(figure, axes.collections)
    return figure


def _describe(rows: Table) -> str:
    distortion, differential, strength = columns(rows, *PAIR, "strength")
    same = strength == 1
    sentences = [
        f"Designed for the adversary's own prior (red): {diagonal_sentence(distortion[same], differential[same])}"
        if same.any()
        else "",
        f"Better informed adversaries: {diagonal_sentence(distortion[~same], differential[~same])}"
        if (~same).any()
        else "",
    ]
    strongest = float(strength.max())
    if same.any() and strongest > 1:
        medians = {
            name: [float(np.median(values[strength == level])) for level in (1.0, strongest)]
            for name, values in (("differential", differential), ("distortion", distortion))
        }
        falls = " and ".join(
            f"from {rounded(old)} to {rounded(new)} km with {name}" for name, (old, new) in medians.items()
        )
        sentences.append(f"With {parameter(strongest)} times the evidence the median falls {falls}.")
    return " ".join(filter(None, sentences))


PRIOR = (
    FigurePlan(
        "prior",
        "Better informed adversaries",
        "prior",
        (*KEYS, *ENTROPIES, *PAIR),
        "Distortion privacy against the optimal attack by adversaries with more evidence on the most visited places "
        "than "
        "the mechanisms were designed for; a point per user, ε and strength of the evidence.",
        lambda tables: side_by_side(tables["prior"], KEYS, ("privacy_km",), also=ENTROPIES, needs=PAIR),
        _draw_rows,
        _describe,
    ),
)

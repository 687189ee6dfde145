"""Figures of scenarios 2 and 3: the joint mechanism beside each of its two bounds alone."""

from functools import partial

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.jobs import Table
from privacygames_study.figures.captions import NEAR, count_of, median_range, parameter, reused_sentence
from privacygames_study.figures.plan import FigurePlan, Tables
from privacygames_study.figures.rows import MECHANISMS, SETTING, columns, side_by_side, wide
from privacygames_study.figures.style import FAINT, MARKS, SQUARE, Canvas, canvas, diagonal_panel, legend, panel

HALVES = ("differential", "distortion")
LABELS = {"privacy_km": "distortion privacy (km),\noptimal attack", "cost": "utility cost\n(share of changed outputs)"}


def _paint_privacy(rows: Table) -> Canvas:
    figure = canvas(SQUARE)
    joint, *halves = columns(rows, "joint_privacy_km", *wide(("privacy_km",), HALVES))
    names = ("with the joint mechanism", "with one bound alone")
    axes = diagonal_panel(figure.subplots(), (f"distortion privacy (km)\n{name}" for name in names), (joint, *halves))
    for name, half in zip(HALVES, halves, strict=True):
        MARKS[name].scatter(axes, joint, half)
    legend(figure, axes.collections)
    return figure


def _select_sorted(measure: str, tables: Tables) -> Table:
    """The comparisons in order of the joint mechanism's value, ties by the halves'."""
    rows = side_by_side(tables["scenario-3"], SETTING, (measure, "reused"), needs=wide((measure,)))
    values = np.array(columns(rows, *wide((measure,), ("distortion", "differential", "joint"))))
    order = np.lexsort(values.round(6)).tolist() if rows else []
    return [{"comparison": place, **rows[index]} for place, index in enumerate(order, start=1)]


def _paint_sorted(measure: str, rows: Table) -> Canvas:
    figure = canvas()
    axes = panel(figure.subplots(), f"comparison, sorted by the joint mechanism's {_noun(measure)}", LABELS[measure])
    place, *values = columns(rows, "comparison", *wide((measure,)))
    axes.vlines(place, np.min(values, axis=0), np.max(values, axis=0), color=FAINT, linewidth=0.5, zorder=1)
    size = float(np.clip(2500 / len(rows), 5, 26))
    for name, heights in zip(MECHANISMS, values, strict=True):
        MARKS[name].scatter(axes, place, heights, size=size)
    axes.grid(visible=False, axis="x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if measure == "cost" else 0.0)
    legend(figure, axes.collections[1:])  # the first are the vertical lines
    return figure


def _describe(measure: str, rows: Table) -> str:
    """Whether joint is the larger of its halves, and where it is not, how far off."""
    joint, *halves = columns(rows, *(f"{name}_{measure}" for name in ("joint", *HALVES)))
    unit = "km" if measure == "privacy_km" else ""
    extra = joint - np.max(halves, axis=0)
    same = np.abs(extra) <= NEAR
    larger = halves[0] > halves[1]
    sentences = (
        f"Joint's {_noun(measure)} is that of the larger of the other two, within {parameter(NEAR)}{unit and ' km'}, "
        "in "
        f"{count_of(same)} comparisons; the larger one is differential in {count_of(larger)}."
    )
    rest = "" if same.all() else f"In the rest joint's is {_offset(extra[~same], unit)}."
    return " ".join(filter(None, (sentences, rest, reused_sentence(rows))))


def _offset(extra: FloatArray, unit: str) -> str:
    if (extra > 0).all():
        return f"higher, by {median_range(extra, unit)}"
    return (
        f"lower, by {median_range(-extra, unit)}" if (extra < 0).all() else f"different by {median_range(extra, unit)}"
    )


def _noun(measure: str) -> str:
    return "privacy" if measure == "privacy_km" else "cost"


def _sorted_plan(name: str, title: str, measure: str) -> FigurePlan:
    return FigurePlan(
        name,
        title,
        "scenario-3",
        ("comparison", *SETTING, *wide((measure,)), "joint_reused"),
        f"The {_noun(measure)} of the joint mechanism and of its two halves, bounds chosen independently: the three "
        "points on a vertical line are one user, ε and d_m.",
        partial(_select_sorted, measure),
        partial(_paint_sorted, measure),
        partial(_describe, measure),
    )


JOINT = (
    FigurePlan(
        "joint-privacy",
        "Joint against each alone",
        "scenario-2",
        (*SETTING, *wide(("privacy_km",)), "joint_reused"),
        "Distortion privacy against the optimal attack with one bound alone and with both, where d_m is above what "
        "the differential mechanism reaches by itself; a pair of points per user, ε and d_m.",
        lambda tables: side_by_side(
            tables["scenario-2"], SETTING, ("privacy_km", "reused"), needs=wide(("privacy_km",))
        ),
        _paint_privacy,
        partial(_describe, "privacy_km"),
    ),
    _sorted_plan("sorted-privacy", "All comparisons, sorted by privacy", "privacy_km"),
    _sorted_plan("sorted-cost", "All comparisons, sorted by cost", "cost"),
)

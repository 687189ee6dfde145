"""Figures of a replay, as Matplotlib figures: the hours of a day, and the averaging attack on people's homes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.presentation import needed
from privacygames.validation import require_instance
from privacygames_study.replays.runner import ReplayResult

Figure = Any
"""A ``matplotlib.figure.Figure``."""

COLOURS = ("#c1121f", "#0072b2", "#009e73", "#b8860b", "#7e4e90", "0.4")
MARKERS = "os^Dv"


def day(replayed: ReplayResult) -> Figure:
    """A day of releases under several strategies, by the hour: error of two attacks, cost, budget spent."""
    panels = (
        ("now", "Filtering attack on the present", "mean error (km)"),
        ("past", "Smoothing attack on the past", "mean error (km)"),
        ("cost", "Cost of the outputs", "km from the true place"),
        ("spent", "Spent since midnight", "ε per km"),
    )
    figure = _canvas((11.4, 6.4))
    figure.suptitle("A day of releases: means over people, by the hour", fontsize=12)
    strategies = _strategy_names(replayed)
    grid = figure.subplots(2, 2, sharex=True)
    for place, (axes, (name, title, label)) in enumerate(zip(grid.flat, panels, strict=True)):
        for position, strategy in enumerate(strategies):
            rows = [
                row for row in replayed.hours if row["way"] == strategy and (row[name] is not None or name == "spent")
            ]
            values = np.array([float(row[name] or 0.0) for row in rows])
            hours = [int(row["hour"] or 0) + 0.5 for row in rows]
            _curve(axes, hours, values.cumsum() if name == "spent" else values, position, strategy)
        axes.set_xlim(0, 24)
        axes.set_xticks(range(0, 25, 3))
        _label(axes, title, "hour of the day" if place >= 2 else "", label)
    _legend(figure, grid.flat[0], len(strategies))
    return figure


def homes(replayed: ReplayResult) -> Figure:
    """The averaging attack by an adversary without prior knowledge: mean distance from home after each day."""
    if not require_instance(replayed, ReplayResult, "the replay").homes:
        raise InvalidProblem("nobody has enough requests at night to average: there is nothing to draw")
    figure = _canvas((6.4, 4.2))
    axes = figure.subplots()
    for position, strategy in enumerate(_strategy_names(replayed)):
        rows = [row for row in replayed.homes if row["way"] == strategy]
        days, errors = [int(row["days"] or 0) for row in rows], [float(row["home"] or 0.0) for row in rows]
        _curve(axes, days, errors, position, strategy)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _label(axes, "Averaging attack on outputs at night", "days of releases", "mean distance from home (km)")
    _legend(figure, axes, 3)
    return figure


def _strategy_names(replayed: ReplayResult) -> list[str]:
    if not require_instance(replayed, ReplayResult, "the replay").strategies:
        raise InvalidProblem("all replays failed: there is nothing to draw")
    return [str(row["way"]) for row in replayed.strategies]


def _canvas(size: tuple[float, float]) -> Figure:
    return needed("matplotlib.figure", what="drawing a figure").Figure(figsize=size, layout="constrained")


def _curve(axes: Any, x: Sequence[float], y: Any, position: int, name: str) -> None:
    colour, marker = COLOURS[position % len(COLOURS)], MARKERS[position % len(MARKERS)]
    axes.plot(x, y, color=colour, marker=marker, markersize=3.5, linewidth=1.3, label=name, clip_on=False)


def _label(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, axes: Any, columns: int) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)

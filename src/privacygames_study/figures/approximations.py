"""Appendix C: the effect of leaving out constraints beyond a radius on privacy, time and the realised ε."""

from collections.abc import Iterable
from functools import partial
from math import inf, isfinite, isinf

import numpy as np

from privacygames.jobs import Table, number, where
from privacygames_study.figures.captions import count_of, duration, median_range, parameter, rounded
from privacygames_study.figures.plan import FigurePlan, Tables
from privacygames_study.figures.rows import columns, distinct, done
from privacygames_study.figures.style import (
    INK,
    MIN_BOX_VALUES,
    REFERENCE,
    SIZE,
    Axes,
    Canvas,
    box,
    canvas,
    legend,
    panel,
    patches,
    plain_log,
)

KEYS = ("user", "epsilon", "d_m_km", "columns", "rows", "kind", "radius_km")
KINDS = {
    "secrets": ("secret–secret pruned", "#56b4e9"),
    "ratios": ("ratios pruned by both distances", "#e69f00"),
    "both": ("ratios and guesses pruned", "#cc79a7"),
}
WIDE = 30.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""


def _select(needs: tuple[str, ...], tables: Tables) -> Table:
    rows = [
        {name: row.get(name) for name in (*KEYS, *needs)}
        for row in done(tables["approximation"])
        if all(row.get(name) is not None for name in needs)
    ]
    return sorted(rows, key=lambda row: (number(row, "columns"), number(row, "rows"), number(row, "radius_km")))


def _select_epsilon(tables: Tables) -> Table:
    rows = _select(("realised_epsilon", "exact_epsilon"), tables)
    return [
        {
            **row,
            "times_nominal": number(row, "realised_epsilon") / number(row, "epsilon"),
            "exact_times_nominal": number(row, "exact_epsilon") / number(row, "epsilon"),
        }
        for row in rows
    ]


def _draw_rows(value: str, exact: str | None, label: str, level: float | None, rows: Table) -> Canvas:
    """Box plots over the radius: a panel per grid, a box per way of pruning; at the end, without pruning.

    Where values are infinite, a lower panel shows how often.
    """
    grids = distinct(rows, "columns", "rows")
    endless = any(isinf(number(row, value)) for row in rows)
    width, height = SIZE
    figure = canvas((width * len(grids), height + 1.0 * endless))
    heights = [3.2, 1.0] if endless else [1.0]
    panels = figure.subplots(len(heights), len(grids), sharey="row", sharex="col", squeeze=False, height_ratios=heights)
    for place, (across, down) in enumerate(grids):
        own = where(rows, columns=across, rows=down)
        _boxes(panels[0, place], own, value, exact, level)
        if endless:
            _shares(panels[1, place], own, value)
        panels[-1, place].set_xlabel("constraints up to this distance (km)", fontsize=10)
        if len(grids) > 1:
            panels[0, place].set_title(f"{across} × {down} cells", fontsize=10)
    if exact is not None:
        _scale(panels[0, 0], rows, value, exact)
    panels[0, 0].set_ylabel(label, fontsize=10)
    if endless:
        panels[1, 0].set_ylabel("infinite\n(%)", fontsize=10)
    legend(figure, patches([style for kind, style in KINDS.items() if where(rows, kind=kind)]))
    return figure


def _boxes(axes: Axes, rows: Table, value: str, exact: str | None, level: float | None) -> None:
    panel(axes, "", "")
    axes.grid(visible=False, axis="x")
    for colour, place, width, here in _slots(rows):
        box(axes, _finite(number(row, value) for row in here), place=place, width=width, colour=colour)
    radii = distinct(rows, "radius_km")
    ticks = [parameter(float(str(radius))) for (radius,) in radii]
    if exact is not None:
        for colour, place, width, here in _slots([row | {"radius_km": inf} for row in rows], first=len(radii)):
            settings = {tuple(row[name] for name in KEYS[:5]): number(row, exact) for row in here}
            box(axes, _finite(settings.values()), place=place, width=width, colour=colour)
        ticks.append("all")
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    if level is not None:
        axes.axhline(level, **REFERENCE)


def _scale(axes: Axes, rows: Table, value: str, exact: str) -> None:
    """The scale of all panels together: logarithmic where values are far apart, otherwise times from zero."""
    drawn = _finite(number(row, name) for row in rows for name in (value, exact))
    if drawn and 0 < WIDE * min(drawn) < max(drawn):
        plain_log(axes)
    elif value == "processor_seconds":
        axes.set_ylim(bottom=0)


def _shares(axes: Axes, rows: Table, value: str) -> None:
    panel(axes, "", "")
    axes.grid(visible=False, axis="x")
    for colour, place, width, here in _slots(rows):
        infinite = [isinf(number(row, value)) for row in here]
        axes.bar(place, 100 * float(np.mean(infinite)), width=width, color=colour, edgecolor=INK, linewidth=0.6)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if isfinite(value)]


def _slots(rows: Table, first: int = 0) -> list[tuple[str, float, float, Table]]:
    """Colour, place, width and rows of each box: the kinds of one radius stand side by side."""
    kinds = [(kind, style) for kind, style in KINDS.items() if where(rows, kind=kind)]
    width = 0.5 if len(kinds) == 1 else 0.7 / len(kinds)
    slots = []
    for index, (radius,) in enumerate(distinct(rows, "radius_km"), start=first):
        for turn, (kind, (_name, colour)) in enumerate(kinds):
            here = where(rows, radius_km=radius, kind=kind)
            if here:
                slots.append((colour, index + (turn - (len(kinds) - 1) / 2) * width * 1.08, width, here))
    return slots


def _ends(rows: Table) -> list[tuple[str, float, Table, float, Table]]:
    """The smallest and the largest radius of each grid and kind, with their rows."""
    ends = []
    for across, down, kind in distinct(rows, "columns", "rows", "kind"):
        own = where(rows, columns=across, rows=down, kind=kind)
        radii = [number(row, "radius_km") for row in own]
        low, high = min(radii), max(radii)
        grid = f" on {across} × {down}" if len(distinct(rows, "columns", "rows")) > 1 else ""
        name = KINDS[str(kind)][0] if str(kind) in KINDS else str(kind)
        ends.append((f"{name}{grid}", low, where(own, radius_km=low), high, where(own, radius_km=high)))
    return ends


def _median(rows: Table, value: str) -> float:
    return float(np.median(columns(rows, value)[0]))


def _see_error(rows: Table) -> str:
    sentences = [
        f"{name}: median {rounded(_median(near, 'error_km'))} km at a radius of {parameter(low)} km, "
        f"{rounded(_median(far, 'error_km'))} km at {parameter(high)} km"
        for name, low, near, high, far in _ends(rows)
    ]
    return f"Above zero privacy is lost. {_capital('; '.join(sentences))}."


def _select_time(tables: Tables) -> Table:
    """The rows whose approximate and exact designs are by the same solver, so that their times are comparable."""
    rows = _select(("processor_seconds", "exact_processor_seconds", "solver", "exact_solver"), tables)
    return [row for row in rows if row["solver"] == row["exact_solver"]]


def _see_time(rows: Table) -> str:
    sentences = [
        f"{name} ({' or '.join(str(solver) for (solver,) in distinct([*near, *far], 'solver'))}): median "
        f"{duration(_median(near, 'processor_seconds'))} at a radius of {parameter(low)} km, "
        f"{duration(_median(far, 'processor_seconds'))} at {parameter(high)} km, "
        f"{duration(_median(far, 'exact_processor_seconds'))} with all, by the same solver"
        for name, low, near, high, far in _ends(rows)
    ]
    return f"{_capital('; '.join(sentences))}."


def _see_epsilon(rows: Table) -> str:
    sentences = [
        f"{name}: {_realised(near)} at a radius of {parameter(low)} km" for name, low, near, _high, _far in _ends(rows)
    ]
    (ratios,) = columns(rows, "times_nominal")
    over = count_of(ratios > 1 + 1e-6)
    return (
        f"Above the dashed line the realised ε exceeds the nominal one: in {over} cases over all radii. "
        f"{_capital('; '.join(sentences))}."
    )


def _realised(rows: Table) -> str:
    """The number of cases with an infinite realised ε, and the multiple of the nominal one in the others."""
    (ratios,) = columns(rows, "times_nominal")
    finite = ratios[np.isfinite(ratios)]
    multiple = f"{median_range(finite)} times the nominal ε" if len(finite) else ""
    if len(finite) == len(ratios):
        return multiple
    infinite = f"infinite in {count_of(np.isinf(ratios))}"
    return f"{infinite} and {multiple} in the other {len(finite)}" if len(finite) else infinite


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_KINDS = (
    " Pruned are ratio constraints between far secrets; these and ratio constraints on observables far from a secret; "
    "or these and guess constraints on observables far from the estimate."
)
_BOX = (
    " Boxes: median and quartiles over users and ε; whiskers up to 1.5 times the box, dots beyond; for fewer than "
    f"{MIN_BOX_VALUES} values, points and their median."
)

APPROXIMATION = (
    FigurePlan(
        "approximation-error",
        "Privacy lost by approximation",
        "approximation",
        (*KEYS, "error_km"),
        "Distortion privacy of the exact joint mechanism less that of the one designed with only the constraints "
        "between places nearer than a radius." + _KINDS + _BOX,
        partial(_select, ("error_km",)),
        partial(_draw_rows, "error_km", None, "privacy lost (km)", 0.0),
        _see_error,
        has_own_grid=True,
    ),
    FigurePlan(
        "approximation-time",
        "Time of approximate designs",
        "approximation",
        (*KEYS, "processor_seconds", "exact_processor_seconds", "solver", "exact_solver"),
        "Processor time to design the joint mechanism with only the constraints between places nearer than a radius, "
        "and with all of them by the same solver (right)." + _KINDS + _BOX,
        _select_time,
        partial(_draw_rows, "processor_seconds", "exact_processor_seconds", "processor time of the design (s)", None),
        _see_time,
        has_own_grid=True,
    ),
    FigurePlan(
        "approximation-epsilon",
        "The realised ε of approximate designs",
        "approximation",
        (*KEYS, "realised_epsilon", "exact_epsilon", "times_nominal", "exact_times_nominal"),
        "The realised ε, over all pairs of secrets, of a mechanism designed with only the constraints between places "
        "nearer than a radius, as a multiple of the nominal ε; not repaired." + _KINDS + _BOX,
        _select_epsilon,
        partial(_draw_rows, "times_nominal", "exact_times_nominal", "realised ε ÷ nominal ε", 1.0),
        _see_epsilon,
        has_own_grid=True,
    ),
)

"""Figures: each function takes results and returns a Matplotlib figure; nothing is shown or saved here."""

from collections.abc import Sequence
from typing import Any

from privacygames.analysis import Comparison, Row
from privacygames.arrays import FloatArray
from privacygames.attacks import Attack
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.presentation import cost_label, distortion_label, epsilon_label, needed
from privacygames.problem import Problem
from privacygames.spaces import Grid, Label

__all__ = [
    "adversaries",
    "comparison",
    "story",
    "trade_off",
]


def __dir__() -> list[str]:
    return __all__


Figure = Any
"""A ``matplotlib.figure.Figure``."""

INK, SOFT = "0.25", "0.45"
ADVERSARIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7e4e90")
CURVES = ("#c1121f", "#0072b2", "#009e73", "#b8860b", "#7e4e90", "0.4")
MARKERS = "os^Dv"
APART = 0.22
PAGE = 11.4
"""The widest a figure is, in inches: a page on its side."""


def story(mechanism: Mechanism, problem: Problem, attack: Attack, secret: Label) -> Figure:
    """One release on the map: the prior, what is answered from ``secret``, and what an attacker then believes.

    The third panel shows the attacker after the likeliest answer from ``secret``.
    """
    grid = problem.space
    if not isinstance(grid, Grid) or problem.observables != grid:
        raise InvalidProblem("the story figure needs secrets and observables that are the cells of one Grid")
    answers = mechanism.probabilities[grid.index(secret)]
    answer = mechanism.observables.labels[int(answers.argmax())]
    belief = mechanism.posterior(answer, problem.prior)
    guess = attack.estimate(answer)
    panels = [
        ("What the attacker believes before", problem.prior.probabilities, "probability π(s)", []),
        (
            "What is answered from the true place",
            answers,
            "probability p(o|s)",
            [(secret, "o", "true place"), (answer, "X", "likeliest answer")],
        ),
        (
            "What the attacker believes after it",
            belief.probabilities,
            "probability of s given o",
            [(secret, "o", "true place"), (guess, "*", "adversary's best guess")],
        ),
    ]
    shape = grid.height / grid.width
    figure = _canvas((PAGE, 1.5 + 2.6 * shape))
    figure.suptitle("One answer, on the map", fontsize=12)
    for axes, (title, values, unit, marks) in zip(figure.subplots(1, 3), panels, strict=True):
        _heat(axes, grid, values, unit)
        axes.set_title(title, fontsize=10)
        for label, marker, name in marks:
            _mark(axes, grid, label, marker, name)
        if marks:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize=8)
    return figure


def comparison(compared: Comparison) -> Figure:
    """Mechanisms side by side, one line each: cost, realised ε, the error of each adversary's attacks, time.

    Colours stand for adversaries; the first mechanism's cost is drawn as a line, for the eye to compare with.
    """
    adversaries = list(dict.fromkeys(row.adversary for row in compared.rows))
    rows = [row for row in compared.rows if row.adversary == adversaries[0]]
    figure = _canvas((PAGE, 2.3 + 0.3 * len(rows)))
    figure.suptitle(f"{len(rows)} mechanisms for {compared.problem.shape[0]} secrets", fontsize=12)
    panels = figure.subplots(1, 5, sharey=True, width_ratios=(3, 2.4, 2.4, 4.6, 1.8))
    label = cost_label(compared.problem)
    _values_panel(panels[0], [row.report.cost for row in rows], "Cost on average", label, line=True)
    _values_panel(panels[1], [row.report.worst_cost for row in rows], "Cost, worst secret", label)
    _values_panel(
        panels[2],
        [_epsilon(row) for row in rows],
        "Realised epsilon",
        epsilon_label(compared.problem, rows[0].report.within),
    )
    _attack_panel(panels[3], compared, adversaries)
    _time_panel(panels[4], rows)
    panels[0].set_yticks(range(len(rows)), [row.name for row in rows], fontsize=8)
    panels[0].invert_yaxis()  # the first on top
    for axes in panels:
        axes.tick_params(labelsize=8)
        _tidy(axes)
    figure.legend(
        *panels[3].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8
    )
    return figure


def trade_off(curve: Comparison) -> Figure:
    """What privacy costs: what was asked for against the cost on the left, and what comes with it on the right.

    Takes what :func:`privacygames.trade_off` returns and draws the first adversary. Where ε was asked for, the right
    panel shows how wrong the optimal attack is; where distortion was, the ε that mechanisms which promise one realise.
    """
    if any(row.asked is None for row in curve.rows):
        raise InvalidProblem("this comparison is at one value only; draw what trade_off returns, or plots.comparison")
    rows = [row for row in curve.rows if row.adversary == curve.rows[0].adversary]
    by_epsilon = curve.matched == "epsilon"
    label = epsilon_label(curve.problem, rows[0].report.within)
    error = f"optimal attack: {distortion_label(curve.problem)}"
    asked, other = (label, error) if by_epsilon else (error, f"realised {label}")
    sides: list[tuple[str, str, Sequence[float | None]]]
    sides = [(cost_label(curve.problem), "What it costs", [row.report.cost for row in rows])]
    beside = [row.report.distortion if by_epsilon else _epsilon(row) for row in rows]
    if any(value is not None for value in beside):
        sides.append((other, "What comes with it", beside))
    figure = _canvas((0.8 + 5.2 * len(sides), 4.3))
    figure.suptitle(f"The price of privacy, {curve.problem.shape[0]} secrets", fontsize=12)
    for axes, (name, title, values) in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
        _curves(axes, rows, values)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel(f"asked for: {asked}")
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
        _tidy(axes)
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def adversaries(compared: Comparison) -> Figure:
    """Where adversaries stand, one line each: what mechanisms leave them, of what they err by without an answer.

    Takes what :func:`privacygames.compare` returns for a list of adversaries. A bar marks what is promised against
    each, by the first mechanism that promises something; what is to the left of it does not keep that promise.
    """
    rows = list({row.name: row for row in compared.rows}.values())
    names = [stand.adversary for stand in rows[0].report.against]
    if not names:
        raise InvalidProblem("no adversaries were compared; give compare(…, adversaries=[…]) some of type Adversary")
    figure = _canvas((7.6, 1.7 + 0.5 * len(names)))
    axes = figure.subplots()
    promised = _promised(axes, rows, names)
    for position, row in enumerate(rows):
        shares = [100 * stand.realised / (stand.possible or 1.0) for stand in row.report.against]
        shift = APART * (position - (len(rows) - 1) / 2)  # side by side, not one on top of the other
        style = {"color": CURVES[position % len(CURVES)], "marker": MARKERS[position % len(MARKERS)]}
        places = [place + shift for place in range(len(names))]
        axes.plot(shares, places, linestyle="none", markersize=7, label=row.name, **style)
        for name, share, place in zip(names, shares, places, strict=True):
            left = share < promised.get(name, 0.0) - 0.5  # the number is not to stand on the bar
            look = {"ha": "right" if left else "left", "va": "center", "fontsize": 7, "color": SOFT}
            axes.annotate(f"{share:.0f} %", (share, place), (-8 if left else 8, 0), textcoords="offset points", **look)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)  # the first on top
    axes.set_xlim(-2, 109)
    _titled(axes, "What adversaries still get wrong", "% of what they get wrong without an answer")
    _tidy(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _promised(axes: Any, rows: list[Row], names: list[str]) -> dict[str, float]:
    """A bar for each adversary that some mechanism promises something against: at which share, by name."""
    found = {
        stand.adversary: 100 * stand.promised / (stand.possible or 1.0)
        for row in reversed(rows)
        for stand in row.report.against
        if stand.promised is not None
    }
    for name, share in found.items():
        at = names.index(name)
        axes.vlines(share, at - 0.36, at + 0.36, color=INK, linewidth=2.2, zorder=1)
    if found:
        axes.plot([], [], color=INK, linewidth=2.2, label="promised")
    return found


def _curves(axes: Any, rows: list[Row], values: Sequence[float | None]) -> None:
    """A line for each mechanism: what was asked against the values."""
    for position, name in enumerate(dict.fromkeys(row.mechanism for row in rows)):
        points = [
            (row.asked or 0.0, value)
            for row, value in zip(rows, values, strict=True)
            if row.mechanism == name and value is not None
        ]
        if points:
            style = {"color": CURVES[position % len(CURVES)], "marker": MARKERS[position % len(MARKERS)]}
            axes.plot(*zip(*sorted(points), strict=True), markersize=5, label=name, **style)


def _epsilon(row: Row) -> float | None:
    """The realised ε; None where none is promised, since it then is an accident of rounding."""
    report = row.report
    if not report.epsilon_promised:
        return None
    return report.epsilon if report.epsilon_within is None else report.epsilon_within


def _values_panel(axes: Any, values: list[Any], title: str, label: str, *, line: bool = False) -> None:
    """A dot a mechanism with its number beside it; what has no value says so."""
    largest = max((value for value in values if value is not None), default=1.0) or 1.0
    if line:
        axes.axvline(values[0], color=SOFT, linewidth=1, linestyle=":")
    for place, value in enumerate(values):
        if value is not None:
            axes.plot([value], [place], marker="o", markersize=5, color=INK)
        at, text = (value, f"{value:#.3g}") if value is not None else (0.0, "not bounded")
        axes.annotate(text, (at, place), (6, 0), textcoords="offset points", va="center", fontsize=7, color=SOFT)
    axes.set_xlim(-0.04 * largest, 1.45 * largest)  # space for the number beside the last dot
    _titled(axes, title, label)


def _attack_panel(axes: Any, compared: Comparison, adversaries: list[str]) -> None:
    """The optimal attack filled, the Bayesian hollow; the first adversary's blind guess as a line."""
    for position, adversary in enumerate(adversaries):
        rows = [row for row in compared.rows if row.adversary == adversary]
        colour, marker = ADVERSARIES[position % len(ADVERSARIES)], "osD^v"[position % 5]
        shift = APART * (position - (len(adversaries) - 1) / 2)  # side by side, not one on top of the other
        kinds = (("optimal", "distortion", colour), ("Bayesian", "distortion_bayesian", "white"))
        for kind, name, inside in kinds:
            errors = [getattr(row.report, name) for row in rows]
            axes.plot(
                errors,
                [place + shift for place in range(len(rows))],
                marker,
                markersize=5,
                color=colour,
                markerfacecolor=inside,
                label=f"{adversary}: {kind} attack",
            )
    blind = compared.rows[0].report.distortion_from_prior
    axes.axvline(blind, color=SOFT, linewidth=1, linestyle="--", label=f"{adversaries[0]}: guess without an answer")
    axes.set_xlim(left=min(0.0, -0.02 * axes.get_xlim()[1]))
    _titled(axes, "What attackers get wrong on average", distortion_label(compared.problem))


def _time_panel(axes: Any, rows: list[Row]) -> None:
    timed = [(max(row.seconds, 1e-3), place) for place, row in enumerate(rows) if row.seconds is not None]
    axes.scatter(*zip(*timed, strict=True) if timed else ([], []), s=28, color=INK, zorder=3)
    axes.set_xscale("log")
    _titled(axes, "Time to design", "seconds")


def _titled(axes: Any, title: str, label: str) -> None:
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlabel(label, fontsize=8)


def _tidy(axes: Any) -> None:
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _canvas(size: tuple[float, float]) -> Figure:
    return needed("matplotlib.figure", what="drawing a figure").Figure(figsize=size, layout="constrained")


def _heat(axes: Any, grid: Grid, values: FloatArray, unit: str) -> None:
    image = axes.imshow(
        values.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=(0, grid.width, 0, grid.height),
        cmap="YlGnBu",
        vmin=0.0,
        vmax=max(float(values.max()), 1e-12),
    )
    axes.set_xlabel("km east", fontsize=9)
    axes.set_ylabel("km north", fontsize=9)
    axes.tick_params(labelsize=8)
    bar = axes.inset_axes((1.03, 0, 0.045, 1))  # as tall as the map, whatever its shape
    axes.figure.colorbar(image, cax=bar).set_label(unit, fontsize=8)
    bar.tick_params(labelsize=7)


def _mark(axes: Any, grid: Grid, label: Label, marker: str, name: str) -> None:
    x, y = grid.centres[grid.index(label)]
    sizes = {"o": 130, "X": 60, "*": 90}
    hollow = marker == "o"
    axes.scatter(
        [x],
        [y],
        marker=marker,
        s=sizes[marker],
        facecolors="none" if hollow else "crimson",
        edgecolors="crimson" if hollow else "white",
        linewidths=2.0 if hollow else 0.8,
        label=name,
        zorder=3 if hollow else 4,
    )

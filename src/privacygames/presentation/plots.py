"""Figures: each function takes results and returns a Matplotlib figure; nothing is shown or saved here."""

from math import isfinite
from typing import Any

from privacygames.analysis import Attack, Comparison, Row
from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.presentation.words import cost_label, distortion_label, epsilon_label
from privacygames.problem import Problem
from privacygames.spaces import Grid, Label

Figure = Any
"""A ``matplotlib.figure.Figure``."""

BEST, PLAIN = "crimson", "#35608d"
APART = 0.22
OTHERS = ("#35608d", "#22a884", "#b8860b", "#7e4e90", "0.4")


def story(mechanism: Mechanism, problem: Problem, attack: Attack, secret: Label) -> Figure:
    """One release on the map: the prior, what is answered from ``secret``, and what an attacker then believes.

    The third panel shows the attacker after the likeliest answer from ``secret``.
    """
    from matplotlib.figure import Figure as MatplotlibFigure

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
            [(secret, "o", "true place"), (guess, "*", "attacker's best guess")],
        ),
    ]
    shape = grid.height / grid.width
    figure = MatplotlibFigure(figsize=(14.0, 1.4 + 3.4 * shape), layout="constrained")
    for axes, (title, values, unit, marks) in zip(figure.subplots(1, 3), panels, strict=True):
        _heat(axes, grid, values, unit)
        axes.set_title(title, fontsize=11)
        for label, marker, name in marks:
            _mark(axes, grid, label, marker, name)
        if marks:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False, fontsize=9)
    return figure


def comparison(compared: Comparison) -> Figure:
    """Mechanisms side by side, one line each: cost, realised ε, the error of each adversary's attacks, time.

    The first mechanism is drawn in another colour and its cost as a line, for the eye to compare with.
    """
    from matplotlib.figure import Figure as MatplotlibFigure

    adversaries = list(dict.fromkeys(row.adversary for row in compared.rows))
    rows = [row for row in compared.rows if row.adversary == adversaries[0]]
    figure = MatplotlibFigure(figsize=(15.0, 2.0 + 0.34 * len(rows)), layout="constrained")
    panels = figure.subplots(1, 5, sharey=True, width_ratios=(3, 2.2, 2.2, 5, 1.8))
    label = cost_label(compared.problem)
    _values_panel(panels[0], [row.report.cost for row in rows], "Cost on average", label, line=True)
    _values_panel(panels[1], [row.report.worst_cost for row in rows], "Cost, worst secret", label)
    _values_panel(panels[2], [_epsilon(row) for row in rows], "Realised epsilon", epsilon_label(compared.problem))
    _attack_panel(panels[3], compared, adversaries)
    _time_panel(panels[4], rows)
    panels[0].set_yticks(range(len(rows)), [row.name for row in rows])
    panels[0].invert_yaxis()  # the first on top
    for axes in panels:
        axes.grid(color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*panels[3].get_legend_handles_labels(), loc="outside lower right", ncols=5, frameon=False, fontsize=9)
    return figure


def trade_off(curve: Comparison) -> Figure:
    """What privacy costs: against ε on the left, against the optimal attack's error on the right.

    Takes what :func:`privacygames.trade_off` returns and draws the first adversary. A panel without finite values is
    left out: a mechanism designed for distortion privacy alone need not have any ε.
    """
    from matplotlib.figure import Figure as MatplotlibFigure

    if any(row.asked is None for row in curve.rows):
        raise InvalidProblem("this comparison is at one value only; draw what trade_off returns, or plots.comparison")
    rows = [row for row in curve.rows if row.adversary == curve.rows[0].adversary]
    sides = [(epsilon_label(curve.problem), [row.report.epsilon for row in rows])]
    sides.append((f"optimal attack: {distortion_label(curve.problem)}", [row.report.distortion for row in rows]))
    sides = [(label, values) for label, values in sides if any(isfinite(value) for value in values)]
    figure = MatplotlibFigure(figsize=(0.8 + 5.2 * len(sides), 4.2), layout="constrained")
    for axes, (label, values) in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
        for position, name in enumerate(dict.fromkeys(row.mechanism for row in rows)):
            points = [
                (value, row.report.cost)
                for value, row in zip(values, rows, strict=True)
                if row.mechanism == name and isfinite(value)
            ]
            style = {"color": BEST if position == 0 else OTHERS[(position - 1) % len(OTHERS)], "markersize": 5}
            axes.plot(*zip(*sorted(points), strict=True), marker="os^Dv"[position % 5], label=name, **style)
        axes.set_xlabel(label)
        axes.set_ylabel(cost_label(curve.problem))
        axes.set_ylim(bottom=0)
        axes.grid(color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def _epsilon(row: Row) -> float:
    return row.report.epsilon if row.report.epsilon_within is None else row.report.epsilon_within


def _values_panel(axes: Any, values: list[float], title: str, label: str, *, line: bool = False) -> None:
    """A dot a mechanism with its number beside it; what has no finite value says so."""
    largest = max((value for value in values if isfinite(value)), default=1.0) or 1.0
    if line:
        axes.axvline(values[0], color=BEST, linewidth=1, linestyle=":")
    for place, value in enumerate(values):
        colour = BEST if place == 0 else PLAIN
        if isfinite(value):
            axes.plot([value], [place], marker="o", color=colour)
        at, text = (value, f"{value:#.3g}") if isfinite(value) else (0.0, "none holds")
        axes.annotate(text, (at, place), (6, 0), textcoords="offset points", va="center", fontsize=8, color="0.35")
    axes.set_xlim(-0.04 * largest, 1.3 * largest)  # room for the number beside the last dot
    _titled(axes, title, label)


def _attack_panel(axes: Any, compared: Comparison, adversaries: list[str]) -> None:
    """The optimal attack filled, the Bayesian hollow; the first adversary's blind guess as a line."""
    for position, adversary in enumerate(adversaries):
        rows = [row for row in compared.rows if row.adversary == adversary]
        colour, marker = (BEST, *OTHERS)[position % (1 + len(OTHERS))], "osD^v"[position % 5]
        shift = APART * (position - (len(adversaries) - 1) / 2)  # side by side, not one on top of the other
        kinds = (("optimal", "distortion", colour), ("Bayesian", "distortion_bayesian", "white"))
        for kind, name, inside in kinds:
            errors = [getattr(row.report, name) for row in rows]
            axes.plot(
                errors,
                [place + shift for place in range(len(rows))],
                marker,
                color=colour,
                markerfacecolor=inside,
                label=f"{adversary}: {kind} attack",
            )
    blind = compared.rows[0].report.distortion_from_prior
    axes.axvline(blind, color="0.4", linewidth=1, linestyle="--", label=f"{adversaries[0]}: guess without an answer")
    axes.set_xlim(left=min(0.0, -0.02 * axes.get_xlim()[1]))
    _titled(axes, "What attackers get wrong on average", distortion_label(compared.problem))


def _time_panel(axes: Any, rows: list[Row]) -> None:
    timed = [(max(row.seconds, 1e-3), place) for place, row in enumerate(rows) if row.seconds is not None]
    axes.scatter(*zip(*timed, strict=True) if timed else ([], []), s=42, color=PLAIN, zorder=3)
    axes.set_xscale("log")
    _titled(axes, "Time to design", "seconds")


def _titled(axes: Any, title: str, label: str) -> None:
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(label)


def _heat(axes: Any, grid: Grid, values: FloatArray, unit: str) -> None:
    image = axes.imshow(
        values.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=(0, grid.width, 0, grid.height),
        cmap="YlGnBu",
        vmin=0.0,
        vmax=max(float(values.max()), 1e-12),
    )
    axes.set_xlabel("km east")
    axes.set_ylabel("km north")
    bar = axes.inset_axes((1.03, 0, 0.045, 1))  # as tall as the map, whatever its shape
    axes.figure.colorbar(image, cax=bar, label=unit)


def _mark(axes: Any, grid: Grid, label: Label, marker: str, name: str) -> None:
    x, y = grid.centres[grid.index(label)]
    sizes = {"o": 170, "X": 70, "*": 110}
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

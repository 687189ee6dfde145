"""Figures: each function takes results and returns a Matplotlib figure; nothing is shown or saved here."""

from typing import Any

from privacygames.arrays import FloatArray
from privacygames.attacks import Attack
from privacygames.errors import InvalidProblem
from privacygames.mechanism.mechanism import Mechanism
from privacygames.problem import Problem
from privacygames.spaces import Grid, Label

Figure = Any
"""A ``matplotlib.figure.Figure``."""


def story(mechanism: Mechanism, problem: Problem, attack: Attack, secret: Label) -> Figure:
    """One release on the map: the prior, what is answered from ``secret``, and what an attacker then believes.

    The third panel shows the attacker after the likeliest answer from ``secret``.
    """
    from matplotlib.figure import Figure as MatplotlibFigure

    grid = problem.space
    if not isinstance(grid, Grid) or problem.observables is not grid:
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

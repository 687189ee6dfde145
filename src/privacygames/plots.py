"""Figures: each function takes results and returns a Matplotlib figure; nothing is shown or saved here."""

from collections.abc import Mapping, Sequence
from typing import Any, cast, overload

import numpy as np

from privacygames.analysis import Comparison, ComparisonRow
from privacygames.arrays import FloatArray
from privacygames.attacks import Attack
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.points import (
    PointAttack,
    PointBaseline,
    PointProblem,
    PointSampleable,
    measure_ratios,
    point_pairs,
    snapped,
)
from privacygames.policy_comparison import PolicyComparison, PolicyRow
from privacygames.presentation import cost_label, distortion_label, epsilon_label, needed
from privacygames.problem import Problem, Scale
from privacygames.spaces import Area, Grid, Label
from privacygames.validation import require_instance

__all__ = [
    "adversaries",
    "comparison",
    "policies",
    "ratio_against_distance",
    "story",
    "trade_off",
]


def __dir__() -> list[str]:
    return __all__


Figure = Any
"""A ``matplotlib.figure.Figure``."""

Mark = tuple[FloatArray, str, str]
"""A place on the map in kilometres, a marker, and what it stands for."""

COLOURS = "YlGnBu"
"""The colours of probabilities on maps, which grow darker, for colour-blind readers."""

DOT_AREAS = (14.0, 90.0)
"""Smallest and largest area of a point on a map, in square points."""

INK, SOFT = "0.25", "0.45"
"""Greys of marks and of labels beside them."""

ADVERSARY_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7e4e90")
CURVE_COLOURS = ("#c1121f", "#0072b2", "#009e73", "#b8860b", "#7e4e90", "0.4")
MARKERS = "os^Dv"
MARKER_DISTANCE = 0.22
"""Vertical distance of markers in one line, in lines."""

PANELS_IN_A_ROW = 3

SMALLEST_RATIO = 1e-12
"""Log-ratios below this are rounding errors of equal distributions."""

LEAK_COLOUR, SAFE_COLOUR, BAR_COLOUR = "#b5321a", "#1f6f50", "0.72"
"""Colours of what leaks, of what is kept, and of what is neither."""

PAGE_WIDTH = 11.4
"""Largest width of a figure in inches: a page in landscape format."""


@overload
def story(
    mechanism: PointSampleable, problem: PointProblem, attack: PointAttack, secret: tuple[float, float]
) -> Figure: ...
@overload
def story(mechanism: Mechanism, problem: Problem, attack: Attack, secret: Label) -> Figure: ...
def story(
    mechanism: Mechanism | PointSampleable,
    problem: Problem | PointProblem,
    attack: Attack | PointAttack,
    secret: Label | tuple[float, float],
) -> Figure:
    """One release on the map: the prior, the outputs for one secret, and the adversary's belief after an output.

    Args:
        mechanism: a mechanism for the points of an area; or one whose secrets and outputs are the cells of one grid.
        problem: its problem.
        attack: the adversary's attack, for their best guess.
        secret: the true place; the third panel is after its likeliest output.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.design(problem, epsilon=1.0)
    >>> attack = pg.points.optimal_attack(mechanism, problem)
    >>> [axes.get_title() for axes in pg.plots.story(mechanism, problem, attack, (0.6, 0.5)).axes[:3]]
    ['Belief before an output', 'Outputs for the true place', 'Belief after the output']
    """
    if isinstance(problem, PointProblem):
        if not (isinstance(problem.region, Area) and isinstance(mechanism, PointSampleable)):
            raise InvalidProblem("the story figure of points needs a mechanism for the points of an Area")
        if not isinstance(attack, PointAttack) or attack.guesses is None:
            raise InvalidProblem("the story figure of points needs an attack whose guesses are points")
        return _point_story(mechanism, problem, attack.guesses, np.array([secret], dtype=float))
    if not isinstance(mechanism, Mechanism) or not isinstance(attack, Attack):
        raise InvalidProblem("the mechanism and the attack are about points and the problem is not")
    return _grid_story(mechanism, problem, attack, cast("Label", secret))


def _point_story(mechanism: PointSampleable, problem: PointProblem, guesses: FloatArray, secret: FloatArray) -> Figure:
    """The story of a mechanism for points, on a map in kilometres."""
    region, prior = problem.region, problem.prior
    outputs = mechanism.probabilities(secret)[0]
    output = int(outputs.argmax())
    joint = prior.probabilities * mechanism.probabilities(prior.points)[:, output]
    place, released, guess = region.clamp(secret)[0], problem.outputs[output], region.project(guesses)[output]
    true_place: Mark = (place, "o", "true place")
    panels: list[tuple[str, FloatArray, FloatArray, str, list[Mark]]] = [
        ("Belief before an output", prior.xy, prior.probabilities, "probability π(x)", []),
        (
            "Outputs for the true place",
            problem.outputs,
            outputs,
            "probability p(o|x)",
            [true_place],
        ),
        (
            "Belief after the output",
            prior.xy,
            joint / joint.sum(),
            "probability of x given o",
            [true_place, (released, "X", "likeliest output"), (guess, "*", "best guess")],
        ),
    ]
    width, height = region.lengths
    figure, canvas = _story_canvas(height / width)
    for axes, (title, points, values, unit, marks) in zip(canvas, panels, strict=True):
        _dots(axes, points, values, unit, (width, height))
        _finish_map(axes, title, marks)
    return figure


def _grid_story(mechanism: Mechanism, problem: Problem, attack: Attack, secret: Label) -> Figure:
    """The story of a mechanism whose secrets and outputs are the cells of one grid."""
    grid = problem.space
    if not isinstance(grid, Grid) or problem.observables != grid:
        raise InvalidProblem("the story figure needs secrets and observables that are the cells of one Grid")
    outputs = mechanism.probabilities[grid.index(secret)]
    output = mechanism.observables.labels[int(outputs.argmax())]
    belief = mechanism.posterior(output, problem.prior)
    place, released, guess = (grid.centres[grid.index(each)] for each in (secret, output, attack.estimate(output)))
    true_place: Mark = (place, "o", "true place")
    panels: list[tuple[str, FloatArray, str, list[Mark]]] = [
        ("Belief before an output", problem.prior.probabilities, "probability π(s)", []),
        (
            "Outputs for the true place",
            outputs,
            "probability p(o|s)",
            [true_place, (released, "X", "likeliest output")],
        ),
        (
            "Belief after the output",
            belief.probabilities,
            "probability of s given o",
            [true_place, (guess, "*", "adversary's best guess")],
        ),
    ]
    figure, canvas = _story_canvas(grid.height / grid.width)
    for axes, (title, values, unit, marks) in zip(canvas, panels, strict=True):
        _heat(axes, grid, values, unit)
        _finish_map(axes, title, marks)
    return figure


def comparison(results: Comparison) -> Figure:
    """Mechanisms side by side, one line each: cost, realised ε, the error of each adversary's attacks, time.

    Colours stand for adversaries; the first mechanism's cost is also drawn as a line across the others.

    Args:
        results: what :func:`privacygames.compare` returns.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    >>> results = pg.compare(problem, pg.calibrated_baselines(problem, epsilon=1.0, names=["optimal", "uniform"]))
    >>> pg.plots.comparison(results).get_suptitle()
    '2 mechanisms for 3 secrets'
    """
    adversaries = list(dict.fromkeys(row.adversary for row in results.rows))
    rows = [row for row in results.rows if row.adversary == adversaries[0]]
    figure = _canvas((PAGE_WIDTH, 2.3 + 0.3 * len(rows)))
    figure.suptitle(f"{len(rows)} mechanisms for {results.problem.shape[0]} secrets", fontsize=12)
    panels = figure.subplots(1, 5, sharey=True, width_ratios=(3, 2.4, 2.4, 4.6, 1.8))
    label = cost_label(results.problem)
    _values_panel(panels[0], [row.report.cost for row in rows], "Cost on average", label, line=True)
    _values_panel(panels[1], [row.report.worst_cost for row in rows], "Cost, worst secret", label)
    _values_panel(
        panels[2],
        [_epsilon(row) for row in rows],
        "Realised epsilon",
        epsilon_label(results.problem, rows[0].report.within),
    )
    _attack_panel(panels[3], results, adversaries)
    _time_panel(panels[4], rows)
    panels[0].set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    panels[0].invert_yaxis()  # the first on top
    for axes in panels:
        axes.tick_params(labelsize=8)
        _tidy(axes)
    figure.legend(
        *panels[3].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8
    )
    return figure


def trade_off(curve: Comparison) -> Figure:
    """The trade-off curve: the cost at each value of a bound on the left, the other privacy measure on the right.

    Draws the first adversary. Where the bound is ε, the right panel shows the error of the optimal attack; where it is
    distortion, the realised ε of the mechanisms that guarantee one.

    Args:
        curve: what :func:`privacygames.trade_off` returns.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    >>> pg.plots.trade_off(pg.trade_off(problem, epsilons=[0.5, 1.0], names=["optimal"])).get_suptitle()
    'Cost of privacy, 3 secrets'
    """
    if any(row.target is None for row in curve.rows):
        raise InvalidProblem("this comparison is at one value only; draw what trade_off returns, or plots.comparison")
    rows = [row for row in curve.rows if row.adversary == curve.rows[0].adversary]
    by_epsilon = curve.target_kind == "epsilon"
    label = epsilon_label(curve.problem, rows[0].report.within)
    error = f"optimal attack: {distortion_label(curve.problem)}"
    asked, other = (label, error) if by_epsilon else (error, f"realised {label}")
    sides: list[tuple[str, str, Sequence[float | None]]]
    sides = [(cost_label(curve.problem), "Cost", [row.report.cost for row in rows])]
    beside = [row.report.distortion if by_epsilon else _epsilon(row) for row in rows]
    if any(value is not None for value in beside):
        sides.append((other, "Other privacy measure", beside))
    figure = _canvas((0.8 + 5.2 * len(sides), 4.3))
    figure.suptitle(f"Cost of privacy, {curve.problem.shape[0]} secrets", fontsize=12)
    for axes, (name, title, values) in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
        _curves(axes, rows, values)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel(f"bound: {asked}")
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
        _tidy(axes)
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def adversaries(results: Comparison) -> Figure:
    """The error of each adversary, one line each, as a share of their error without an output.

    A bar marks the guarantee against an adversary, by the first mechanism that has one; mechanisms to the left of it do
    not keep that guarantee.

    Args:
        results: what :func:`privacygames.compare` returns for adversaries of type :class:`privacygames.Adversary`.

    >>> problem = pg.Problem(pg.Prior.from_counts(pg.Categories("abc"), [3, 2, 1]))
    >>> mechanism = pg.design(problem, epsilon=1.0)
    >>> results = pg.compare(problem, {"optimal": mechanism}, adversaries=[pg.Adversary("knows the prior")])
    >>> [label.get_text() for label in pg.plots.adversaries(results).axes[0].get_yticklabels()]
    ['knows the prior']
    """
    rows = list({row.label: row for row in results.rows}.values())
    names = [result.adversary for result in rows[0].report.adversary_results]
    if not names:
        raise InvalidProblem("no adversaries were compared; give compare(…, adversaries=[…]) some of type Adversary")
    figure = _canvas((7.6, 1.7 + 0.5 * len(names)))
    axes = figure.subplots()
    guarantees = _guarantees(axes, rows, names)
    for position, row in enumerate(rows):
        shares = [100 * result.realised / (result.maximum or 1.0) for result in row.report.adversary_results]
        shift = MARKER_DISTANCE * (position - (len(rows) - 1) / 2)  # side by side
        style = {"color": CURVE_COLOURS[position % len(CURVE_COLOURS)], "marker": MARKERS[position % len(MARKERS)]}
        places = [place + shift for place in range(len(names))]
        axes.plot(shares, places, linestyle="none", markersize=7, label=row.label, **style)
        for name, share, place in zip(names, shares, places, strict=True):
            left = share < guarantees.get(name, 0.0) - 0.5  # keeps the number off the bar
            look = {"ha": "right" if left else "left", "va": "center", "fontsize": 7, "color": SOFT}
            axes.annotate(f"{share:.0f} %", (share, place), (-8 if left else 8, 0), textcoords="offset points", **look)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)  # the first on top
    axes.set_xlim(-2, 109)
    _titled(axes, "Errors of adversaries", "% of the error without an output")
    _tidy(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def policies(results: PolicyComparison) -> Figure:
    """What each policy for weeks of sharing costs, and what the best attacks get: a bar for each, with its number.

    The line of the recommended policy is bold. A bar is red where the policy does not keep what the panel is about, and
    grey where that is undecided.

    Args:
        results: what :func:`privacygames.compare_policies` returns.

    >>> visits = pg.traces.synthetic(users=1, days=6)
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
    >>> figure = pg.plots.policies(pg.compare_policies(visits, city, 1, budget=20.0, repeats=1))
    >>> [axes.get_title(loc="left") for axes in figure.axes][1:3]
    ['Homes found', 'Stays recalled']
    """
    rows = require_instance(results, PolicyComparison, "the comparison").rows
    figure = _canvas((PAGE_WIDTH, 2.2 + 0.42 * len(rows)))
    panels = figure.subplots(1, 5, sharey=True, gridspec_kw={"width_ratios": [1.1, 1.25, 1, 1.25, 1]})
    people = "one person" if results.people == 1 else f"{results.people} people"
    each = results.days / results.people
    figure.suptitle(
        f"What {each:.0f} days of sharing cost and give away: {people}, ε = {results.budget:g} per km a day",
        fontsize=12,
        x=0.01,
        ha="left",
    )
    metres = [row.cost for row in rows]
    _policy_bars(panels[0], metres, [f"{value:,.0f} m" for value in metres], [BAR_COLOUR] * len(rows))
    _policy_title(panels[0], "What it costs", "metres from the truth\nto what is shown")
    shares: tuple[tuple[str, str, list[float], list[str]], ...] = (
        (
            "Homes found",
            f"within 200 m, by the best attack;\nkept: at most {100 * results.home_chance:g} % expected",
            [row.home_200_m or 0.0 for row in rows],
            _marks(rows, "home"),
        ),
        (
            "Stays recalled",
            "within 250 m,\nof places stayed at",
            [row.stays_recalled or 0.0 for row in rows],
            [BAR_COLOUR] * len(rows),
        ),
        (
            "Place now",
            "true cell named\nby the best attack",
            [row.presence_known for row in rows],
            _marks(rows, "presence"),
        ),
        (
            "Not released",
            "the budget had no room:\nthe last output stayed",
            [row.refused for row in rows],
            [BAR_COLOUR] * len(rows),
        ),
    )
    for axes, (title, label, values, colours) in zip(panels[1:], shares, strict=True):
        percents = [100 * value for value in values]
        suffixes = {
            SAFE_COLOUR: ", kept",
            LEAK_COLOUR: ", not kept",
        }  # said in words, too: for a page in black and white
        judged = title in ("Homes found", "Place now")
        if judged:
            suffixes[BAR_COLOUR] = ", undecided"
        labels = [f"{value:.0f} %{suffixes.get(colour, '')}" for value, colour in zip(percents, colours, strict=True)]
        _policy_bars(axes, percents, labels, colours)
        axes.set_xlim(0, 175 if judged else 128)  # room for the longest label
        _policy_title(axes, title, label)
    habits = 100 * results.habits_known
    panels[3].axvline(habits, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
    panels[3].annotate(
        "from habits alone", (habits, -0.62), (3, 0), textcoords="offset points", fontsize=7, color=INK, va="center"
    )
    panels[0].set_yticks(range(len(rows)), [row.policy for row in rows], fontsize=10)
    panels[0].set_ylim(len(rows) - 0.45, -0.95)
    for row, label in zip(rows, panels[0].get_yticklabels(), strict=True):
        label.set_fontweight("bold" if row.policy == results.recommended else "normal")
    chosen = (
        "none keeps it" if results.recommended is None else f"{results.recommended!r} (bold) is the cheapest that does"
    )
    figure.supxlabel(
        f"To keep {results.matters}: {chosen}. Who seeks homes knows nothing of the person; who seeks the place now, "
        "their earlier days.",
        fontsize=8,
        x=0.01,
        ha="left",
        color=INK,
    )
    return figure


def _marks(rows: Sequence[PolicyRow], matter: str) -> list[str]:
    """The colours of bars: whether each policy keeps something, or it is undecided."""
    return [
        SAFE_COLOUR if matter in row.keeps else BAR_COLOUR if matter in row.undecided else LEAK_COLOUR for row in rows
    ]


def _policy_bars(axes: Any, values: Sequence[float], labels: Sequence[str], colours: Sequence[str]) -> None:
    """A horizontal bar for each policy, with its number at the end."""
    axes.barh(range(len(values)), values, color=colours, height=0.62)
    for place, (value, label) in enumerate(zip(values, labels, strict=True)):
        axes.annotate(label, (value, place), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, 1.45 * max(*values, 1e-9))
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _policy_title(axes: Any, title: str, label: str) -> None:
    axes.set_title(title, fontsize=10, loc="left", fontweight="bold")
    axes.set_xlabel(label, fontsize=8, loc="left", color=SOFT)


def ratio_against_distance(
    mechanisms: Mapping[str, PointSampleable | PointBaseline | Mechanism],
    *,
    epsilon: float | None = None,
    pairs: int = 1200,
    seed: int = 0,
) -> Figure:
    """Log-ratios between points against their distance, for random pairs of points, each mechanism in a panel.

    The middle of many pairs lies on a border between cells. A guarantee between any two points keeps every pair below
    the line ε · distance. A mechanism for cells does not: its pairs across a border have the same log-ratio however
    close they are. Pairs with equal distributions are not drawn, for the axes are logarithmic.

    Args:
        mechanisms: by name, mechanisms for points over one region, or mechanisms for the cells of a grid over it, whose
            points are replaced by their cells.
        epsilon: the slope of the line; by default the guarantee of the first mechanism for points.
        pairs: the number of pairs.
        seed: of the random pairs.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> figure = pg.plots.ratio_against_distance({"ours": pg.design(problem, epsilon=0.5)}, pairs=50)
    >>> figure.axes[0].get_title(loc="left")
    'ours'
    """
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        raise InvalidProblem("mechanisms are given by name: a dict from names to mechanisms, at least one")
    regions = [each.secrets for each in mechanisms.values() if not isinstance(each, Mechanism)]
    region = regions[0] if regions else None
    drawn = {name: snapped(each, region) if isinstance(each, Mechanism) else each for name, each in mechanisms.items()}
    known = [each.bounds.epsilon for each in drawn.values() if isinstance(each, PointSampleable)]
    slope = next((value for value in [epsilon, *known] if value is not None), None)
    pair = point_pairs(list(drawn.values()), pairs, seed=seed)
    unit = Scale("", next(iter(drawn.values())).secrets.unit)
    columns = min(len(drawn), PANELS_IN_A_ROW)
    rows = -(-len(drawn) // columns)
    figure = _canvas((1.0 + 3.4 * columns, 0.6 + 3.3 * rows))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(drawn) :]:
        axes.set_visible(False)
    for position, (axes, (name, mechanism)) in enumerate(zip(panels, drawn.items(), strict=False)):
        measured = measure_ratios(mechanism, pair)
        shown = (measured.log_ratios > SMALLEST_RATIO) & np.isfinite(measured.log_ratios)
        style = {"s": 7, "linewidths": 0, "alpha": 0.6, "color": CURVE_COLOURS[position % len(CURVE_COLOURS)]}
        axes.scatter(measured.distances[shown], measured.log_ratios[shown], **style)
        if slope is not None:
            ends = np.array([measured.distances.min(), measured.distances.max()])
            axes.plot(ends, slope * ends, color=INK, linewidth=1.2, label=f"ε · distance, ε = {slope:g}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(name, fontsize=10, loc="left")
        if position + columns >= len(drawn):  # nothing below it
            axes.set_xlabel(unit.amount("distance of two points,").rstrip(","))
            axes.tick_params(labelbottom=True)
        _tidy(axes)
    for axes in panels[::columns]:
        axes.set_ylabel("largest log-ratio of an output")
    if slope is not None:
        panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def _guarantees(axes: Any, rows: list[ComparisonRow], names: list[str]) -> dict[str, float]:
    """Draw a bar for each adversary with a guarantee; returns its share of the error without an output, by name."""
    shares = {
        result.adversary: 100 * result.guaranteed / (result.maximum or 1.0)
        for row in reversed(rows)
        for result in row.report.adversary_results
        if result.guaranteed is not None
    }
    for name, share in shares.items():
        line = names.index(name)
        axes.vlines(share, line - 0.36, line + 0.36, color=INK, linewidth=2.2, zorder=1)
    if shares:
        axes.plot([], [], color=INK, linewidth=2.2, label="guaranteed")
    return shares


def _curves(axes: Any, rows: list[ComparisonRow], values: Sequence[float | None]) -> None:
    """A curve for each mechanism: the values against the bound."""
    for position, name in enumerate(dict.fromkeys(row.mechanism_name for row in rows)):
        points = [
            (row.target or 0.0, value)
            for row, value in zip(rows, values, strict=True)
            if row.mechanism_name == name and value is not None
        ]
        if points:
            style = {"color": CURVE_COLOURS[position % len(CURVE_COLOURS)], "marker": MARKERS[position % len(MARKERS)]}
            axes.plot(*zip(*sorted(points), strict=True), markersize=5, label=name, **style)


def _epsilon(row: ComparisonRow) -> float | None:
    """The realised ε; None where none is guaranteed, since it then is an accident of rounding."""
    report = row.report
    if not report.epsilon_guaranteed:
        return None
    return report.epsilon if report.epsilon_within is None else report.epsilon_within


def _values_panel(axes: Any, values: list[Any], title: str, label: str, *, line: bool = False) -> None:
    """A dot for each mechanism with its number beside it; a text where there is no value."""
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


def _attack_panel(axes: Any, results: Comparison, adversaries: list[str]) -> None:
    """The optimal attack filled, the Bayesian hollow; the first adversary's error without an output as a line."""
    for position, adversary in enumerate(adversaries):
        rows = [row for row in results.rows if row.adversary == adversary]
        colour, marker = ADVERSARY_COLOURS[position % len(ADVERSARY_COLOURS)], "osD^v"[position % 5]
        shift = MARKER_DISTANCE * (position - (len(adversaries) - 1) / 2)  # side by side
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
    blind = results.rows[0].report.distortion_from_prior
    axes.axvline(blind, color=SOFT, linewidth=1, linestyle="--", label=f"{adversaries[0]}: guess without an output")
    axes.set_xlim(left=min(0.0, -0.02 * axes.get_xlim()[1]))
    _titled(axes, "Average error of attacks", distortion_label(results.problem))


def _time_panel(axes: Any, rows: list[ComparisonRow]) -> None:
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


def _story_canvas(shape: float) -> tuple[Figure, Any]:
    """A figure with three maps side by side, given their height as a share of their width."""
    figure = _canvas((PAGE_WIDTH, 1.5 + 2.6 * shape))
    figure.suptitle("One release on the map", fontsize=12)
    return figure, figure.subplots(1, 3)


def _heat(axes: Any, grid: Grid, values: FloatArray, unit: str) -> None:
    """The cells of a grid, coloured by their values."""
    image = axes.imshow(
        values.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=(0, grid.width, 0, grid.height),
        cmap=COLOURS,
        vmin=0.0,
        vmax=max(float(values.max()), 1e-12),
    )
    _colour_bar(axes, image, unit)


def _dots(axes: Any, points: FloatArray, values: FloatArray, unit: str, size: tuple[float, float]) -> None:
    """Points on the map, coloured by their values, the larger values on top."""
    order = values.argsort(kind="stable")
    largest = max(float(values.max()), 1e-12)
    area = float(np.clip(3000 / len(points), *DOT_AREAS))
    equal = bool(np.ptp(values) <= 1e-9 * largest)
    colours = {"color": INK} if equal else {"c": values[order], "cmap": COLOURS, "vmin": 0.0, "vmax": largest}
    style = {"s": area, "edgecolors": SOFT, "linewidths": 0.4, "clip_on": False}
    image = axes.scatter(*points[order].T, **colours, **style)
    axes.set_xlim(0, size[0])
    axes.set_ylim(0, size[1])
    axes.set_aspect("equal")
    if equal:  # a scale of one colour would say nothing
        image.set_label(f"each: {unit} = {largest:.2g}")
        _legend(axes)
    else:
        _colour_bar(axes, image, unit)


def _colour_bar(axes: Any, image: Any, unit: str) -> None:
    bar = axes.inset_axes((1.03, 0, 0.045, 1))  # as tall as the map
    axes.figure.colorbar(image, cax=bar).set_label(unit, fontsize=8)
    bar.tick_params(labelsize=7)


def _finish_map(axes: Any, title: str, marks: list[Mark]) -> None:
    """The title, the axes' names, and marks with a legend."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("km east", fontsize=9)
    axes.set_ylabel("km north", fontsize=9)
    axes.tick_params(labelsize=8)
    for place, marker, name in marks:
        _mark(axes, place, marker, name)
    if marks:
        _legend(axes)


def _legend(axes: Any) -> None:
    """A legend below the map, in one line."""
    look = {"ncols": 3, "frameon": False, "fontsize": 8, "columnspacing": 1.0, "handletextpad": 0.3}
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), **look)


def _mark(axes: Any, place: FloatArray, marker: str, name: str) -> None:
    x, y = place
    sizes = {"o": 110, "X": 60, "*": 90}
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

"""Scenario 1: the three mechanisms at the same distortion privacy."""

import numpy as np

from privacygames.jobs import Table, where
from privacygames_study.figures.captions import (
    at_most,
    count_of,
    diagonal_sentence,
    median_range,
    parameter,
    reused_sentence,
    rounded,
)
from privacygames_study.figures.plan import FigurePlan, Tables
from privacygames_study.figures.rows import MECHANISMS, SETTING, columns, distinct, done, side_by_side, wide
from privacygames_study.figures.style import (
    MARKS,
    REFERENCE,
    SQUARE,
    Canvas,
    canvas,
    colour_scale,
    diagonal_panel,
    legend,
    panel,
)

PRIVACY = "distortion privacy (km)"
GOAL_KM = 1.0
"""Distortion privacy, in km, below which the paper's users converge."""


def _privacy_rows(tables: Tables) -> Table:
    entropy = {row["user"]: row.get("entropy_bits") for row in tables.get("users", [])}
    rows = where(done(tables["scenario-1"]), mechanism="differential")
    columns_taken = ("user", "epsilon", "privacy_km")
    return [
        {**{name: row[name] for name in columns_taken}, "prior_entropy_bits": entropy.get(row["user"])} for row in rows
    ]


def _paint_privacy(rows: Table) -> Canvas:
    figure = canvas()
    axes = panel(figure.subplots(), "ε of the differential mechanism (per km)", f"{PRIVACY},\noptimal attack")
    (entropies,) = columns(rows, "prior_entropy_bits")
    scale = colour_scale(figure, axes, entropies, "entropy of the user's prior (bits)") if len(entropies) else None
    for (user,) in distinct(rows, "user"):
        own = where(rows, user=user)
        epsilon, privacy = columns(own, "epsilon", "privacy_km")
        (entropy,) = columns(own[:1], "prior_entropy_bits")
        colour = scale.to_rgba(entropy[0]) if scale is not None and len(entropy) else MARKS["differential"].colour
        order = np.argsort(epsilon)
        axes.plot(epsilon[order], privacy[order], color=colour, linewidth=1.4, marker="o", markersize=3.5)
    epsilons = columns(rows, "epsilon")[0]
    axes.set_xticks(np.unique(epsilons))
    axes.set_ylim(bottom=0)
    if columns(rows, "privacy_km")[0].max() > GOAL_KM:
        axes.axhline(GOAL_KM, **REFERENCE)
    return figure


def _see_privacy(rows: Table) -> str:
    epsilon, privacy = columns(rows, "epsilon", "privacy_km")
    low, high = float(epsilon.min()), float(epsilon.max())
    first, last = privacy[epsilon == low], privacy[epsilon == high]
    line = " (dashed)" if privacy.max() > GOAL_KM else ""
    goal = f"there {count_of(last < GOAL_KM)} users are below {parameter(GOAL_KM)} km{line}"
    if low == high:
        return f"At ε = {parameter(low)} per km it is {median_range(last, 'km')}; {goal}."
    return (
        f"The median falls from {rounded(float(np.median(first)))} km at ε = {parameter(low)} per km to "
        f"{rounded(float(np.median(last)))} km at ε = {parameter(high)}; {goal}."
    )


def _paint_cost(rows: Table) -> Canvas:
    figure = canvas()
    axes = panel(figure.subplots(), f"{PRIVACY}, optimal attack", "utility cost\n(share of changed outputs)")
    for name in MECHANISMS:
        MARKS[name].scatter(axes, *columns(rows, f"{name}_privacy_km", f"{name}_cost"))
    axes.set_ylim(-0.02, max(1.02, axes.get_ylim()[1]))
    axes.set_xlim(left=0)
    legend(figure, axes.collections)
    return figure


def _see_cost(rows: Table) -> str:
    sentences = []
    differential, distortion = columns(rows, "differential_cost", "distortion_cost")
    if len(differential):
        sentences.append(
            "At the same distortion privacy, differential costs "
            f"{median_range(differential - distortion)} more than distortion."
        )
    differential, joint = columns(rows, "differential_cost", "joint_cost")
    if len(joint):
        sentences.append(f"Joint and differential differ by {at_most(float(np.abs(joint - differential).max()))}.")
    return " ".join(filter(None, (*sentences, reused_sentence(rows))))


def _paint_bayesian(rows: Table) -> Canvas:
    figure = canvas((5.0, 4.3))
    x, y, epsilon = columns(rows, "distortion_bayesian_km", "differential_bayesian_km", "epsilon")
    names = ("with distortion obfuscation", "with differential obfuscation")
    axes = diagonal_panel(figure.subplots(), (f"{PRIVACY}\n{name}" for name in names), (x, y))
    scale = colour_scale(figure, axes, epsilon, "ε (per km)", ticks=np.unique(epsilon))
    axes.scatter(x, y, s=28, c=scale.to_rgba(epsilon), edgecolors="white", linewidths=0.4, zorder=3)
    return figure


def _see_bayesian(rows: Table) -> str:
    x, y = columns(rows, "distortion_bayesian_km", "differential_bayesian_km")
    return f"Above the diagonal differential obfuscation holds up better. {diagonal_sentence(x, y)}"


def _paint_attacks(rows: Table) -> Canvas:
    figure = canvas(SQUARE)
    points = {name: columns(rows, f"{name}_privacy_km", f"{name}_bayesian_km") for name in MECHANISMS}
    values = [array for pair in points.values() for array in pair]
    names = ("optimal attack", "Bayesian attack")
    axes = diagonal_panel(figure.subplots(), (f"{PRIVACY}, {name}" for name in names), values)
    for name, (x, y) in points.items():
        MARKS[name].scatter(axes, x, y, size=22)
    legend(figure, axes.collections)
    return figure


def _see_attacks(rows: Table) -> str:
    points = {name: columns(rows, f"{name}_privacy_km", f"{name}_bayesian_km") for name in MECHANISMS}
    excess = {name: bayesian - optimal for name, (optimal, bayesian) in points.items() if len(optimal)}
    sentences = "; ".join(f"{name} {median_range(values, 'km')}" for name, values in excess.items())
    apart = f"On the diagonal both do equally well. How much further off the Bayesian attack is: {sentences}."
    return " ".join(filter(None, (apart, reused_sentence(rows))))


SCENARIO_1 = (
    FigurePlan(
        "privacy-epsilon",
        "Privacy against ε",
        "scenario-1",
        ("user", "epsilon", "privacy_km", "prior_entropy_bits"),
        "Distortion privacy that the optimal differential mechanism reaches against the optimal attack; "
        "one line per user.",
        _privacy_rows,
        _paint_privacy,
        _see_privacy,
    ),
    FigurePlan(
        "cost-privacy",
        "Cost against privacy",
        "scenario-1",
        (*SETTING, *wide(("privacy_km", "cost")), "joint_reused"),
        "Utility cost and distortion privacy of the three optimal mechanisms; a point per user and ε.",
        lambda tables: side_by_side(tables["scenario-1"], SETTING, ("privacy_km", "cost", "reused")),
        _paint_cost,
        _see_cost,
    ),
    FigurePlan(
        "bayesian",
        "Two mechanisms against the Bayesian attack",
        "scenario-1",
        (*SETTING, *wide(("bayesian_km",), MECHANISMS[:2])),
        "Distortion privacy against the Bayesian attack when both mechanisms do equally well against the optimal one; "
        "a point per user and ε.",
        lambda tables: side_by_side(
            tables["scenario-1"], SETTING, ("bayesian_km",), needs=wide(("bayesian_km",), MECHANISMS[:2])
        ),
        _paint_bayesian,
        _see_bayesian,
    ),
    FigurePlan(
        "attacks",
        "Bayesian against optimal attack",
        "scenario-1",
        (*SETTING, *wide(("privacy_km", "bayesian_km")), "joint_reused"),
        "Distortion privacy against the Bayesian attack and against the optimal attack; "
        "a point per mechanism, user and ε.",
        lambda tables: side_by_side(tables["scenario-1"], SETTING, ("privacy_km", "bayesian_km", "reused")),
        _paint_attacks,
        _see_attacks,
    ),
)

"""``privacygames demo``: design, attack and measure a mechanism for a resident of a synthetic city."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, check_figure_file, print_json, print_rows, working, write_figure

EPSILON = 1.2
"""Largest epsilon of the demo, per km."""

DISTORTION = 1.3
"""Least expected error of the optimal attack in the demo, in km."""


def demo(
    figure: Annotated[Path | None, typer.Option(help="Also write a figure (PNG, PDF or SVG) there.")] = None,
    as_json: Json = False,
) -> None:
    """Protect a resident of a synthetic city: prior, joint design, attack, report, figure."""
    from privacygames import attacks
    from privacygames.analysis import evaluate
    from privacygames.beliefs import Prior
    from privacygames.designer import design
    from privacygames.problem import Problem
    from privacygames.traces import demo_resident

    check_figure_file(figure)
    with working("designing for 35 cells …"):
        city, visits = demo_resident()
        problem = Problem(Prior.from_visits(city, visits), cost="hamming", distance="euclidean")
        mechanism = design(problem, epsilon=EPSILON, distortion=DISTORTION)
        attack, report = attacks.optimal(mechanism, problem), evaluate(mechanism, problem)
    certificate = mechanism.certificate
    if figure is not None:
        from privacygames import plots

        workplace = city.labels[int(problem.prior.probabilities.argsort()[-2])]
        write_figure(plots.story(mechanism, problem, attack, workplace), figure)
    if as_json:
        print_json({"report": report.to_dict(), "certificate": certificate.to_dict()})
        return
    bounds, scale = certificate.bounds, certificate.scale
    epsilon = scale.epsilon(f"{bounds.epsilon:g}")
    print_rows(
        "A synthetic resident, 7 × 5 cells of 0.9 km",
        [
            ("required", f"epsilon ≤ {epsilon}, distortion ≥ {bounds.problem_distortion:g} km"),
            *report.rows(),
        ],
    )
    typer.echo(
        f"No mechanism with these guarantees costs less than {certificate.bound:.6f} "
        f"(this one: {certificate.cost:.6f})."
    )
    if figure is not None:
        typer.echo(f"The figure is in {figure}.")
    typer.echo("To change the bounds yourself, on a map: privacygames studio (or make studio).")

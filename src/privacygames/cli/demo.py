"""``privacygames demo``: design, attack and compare a mechanism for the coordinates of a synthetic resident."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, check_figure_file, print_json, print_rows, working, write_figure

EPSILON = 1.2
"""Largest epsilon of the demo, per km."""

DISTORTION = 0.9
"""Least expected error of any attack in the demo, in km."""

COLUMNS, ROWS = 7, 5
"""The outputs are the centres of so many squares of 0.9 km."""

WORKPLACE = (2.4, 3.9)
"""The place that the figure shows outputs for, in km: the resident's second most frequent one."""

COMPARED = ("optimal", "planar-laplace", "planar-laplace+remap", "exponential+remap", "snapped-grid")
"""The design and the known mechanisms that it is compared with."""


def demo(
    figure: Annotated[Path | None, typer.Option(help="Also write a figure (PNG, PDF or SVG) there.")] = None,
    as_json: Json = False,
) -> None:
    """Protect the coordinates of a resident of a synthetic city: prior, design, attack, comparison, figure."""
    from privacygames.analysis import compare, evaluate
    from privacygames.beliefs import PointPrior
    from privacygames.designer import design
    from privacygames.points import PointProblem, optimal_attack
    from privacygames.spaces import Grid
    from privacygames.traces import demo_resident

    check_figure_file(figure)
    with working("designing for points …"):
        city, visits = demo_resident()
        outputs = Grid(COLUMNS, ROWS, city.width, city.height)
        problem = PointProblem(PointPrior(city, visits), outputs)
        mechanism = design(problem, epsilon=EPSILON, distortion=DISTORTION)
        report = evaluate(mechanism)
        comparison = compare(problem, {"optimal": mechanism}, epsilon=EPSILON, names=COMPARED)
    certificate = mechanism.certificate
    if figure is not None:
        from privacygames import plots

        write_figure(plots.story(mechanism, problem, optimal_attack(mechanism, problem), WORKPLACE), figure)
    if as_json:
        values = {"report": report.to_dict(), "certificate": certificate.to_dict(), "comparison": comparison.to_dict()}
        print_json(values)
        return
    print_rows(
        f"A synthetic resident: {len(visits)} visits in {city.width:g} × {city.height:g} km, {len(outputs)} outputs",
        [("required", f"epsilon ≤ {EPSILON:g} {certificate.per}, distortion ≥ {DISTORTION:g} km"), *report.rows()],
    )
    typer.echo(
        f"No mechanism with these guarantees, of whatever form, costs less than {certificate.bound:.4f} km "
        f"(this one: {certificate.cost:.4f} km).\n"
    )
    typer.echo(comparison)
    if figure is not None:
        typer.echo(f"\nThe figure is in {figure}.")
    typer.echo("\nTo change the bounds yourself, on a map: privacygames studio (or make studio).")

"""``privacygames demo``: the main job, end to end, on a made-up city."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, check_figure_file, print_json, print_rows, working, write_figure


def demo(
    figure: Annotated[Path | None, typer.Option(help="Also write a figure (PNG, PDF or SVG) there.")] = None,
    as_json: Json = False,
) -> None:
    """Protect an invented resident of a synthetic city: prior, joint design, attack, report, figure."""
    from privacygames.study import demo_city

    check_figure_file(figure)
    with working("designing for 35 cells …"):
        made = demo_city.run()
    if figure is not None:
        from privacygames import plots

        write_figure(plots.story(made.mechanism, made.problem, made.attack, made.secret), figure)
    if as_json:
        print_json({"report": made.report.to_dict(), "certificate": made.mechanism.certificate.to_dict()})
        return
    bounds, scale = made.mechanism.certificate.bounds, made.mechanism.certificate.scale
    epsilon = scale.epsilon(f"{bounds.epsilon:g}")
    print_rows(
        "A synthetic resident, 7 × 5 cells of 0.9 km",
        [
            ("asked for", f"epsilon ≤ {epsilon}, distortion ≥ {bounds.distortion:g} km"),
            *made.report.rows(),
        ],
    )
    certificate = made.mechanism.certificate
    typer.echo(
        f"No mechanism with these promises costs less than {certificate.bound:.6f} (this one: {certificate.cost:.6f})."
    )
    if figure is not None:
        typer.echo(f"The figure is in {figure}.")
    typer.echo("To turn the knobs yourself, on a map: privacygames studio (or make studio).")

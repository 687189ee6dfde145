"""``privacygames compare``: known mechanisms, and yours, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.output import Json, check_figure_file, check_folder, print_json, working, write_figure
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.analysis import Comparison
    from privacygames.beliefs import Prior
    from privacygames.spaces import Space


def compare(
    problem: Annotated[Path, typer.Argument(help="The problem file (TOML).")],
    epsilon: Annotated[list[float] | None, typer.Option(help="Match at this; several: the trade-off curve.")] = None,
    distortion: Annotated[list[float] | None, typer.Option(help="Match at this; several: the curve.")] = None,
    within: Annotated[float | None, typer.Option(help="Threshold form: epsilon up to this distance.")] = None,
    mechanism: Annotated[list[str] | None, typer.Option(help="Only these, by name; may be repeated.")] = None,
    file: Annotated[list[Path] | None, typer.Option(help="Also this mechanism file; may be repeated.")] = None,
    adversary: Annotated[
        list[Path] | None, typer.Option(help="Also an adversary with this problem file's prior; may be repeated.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Also write a figure (PNG, PDF or SVG) there.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Also write every number as CSV there.")] = None,
    as_json: Json = False,
) -> None:
    """Compare known mechanisms, all matched at one epsilon or one distortion: cost, attacks, time to design.

    What is matched comes from the options, or else from the problem file's bounds. Given several times, it draws the
    trade-off curve (of the optimal mechanism, and of others named by --mechanism). Mechanisms: optimal, spanner,
    planar-laplace, exponential, geometric, staircase, randomised-response (these five also with +remap), uniform,
    constant; by default all that suit the problem.
    """
    from privacygames.analysis import compare as run
    from privacygames.analysis import contenders, trade_off
    from privacygames.mechanism import load
    from privacygames.presentation import compared_in_words
    from privacygames.problem import read_problem

    check_figure_file(figure)
    if table is not None:
        check_folder(table)
    described, bounds = read_problem(problem)
    kind, values = _matched(epsilon, distortion, bounds)
    within = bounds.get("within") if within is None and kind == "epsilon" else within
    adversaries = _adversaries(described.space, described.prior, adversary or [])
    with working("comparing …") as show:
        if len(values) > 1:
            if file:
                raise InvalidProblem("--file goes with a single value to match at")
            points = {f"{kind}s": values}
            made = trade_off(
                described,
                **points,
                names=mechanism or ["optimal"],
                adversaries=adversaries,
                within=within,
                progress=show,
            )
        else:
            matched = contenders(described, **{kind: values[0]}, within=within, names=mechanism, progress=show)
            given = {each.name: load(each) for each in file or []}
            made = run(described, {**matched, **given}, adversaries=adversaries, within=within, progress=show)
    _write(made, figure, table, curve=len(values) > 1)
    if as_json:
        print_json({"matched": {kind: values}} | made.to_dict())
        return
    typer.echo(f"{problem.name}, matched at {kind} {', '.join(f'{each:g}' for each in values)}\n")
    typer.echo(
        f"{made.table()}\n\n{compared_in_words(made)}"
    )  # plain text: a terminal too narrow for it should not cut names
    for path in (figure, table):
        if path is not None:
            typer.echo(f"Wrote {path}.")


def _matched(
    epsilon: list[float] | None, distortion: list[float] | None, bounds: dict[str, float]
) -> tuple[str, list[float]]:
    """What to match at: from the options, or else from the file."""
    given = {"epsilon": epsilon, "distortion": distortion}
    if not (epsilon or distortion):
        given = {name: [bounds[name]] for name in given if name in bounds}
    found = [(name, values) for name, values in given.items() if values]
    if len(found) != 1:
        raise InvalidProblem("mechanisms are matched at one thing: give --epsilon or --distortion")
    return found[0]


def _adversaries(space: "Space", prior: "Prior", files: list[Path]) -> "dict[str, Prior]":
    from privacygames.analysis import usual_adversaries
    from privacygames.problem import read_prior

    return usual_adversaries(prior) | {path.stem: read_prior(path, space) for path in files}


def _write(made: "Comparison", figure: Path | None, table: Path | None, *, curve: bool) -> None:
    if table is not None:
        made.to_csv(table)
    if figure is not None:
        from privacygames.presentation import plots

        write_figure(plots.trade_off(made) if curve else plots.comparison(made), figure)

"""``privacygames find``: the smallest epsilon, the largest distortion or the least cost, with a proof."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.bounds_options import BoundOptions, merged_distortion, seeks_another, takes_bounds
from privacygames.cli.output import Json, check_new_file, explained, print_json, print_rows, working


class Objective(StrEnum):
    """The quantity to optimise."""

    EPSILON = "epsilon"
    DISTORTION = "distortion"
    COST = "cost"


@takes_bounds
def find(
    problem: Annotated[Path, typer.Argument(help="The problem file (TOML).")],
    what: Annotated[Objective, typer.Argument(help="The smallest epsilon, the largest distortion or the least cost.")],
    bounds: BoundOptions,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DISTORTION",
            help="Least error of an adversary of the problem file; to find the largest distortion: NAME alone.",
        ),
    ] = None,
    precision: Annotated[float, typer.Option(help="Relative precision of the smallest epsilon.")] = 1e-3,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write the mechanism to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Find the best value of a parameter under the given bounds, its mechanism, and the proof that none is better.

    Bounds given here are added to those in the problem file, or replace those of the same name; the file's bound on the
    parameter to find is ignored.
    """
    from privacygames.analysis import tightest_bound as search
    from privacygames.mechanism import Disclosure
    from privacygames.presentation import explain
    from privacygames.problem import ProblemFile

    if out is not None:
        check_new_file(out, force=force)
    document = ProblemFile(problem)
    from_file = document.bounds
    distortion, number = from_file.pop("distortion", None), bounds.get("distortion")
    from_file.pop("cost_at_most" if what is Objective.COST else what.value, None)
    merged = from_file | bounds
    adversaries, sought = document.adversaries, what is Objective.DISTORTION
    if not (sought and number is not None) or seeks_another(against or [], adversaries):
        merged["distortion"] = merged_distortion(
            distortion, number, adversaries, against or [], sought=sought, floor=False
        )
    with working(f"looking for the best {what.value} …") as show:
        result = search(document.problem, what.value, **merged, precision=precision, progress=show)
    if out is not None:
        result.mechanism.save(out)
    explanation = explain(result.report, document.problem, adversaries=result.mechanism.bounds.named_adversaries)
    if as_json:
        print_json(result.to_dict() | explained(explanation))
        return
    print_rows(problem.name, result.rows())
    typer.echo(explanation)
    if out is not None:
        typer.echo(f"The mechanism is in {out} ({Disclosure.PRIOR.value}).")

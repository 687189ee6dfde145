"""``privacygames design``: from a problem file to a certified mechanism file."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, check_new_file, print_json, print_rows, working


def design(
    problem: Annotated[Path, typer.Argument(help="The problem file (TOML).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the mechanism file.")],
    epsilon: Annotated[float | None, typer.Option(help="Differential privacy, per unit of distance.")] = None,
    distortion: Annotated[float | None, typer.Option(help="Least error of the best attack.")] = None,
    within: Annotated[float | None, typer.Option(help="Threshold form: epsilon up to this distance.")] = None,
    cost_at_most: Annotated[float | None, typer.Option(help="Most distortion for at most this cost.")] = None,
    worst_case: Annotated[bool | None, typer.Option(help="Count the worst secret's cost.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Give up after this many seconds.")] = None,
    multipliers: Annotated[bool, typer.Option(help="Keep the proof of optimality in the file.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Design the mechanism that costs least for the problem and bounds in PROBLEM, and write it to a file.

    A bound given here is added to those in the problem file, or replaces the one of the same name.
    """
    from privacygames.designer import design as run
    from privacygames.problem import read_problem

    given = {
        "epsilon": epsilon,
        "distortion": distortion,
        "within": within,
        "cost_at_most": cost_at_most,
        "worst_case": worst_case,
    }
    described, bounds = read_problem(problem)
    bounds |= {name: value for name, value in given.items() if value is not None}
    check_new_file(out, force=force)
    secrets, observables = described.shape
    with working(f"designing: {secrets} secrets, {observables} observables …") as show:
        mechanism = run(described, **bounds, time_limit=time_limit, progress=show)
    mechanism.save(out, multipliers=multipliers)
    if as_json:
        print_json({"file": str(out), "certificate": mechanism.certificate.to_dict()})
    else:
        print_rows(f"Wrote {out}", mechanism.certificate.rows())

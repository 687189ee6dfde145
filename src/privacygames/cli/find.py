"""``privacygames find``: the smallest epsilon, the largest distortion or the least cost, with a proof."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.bounds_options import merged_distortion, seeks_another
from privacygames.cli.output import Json, check_new_file, explained, print_json, print_rows, working


class Objective(StrEnum):
    """What can be result."""

    EPSILON = "epsilon"
    DISTORTION = "distortion"
    COST = "cost"


def find(
    problem: Annotated[Path, typer.Argument(help="The problem file (TOML).")],
    what: Annotated[Objective, typer.Argument(help="The smallest epsilon, the largest distortion or the least cost.")],
    cost_at_most: Annotated[float | None, typer.Option(help="The largest acceptable cost.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Differential privacy to keep.")] = None,
    distortion: Annotated[float | None, typer.Option(help="Least error of the best attack to keep.")] = None,
    within: Annotated[float | None, typer.Option(help="Threshold form: epsilon up to this distance.")] = None,
    worst_case: Annotated[bool | None, typer.Option(help="Count the worst secret's cost.")] = None,
    worst_cost_at_most: Annotated[float | None, typer.Option(help="No secret's cost is above this.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DISTORTION",
            help="Error of an adversary of the problem file to keep; for the largest distortion, NAME alone: whose.",
        ),
    ] = None,
    precision: Annotated[float, typer.Option(help="How close, relatively, to find epsilon.")] = 1e-3,
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

    options = {
        "epsilon": epsilon,
        "distortion": distortion,
        "cost_at_most": cost_at_most,
        "within": within,
        "worst_case": worst_case,
        "worst_cost_at_most": worst_cost_at_most,
    }
    if out is not None:
        check_new_file(out, force=force)
    document = ProblemFile(problem)
    bounds = document.bounds
    from_file = bounds.pop("distortion", None)
    bounds.pop("cost_at_most" if what is Objective.COST else what.value, None)
    bounds |= {name: value for name, value in options.items() if value is not None}
    adversaries, sought = document.adversaries, what is Objective.DISTORTION
    if not (sought and distortion is not None) or seeks_another(against or [], adversaries):
        bounds["distortion"] = merged_distortion(
            from_file, distortion, adversaries, against or [], sought=sought, floor=False
        )
    with working(f"looking for the best {what.value} …") as show:
        result = search(document.problem, what.value, **bounds, precision=precision, progress=show)
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

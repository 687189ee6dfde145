"""``privacygames evaluate``: measure a mechanism."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.bounds_options import by_name, known_adversaries
from privacygames.cli.output import Json, explained, print_json, print_rows
from privacygames.cli.point_reports import evaluate_points
from privacygames.errors import InvalidProblem


def evaluate(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    adversary: Annotated[Path | None, typer.Option(help="A problem file with the adversary's prior.")] = None,
    against: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these adversaries, by name; may be repeated.")
    ] = None,
    within: Annotated[float | None, typer.Option(help="Also report epsilon up to this distance.")] = None,
    as_json: Json = False,
) -> None:
    """Measure cost and privacy of a mechanism: against the optimal and Bayesian attacks, and its realised epsilon.

    Adversaries that the mechanism has a guarantee against, and those in the [[adversary]] tables of --adversary's
    file, are listed with the error that is guaranteed, realised and possible against each. Where the secrets are
    points, attacks may guess any point, and log-ratios are measured at pairs of points.
    """
    from privacygames.analysis import ADVERSARY_HEADINGS, adversary_cells
    from privacygames.analysis import evaluate as measure
    from privacygames.mechanism import Mechanism
    from privacygames.mechanism_files import load_certified
    from privacygames.presentation import explain
    from privacygames.problem import ProblemFile

    mechanism = load_certified(file)
    if not isinstance(mechanism, Mechanism):
        if within is not None:
            raise InvalidProblem("--within is for secrets that are cells or labels, not for points")
        evaluate_points(file.name, mechanism, adversary, against, as_json=as_json)
        return
    problem = mechanism.problem
    adversary_file = None if adversary is None else ProblemFile(adversary)
    adversary_prior = None if adversary_file is None else adversary_file.prior_over(mechanism.secrets)
    adversaries = known_adversaries(mechanism, adversary_file)
    if against:
        adversaries = [by_name(adversaries, name) for name in against]
    report = measure(mechanism, problem, adversary_prior=adversary_prior, within=within, adversaries=adversaries)
    explanation = explain(report, problem, adversaries=adversaries)
    if as_json:
        print_json(report.to_dict() | explained(explanation))
    else:
        print_rows(f"{file.name}", report.rows())
        if report.adversary_results:
            print_rows("Adversaries", map(adversary_cells, report.adversary_results), ADVERSARY_HEADINGS)
        typer.echo(explanation)

"""``privacygames evaluate``: measure a mechanism."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json, print_rows


def evaluate(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    adversary: Annotated[
        Path | None, typer.Option(help="A problem file with the prior the adversary believes.")
    ] = None,
    within: Annotated[float | None, typer.Option(help="Also report epsilon up to this distance.")] = None,
    as_json: Json = False,
) -> None:
    """Measure cost and privacy of a mechanism: against the optimal and Bayesian attacks, and its real epsilon."""
    from privacygames.analysis import evaluate as measure
    from privacygames.mechanism import load
    from privacygames.presentation import in_words
    from privacygames.problem import read_prior

    mechanism = load(file)
    belief = None if adversary is None else read_prior(adversary, mechanism.secrets)
    report = measure(mechanism, mechanism.problem, adversary_prior=belief, within=within)
    words = in_words(report, mechanism.problem)
    if as_json:
        print_json(report.to_dict() | {"in_words": words})
    else:
        print_rows(f"{file.name}", report.rows())
        typer.echo(words)

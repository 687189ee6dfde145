"""``privacygames attack``: an adversary's estimate after each output."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from privacygames.cli.bounds_options import by_name, known_adversaries
from privacygames.cli.output import Json, print_json, print_rows, working
from privacygames.cli.point_attack import attack_points


class Kind(StrEnum):
    """The attacks by name."""

    OPTIMAL = "optimal"
    BAYESIAN = "bayesian"
    UNIFORM = "uniform"
    MINMAX = "minmax"
    MINMAX_PAIRS = "minmax-pairs"


def attack(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    kind: Annotated[Kind, typer.Option(help="Which attack.")] = Kind.OPTIMAL,
    adversary: Annotated[Path | None, typer.Option(help="A problem file with the adversary's prior.")] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="An adversary by name: one the mechanism has a guarantee against, or one of --adversary's file.",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of outputs to list, likeliest first.")] = 15,
    as_json: Json = False,
) -> None:
    """Run an inference attack on a mechanism: the estimate after each output, and the error on average.

    The error of an adversary chosen by name is measured with their own prior and errors. Where the secrets are points,
    the optimal attack may guess any point; outputs and guesses are printed with the latitude first.
    """
    import numpy as np

    from privacygames import attacks, metrics
    from privacygames.errors import InvalidProblem
    from privacygames.mechanism import Mechanism
    from privacygames.mechanism_files import load_certified
    from privacygames.problem import ProblemFile
    from privacygames.spaces import display_label

    mechanism = load_certified(file)
    if not isinstance(mechanism, Mechanism):
        if kind is not Kind.OPTIMAL:
            raise InvalidProblem(
                f"the {kind} attack is on mechanisms for cells or labels; on one for points there is --kind optimal"
            )
        attack_points(mechanism, adversary, against, rows, as_json=as_json)
        return
    problem = mechanism.problem
    run = getattr(attacks, kind.value.replace("-", "_"))
    adversary_file = None if adversary is None else ProblemFile(adversary)
    options: dict[str, Any] = {}
    if against is not None:
        if kind is Kind.MINMAX_PAIRS:
            raise InvalidProblem("the minmax-pairs attack is on the secret itself; leave --against out")
        options["adversary"] = by_name(known_adversaries(mechanism, adversary_file), against)
    elif adversary_file is not None:
        if kind not in (Kind.OPTIMAL, Kind.BAYESIAN):
            raise InvalidProblem(f"the {kind} attack uses no prior; leave --adversary out")
        options["prior"] = adversary_file.prior_over(mechanism.secrets)
    with working(f"running the {kind} attack …"):
        result = run(mechanism, problem, **options)
    if against is None:
        privacy = metrics.distortion(mechanism, problem, result)
    else:  # the attack may have minimised another error: a sum, or the worst case
        privacy = attacks.from_matrix(mechanism, problem, result.matrix, **options).error
    likelihood = problem.prior.probabilities @ mechanism.probabilities
    order = [int(o) for o in np.argsort(-likelihood, kind="stable") if likelihood[o] > 0]
    estimates = [
        (
            mechanism.observables.labels[o],
            float(likelihood[o]),
            result.estimate(mechanism.observables.labels[o]),
        )
        for o in order
    ]
    if as_json:
        plain = [{"answer": o, "probability": p, "estimate": s} for o, p, s in estimates]
        named = {} if against is None else {"against": against}
        print_json({"attack": kind.value, **named, "distortion": privacy, "estimates": plain})
        return
    table = [(display_label(o), f"{p:.1%}", display_label(s)) for o, p, s in estimates[:rows]]
    whose = "" if against is None else f" of {against!r}"
    print_rows(
        f"The {kind} attack{whose} errs by {privacy:.4g} on average",
        table,
        ("output", "probability", "likeliest estimate"),
    )
    if len(estimates) > rows:
        typer.echo(f"{len(estimates) - rows} more outputs: raise --rows, or use --json")

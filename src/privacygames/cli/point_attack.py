"""The optimal attack on a mechanism for points, whose guess may be any point."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from privacygames.cli.bounds_options import by_name, known_adversaries
from privacygames.cli.output import print_json, print_rows, working
from privacygames.cli.point_reports import point_problem_file

if TYPE_CHECKING:
    from privacygames.arrays import FloatArray
    from privacygames.points import PointMechanism
    from privacygames.problem import Adversary


def attack_points(
    mechanism: "PointMechanism", file: Path | None, against: str | None, rows: int, *, as_json: bool
) -> None:
    """Print an adversary's best guess after each output, and their error on average.

    Args:
        mechanism: the mechanism.
        file: a problem file with the adversary's prior, and with adversaries.
        against: the name of an adversary.
        rows: the number of outputs to list, likeliest first.
        as_json: whether to print JSON.
    """
    import numpy as np

    from privacygames.points import best_guesses
    from privacygames.presentation import output_json, output_text, point_json, point_text
    from privacygames.problem import Adversary

    region, problem = mechanism.secrets, mechanism.problem
    document = None if file is None else point_problem_file(file)
    if against is not None:
        adversary = by_name(known_adversaries(mechanism, document), against)
    else:
        adversary = Adversary("the problem's own", prior=None if document is None else document.prior_over(region))
    with working("running the optimal attack …"):
        masses, xy = _masses(mechanism, adversary)
        if adversary.errors is None:
            best = best_guesses(masses, xy, problem.distance)
            error, proved, points = best.total_error, best.total_lower, region.coordinates(best.guesses)
            guesses = [point_json(region, point) if as_json else point_text(region, point) for point in points]
        else:
            errors = masses @ adversary.errors.T
            error = proved = float(errors.min(axis=1).sum())
            names = adversary.guess_space(mechanism.observables).labels
            guesses = [names[guess] for guess in errors.argmin(axis=1).tolist()]
    likelihood = masses.sum(axis=1)
    order = [int(o) for o in np.argsort(-likelihood, kind="stable") if likelihood[o] > 0]
    if as_json:
        estimates = [
            {"answer": output_json(mechanism, o), "probability": float(likelihood[o]), "estimate": guesses[o]}
            for o in order
        ]
        named = {} if against is None else {"against": against}
        print_json({"attack": "optimal", **named, "distortion": error, "proved": proved, "estimates": estimates})
        return
    whose = "" if against is None else f" of {against!r}"
    unit = region.unit if adversary.errors is None and problem.distance == "euclidean" else ""
    print_rows(
        f"The optimal attack{whose} errs by {f'{error:.4g} {unit}'.strip()} on average",
        [(output_text(mechanism, o), f"{likelihood[o]:.1%}", str(guesses[o])) for o in order[:rows]],
        ("output", "probability", "best guess"),
    )
    if len(order) > rows:
        typer.echo(f"{len(order) - rows} more outputs: raise --rows, or use --json")


def _masses(mechanism: "PointMechanism", adversary: "Adversary") -> "tuple[FloatArray, FloatArray]":
    """π(x) p(o|x), (outputs, points), for the points of the adversary's belief, and these in the unit of distances."""
    from privacygames.beliefs import PointPrior

    prior = adversary.prior if isinstance(adversary.prior, PointPrior) else mechanism.problem.prior
    return (mechanism.probabilities(prior.points) * prior.probabilities[:, None]).T, prior.xy

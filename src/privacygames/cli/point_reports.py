"""Reports on mechanisms for points, and comparisons of several, as the commands print them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privacygames.cli.bounds_options import by_name, known_adversaries
from privacygames.cli.output import print_json, print_rows, working, write_figure
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.point_document import PointProblemFile
    from privacygames.points import PointMechanism


def point_problem_file(file: Path) -> "PointProblemFile":
    """A problem file whose secrets are points; another one is refused."""
    from privacygames.point_document import PointProblemFile
    from privacygames.problem_files import open_problem

    document = open_problem(file)
    if not isinstance(document, PointProblemFile):
        raise InvalidProblem(f"the secrets of {document.path.name} are cells or labels, and the mechanism's are points")
    return document


def evaluate_points(
    name: str, mechanism: "PointMechanism", adversary: Path | None, against: list[str] | None, *, as_json: bool
) -> None:
    """Print the report on a mechanism for points.

    Args:
        name: the name of its file.
        mechanism: the mechanism.
        adversary: a problem file with the adversary's prior, and with adversaries.
        against: the names of the adversaries to list; by default all.
        as_json: whether to print JSON.
    """
    from privacygames.analysis import ADVERSARY_HEADINGS, adversary_cells, evaluate

    document = None if adversary is None else point_problem_file(adversary)
    belief = None if document is None else document.prior_over(mechanism.secrets)
    adversaries = known_adversaries(mechanism, document)
    if against:
        adversaries = [by_name(adversaries, each) for each in against]
    report = evaluate(mechanism, adversary_prior=belief, adversaries=adversaries)
    if as_json:
        print_json(report.to_dict())
        return
    print_rows(name, report.rows())
    if report.adversary_results:
        print_rows("Adversaries", map(adversary_cells, report.adversary_results), ADVERSARY_HEADINGS)


def compare_points(
    document: "PointProblemFile",
    epsilons: Sequence[float],
    names: list[str] | None,
    files: list[Path],
    *,
    minimum_distance: float | None,
    figure: Path | None,
    table: Path | None,
    as_json: bool,
) -> None:
    """Print a comparison of mechanisms for points.

    Args:
        document: the problem file.
        epsilons: the ε at which they are compared: one, or none for that of the file.
        names: only these; by default all.
        files: further mechanisms, for points or for the cells of a grid.
        minimum_distance: what the ε of mechanisms for cells is stated for.
        figure: where to write a figure of log-ratios.
        table: where to write every number as CSV.
        as_json: whether to print JSON.
    """
    from privacygames.analysis import compare
    from privacygames.mechanism import Disclosure
    from privacygames.mechanism_files import load_certified

    values = list(epsilons) or [document.bounds[key] for key in ("epsilon",) if document.bounds.get(key) is not None]
    if len(values) != 1:
        raise InvalidProblem("points are compared at one epsilon: give one --epsilon, or one in the file")
    given: dict[str, Any] = {path.name: load_certified(path) for path in files}
    with working("comparing …") as show:
        results = compare(
            document.problem,
            given,
            epsilon=values[0],
            names=names,
            minimum_distance=minimum_distance,
            progress=show,
        )
    if table is not None:
        results.to_csv(table)
    if figure is not None:
        from privacygames import plots

        telling = {row.mechanism_name: row.mechanism for row in results.rows if row.report.epsilon != 0}
        write_figure(plots.ratio_against_distance(telling, epsilon=values[0]), figure)
    if as_json:
        print_json({"matched": {"epsilon": values}} | results.to_dict())
        return
    per = results.rows[0].report.per
    typer.echo(f"{document.path.name}, at epsilon {values[0]:g} {per} between any two points\n\n{results.table()}")
    for path in (figure, table):
        if path is not None:
            typer.echo(f"Wrote {path} ({Disclosure.COMPUTED.value}).")

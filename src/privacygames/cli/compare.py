"""``privacygames compare``: known mechanisms, and yours, side by side."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.cli.bounds_options import merged_distortion
from privacygames.cli.output import Json, check_figure_file, check_writable, print_json, working, write_figure
from privacygames.cli.point_reports import compare_points
from privacygames.cli.trace_options import Scheduler
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.analysis import Comparison
    from privacygames.beliefs import Prior
    from privacygames.mechanism import Mechanism
    from privacygames.problem import Adversary, Problem, ProblemFile
    from privacygames.progress import ProgressCallback

WITHOUT_PARAMETER = ("uniform", "constant")
"""Mechanisms without a parameter, which are the same at every matched value."""


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
    minimum_distance: Annotated[
        float | None, typer.Option(help="For points: state a snapped grid's epsilon from this distance on.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Compare known mechanisms, all matched at one epsilon or one distortion: cost, attacks, time to design.

    The value to match comes from the options, or else from the problem file's bounds; where the file has both,
    mechanisms are matched at each of them. Several values give the trade-off curve (of the optimal mechanism, and of
    others named by --mechanism). Adversaries of the file are listed below the mechanisms, with the error that is
    guaranteed, realised and possible against each. Mechanisms: optimal, spanner, planar-laplace, exponential,
    geometric, staircase, randomised-response (these five also with +remap), uniform, constant; by default all that
    suit the problem. Where the secrets are points, mechanisms are compared at one epsilon between any two points: see
    the names in the table, one for each --mechanism; --figure draws log-ratios against the distance.
    """
    from privacygames.analysis import compare as run
    from privacygames.analysis import trade_off
    from privacygames.designer import design
    from privacygames.mechanism import Disclosure
    from privacygames.mechanism_files import load_finite
    from privacygames.presentation import explain_comparison
    from privacygames.problem import PROBLEM_ADVERSARY, ProblemFile
    from privacygames.problem_files import open_problem

    check_figure_file(figure)
    check_writable(table)
    document = open_problem(problem)
    if not isinstance(document, ProblemFile):
        of_labels: dict[str, Any] = {"--distortion": distortion, "--adversary": adversary, "--within": within}
        of_labels |= {"--jobs": None if jobs == 1 else jobs, "--scheduler": scheduler}
        _refuse(of_labels, "secrets that are cells or labels, and not points")
        compare_points(
            document,
            epsilon or [],
            mechanism,
            file or [],
            minimum_distance=minimum_distance,
            figure=figure,
            table=table,
            as_json=as_json,
        )
        return
    _refuse({"--minimum-distance": minimum_distance}, "secrets that are points, and not cells or labels")
    bounds = document.bounds
    bounds["distortion"] = merged_distortion(bounds.get("distortion"), None, [], [], sought=False)
    named = isinstance(bounds["distortion"], dict) and not (epsilon or distortion)
    if isinstance(bounds["distortion"], dict):  # mechanisms of others are matched at one bound, not at many
        bounds["distortion"] = bounds["distortion"].get(PROBLEM_ADVERSARY)
    matched = _matched(epsilon, distortion, bounds)
    if within is None and "epsilon" in matched:
        within = bounds.get("within")
    adversaries = _adversaries(document, adversary or [])
    curve = max(map(len, matched.values())) > 1
    with working("comparing …") as show:
        if curve:
            if file or len(matched) > 1:
                raise InvalidProblem("a trade-off curve takes several values of one bound, and no --file")
            points: dict[str, Any] = {f"{kind}s": values for kind, values in matched.items()}
            results = trade_off(
                document.problem,
                **points,
                names=mechanism or ["optimal"],
                adversaries=adversaries,
                within=within,
                jobs=jobs,
                scheduler=scheduler,
                progress=show,
            )
        else:
            watch = show if jobs == 1 and scheduler is None else None  # which is not sent to other processes
            makers = _makers(
                document.problem, {kind: value for kind, (value,) in matched.items()}, within, mechanism, watch
            )
            if named:
                all_bounds = document.bounds | ({} if within is None else {"within": within})
                makers = {
                    "optimal against all": partial(design, document.problem, **all_bounds, progress=watch),
                    **makers,
                }
            results = run(
                document.problem,
                makers | {path.name: load_finite(path) for path in file or []},
                adversaries=adversaries,
                within=within,
                jobs=jobs,
                scheduler=scheduler,
                progress=show,
            )
    _write(results, figure, table, curve=curve)
    if as_json:
        print_json({"matched": matched} | results.to_dict())
        return
    at = " and ".join(_with_units(document.problem, kind, values, within) for kind, values in matched.items())
    typer.echo(f"{problem.name}, matched at {at}\n")
    # Plain text: a terminal too narrow for it should not cut names.
    sentences = "\n".join(f"{name}: {guess}" for name, guess in explain_comparison(results).items())
    typer.echo(f"{results.table()}\n\n{sentences}")
    second = (
        _adversary_figure(figure)
        if figure is not None and results.rows[0].report.adversary_results and not curve
        else None
    )
    for path in filter(None, (figure, second, table)):
        typer.echo(f"Wrote {path} ({Disclosure.COMPUTED.value}).")


def _refuse(options: dict[str, Any], kind: str) -> None:
    """Raise where one of these options is given, which are for problems of another kind."""
    for name, value in options.items():
        if value not in (None, []):
            raise InvalidProblem(f"{name} is for {kind}")


def _with_units(problem: "Problem", kind: str, values: list[float], within: float | None) -> str:
    """The values that mechanisms are matched at, with their unit."""
    from privacygames.analysis import target_text

    return ", ".join(target_text(kind, value, problem, within) for value in values)


def _matched(
    epsilon: list[float] | None, distortion: list[float] | None, bounds: dict[str, Any]
) -> dict[str, list[float]]:
    """The bounds to match and their values: from the options, or else from the file."""
    candidates = {"epsilon": epsilon, "distortion": distortion}
    if not (epsilon or distortion):
        candidates = {name: [bounds[name]] for name in candidates if bounds.get(name) is not None}
    matched = {name: values for name, values in candidates.items() if values}
    if not matched:
        raise InvalidProblem("there is nothing to match: give --epsilon or --distortion, or a bound in the file")
    return matched


def _makers(
    problem: "Problem",
    matched: dict[str, float],
    within: float | None,
    names: list[str] | None,
    show: "ProgressCallback | None",
) -> "dict[str, Callable[[], Mechanism]]":
    """The design of each mechanism by name; matched at two bounds, one for each, after the design for both."""
    from privacygames.analysis import calibrated_baselines, target_text
    from privacygames.designer import design

    makers: dict[str, Callable[[], Mechanism]] = {}
    if len(matched) > 1:
        makers["optimal for both"] = partial(
            design,
            problem,
            epsilon=matched["epsilon"],
            distortion=matched["distortion"],
            within=within,
            progress=show,
        )
    for kind, value in matched.items():
        bound = {kind: value, "within": within if kind == "epsilon" else None}
        baselines = calibrated_baselines(problem, **bound, names=names, progress=show)
        suffix = f" at {target_text(kind, value, problem, within)}" if len(matched) > 1 else ""
        makers |= {name if name in WITHOUT_PARAMETER else f"{name}{suffix}": make for name, make in baselines.items()}
    return makers


def _adversaries(file: "ProblemFile", others: list[Path]) -> "dict[str, Prior | Adversary]":
    """The usual two adversaries, those whose priors are in other files, and those of the problem file."""
    from privacygames.analysis import default_adversaries
    from privacygames.problem import ProblemFile

    adversaries: dict[str, Prior | Adversary] = {**default_adversaries(file.problem.prior)}
    adversaries |= {path.stem: ProblemFile(path).prior_over(file.problem.space) for path in others}
    named = {each.name: each for each in file.adversaries}
    duplicates = sorted(set(adversaries) & set(named))
    if duplicates:
        raise InvalidProblem(f"two adversaries are called {duplicates[0]!r}; rename the one in the problem file")
    return adversaries | named


def _adversary_figure(figure: Path) -> Path:
    """The path of the figure of adversaries."""
    return figure.with_stem(f"{figure.stem}-adversaries")


def _write(results: "Comparison", figure: Path | None, table: Path | None, *, curve: bool) -> None:
    if table is not None:
        results.to_csv(table)
    if figure is not None:
        from privacygames import plots

        write_figure(plots.trade_off(results) if curve else plots.comparison(results), figure)
        if results.rows[0].report.adversary_results and not curve:
            write_figure(plots.adversaries(results), _adversary_figure(figure))

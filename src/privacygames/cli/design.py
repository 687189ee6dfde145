"""``privacygames design``: from a problem file to a certified mechanism file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.bound_fields import BOUND_FIELDS
from privacygames.cli.bounds_options import BoundOptions, merged_bounds, takes_bounds
from privacygames.cli.device_option import Device, use_device_option
from privacygames.cli.output import Json, check_new_file, print_json, print_rows, warn, working
from privacygames.cli.traces_input import problem_from_traces, refuse_without_traces

if TYPE_CHECKING:
    from privacygames.points import PointProblem

TOLERANCE = 1e-6
STOPPED = 9
"""Exit status where the time limit came before the optimum; the file is written all the same."""


@takes_bounds
def design(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the mechanism file.")],
    bounds: BoundOptions,
    problem: Annotated[Path | None, typer.Argument(help="The problem file (TOML); or give --traces.")] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Instead of a problem file: positions (CSV, Parquet, GPX, GeoLife, …).")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Whose positions, where there are several people.")] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help="WEST,SOUTH,EAST,NORTH in degrees.", show_default="around the positions, on a public lattice"
        ),
    ] = None,
    columns: Annotated[int | None, typer.Option(help="Columns of the grid.", show_default="20")] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of the grid.", show_default="15")] = None,
    cost: Annotated[str | None, typer.Option(help="hamming or euclidean.", show_default="hamming")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DISTORTION",
            help="Least error of an adversary of the problem file; NAME alone: the most, with --cost-at-most.",
        ),
    ] = None,
    outputs: Annotated[
        int | None, typer.Option(help="Give only so many of the outputs: for problems too large otherwise.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Stop after so many seconds with the best mechanism so far and its gap.")
    ] = None,
    device: Device = None,
    dual_solution: Annotated[bool, typer.Option(help="Keep the proof of optimality in the file.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> int:
    """Design the least-cost mechanism for the problem and bounds in PROBLEM, and write it to a file.

    Where the space of PROBLEM is an area or an interval, its points are the secrets, and epsilon holds between any two
    of them. Or from positions, with --traces, --user and bounds: the secret is then the cell of a grid. A bound given
    here is added to those in the problem file, or replaces the one of the same name; --against, which may be repeated,
    names the file's [[adversary]] tables. Where the time limit comes before the optimum, every guarantee holds all the
    same; the gap is printed, and the exit status is 9. With --outputs the mechanism is the best with so many
    different outputs, and the gap is relative to all mechanisms.
    """
    from privacygames.analysis import ConstantOutputs, usefulness_warnings
    from privacygames.mechanism import Disclosure, Mechanism
    from privacygames.problem import Problem
    from privacygames.problem_files import open_problem

    check_new_file(out, force=force)
    use_device_option(device)
    of_traces = {"user": user, "window": window, "columns": columns, "rows": rows, "cost": cost}
    if problem is not None:
        refuse_without_traces(traces, of_traces)
        document = open_problem(problem)
        described: Problem | PointProblem = document.problem
        bounds = merged_bounds(problem, document.bounds, bounds, document.adversaries, against or [])
    else:
        described = problem_from_traces(traces, of_traces)
        bounds = merged_bounds(Path(), {}, bounds, against=against or [])
    if isinstance(described, Problem):
        secrets, observables = described.shape
        size, run = f"{secrets} secrets, {observables} observables", _designer(outputs, bounds)
    else:
        size = f"{len(described.prior)} points, {len(described.observables)} outputs"
        run = _point_designer(outputs, device)
    began = monotonic()
    with working(f"designing: {size} …") as show:
        mechanism = run(described, **bounds, time_limit=time_limit, tolerance=TOLERANCE, progress=show)
    in_time = time_limit is None or monotonic() < began + time_limit
    mechanism.save(out, dual_solution=dual_solution)
    certificate, disclosure = mechanism.certificate, Disclosure.PRIOR.value
    if as_json:
        print_json({"file": str(out), "disclosure": disclosure, "certificate": certificate.to_dict()})
    else:
        print_rows(f"Wrote {out} ({disclosure})", certificate.rows())
    if isinstance(mechanism, Mechanism):
        warn(usefulness_warnings(mechanism.certificate.usefulness, mechanism.problem))
        optimal = certificate.gap is None or certificate.gap <= TOLERANCE or outputs is not None
    else:  # the gap is to mechanisms of every form, not only to those on this mesh, so there is always some
        warn([ConstantOutputs()] if mechanism.constant else [])
        optimal = in_time
    if optimal:
        return 0
    worse = "by how much the cost is above the least possible is not known"
    if certificate.gap is not None:
        worse = f"the cost may be {certificate.gap:.1%} above the least possible"
    warn([f"stopped by --time-limit: {worse}"])
    return STOPPED


def _point_designer(outputs: int | None, device: str | None) -> Callable[..., Any]:
    """The function that designs for points, on a device."""
    from privacygames.designer import design as run
    from privacygames.errors import InvalidProblem
    from privacygames.solvers import Interior

    if outputs is not None:
        raise InvalidProblem(
            "--outputs is for secrets that are cells or labels; for points, the file's [observables] are the outputs"
        )
    return run if device in (None, "auto") else partial(run, solver=Interior(device=str(device)))


def _designer(outputs: int | None, bounds: dict[str, Any]) -> Callable[..., Any]:
    """The function that designs: with all outputs, or with so many."""
    from privacygames.approximations import fewer_outputs
    from privacygames.designer import design as run
    from privacygames.errors import Field, InvalidProblem

    if outputs is None:
        return run
    costs = [name for name, about in BOUND_FIELDS.items() if about.unit == "cost"]
    limits = [name for name in costs if bounds.pop(name, None) is not None]
    if limits:
        raise InvalidProblem("--outputs does not go with ", Field(limits[0]), ": give epsilon or distortion")
    return partial(fewer_outputs, outputs=outputs)

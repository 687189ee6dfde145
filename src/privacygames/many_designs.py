"""``design_many``: the certified mechanisms of many problems, designed in several processes or on a cluster."""

import warnings
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Unpack, cast, overload

from privacygames.designer import SolverChoice, design_any
from privacygames.errors import Field, InvalidProblem, PrivacyGamesError, UselessMechanism
from privacygames.jobs import ENTRIES_PER_BATCH, Scheduler, SerialExecutor, batches, executor_for, require_sendable
from privacygames.mechanism import Mechanism
from privacygames.points import PointMechanism, PointProblem
from privacygames.problem import Bounds, BoundsArguments, Problem
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers import SolveOptions
from privacygames.validation import as_list


class ManyArguments(BoundsArguments, total=False):
    """The keyword arguments of :func:`design_many`."""

    bounds: Iterable[Bounds] | None
    solver: SolverChoice
    time_limit: float | None
    tolerance: float
    jobs: int | None
    scheduler: Scheduler | None
    progress: ProgressCallback | None


@overload
def design_many(problems: Iterable[Problem], **arguments: Unpack[ManyArguments]) -> list[Mechanism]: ...
@overload
def design_many(problems: Iterable[PointProblem], **arguments: Unpack[ManyArguments]) -> list[PointMechanism]: ...
def design_many(
    problems: Iterable[Problem] | Iterable[PointProblem],
    *,
    bounds: Iterable[Bounds] | None = None,
    solver: SolverChoice = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    jobs: int | None = None,
    scheduler: Scheduler | None = None,
    progress: ProgressCallback | None = None,
    **same_bounds: Unpack[BoundsArguments],
) -> list[Mechanism] | list[PointMechanism]:
    """Design the mechanism of lowest cost for each of many problems, as :func:`privacygames.design` does for one.

    Each has the certificate that it would have by itself. Equal problems under equal bounds are designed once. For the
    mechanisms of many people over one space, which should be kept, :func:`privacygames.fleet.design` stores them as
    they are done, in a tenth of the space.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problems = [pg.Problem(pg.Prior.from_counts(illnesses, counts)) for counts in ([1, 2, 3], [3, 2, 1])]
    >>> [round(mechanism.certificate.cost, 4) for mechanism in pg.design_many(problems, epsilon=1.0, jobs=1)]
    [0.3908, 0.3908]
    >>> sweep = [pg.Bounds(epsilon=epsilon) for epsilon in (0.5, 1.0, 2.0)]
    >>> [round(mechanism.certificate.cost, 3) for mechanism in pg.design_many(problems[:1] * 3, bounds=sweep, jobs=1)]
    [0.481, 0.391, 0.213]

    Args:
        problems: the problems, in the order of the result.
        bounds: the bounds of each design, in the same order; or
        **same_bounds: ``epsilon``, ``distortion`` and the others, as in :func:`privacygames.design`, for all.
        solver: as in :func:`privacygames.design`.
        time_limit: as in :func:`privacygames.design`, for each design.
        tolerance: as in :func:`privacygames.design`.
        jobs: number of processes; by default one for each processor, and only this one where there is little to do.
        scheduler: a Dask cluster to design on instead: the address of its scheduler, a ``dask.distributed.Client``, or
            a cluster such as ``LocalCluster``. A task whose worker dies is given to another one.
        progress: called after every design; raise ``Cancelled`` in it to stop.

    Returns:
        The mechanisms, in the order of the problems.

    Raises:
        PrivacyGamesError: a design failed, as :func:`privacygames.design` would; a note says which. No further ones are
            begun, and there is no result.

    Warns:
        UselessMechanism: how many of the best mechanisms give every secret the same outputs.
    """
    posed = as_list(problems, "problems")
    if not all(isinstance(problem, Problem | PointProblem) for problem in posed):
        raise InvalidProblem("problems must be a list of Problem, or of PointProblem")
    all_bounds = _bounds_of_each(bounds, same_bounds, len(posed))
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit)
    numbers: dict[tuple[Problem | PointProblem, Bounds], list[int]] = {}
    for number, pair in enumerate(zip(posed, all_bounds, strict=True)):
        numbers.setdefault(pair, []).append(number)
    distinct = list(numbers)
    entries = [_entries(problem) for problem, _ in distinct]
    tasks = {
        job.key: job
        for batch in batches(entries)
        for job in (DesignJob(batch.start, tuple(distinct[batch]), solver, options),)
    }
    little = jobs is None and scheduler is None and sum(entries) <= ENTRIES_PER_BATCH
    executor = SerialExecutor() if little else executor_for(jobs, scheduler)
    require_sendable(executor, solver, "the solver")
    made: list[Mechanism | PointMechanism | None] = [None] * len(posed)
    done, useless, started = 0, 0, monotonic()
    with closing(executor.run(list(tasks.values()))) as results:
        for key, designed in results:
            for (problem, limits), result in zip(tasks[key].designs, designed, strict=True):
                same = numbers[problem, limits]
                if isinstance(result, PrivacyGamesError):
                    result.add_note(f"in the design of problem {same[0]} of {len(posed)}, counted from 0")
                    raise result
                mechanism, constant = result
                if isinstance(mechanism, Mechanism) and isinstance(problem, Problem):
                    mechanism = mechanism.sharing(problem)
                for number in same:
                    made[number] = mechanism
                done, useless = done + len(same), useless + constant * len(same)
                if progress is not None:
                    seconds, message = monotonic() - started, f"{done} of {len(posed)} designs"
                    progress(Progress(job="design", done=done, total=len(posed), seconds=seconds, message=message))
    if useless:
        warnings.warn(
            f"the outputs of {useless} of {len(posed)} mechanisms do not depend on the secret at all: they keep their "
            "guarantees and convey no information. What helps: a larger epsilon, worst_case=True, or a cost that "
            "values rare secrets",
            UselessMechanism,
            stacklevel=2,
        )
    return cast("list[Mechanism] | list[PointMechanism]", made)


@dataclass(frozen=True, eq=False)
class DesignJob:
    """The job of a few designs.

    Attributes:
        first: the number of the first one among all.
        designs: problems and bounds; problems that share matrices share them in another process, too.
        solver: as in :func:`privacygames.design`.
        options: tolerance and time limit of each.
    """

    first: int
    designs: tuple[tuple[Problem | PointProblem, Bounds], ...]
    solver: SolverChoice
    options: SolveOptions

    @property
    def key(self) -> str:
        """Identifies the work within one call."""
        return f"designs-{self.first}"

    def run(self) -> list[tuple[Mechanism | PointMechanism, bool] | PrivacyGamesError]:
        """For each design the mechanism and whether it is constant, or why there is none; none after a failure."""
        results: list[tuple[Mechanism | PointMechanism, bool] | PrivacyGamesError] = []
        for problem, bounds in self.designs:
            try:
                results.append(design_any(problem, bounds, solver=self.solver, options=self.options))
            except PrivacyGamesError as error:
                results.append(error)
        return results


def _bounds_of_each(bounds: Iterable[Bounds] | None, same: BoundsArguments, count: int) -> Sequence[Bounds]:
    if bounds is None:
        return [Bounds(**same)] * count
    if same:
        raise InvalidProblem("give ", Field("bounds"), ", one for each problem, or the bounds of all by name: not both")
    each = [bounds] * count if isinstance(bounds, Bounds) else as_list(bounds, "bounds")
    if len(each) != count or not all(isinstance(one, Bounds) for one in each):
        raise InvalidProblem(Field("bounds"), f" must be a list of {count} Bounds, one for each problem")
    return each


def _entries(problem: Problem | PointProblem) -> int:
    """The size of a design, n²m; that of one for points, whose meshes are refined, fills a batch."""
    if isinstance(problem, PointProblem):
        return ENTRIES_PER_BATCH
    n, m = problem.shape
    return n * n * m

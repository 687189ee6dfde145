"""Running a study: unfinished tasks are distributed, results stored, and tables computed from them."""

import os
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import cast

from privacygames.errors import InvalidProblem
from privacygames.jobs import Executor, SerialExecutor, Store, Table, number, remaining_tasks, write_table
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Grid
from privacygames.threads import available_processors
from privacygames_study.claims import CLAIM_COLUMNS, check_claims
from privacygames_study.manifest import StudyManifest
from privacygames_study.people import Person
from privacygames_study.plan import Plan
from privacygames_study.provenance import DataDigest, processor_model, revision, versions, worker_counts
from privacygames_study.result_tables import COLUMNS, result_tables
from privacygames_study.settings import Settings
from privacygames_study.tasks import DONE, Task

CELLS, TABLES, FIGURES = "cells", "tables", "figures"


@dataclass(frozen=True)
class Study:
    """A finished study.

    Attributes:
        manifest: its settings and provenance.
        tables: its tables by name.
        claims: the paper's claims, checked against the tables.
        fresh: number of designs of this run; the others were stored.
    """

    manifest: StudyManifest
    tables: dict[str, Table]
    claims: Table
    fresh: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: number of designs, and the claims."""
        return {"designed": self.fresh, "failed": self.manifest.failed, "claims": self.claims}


def compute(
    people: list[Person],
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    workers: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Table]:
    """The tables of a study.

    Args:
        people: whose priors.
        settings: the paper's by default.
        store: earlier results, to which new ones are added.
        workers: runs the tasks; by default this process.
        progress: called with a :class:`privacygames.Progress` after every design; an exception from it ends the study,
            and finished results stay in the store.

    >>> import privacygames_study as study
    >>> town = pg.Grid(columns=2, rows=1, width=2.0, height=1.0)
    >>> ada = study.Person("user 1", pg.Prior(town, [0.75, 0.25]), visits=4)
    >>> tables = study.compute([ada], study.Settings(epsilons=(0.6,), parts=("scenario-1",)))
    >>> [row["mechanism"] for row in tables["scenario-1"]]
    ['differential', 'distortion', 'joint']
    """
    if not people:
        raise InvalidProblem("a study needs at least one person")
    plans = [Plan(person, settings or Settings()) for person in people]
    results = Store() if store is None else store
    _run_tasks(plans, results, workers or SerialExecutor(), progress)
    return result_tables(plans, results.results)


def run(
    people: list[Person],
    settings: Settings,
    folder: Path,
    *,
    data: str,
    read_as: str,
    quick: bool = False,
    command: str = "",
    digest: DataDigest | None = None,
    workers: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> Study:
    """A study in a folder: tables, claims and manifest; finished designs are stored there and reused.

    Args:
        people: whose priors, all over the same grid.
        settings: what to study.
        folder: for all files; an interrupted study continues from its contents.
        data: the data set's name, for captions.
        read_as: which format.
        quick: whether the settings are the coarse ones.
        command: the command that was run, for the manifest; without names, paths and addresses.
        digest: of the data that was read, for the manifest.
        workers: runs the tasks; by default this process.
        progress: called after every design.
    """
    if not all(isinstance(person.prior.space, Grid) for person in people):
        raise InvalidProblem("a study needs priors over the cells of a Grid")
    start = monotonic()
    store = Store(folder / CELLS)
    known = len(store.results)
    tables = compute(people, settings, store=store, workers=workers, progress=progress)
    fresh = len(store.results) - known
    claims = check_claims(tables)
    manifest = _study_manifest(
        people, settings, store, data=data, read_as=read_as, quick=quick, seconds=monotonic() - start
    )
    manifest = _with_provenance(manifest, command, digest, workers)
    (folder / TABLES).mkdir(exist_ok=True)
    for name, columns in COLUMNS.items():
        path = folder / TABLES / f"{name}.csv"
        if name in tables:
            write_table(path, tables[name], columns)
        else:  # left by an earlier study, perhaps of other people
            path.unlink(missing_ok=True)
    write_table(folder / TABLES / "claims.csv", claims, CLAIM_COLUMNS)
    manifest.write(folder)
    return Study(manifest, tables, claims, fresh)


def known_tasks(plans: list[Plan], store: Store) -> list[Task]:
    """Every task whose bounds follow from the results so far, finished or not."""
    return list({task.key: task for plan in plans for task in plan.tasks(store.results)}.values())


def _run_tasks(plans: list[Plan], store: Store, workers: Executor, progress: ProgressCallback | None) -> None:
    """Run unfinished tasks until there are none; results may lead to further tasks."""
    expected = sum(plan.expected() for plan in plans)
    started, before = monotonic(), len(store.results)
    while True:
        tasks = known_tasks(plans, store)
        left = remaining_tasks(tasks, store.results)
        done, expected = len(tasks) - len(left), max(expected, len(tasks))
        if not left:
            return
        with closing(workers.run(left)) as finished:  # stops the work if anything here fails
            for key, measured in finished:
                store.add(key, measured)
                done += 1
                if progress is not None:
                    total, fresh = max(expected, done), len(store.results) - before
                    message = f"{done} of {total} designs, {fresh} of them in this run"
                    seconds = monotonic() - started
                    progress(Progress(job="study", done=done, total=total, seconds=seconds, message=message))
        expected = 0  # all other tasks follow from the results


def _study_manifest(
    people: list[Person], settings: Settings, store: Store, *, data: str, read_as: str, quick: bool, seconds: float
) -> StudyManifest:
    plans = [Plan(person, settings) for person in people]
    grid, coarse = (cast("Grid", space) for space in (people[0].prior.space, plans[0].coarse.space))
    measured = [store.results[task.key] for task in known_tasks(plans, store)]
    return StudyManifest(
        data=data,
        format=read_as,
        users=len(people),
        columns=grid.columns,
        rows=grid.rows,
        width_km=grid.width,
        height_km=grid.height,
        window=grid.box,
        epsilons=settings.epsilons,
        epsilons_2=settings.epsilons_2,
        epsilons_3=settings.epsilons_3,
        step_km=settings.step,
        shares=settings.shares,
        strengths=settings.strengths,
        places=settings.places,
        epsilons_approximation=settings.epsilons_approximation,
        share_approximation=settings.share_approximation,
        radii_km=settings.radii,
        approximation_columns=coarse.columns,
        approximation_rows=coarse.rows,
        parts=settings.parts,
        quick=quick,
        designs=len(measured),
        failed=sum(result["status"] != DONE for result in measured),
        design_seconds=sum(number(result, "seconds") for result in measured),
        wall_seconds=seconds,
    )


def _with_provenance(
    manifest: StudyManifest, command: str, digest: DataDigest | None, workers: Executor | None
) -> StudyManifest:
    """The manifest with its provenance: data, software and machine."""
    read = digest or DataDigest(files=0, size=0, sha256="")
    processes, threads = worker_counts(workers)
    return replace(
        manifest,
        cores=os.cpu_count() or available_processors(),
        versions=versions(),
        command=command,
        data_files=read.files,
        data_bytes=read.size,
        data_sha256=read.sha256,
        revision=revision(),
        processor=processor_model(),
        processes=processes,
        threads=threads,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )

"""Running a study: what is finished is kept, what is left is handed out, and tables are made of it all."""

import os
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import cast

from privacygames.errors import InvalidProblem
from privacygames.jobs import Executor, SerialExecutor, Store, Table, number, unfinished, write_table
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Grid
from privacygames.threads import available_processors
from privacygames_study.claims import CLAIM_COLUMNS, check_claims
from privacygames_study.metadata import About
from privacygames_study.people import Person
from privacygames_study.plan import Plan
from privacygames_study.provenance import DataDigest, processor_model, revision, versions, workforce
from privacygames_study.result_tables import COLUMNS, tables_of
from privacygames_study.settings import Settings
from privacygames_study.tasks import DONE, Task

CELLS, TABLES, FIGURES = "cells", "tables", "figures"


@dataclass(frozen=True)
class Study:
    """A finished study.

    Attributes:
        about: its setting.
        tables: by name.
        claims: the paper's claims, checked against the tables.
        fresh: how many designs this run made; the others were known.
    """

    about: About
    tables: dict[str, Table]
    claims: Table
    fresh: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: how much was designed, and the claims."""
        return {"designed": self.fresh, "failed": self.about.failed, "claims": self.claims}


def compute(
    people: list[Person],
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    workers: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Table]:
    """Every table of a study.

    Args:
        people: whose priors.
        settings: the paper's by default.
        store: what is known already, and where results are kept.
        workers: who does the work; by default this process.
        progress: called with a :class:`privacygames.Progress` after every design; what it raises ends the study, and
            what is finished is kept in the store.
    """
    if not people:
        raise InvalidProblem("a study needs at least one person")
    plans = [Plan(person, settings or Settings()) for person in people]
    kept = Store() if store is None else store
    _finish(plans, kept, workers or SerialExecutor(), progress)
    return tables_of(plans, kept.results)


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
    """A study in a folder: tables, claims and manifest; finished designs are kept there and never made again.

    Args:
        people: whose priors, all over the same grid.
        settings: what to study.
        folder: where; an interrupted study goes on from there.
        data: the data set's name, for captions.
        read_as: which format.
        quick: whether to call it the coarse version.
        command: the command that asked for it, for the manifest; without names, paths and addresses.
        digest: of the data that was read, for the manifest.
        workers: who does the work; by default this process.
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
    about = _about(people, settings, store, data=data, read_as=read_as, quick=quick, seconds=monotonic() - start)
    about = _with_provenance(about, command, digest, workers)
    (folder / TABLES).mkdir(exist_ok=True)
    for name, columns in COLUMNS.items():
        path = folder / TABLES / f"{name}.csv"
        if name in tables:
            write_table(path, tables[name], columns)
        else:  # of an earlier study, maybe of other people
            path.unlink(missing_ok=True)
    write_table(folder / TABLES / "claims.csv", claims, CLAIM_COLUMNS)
    about.write(folder)
    return Study(about, tables, claims, fresh)


def needed(plans: list[Plan], store: Store) -> list[Task]:
    """Every task whose bounds are known, finished or not."""
    return list({task.key: task for plan in plans for task in plan.tasks(store.results)}.values())


def _finish(plans: list[Plan], store: Store, workers: Executor, progress: ProgressCallback | None) -> None:
    """Do what is left; results may name further tasks, so ask again until there are none."""
    expected = sum(plan.expected() for plan in plans)
    started, before = monotonic(), len(store.results)
    while True:
        tasks = needed(plans, store)
        left = unfinished(tasks, store.results)
        done, expected = len(tasks) - len(left), max(expected, len(tasks))
        if not left:
            return
        with closing(workers.work(left)) as finished:  # whatever happens here, no work goes on
            for key, measured in finished:
                store.add(key, measured)
                done += 1
                if progress is not None:
                    total, fresh = max(expected, done), len(store.results) - before
                    message = f"{done} of {total} designs, {fresh} of them in this run"
                    seconds = monotonic() - started
                    progress(Progress(job="study", done=done, total=total, seconds=seconds, message=message))
        expected = 0  # what was found names all the others


def _about(
    people: list[Person], settings: Settings, store: Store, *, data: str, read_as: str, quick: bool, seconds: float
) -> About:
    plans = [Plan(person, settings) for person in people]
    grid, coarse = (cast("Grid", space) for space in (people[0].prior.space, plans[0].coarse.space))
    found = [store.results[task.key] for task in needed(plans, store)]
    return About(
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
        designs=len(found),
        failed=sum(measured["status"] != DONE for measured in found),
        design_seconds=sum(number(measured, "seconds") for measured in found),
        wall_seconds=seconds,
    )


def _with_provenance(about: About, command: str, digest: DataDigest | None, workers: Executor | None) -> About:
    """The manifest with what the numbers depend on beside the setting: data, software and machine."""
    read = digest or DataDigest(files=0, size=0, sha256="")
    processes, threads = workforce(workers)
    return replace(
        about,
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

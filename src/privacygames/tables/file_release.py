"""Releases of files and folders: streamed, resumable, and published whole or not at all.

The output is written in a hidden folder beside its place, in parts of a few million rows. A killed run leaves its
complete parts, and the next run keeps them; the output takes its place in one step, when all of it is complete.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import IO, Any

from privacygames.atomic_io import file_lock, open_atomic, write_text
from privacygames.canonical import digest_of
from privacygames.errors import BudgetExceeded, Field, InvalidProblem, UnreadableFile
from privacygames.jobs import Scheduler, executor_for, remaining_tasks
from privacygames.progress import Progress, ProgressCallback
from privacygames.tables.accounting import ReleaseAccount
from privacygames.tables.kernel import RowCounts
from privacygames.tables.manifest import Manifest, describe_rule
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger
from privacygames.tables.release_plan import ReleasePlan, plan_release
from privacygames.tables.rules import Repeat, Rules
from privacygames.tables.table_files import (
    BATCH_ROWS,
    PARQUET,
    TableFile,
    TableWriter,
    ending_of,
    open_table,
    require_same_ending,
    separator_of,
    table_files_in,
    table_writer,
)

PART_ROWS = 32 * BATCH_ROWS
"""Rows of a part: a killed run resumes after its last complete one. Some four millions, a few seconds of work."""

MANIFEST = "_manifest.json"
"""Name of the manifest in a folder: readers of such folders skip names that start with an underscore."""


def apply_files(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    rules: Rules,
    *,
    key: ReleaseKey | None = None,
    key_columns: str | Sequence[str] | None = None,
    user: str | None = None,
    repeat: Repeat = "fresh",
    any_pair_limit: float | None = None,
    per_unit_limit: float | Mapping[str, float] | None = None,
    epsilon_limit: None = None,
    ledger: ReleaseLedger | str | os.PathLike[str] | None = None,
    separator: str | None = None,
    jobs: int = 1,
    scheduler: Scheduler | None = None,
    progress: ProgressCallback | None = None,
) -> Manifest:
    r"""Replace the secrets in a CSV, ``.csv.gz`` or Parquet file, or a folder of them, by random outputs.

    Writes a file or folder of the same kind, and the manifest beside it. After a crash, the same call resumes; nothing
    that looks complete is there until it is. Without key columns every completed call is another release: rows are
    drawn for their position in their file, once.

    Args:
        source: a file or folder.
        out: the output, which must not exist yet.
        rules: as in :func:`apply`.
        key: as in :func:`apply`; needed for ``repeat="same"``, so that a resumed run draws as before.
        key_columns: as in :func:`apply`.
        user: as in :func:`apply`.
        repeat: as in :func:`apply`.
        any_pair_limit: as in :func:`apply`.
        per_unit_limit: as in :func:`apply`.
        epsilon_limit: as in :func:`apply`.
        ledger: as in :func:`apply`; charged when the output is complete, just before it takes its place.
        separator: between the fields of CSV files; by default detected from the first line.
        jobs: number of processes, each of which works on one file at a time.
        scheduler: a Dask cluster whose workers see the same files: the address of its scheduler, a
            ``dask.distributed.Client``, or a cluster such as ``LocalCluster``.
        progress: called now and then.

    >>> with open("ages.csv", "w") as file:
    ...     _ = file.write("age,paid\n21,3.5\n27,2.0\n")
    >>> ages = pg.Numbers(range(20, 30), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=0.5)
    >>> manifest = pg.tables.apply_files("ages.csv", "released.csv", {"age": mechanism})
    >>> manifest.rows_out, Path("released.csv.manifest.json").exists()
    (2, True)
    """
    source_path, out_path = Path(source).absolute(), Path(out).absolute()  # workers may have another folder
    if repeat == "same" and key is None:
        raise InvalidProblem(Field("repeat"), "='same' with files needs a key: a resumed run must draw as before")
    names = _input_names(source_path, out_path)
    plan = plan_release(
        rules,
        key=key,
        key_columns=key_columns,
        user=user,
        repeat=repeat,
        any_pair_limit=any_pair_limit,
        per_unit_limit=per_unit_limit,
        epsilon_limit=epsilon_limit,
        ledger=ledger,
    )
    job = FileJob(source_path, out_path, names, separator)
    fingerprint = _fingerprint(job, plan, key)
    account = _prescan(job, plan)
    with file_lock(job.lock) as is_ours:
        if not is_ours:
            raise InvalidProblem(f"another process is writing {out_path}: wait for it")
        is_new = job.begin(fingerprint)
        release = job.release if key is None else ""
        tasks = [FileTask(job, name, _plan_for_file(plan, name), fingerprint) for name in names]
        try:
            if key is None:  # with a key, this may be a release that was charged before: its draws will tell
                plan.require_room(account, release)
            counts = _run(tasks, jobs, scheduler, progress)
            if _fingerprint(job, plan, key) != fingerprint:
                raise InvalidProblem("the input changed while it was read, and nothing was written: start again")
            manifest = plan.commit(account, counts, source=names, release=release)
        except (InvalidProblem, BudgetExceeded):
            if is_new:  # refused: nobody will resume it
                job.discard()
            raise
        job.publish(manifest)
    return manifest


@dataclass(frozen=True)
class FileJob:
    """The input and output of a release of files, and the hidden folder in which it is written.

    Attributes:
        source: the file or folder to read.
        out: the file or folder to write.
        names: the files to read, by their path in the folder.
        separator: between the fields of CSV files; None detects it.
    """

    source: Path
    out: Path
    names: tuple[str, ...]
    separator: str | None

    @property
    def folder(self) -> Path:
        """The hidden folder."""
        return self.out.parent / f".{self.out.name}.unfinished"

    @property
    def release(self) -> str:
        """A name for the release, which a resumed run keeps."""
        return str(json.loads((self.folder / "job.json").read_text())["release"])

    @property
    def lock(self) -> Path:
        """The lock file, held by the process that writes the output."""
        return self.out.parent / f".{self.out.name}.lock"

    @property
    def is_single_file(self) -> bool:
        """Whether one file is read, rather than a folder."""
        return self.source.is_file()

    def input(self, name: str) -> Path:
        """A file to read."""
        return self.source if self.is_single_file else self.source / name

    def output(self, name: str) -> Path:
        """The output of a file, until it is published."""
        return self.folder / "data" / name

    def parts(self, name: str) -> Path:
        """The folder of a file's complete parts."""
        return self.folder / "parts" / sha256(name.encode()).hexdigest()[:16]

    def counts(self, name: str) -> Path:
        """The counts of a file, once it is complete."""
        return self.folder / "counted" / sha256(name.encode()).hexdigest()[:16]

    def begin(self, fingerprint: str) -> bool:
        """Make the hidden folder, or keep it if it is of the same job. Returns whether it is new."""
        if self.out.exists():  # written by another process in the meantime: it is released, and must stay
            self.lock.unlink(missing_ok=True)
            raise InvalidProblem(_exists(self.out))
        state = self.folder / "job.json"
        try:
            begun = json.loads(state.read_text())
            is_same = begun["work"] == fingerprint and isinstance(begun["release"], str)
        except (OSError, ValueError, KeyError, TypeError):
            is_same = False
        if self.folder.exists() and not is_same:
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if not is_same:
            write_text(state, json.dumps({"work": fingerprint, "release": token_hex(16)}))
        return not is_same

    def publish(self, manifest: Manifest) -> None:
        """Move the manifest and the output to their place, the data last."""
        lost = [name for name in self.names if not self.output(name).exists()]
        if lost:
            raise UnreadableFile(self.output(lost[0]), "no worker left it there: workers must see the same files")
        if self.is_single_file:
            manifest.write(manifest_path(self.out))
            self.output(self.names[0]).replace(self.out)
        else:
            manifest.write(self.folder / "data" / MANIFEST)
            (self.folder / "data").replace(self.out)
        self.discard()

    def discard(self) -> None:
        """Remove the hidden folder and the lock file."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.unlink(missing_ok=True)


def manifest_path(out: Path) -> Path:
    """The manifest of a single file; a folder has it inside."""
    return out.with_name(f"{out.name}.manifest.json")


def _input_names(source: Path, out: Path) -> tuple[str, ...]:
    """The names of the files to read; refuses an output that cannot be written."""
    if not source.exists():
        raise UnreadableFile(source, "there is no such file or folder")
    if out.exists():
        raise InvalidProblem(_exists(out))
    if not out.resolve().parent.is_dir():
        raise InvalidProblem(f"there is no folder {out.resolve().parent} to write to")
    if source.is_file():
        require_same_ending(source, out)
        return (source.name,)
    if out.resolve().is_relative_to(source.resolve()):
        raise InvalidProblem("the output cannot be inside the folder that is read")
    return table_files_in(source)


def _exists(out: Path) -> str:
    return f"{out} exists already: choose another name, or remove it"


def _prescan(job: FileJob, plan: ReleasePlan) -> ReleaseAccount:
    """Check the columns of all files and scan their people and keys, before anything is written; returns the cost."""
    prescan = Prescan(plan)
    schema = None
    for name in job.names:
        table = open_table(job.input(name), plan.rules, job.separator)
        kernel = plan.kernel(table.schema)
        schema = schema or table.schema
        if not schema.equals(table.schema):
            raise InvalidProblem(f"{name} has other columns than {job.names[0]}: files of one folder must be alike")
        if plan.prescan_columns:
            for batch in table.batches(plan.prescan_columns):
                columns = {column: batch.column(column) for column in batch.schema.names}
                prescan.add(columns, batch.num_rows, kernel, count_rows=False, start=None)
    return prescan.account()


def _plan_for_file(plan: ReleasePlan, name: str) -> ReleasePlan:
    """The plan for one file: positions are those in the file, and workers charge no ledger."""
    source = name if plan.identity.by_position else ""
    return replace(plan, ledger=None, identity=replace(plan.identity, source=source))


def _fingerprint(job: FileJob, plan: ReleasePlan, key: ReleaseKey | None) -> str:
    """A hash that is equal for the same input, rules and key.

    Without a key of the caller's, a run may be resumed under a new one: every row is released under one of them, since
    complete parts are kept, and nobody has seen the rest. Whatever changes a file changes its ctime, which, unlike the
    other times, cannot be set back.
    """
    stats = [(name, job.input(name).stat()) for name in job.names]
    files = [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats]
    rules = [(describe_rule(rule), rule.rule.for_unknown, rule.rule.for_missing) for rule in plan.rules]
    key_check = None if key is None else key.check_value()
    parts = (files, rules, asdict(plan.identity), plan.user, plan.repeat, key_check, job.separator)
    return digest_of("file release", *parts)


@dataclass(frozen=True, eq=False)
class FileTask:
    """The release of one file: its parts in order, which are then joined.

    Attributes:
        job: the release of all files.
        name: the file.
        plan: the plan for this file.
        fingerprint: the hash of the job's input, rules and key.
    """

    job: FileJob
    name: str
    plan: ReleasePlan
    fingerprint: str

    @property
    def key(self) -> str:
        """A name for this file of this job: clusters run tasks of one name once, whoever submits them."""
        return digest_of("file of a release", self.fingerprint, str(self.job.out), self.name)

    def run(self) -> dict[str, Any]:
        """Write the output; returns the counts as plain values."""
        return self.run_with(lambda _rows: None).to_dict()

    def run_with(self, report: Callable[[int], None]) -> RowCounts:
        """Write the output, and report the number of rows done now and then."""
        folder, output = self.job.parts(self.name), self.job.output(self.name)
        counts_path = self.job.counts(self.name)
        done = _read_counts(counts_path, output)
        if done is not None:
            report(done.rows)
            return done
        for each in (folder, output.parent, counts_path.parent):
            each.mkdir(parents=True, exist_ok=True)
        table = open_table(self.job.input(self.name), self.plan.rules, self.job.separator)
        counts = self._write_parts(table, folder, report)
        self._join(table, folder, output)
        write_text(counts_path, json.dumps(counts.to_dict()))
        shutil.rmtree(folder)
        return counts

    def _write_parts(self, table: TableFile, folder: Path, report: Callable[[int], None]) -> RowCounts:
        kernel = self.plan.kernel(table.schema)
        total, number = RowCounts(), 0
        ending = ending_of(table.path)
        while (done := _read_counts(folder / f"{number}.tally", folder / f"{number}{ending}")) is not None:
            total.add(done)
            number += 1
        report(total.rows)
        batches = _with_positions(table.batches(skip=total.rows), total.rows)
        for start, part in _parts(batches, PART_ROWS):
            counts = RowCounts()
            with (
                open_atomic(folder / f"{number}{ending}") as file,
                closing(self._writer(table, file, kernel.schema, header=number == 0)) as writer,
            ):
                for position, batch in part:
                    for released in kernel.batches([batch], counts, position):
                        writer.write(released)
                    report(start + counts.rows)
            write_text(folder / f"{number}.tally", json.dumps(counts.to_dict()))
            total.add(counts)
            number += 1
        if number == 0:  # a table without rows still has columns
            with open_atomic(folder / f"0{ending}") as file:
                self._writer(table, file, kernel.schema, header=True).close()
        return total

    def _writer(self, table: TableFile, file: IO[bytes], schema: Any, *, header: bool) -> TableWriter:
        separator = self.job.separator or separator_of(table.path)
        return table_writer(ending_of(table.path), file, schema, separator, header=header)

    def _join(self, table: TableFile, folder: Path, output: Path) -> None:
        """Join all parts to one file, a batch at a time."""
        ending = ending_of(table.path)
        parts = sorted(folder.glob(f"*{ending}"), key=lambda path: int(path.name.removesuffix(str(ending))))
        if len(parts) == 1:
            parts[0].replace(output)
            return
        with open_atomic(output) as file:
            if ending != PARQUET:  # gzip files, too, may be concatenated
                for part in parts:
                    with part.open("rb") as part_file:
                        shutil.copyfileobj(part_file, file)
                return
            with closing(self._writer(table, file, open_table(parts[0], ()).schema, header=True)) as writer:
                for part in parts:
                    for batch in open_table(part, ()).batches():
                        writer.write(batch)


def _with_positions(batches: Iterator[Any], start: int) -> Iterator[tuple[int, Any]]:
    """Batches with the position of their first row."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def _parts(batches: Iterator[tuple[int, Any]], rows: int) -> Iterator[tuple[int, Iterator[tuple[int, Any]]]]:
    """Batches in groups of at least so many rows, with the position of the first; each is read as it is consumed."""
    for start, first in batches:

        def part(position: int = start, batch: Any = first) -> Iterator[tuple[int, Any]]:
            yield position, batch
            count = batch.num_rows
            while count < rows:
                following = next(batches, None)
                if following is None:
                    return
                count += following[1].num_rows
                yield following

        yield start, part()


def _run(tasks: list[FileTask], jobs: int, scheduler: Scheduler | None, progress: ProgressCallback | None) -> RowCounts:
    """Run the tasks in this process, in several or on a cluster; returns the counts of all files."""
    total, started = RowCounts(), monotonic()

    def report(rows: int, files: int) -> None:
        if progress is not None:
            message = f"{rows:,} rows, {files} of {len(tasks)} files"
            progress(Progress(job="apply", done=rows, seconds=monotonic() - started, message=message))

    if scheduler is None and jobs == 1:
        for files, task in enumerate(tasks):
            total.add(task.run_with(lambda rows, files=files: report(total.rows + rows, files)))  # type: ignore[misc]
            report(total.rows, files + 1)
        return total
    with closing(executor_for(jobs, scheduler).run(remaining_tasks(tasks, ()))) as finished:
        for files, (_, counts) in enumerate(finished, start=1):
            total.add(RowCounts.from_dict(counts))
            report(total.rows, files)
    return total


def _read_counts(path: Path, output: Path) -> RowCounts | None:
    """The counts of an output that is complete; None if it is not."""
    if not output.exists():
        return None
    try:
        return RowCounts.from_dict(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""Files and folders: streamed, resumable, and there whole or not at all.

Work is done in a hidden folder beside the output. Every few million rows become a part that a killed run leaves behind
and the next one keeps; the output takes its place, in one step, when all of it is there.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
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
from privacygames.jobs import executor_for, unfinished
from privacygames.progress import Progress, ProgressCallback
from privacygames.tables.accounting import CostLimits, refuse_epsilon_limit
from privacygames.tables.apply_rules import Repeat, Rules
from privacygames.tables.kernel import RowCounts
from privacygames.tables.manifest import Manifest, described
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger
from privacygames.tables.release_setup import Prescan, Setup, setup_from
from privacygames.tables.row_batches import grouped, numbered
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
"""Rows between two points from which a killed run goes on: some four millions."""

MANIFEST = "_manifest.json"
"""In a folder of data, names that start with an underscore are not taken for data."""


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
    scheduler: str | None = None,
    progress: ProgressCallback | None = None,
) -> Manifest:
    """Apply mechanisms to a file (CSV, ``.csv.gz`` or Parquet) or a folder; write the same, and a manifest beside it.

    Killed, the same call goes on where it stopped; until it is done, nothing that looks complete is there. Without key
    columns every call that ends is another release: rows are drawn for their position in their file, once.

    Args:
        source: a file or folder.
        out: where the output is to be; it must not be there yet.
        rules: as in :func:`apply`.
        key: as in :func:`apply`; needed for ``repeat="same"``, where a run that goes on must draw as before.
        key_columns: as in :func:`apply`.
        user: as in :func:`apply`.
        repeat: as in :func:`apply`.
        any_pair_limit: as in :func:`apply`.
        per_unit_limit: as in :func:`apply`.
        epsilon_limit: as in :func:`apply`.
        ledger: as in :func:`apply`; charged when all of the output is there, just before it takes its place.
        separator: between the fields of CSV files; by default told from the first line.
        jobs: processes; more than one work on several files at once.
        scheduler: a Dask scheduler's address; its workers must see the same files.
        progress: called now and then.
    """
    refuse_epsilon_limit(epsilon_limit)
    given, target = Path(source).absolute(), Path(out).absolute()  # workers may have another folder
    if repeat == "same" and key is None:
        raise InvalidProblem(Field("repeat"), "='same' with files needs a key: a run that goes on must draw as before")
    files = _files(given, target)
    limits = CostLimits(any_pair_limit, per_unit_limit)
    options: dict[str, Any] = {"key_columns": key_columns, "user": user, "repeat": repeat, "ledger": ledger}
    base = setup_from(rules, key=key, limits=limits, **options)
    work = Work(given, target, files, separator)
    asked = _fingerprint(work, base, key)
    manifest_of = _surveyed(work, base)
    with file_lock(work.lock) as ours:
        if not ours:
            raise InvalidProblem(f"another process is writing {target}: wait for it")
        fresh = work.begin(asked)
        release = work.release if key is None else ""
        tasks = [FileTask(work, name, _for_file(base, name), asked) for name in files]
        try:
            if key is None:  # with one, this may be a release that was charged before: its draws will tell
                base.require_room(manifest_of(RowCounts()), release)
            manifest = manifest_of(_finish(tasks, jobs, scheduler, progress))
            if _fingerprint(work, base, key) != asked:
                raise InvalidProblem("the input changed while it was read, and nothing was written: start again")
            manifest = base.commit(manifest, release)
        except (InvalidProblem, BudgetExceeded):
            if fresh:  # refused: nobody will go on with it
                work.abandon()
            raise
        work.publish(manifest)
    return manifest


@dataclass(frozen=True)
class Work:
    """Where everything is."""

    source: Path
    out: Path
    files: tuple[str, ...]
    separator: str | None

    @property
    def folder(self) -> Path:
        """The hidden folder that work is done in."""
        return self.out.parent / f".{self.out.name}.unfinished"

    @property
    def release(self) -> str:
        """A name for what the work releases, the same when it is gone on with."""
        return str(json.loads((self.folder / "job.json").read_text())["release"])

    @property
    def lock(self) -> Path:
        """What the process at work holds."""
        return self.out.parent / f".{self.out.name}.lock"

    @property
    def single(self) -> bool:
        """Whether it is one file, rather than a folder."""
        return self.source.is_file()

    def input(self, name: str) -> Path:
        """A file to be read."""
        return self.source if self.single else self.source / name

    def output(self, name: str) -> Path:
        """Where its answers are gathered."""
        return self.folder / "data" / name

    def parts(self, name: str) -> Path:
        """Where its parts are kept until then."""
        return self.folder / "parts" / sha256(name.encode()).hexdigest()[:16]

    def counted(self, name: str) -> Path:
        """What was counted in it, there when it is finished."""
        return self.folder / "counted" / sha256(name.encode()).hexdigest()[:16]

    def begin(self, fingerprint: str) -> bool:
        """Make the folder, or go on with it if it is of the same work; else start anew. Returns whether it is new."""
        if self.out.exists():  # since we looked first, another process wrote it: that is released, and is not replaced
            self.lock.unlink(missing_ok=True)
            raise InvalidProblem(_taken(self.out))
        job = self.folder / "job.json"
        try:
            begun = json.loads(job.read_text())
            same = begun["work"] == fingerprint and isinstance(begun["release"], str)
        except (OSError, ValueError, KeyError, TypeError):
            same = False
        if self.folder.exists() and not same:
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if not same:
            write_text(job, json.dumps({"work": fingerprint, "release": token_hex(16)}))
        return not same

    def publish(self, manifest: Manifest) -> None:
        """Put output and manifest in their place; the data comes last."""
        lost = [name for name in self.files if not self.output(name).exists()]
        if lost:
            raise UnreadableFile(self.output(lost[0]), "no worker left it there: workers must see the same files")
        if self.single:
            manifest.write(manifest_path(self.out))
            self.output(self.files[0]).replace(self.out)
        else:
            manifest.write(self.folder / "data" / MANIFEST)
            (self.folder / "data").replace(self.out)
        self.abandon()

    def abandon(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.unlink(missing_ok=True)


def manifest_path(out: Path) -> Path:
    """Where the manifest of a single file is; a folder has it inside."""
    return out.with_name(f"{out.name}.manifest.json")


def _files(source: Path, out: Path) -> tuple[str, ...]:
    """The names of the files to be read, refusing what cannot become an output."""
    if not source.exists():
        raise UnreadableFile(source, "there is no such file or folder")
    if out.exists():
        raise InvalidProblem(_taken(out))
    if not out.resolve().parent.is_dir():
        raise InvalidProblem(f"there is no folder {out.resolve().parent} to write to")
    if source.is_file():
        require_same_ending(source, out)
        return (source.name,)
    if out.resolve().is_relative_to(source.resolve()):
        raise InvalidProblem("the output cannot be inside the folder that is read")
    return table_files_in(source)


def _taken(out: Path) -> str:
    return f"{out} exists already: choose another name, or remove it"


def _surveyed(work: Work, setup: Setup) -> Callable[[RowCounts], Manifest]:
    """Look at people and keys of all files, and refuse what must not be released; then nothing is written yet."""
    survey = Prescan(setup)
    schema = None
    for name in work.files:
        table = open_table(work.input(name), setup.rules, work.separator)
        kernel = setup.kernel(table.schema)
        schema = schema or table.schema
        if not schema.equals(table.schema):
            raise InvalidProblem(f"{name} has other columns than {work.files[0]}: files of one folder must be alike")
        if setup.watched:
            for batch in table.batches(setup.watched):
                columns = {each: batch.column(each) for each in batch.schema.names}
                survey.look(columns, batch.num_rows, kernel, odd=False, at=None)
    survey.manifest()
    return lambda counts: survey.manifest(work.files, counts)


def _for_file(setup: Setup, name: str) -> Setup:
    """Positions are counted in each file by itself; key columns hold for all of them. Workers charge nothing."""
    source = name if setup.identity.by_position else ""
    return replace(setup, ledger=None, identity=replace(setup.identity, source=source))


def _fingerprint(work: Work, setup: Setup, key: ReleaseKey | None) -> str:
    """The same for the same input, rules and key; without a key of the caller's, any new one goes on as well.

    A row is only ever released by one of them: what was finished is kept, and the rest has not been seen by anybody.
    Whatever changes a file changes its ctime, which, unlike the other times, nobody can set back.
    """
    found = [(name, work.input(name).stat()) for name in work.files]
    stats = [(name, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for name, each in found]
    rules = [(described(rule), rule.rule.invalid, rule.rule.for_missing) for rule in setup.rules]
    kept = None if key is None else key.check_value()
    asked = (stats, rules, asdict(setup.identity), setup.user, setup.repeat, kept, work.separator)
    return digest_of("file release", *asked)


@dataclass(frozen=True, eq=False)
class FileTask:
    """The work of one file: its parts one after the other, then all of them as one."""

    work: Work
    name: str
    setup: Setup
    asked: str

    @property
    def key(self) -> str:
        """Which file of which work: a cluster takes tasks with one key for one task, whoever they are from."""
        return digest_of("file of a release", self.asked, str(self.work.out), self.name)

    def run(self) -> dict[str, Any]:
        """Write the file's output; returns what was counted."""
        return self.run_with(lambda _rows: None).to_dict()

    def run_with(self, tick: Callable[[int], None]) -> RowCounts:
        """The same, telling now and then how many rows are done."""
        folder, target = self.work.parts(self.name), self.work.output(self.name)
        counted = self.work.counted(self.name)
        done = _read_tally(counted, target)
        if done is not None:
            tick(done.rows)
            return done
        for each in (folder, target.parent, counted.parent):
            each.mkdir(parents=True, exist_ok=True)
        table = open_table(self.work.input(self.name), self.setup.rules, self.work.separator)
        counts = self._write_parts(table, folder, tick)
        self._join(table, folder, target)
        write_text(counted, json.dumps(counts.to_dict()))
        shutil.rmtree(folder)
        return counts

    def _write_parts(self, table: TableFile, folder: Path, tick: Callable[[int], None]) -> RowCounts:
        kernel = self.setup.kernel(table.schema)
        total, number = RowCounts(), 0
        ending = ending_of(table.path)
        while (known := _read_tally(folder / f"{number}.tally", folder / f"{number}{ending}")) is not None:
            total.add(known)
            number += 1
        tick(total.rows)
        batches = numbered(table.batches(skip=total.rows), total.rows)
        for start, group in grouped(batches, PART_ROWS):
            counts = RowCounts()
            with (
                open_atomic(folder / f"{number}{ending}") as file,
                closing(self._writer(table, file, kernel.schema, first=number == 0)) as writer,
            ):
                for at, batch in group:
                    for made in kernel.batches([batch], counts, at):
                        writer.write(made)
                    tick(start + counts.rows)
            write_text(folder / f"{number}.tally", json.dumps(counts.to_dict()))
            total.add(counts)
            number += 1
        if number == 0:  # a table without rows has a schema all the same
            with open_atomic(folder / f"0{ending}") as file:
                self._writer(table, file, kernel.schema, first=True).close()
        return total

    def _writer(self, table: TableFile, file: IO[bytes], schema: Any, *, first: bool) -> TableWriter:
        separator = self.work.separator or separator_of(table.path)
        return table_writer(ending_of(table.path), file, schema, separator, header=first)

    def _join(self, table: TableFile, folder: Path, target: Path) -> None:
        """All parts as one file, a batch at a time."""
        ending = ending_of(table.path)
        parts = sorted(folder.glob(f"*{ending}"), key=lambda path: int(path.name.removesuffix(str(ending))))
        if len(parts) == 1:
            parts[0].replace(target)
            return
        with open_atomic(target) as file:
            if ending != PARQUET:  # files of gzip, too, may stand one behind the other
                for part in parts:
                    with part.open("rb") as piece:
                        shutil.copyfileobj(piece, file)
                return
            with closing(self._writer(table, file, open_table(parts[0], ()).schema, first=True)) as writer:
                for part in parts:
                    for batch in open_table(part, ()).batches():
                        writer.write(batch)


def _finish(tasks: list[FileTask], jobs: int, scheduler: str | None, progress: ProgressCallback | None) -> RowCounts:
    """Every file, here or elsewhere; what was counted in all of them."""
    total, started = RowCounts(), monotonic()

    def tell(rows: int, files: int) -> None:
        if progress is not None:
            message = f"{rows:,} rows, {files} of {len(tasks)} files"
            progress(Progress(job="apply", done=rows, seconds=monotonic() - started, message=message))

    if scheduler is None and jobs == 1:
        for files, task in enumerate(tasks):
            total.add(task.run_with(lambda rows, files=files: tell(total.rows + rows, files)))  # type: ignore[misc]
            tell(total.rows, files + 1)
        return total
    with closing(executor_for(jobs, scheduler).work(unfinished(tasks, ()))) as finished:
        for files, (_, counted) in enumerate(finished, start=1):
            total.add(RowCounts.from_dict(counted))
            tell(total.rows, files)
    return total


def _read_tally(path: Path, of: Path) -> RowCounts | None:
    """What was counted of a file that is finished; None where it is not."""
    if not of.exists():
        return None
    try:
        return RowCounts.from_dict(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None

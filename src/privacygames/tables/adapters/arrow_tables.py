"""PyArrow: tables and batches at once; readers and datasets batch by batch, in constant memory."""

from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import CHUNK, RowCounts, require_near
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_setup import Prescan, Setup


def release(given: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A table, record batch, reader or dataset with answers in it; of a dataset, a reader."""
    pa = import_optional("pyarrow")
    if isinstance(given, pa.RecordBatchReader):
        return _reader(given, setup)
    if isinstance(given, pa.RecordBatch):
        table, manifest = release(pa.Table.from_batches([given]), setup)
        return table.combine_chunks().to_batches()[0] if table.num_rows else _empty(table), manifest
    if isinstance(given, pa.Table):
        return _table(given, setup)
    return _dataset(given, setup)


def _table(table: Any, setup: Setup) -> tuple[Any, Manifest]:
    pa = import_optional("pyarrow")
    kernel = setup.kernel(table.schema)
    survey = surveyed(table.select(list(setup.watched)).to_batches(CHUNK), setup, kernel, odd=False)
    counts = RowCounts()
    survey.manifest()  # refuses before anything is drawn
    made = pa.Table.from_batches(list(kernel.batches(table.to_batches(CHUNK), counts)), schema=kernel.schema)
    return made, survey.committed(counts)


def surveyed(batches: Any, setup: Setup, kernel: Any, *, odd: bool) -> Prescan:
    """A look at record batches."""
    survey, at = Prescan(setup), 0
    if not odd and not setup.watched:
        return survey
    for batch in batches:
        survey.look({name: batch.column(name) for name in batch.schema.names}, batch.num_rows, kernel, odd=odd, at=at)
        at += batch.num_rows
    return survey


def _reader(reader: Any, setup: Setup) -> tuple[Any, Manifest]:
    if setup.watched:
        raise InvalidProblem(
            "a reader can be read once, and people or key columns are looked at before anything is released: give a "
            "table or a dataset"
        )
    pa = import_optional("pyarrow")
    kernel, counts = setup.kernel(reader.schema), RowCounts()
    made = pa.RecordBatchReader.from_batches(kernel.schema, _near(kernel.batches(reader, counts), setup, counts))
    # Counts are complete when the reader was read to its end; what a row costs is known before.
    return made, setup.commit(setup.manifest(counts, None))


def _near(batches: Any, setup: Setup, counts: RowCounts) -> Any:
    """Batches as long as not too many of the rows so far were moved far."""
    for batch in batches:
        require_near(setup.rules, counts)
        yield batch


def _dataset(dataset: Any, setup: Setup) -> tuple[Any, Manifest]:
    pa = import_optional("pyarrow")
    kernel = setup.kernel(dataset.schema)
    columns = list(dict.fromkeys([*kernel.needs, *setup.watched]))
    survey = surveyed(dataset.scanner(columns=columns).to_reader(), setup, kernel, odd=True)
    manifest = survey.committed()
    kernel.expect(survey.marks)
    batches = kernel.batches(dataset.scanner().to_reader(), RowCounts())
    return pa.RecordBatchReader.from_batches(kernel.schema, batches), manifest


def _empty(table: Any) -> Any:
    pa = import_optional("pyarrow")
    return pa.RecordBatch.from_pylist([], schema=table.schema)

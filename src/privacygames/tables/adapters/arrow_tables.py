"""PyArrow: tables and record batches at once; readers and datasets batch by batch, in constant memory."""

from collections.abc import Iterator
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts, require_few_far_rows
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_plan import ReleasePlan


def release(table: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a table, record batch, reader or dataset; a dataset becomes a reader."""
    pa = import_optional("pyarrow")
    if isinstance(table, pa.RecordBatchReader):
        return _release_reader(table, plan)
    if isinstance(table, pa.RecordBatch):
        released, manifest = _release_table(pa.Table.from_batches([table]), plan)
        if not released.num_rows:
            return pa.RecordBatch.from_pylist([], schema=released.schema), manifest
        return released.combine_chunks().to_batches()[0], manifest
    if isinstance(table, pa.Table):
        return _release_table(table, plan)
    return _release_dataset(table, plan)


def _release_table(table: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    pa = import_optional("pyarrow")
    kernel = plan.kernel(table.schema)
    batches = table.select(list(plan.prescan_columns)).to_batches(CHUNK)
    account = prescan_batches(batches, plan, kernel, count_rows=False).account()
    counts = RowCounts()
    released = list(kernel.batches(table.to_batches(CHUNK), counts))
    return pa.Table.from_batches(released, schema=kernel.schema), plan.commit(account, counts)


def prescan_batches(batches: Any, plan: ReleasePlan, kernel: Kernel, *, count_rows: bool) -> Prescan:
    """Scan record batches; ``count_rows`` is for engines that draw later."""
    prescan, start = Prescan(plan), 0
    if not count_rows and not plan.prescan_columns:
        return prescan
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names}
        prescan.add(columns, batch.num_rows, kernel, count_rows=count_rows, start=start)
        start += batch.num_rows
    return prescan


def _release_reader(reader: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    if plan.prescan_columns:
        raise InvalidProblem(
            "a reader can be read once, and people or key columns are scanned before anything is released: give a "
            "table or a dataset"
        )
    pa = import_optional("pyarrow")
    kernel, counts = plan.kernel(reader.schema), RowCounts()
    batches = _with_few_far_rows(kernel.batches(reader, counts), plan, counts)
    # The counts are complete when the reader was read to its end; the cost of a row is known before.
    return pa.RecordBatchReader.from_batches(kernel.schema, batches), plan.commit(plan.account(None), counts)


def _with_few_far_rows(batches: Iterator[Any], plan: ReleasePlan, counts: RowCounts) -> Iterator[Any]:
    """Batches, until too many of the rows read so far were moved far to their nearest secret."""
    for batch in batches:
        require_few_far_rows(plan.rules, counts)
        yield batch


def _release_dataset(dataset: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    pa = import_optional("pyarrow")
    kernel = plan.kernel(dataset.schema)
    columns = list(dict.fromkeys([*kernel.needs, *plan.prescan_columns]))
    prescan = prescan_batches(dataset.scanner(columns=columns).to_reader(), plan, kernel, count_rows=True)
    manifest = plan.commit(prescan.account(), prescan.counts)
    kernel.expect(prescan.marks)
    batches = kernel.batches(dataset.scanner().to_reader(), RowCounts())
    return pa.RecordBatchReader.from_batches(kernel.schema, batches), manifest

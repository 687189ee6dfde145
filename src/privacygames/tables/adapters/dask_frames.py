"""Dask DataFrames, partition by partition. Partitions may be computed again, so their rows need an identity."""

from functools import partial
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.adapters.pandas_frames import kernel_for, prescan_frame, transform
from privacygames.tables.kernel import CHANGED, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_plan import ReleasePlan

SAMPLE_ROWS = 1000
"""Rows from which the types of object columns are inferred."""


def release(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a Dask frame; its data is scanned once before, for rows, people and keys."""
    import dask
    import dask.dataframe as dd

    plan.require_identity("Dask")
    partitions = frame.to_delayed()
    kernel = kernel_for(_sample(frame, partitions, plan), plan)
    scan = dask.delayed(partial(_prescan_partition, plan=plan, kernel=kernel), pure=False)
    prescans: tuple[Prescan, ...] = dask.compute(*(scan(partition) for partition in partitions))
    total = Prescan(plan)
    for prescan in prescans:
        total.merge(prescan)
    manifest = plan.commit(total.account(), total.counts)
    draw = dask.delayed(partial(_transform_partition, kernel=kernel), pure=False)
    meta, _ = transform(frame._meta, kernel, 0)
    released = [draw(partition, prescan.counts) for partition, prescan in zip(partitions, prescans, strict=True)]
    with dask.config.set({"dataframe.convert-string": False}):  # else Dask converts lists, bytes and dates to texts
        return dd.from_delayed(released, meta=meta, divisions=frame.divisions, verify_meta=False), manifest


def _sample(frame: Any, partitions: list[Any], plan: ReleasePlan) -> Any:
    """A pandas frame with columns of the same types. Types of object columns show in the data only."""
    import dask

    read = {name for rule in plan.rules for name in rule.columns} | set(plan.prescan_columns)
    if any(name in read and kind == np.dtype(object) for name, kind in frame.dtypes.items()):
        for partition in partitions:
            (rows,) = dask.compute(dask.delayed(_first_rows)(partition))
            if len(rows):
                return rows
    return frame._meta_nonempty


def _first_rows(partition: Any) -> Any:
    return partition.head(SAMPLE_ROWS)


def _prescan_partition(partition: Any, *, plan: ReleasePlan, kernel: Kernel) -> Prescan:
    prescan = prescan_frame(partition, plan, kernel, count_rows=True)
    prescan.marks.clear()  # their sums, in the counts, are enough for a whole partition
    return prescan


def _transform_partition(partition: Any, scanned: RowCounts, *, kernel: Kernel) -> Any:
    released, counts = transform(partition, kernel, 0)
    if counts.draws != scanned.draws:
        raise InvalidProblem(CHANGED.format("Some"))
    return released

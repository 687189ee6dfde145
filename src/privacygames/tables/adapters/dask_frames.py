"""Dask DataFrames: each partition by itself. Partitions may be computed again, so their rows need an identity."""

from functools import partial
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.adapters.pandas_frames import kernel_for, survey_of, transform
from privacygames.tables.kernel import CHANGED, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Prescan, Setup

SOME = 1000
"""Rows enough to tell what columns hold."""


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A Dask frame with answers in it. The data is looked at once before: how many rows, whose, which are odd."""
    import dask
    import dask.dataframe as dd

    setup.require_identity("Dask")
    parts = frame.to_delayed()
    kernel = kernel_for(_typical(frame, parts, setup), setup)
    look = dask.delayed(partial(_surveyed, setup=setup, kernel=kernel), pure=False)
    surveys: tuple[Prescan, ...] = dask.compute(*(look(part) for part in parts))
    whole = Prescan(setup)
    for survey in surveys:
        whole.merge(survey)
    manifest = whole.committed()
    work = dask.delayed(partial(_transformed, kernel=kernel), pure=False)
    meta, _ = transform(frame._meta, kernel, 0)
    made = [work(part, survey.counts) for part, survey in zip(parts, surveys, strict=True)]
    with dask.config.set({"dataframe.convert-string": False}):  # else Dask makes texts of lists, bytes and dates, too
        return dd.from_delayed(made, meta=meta, divisions=frame.divisions, verify_meta=False), manifest


def _typical(frame: Any, parts: list[Any], setup: Setup) -> Any:
    """A frame whose columns are like those to come. Of columns of objects only what they hold says what they are."""
    import dask

    read = {name for rule in setup.rules for name in rule.columns} | set(setup.watched)
    if any(name in read and kind == np.dtype(object) for name, kind in frame.dtypes.items()):
        for part in parts:
            (some,) = dask.compute(dask.delayed(_first_rows)(part))
            if len(some):
                return some
    return frame._meta_nonempty


def _first_rows(part: Any) -> Any:
    return part.head(SOME)


def _surveyed(part: Any, *, setup: Setup, kernel: Kernel) -> Prescan:
    survey = survey_of(part, setup, kernel, odd=True)
    survey.marks.clear()  # the sum of them, in the counts, says enough about a whole partition
    return survey


def _transformed(part: Any, surveyed: RowCounts, *, kernel: Kernel) -> Any:
    made, counts = transform(part, kernel, 0)
    if counts.draws != surveyed.draws:
        raise InvalidProblem(CHANGED.format("Some"))
    return made

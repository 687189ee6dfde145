"""Dask DataFrames: each partition by itself, with the position that its first row has in the whole."""

from functools import partial
from typing import Any

import numpy as np

from privacygames.tables.adapters.pandas_frames import kernel_for, survey_of, transform
from privacygames.tables.kernel import Kernel
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Setup, Survey

SOME = 1000
"""Rows enough to tell what columns hold."""


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A Dask frame with answers in it. The data is looked at once before: how many rows, whose, which are odd."""
    import dask
    import dask.dataframe as dd

    parts = frame.to_delayed()
    kernel = kernel_for(_typical(frame, parts, setup), setup)
    look = dask.delayed(partial(_surveyed, setup=setup, kernel=kernel), pure=False)
    surveys: tuple[Survey, ...] = dask.compute(*(look(part) for part in parts))
    whole = Survey(setup)
    for survey in surveys:
        whole.merge(survey)
    manifest = whole.manifest()
    starts = np.cumsum([0, *(survey.tally.rows for survey in surveys)])[:-1]
    work = dask.delayed(partial(_transformed, kernel=kernel), pure=False)
    meta, _ = transform(frame._meta, kernel, 0)
    made = [work(part, int(start)) for part, start in zip(parts, starts, strict=True)]
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


def _surveyed(part: Any, *, setup: Setup, kernel: Kernel) -> Survey:
    return survey_of(part, setup, kernel, odd=True)


def _transformed(part: Any, start: int, *, kernel: Kernel) -> Any:
    return transform(part, kernel, start)[0]

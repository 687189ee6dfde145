"""Dask DataFrames: each partition by itself, with the position that its first row has in the whole."""

from functools import partial
from typing import Any

import numpy as np

from privacygames.tables.adapters.pandas_frames import kernel_for, survey_of, transform
from privacygames.tables.kernel import Kernel
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Setup, Survey


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A Dask frame with answers in it. The data is looked at once before: how many rows, whose, which are odd."""
    import dask
    import dask.dataframe as dd

    kernel = kernel_for(frame._meta_nonempty, setup)
    parts = frame.to_delayed()
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


def _surveyed(part: Any, *, setup: Setup, kernel: Kernel) -> Survey:
    return survey_of(part, setup, kernel, odd=True)


def _transformed(part: Any, start: int, *, kernel: Kernel) -> Any:
    return transform(part, kernel, start)[0]

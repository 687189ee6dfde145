"""pandas: columns are converted one by one, so that all others keep dtype, index and attributes as they are."""

from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_setup import Prescan, Setup


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A data frame with answers in it."""
    kernel = kernel_for(frame, setup)
    survey = survey_of(frame, setup, kernel, odd=False)
    survey.manifest()  # refuses before anything is drawn
    made, counts = transform(frame, kernel, 0)
    return made, survey.committed(counts)


def kernel_for(frame: Any, setup: Setup) -> Kernel:
    """The kernel for frames like this one."""
    pa = import_optional("pyarrow")
    if not all(isinstance(name, str) for name in frame.columns) or not frame.columns.is_unique:
        raise InvalidProblem("the columns of the data frame must have distinct texts for names: rename them first")
    wanted = {name for rule in setup.rules for name in rule.columns} | set(setup.watched)
    fields = [pa.field(name, arrow_of(frame[name]).type if name in wanted else pa.null()) for name in frame.columns]
    return setup.kernel(pa.schema(fields))


def survey_of(frame: Any, setup: Setup, kernel: Kernel, *, odd: bool) -> Prescan:
    """A look at a frame, or at a part of one: where that stands is not known yet."""
    survey = Prescan(setup)
    names = [*kernel.needs, *setup.watched] if odd else setup.watched
    columns = {name: arrow_of(frame[name]) for name in dict.fromkeys(names)}
    if columns:
        survey.look(columns, len(frame), kernel, odd=odd, at=None)
    return survey


def transform(frame: Any, kernel: Kernel, at: int) -> tuple[Any, RowCounts]:
    """A frame, or a part of one, with answers in it."""
    import pandas as pd

    counts, answers, kept = RowCounts(), [], []
    columns = {name: arrow_of(frame[name]) for name in kernel.needs}
    for first in range(0, len(frame), CHUNK) or [0]:
        some = {name: column.slice(first, CHUNK) for name, column in columns.items()}
        count = min(CHUNK, len(frame) - first)
        answered = kernel.answer(some, count, at + first)
        counts.add(answered.counts)
        answers.append(answered.columns)
        kept.append(np.ones(count, dtype=bool) if answered.keep is None else answered.keep)
    rest = frame[np.concatenate(kept)] if counts.dropped else frame
    made: dict[str, Any] = {}
    for name, origin in kernel.layout.columns:
        if origin == "answer":
            made[name] = _series([each[name] for each in answers], rest, frame, name)
        elif origin == "null":
            made[name] = _nulls(rest[name])
        else:
            made[name] = rest[name]
    result = pd.DataFrame(made, index=rest.index, columns=pd.Index(kernel.layout.names, name=frame.columns.name))
    result.attrs = dict(frame.attrs)
    return result, counts


def arrow_of(series: Any) -> Any:
    """A column as an Arrow array; what pandas takes for missing is null."""
    pa = import_optional("pyarrow")
    values = series
    if series.dtype == object:
        sets = series.map(lambda value: isinstance(value, set | frozenset))
        values = (
            series.map(lambda value: sorted(value) if isinstance(value, set | frozenset) else value)
            if sets.any()
            else series
        )
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InvalidProblem(f"column {series.name!r} holds values of several kinds: cast it to one") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _series(arrays: list[Any], rest: Any, frame: Any, name: str) -> Any:
    """Answers as a column, in the dtype of the one they replace where that fits."""
    import pandas as pd

    pa = import_optional("pyarrow")
    array = pa.chunked_array(arrays).combine_chunks()
    before = frame[name].dtype if name in frame.columns else None
    if isinstance(before, pd.ArrowDtype):
        return pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type)), index=rest.index)
    series = pd.Series(array.to_pandas().array, index=rest.index)
    same_kind = (
        before is not None and not isinstance(before, pd.CategoricalDtype) and arrow_of(frame[name]).type == array.type
    )
    if same_kind and pd.api.types.is_extension_array_dtype(before):
        return series.astype(before)
    return series


def _nulls(series: Any) -> Any:
    """As many nulls; whole numbers and truth values have none in NumPy and become nullable ones."""
    import pandas as pd

    kind = series.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iub":
        kind = pd.BooleanDtype() if kind.kind == "b" else pd.Int64Dtype()
    if isinstance(kind, pd.CategoricalDtype):
        kind = pd.CategoricalDtype([])  # the categories are the secrets that occur
    return pd.Series(pd.array([None] * len(series), dtype=kind), index=series.index)

"""pandas: columns are converted one by one, so that all others keep their dtype, and the frame its index."""

from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_plan import ReleasePlan


def release(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a data frame."""
    kernel = kernel_for(frame, plan)
    account = prescan_frame(frame, plan, kernel, count_rows=False).account()
    released, counts = transform(frame, kernel, 0)
    return released, plan.commit(account, counts)


def kernel_for(frame: Any, plan: ReleasePlan) -> Kernel:
    """The kernel for frames with columns like this one's."""
    pa = import_optional("pyarrow")
    if not all(isinstance(name, str) for name in frame.columns) or not frame.columns.is_unique:
        raise InvalidProblem("the columns of the data frame must have distinct texts for names: rename them first")
    read = {name for rule in plan.rules for name in rule.columns} | set(plan.prescan_columns)
    fields = [pa.field(name, arrow_of(frame[name]).type if name in read else pa.null()) for name in frame.columns]
    return plan.kernel(pa.schema(fields))


def prescan_frame(frame: Any, plan: ReleasePlan, kernel: Kernel, *, count_rows: bool) -> Prescan:
    """Scan a frame or a partition of one; ``count_rows`` is for engines that draw later."""
    prescan = Prescan(plan)
    names = [*kernel.needs, *plan.prescan_columns] if count_rows else plan.prescan_columns
    columns = {name: arrow_of(frame[name]) for name in dict.fromkeys(names)}
    if columns:
        prescan.add(columns, len(frame), kernel, count_rows=count_rows, start=None)
    return prescan


def transform(frame: Any, kernel: Kernel, start: int) -> tuple[Any, RowCounts]:
    """A frame, or a partition of one, with outputs in place of secrets, and what was counted."""
    import pandas as pd

    counts, outputs, masks = RowCounts(), [], []
    columns = {name: arrow_of(frame[name]) for name in kernel.needs}
    for first in range(0, len(frame), CHUNK) or [0]:
        chunk = {name: column.slice(first, CHUNK) for name, column in columns.items()}
        count = min(CHUNK, len(frame) - first)
        drawn = kernel.draw(chunk, count, start + first)
        counts.add(drawn.counts)
        outputs.append(drawn.columns)
        masks.append(np.ones(count, dtype=bool) if drawn.keep is None else drawn.keep)
    remaining = frame[np.concatenate(masks)] if counts.dropped else frame
    series: dict[str, Any] = {}
    for name, origin in kernel.layout.columns:
        if origin == "output":
            series[name] = _output_series([chunk[name] for chunk in outputs], remaining, frame, name)
        elif origin == "null":
            series[name] = _nulls(remaining[name])
        else:
            series[name] = remaining[name]
    result = pd.DataFrame(series, index=remaining.index, columns=pd.Index(kernel.layout.names, name=frame.columns.name))
    result.attrs = dict(frame.attrs)
    return result, counts


def arrow_of(series: Any) -> Any:
    """A column as an Arrow array, with null for what pandas counts as missing."""
    pa = import_optional("pyarrow")
    values = series
    if series.dtype == object:
        is_set = series.map(lambda value: isinstance(value, set | frozenset))
        if is_set.any():
            values = series.map(lambda value: sorted(value) if isinstance(value, set | frozenset) else value)
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InvalidProblem(f"column {series.name!r} holds values of several kinds: cast it to one") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _output_series(arrays: list[Any], remaining: Any, frame: Any, name: str) -> Any:
    """Outputs as a column, in the dtype of the column that they replace, if that can hold them."""
    import pandas as pd

    pa = import_optional("pyarrow")
    array = pa.chunked_array(arrays).combine_chunks()
    dtype = frame[name].dtype if name in frame.columns else None
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type)), index=remaining.index)
    series = pd.Series(array.to_pandas().array, index=remaining.index)
    same_kind = (
        dtype is not None and not isinstance(dtype, pd.CategoricalDtype) and arrow_of(frame[name]).type == array.type
    )
    if same_kind and pd.api.types.is_extension_array_dtype(dtype):
        return series.astype(dtype)
    return series


def _nulls(series: Any) -> Any:
    """A column of nulls of the same length; integers and Booleans, which have no null in NumPy, become nullable."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        dtype = pd.BooleanDtype() if dtype.kind == "b" else pd.Int64Dtype()
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = pd.CategoricalDtype([])  # the categories are the secrets that occur
    return pd.Series(pd.array([None] * len(series), dtype=dtype), index=series.index)

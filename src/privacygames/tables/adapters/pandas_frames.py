"""pandas: columns are converted one by one, so that all others keep their dtype, and the frame its index."""

from collections import defaultdict
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidProblem
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.prescan import Prescan
from privacygames.tables.release_plan import ReleasePlan
from privacygames.tables.secret_columns import BLOCK


def release(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a data frame."""
    columns = ArrowColumns(frame)
    kernel = kernel_for(frame, plan, columns)
    account = prescan_frame(frame, plan, kernel, count_rows=False, columns=columns).account()
    released, counts = transform(frame, kernel, 0, columns)
    return released, plan.commit(account, counts)


class ArrowColumns(dict[str, Any]):
    """Columns of a data frame as Arrow arrays by name, each converted when it is first asked for.

    Args:
        frame: the data frame.
    """

    def __init__(self, frame: Any) -> None:
        super().__init__()
        self._frame = frame

    def __missing__(self, name: str) -> Any:
        self[name] = array = arrow_of(self._frame[name])
        return array

    def dtype(self, name: str) -> Any:
        """The dtype of a column in the frame; None if it has no such column."""
        return self._frame[name].dtype if name in self._frame.columns else None


def kernel_for(frame: Any, plan: ReleasePlan, columns: ArrowColumns | None = None) -> Kernel:
    """The kernel for frames with columns like this one's."""
    pa = import_optional("pyarrow")
    if not all(isinstance(name, str) for name in frame.columns) or not frame.columns.is_unique:
        raise InvalidProblem("the columns of the data frame must have distinct texts for names: rename them first")
    arrays = ArrowColumns(frame) if columns is None else columns
    read = {name for rule in plan.rules for name in rule.columns} | set(plan.prescan_columns)
    fields = [pa.field(name, arrays[name].type if name in read else pa.null()) for name in frame.columns]
    return plan.kernel(pa.schema(fields))


def prescan_frame(
    frame: Any, plan: ReleasePlan, kernel: Kernel, *, count_rows: bool, columns: ArrowColumns | None = None
) -> Prescan:
    """Scan a frame or a partition of one; ``count_rows`` is for engines that draw later."""
    prescan, arrays = Prescan(plan), ArrowColumns(frame) if columns is None else columns
    names = [*kernel.needs, *plan.prescan_columns] if count_rows else plan.prescan_columns
    needed = {name: arrays[name] for name in names}
    if needed:
        prescan.add(needed, len(frame), kernel, count_rows=count_rows, start=None)
    return prescan


def transform(frame: Any, kernel: Kernel, start: int, columns: ArrowColumns | None = None) -> tuple[Any, RowCounts]:
    """A frame, or a partition of one, with outputs in place of secrets, and what was counted."""
    import pandas as pd

    counts, outputs, masks = RowCounts(), [], []
    arrays = ArrowColumns(frame) if columns is None else columns
    needed = {name: arrays[name] for name in kernel.needs}
    for first in range(0, len(frame), CHUNK) or [0]:
        chunk = {name: column.slice(first, CHUNK) for name, column in needed.items()}
        count = min(CHUNK, len(frame) - first)
        drawn = kernel.draw(chunk, count, start + first, encode_lists=True)
        counts.add(drawn.counts)
        outputs.append(drawn.columns)
        masks.append(np.ones(count, dtype=bool) if drawn.keep is None else drawn.keep)
    remaining = frame[np.concatenate(masks)] if counts.dropped else frame
    series: dict[str, Any] = {}
    for name, origin in kernel.layout.columns:
        if origin == "output":
            series[name] = _output_series([chunk[name] for chunk in outputs], remaining, arrays, name)
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
    try:
        array = _arrow_of_objects(series) if series.dtype == object else pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):  # the last one for members of lists that have no hash
        raise InvalidProblem(f"column {series.name!r} holds values of several kinds: cast it to one") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _arrow_of_objects(series: Any) -> Any:
    pa, objects = import_optional("pyarrow"), series.to_numpy()
    if _hold_sets(objects[:BLOCK]):
        return _lists_of(objects)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if _hold_sets(objects):
            return _lists_of(objects)
        raise


def _hold_sets(objects: NDArray[np.object_]) -> bool:
    return any(issubclass(kind, set | frozenset) for kind in set(map(type, objects)))


def _lists_of(objects: NDArray[np.object_]) -> Any:
    """Sets, and perhaps lists, as an Arrow array of lists whose members are dictionary-encoded."""
    import pandas as pd

    pa = import_optional("pyarrow")
    lengths, missing = np.zeros(len(objects), dtype=np.int64), np.zeros(len(objects), dtype=bool)
    code_of: defaultdict[Any, int] = defaultdict(count().__next__)
    members = [np.zeros(0, dtype=np.int32)]
    for start in range(0, len(objects), BLOCK):  # each object is read three times: while it is in the cache
        part = slice(start, start + BLOCK)
        block = objects[part]
        if not _are_lists(block):
            missing[part] = pd.isna(block)
            block = block[~missing[part]]
            if not _are_lists(block):
                raise pa.ArrowInvalid
        lengths[part][~missing[part]] = np.fromiter(map(len, block), dtype=np.int64, count=len(block))
        codes = map(code_of.__getitem__, chain.from_iterable(block))
        members.append(np.fromiter(codes, dtype=np.int32, count=int(lengths[part].sum())))
    distinct = pa.array(list(code_of), from_pandas=True)
    encoded = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(members)), distinct)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return pa.LargeListArray.from_arrays(pa.array(ends), encoded, mask=pa.array(missing))


def _are_lists(objects: NDArray[np.object_]) -> bool:
    kinds = set(map(type, objects))
    return all(issubclass(kind, set | frozenset | list | tuple | np.ndarray) for kind in kinds)


def _output_series(arrays: list[Any], remaining: Any, originals: ArrowColumns, name: str) -> Any:
    """Outputs as a column, in the dtype of the column that they replace, if that can hold them."""
    import pandas as pd

    pa = import_optional("pyarrow")
    array = pa.chunked_array(arrays).combine_chunks()
    dtype = originals.dtype(name)
    is_encoded = pa.types.is_dictionary(array.type) and pa.types.is_nested(array.type.value_type)
    if is_encoded and not isinstance(dtype, pd.ArrowDtype):
        return pd.Series(_shared_lists(array), index=remaining.index)
    if isinstance(dtype, pd.ArrowDtype):
        decoded = array.dictionary.take(array.indices) if is_encoded else array
        return pd.Series(pd.array(decoded, dtype=pd.ArrowDtype(decoded.type)), index=remaining.index)
    series = pd.Series(array.to_pandas().array, index=remaining.index)
    if dtype is None or isinstance(dtype, pd.CategoricalDtype) or not pd.api.types.is_extension_array_dtype(dtype):
        return series
    return series.astype(dtype) if originals[name].type == array.type else series


def _shared_lists(encoded: Any) -> Any:
    """The lists of a dictionary as NumPy arrays, one for all rows that hold it; so they cannot be written to."""
    lists = np.empty(len(encoded.dictionary) + 1, dtype=object)  # the last one is for nulls
    lists[:-1] = encoded.dictionary.to_pandas()
    for members in lists[:-1]:
        members.flags.writeable = False
    indices = import_optional("pyarrow.compute").fill_null(encoded.indices, len(encoded.dictionary))
    return lists[indices.to_numpy(zero_copy_only=False)]


def _nulls(series: Any) -> Any:
    """A column of nulls of the same length; integers and Booleans, which have no null in NumPy, become nullable."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        dtype = pd.BooleanDtype() if dtype.kind == "b" else pd.Int64Dtype()
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = pd.CategoricalDtype([])  # the categories are the secrets that occur
    return pd.Series(pd.array([None] * len(series), dtype=dtype), index=series.index)

"""Polars, eager and lazy. A lazy frame stays lazy: its rows need an identity, and filters stay after the draw."""

from typing import Any

import numpy as np

from privacygames.tables.adapters.arrow_tables import prescan_batches
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_plan import ReleasePlan


def release(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    """Release a frame; the released one is eager or lazy as well."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        return _release_lazy(frame, plan)
    kernel = plan.kernel(frame.head(0).to_arrow().schema)
    batches = frame.select(plan.prescan_columns).to_arrow().to_batches(CHUNK)
    account = prescan_batches(batches, plan, kernel, count_rows=False).account()
    released, counts = _transform(frame, kernel, 0)
    return released, plan.commit(account, counts)


def _release_lazy(frame: Any, plan: ReleasePlan) -> tuple[Any, Manifest]:
    import polars as pl

    plan.require_identity("a lazy frame of Polars")
    empty = pl.DataFrame(schema=frame.collect_schema())
    kernel = plan.kernel(empty.to_arrow().schema)
    columns = list(dict.fromkeys([*kernel.needs, *plan.prescan_columns]))
    batches = (batch for part in _parts(frame.select(columns)) for batch in part.to_arrow().to_batches(CHUNK))
    prescan = prescan_batches(batches, plan, kernel, count_rows=True)
    manifest = plan.commit(prescan.account(), prescan.counts)
    kernel.expect(prescan.marks)

    def draw(part: Any) -> Any:
        return _transform(part, kernel, 0)[0]

    # By default, Polars 1 moves filters, column selections and slices before a function: a filter on outputs would then
    # be applied to secrets.
    released = frame.map_batches(
        draw,
        schema=_transform(empty, kernel, 0)[0].schema,
        streamable=True,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )
    return released, manifest


def _parts(frame: Any) -> Any:
    """A lazy frame part by part; older versions of Polars collect it at once."""
    return frame.collect_batches() if hasattr(frame, "collect_batches") else [frame.collect()]


def _transform(frame: Any, kernel: Kernel, start: int) -> tuple[Any, RowCounts]:
    import polars as pl

    counts = RowCounts()
    table = frame.select(kernel.needs).to_arrow()
    released = []
    for first in range(0, frame.height, CHUNK) or [0]:
        chunk = table.slice(first, CHUNK).combine_chunks()
        columns = {name: _as_array(chunk.column(name)) for name in kernel.needs}
        drawn = kernel.draw(columns, chunk.num_rows, start + first)
        counts.add(drawn.counts)
        part = frame.slice(first, CHUNK)
        remaining = part if drawn.keep is None else part.filter(pl.Series(np.asarray(drawn.keep)))
        released.append(_with_outputs(remaining, frame, kernel, drawn.columns))
    return pl.concat(released), counts


def _with_outputs(remaining: Any, frame: Any, kernel: Kernel, outputs: dict[str, Any]) -> Any:
    """The rows that stay, with outputs in place of secrets."""
    import polars as pl

    columns = []
    for name, origin in kernel.layout.columns:
        if origin == "output":
            series = pl.Series(name, outputs[name])
            replaced = frame.schema.get(name)
            if isinstance(replaced, pl.Enum):
                columns.append(_as_enum(series, outputs[name]))
            elif replaced is not None and series.dtype != replaced and _are_texts(series.dtype, replaced):
                columns.append(series.cast(replaced))  # categories stay categories
            else:
                columns.append(series)
        elif origin == "null":
            columns.append(pl.Series(name, [None] * remaining.height, dtype=remaining.schema[name]))
        else:
            columns.append(remaining[name])
    return pl.DataFrame(columns)


def _as_enum(series: Any, outputs: Any) -> Any:
    """An Enum of the possible outputs, if they have an order; other categories may be secrets."""
    import polars as pl

    ordered = getattr(outputs.type, "ordered", False)
    return series.cast(pl.Enum(outputs.dictionary.to_pylist())) if ordered else series


def _are_texts(*dtypes: Any) -> bool:
    """Whether all types are of texts, plain or as categories."""
    import polars as pl

    return all(
        any(isinstance(dtype, kind) or dtype == kind for kind in (pl.String, pl.Categorical)) for dtype in dtypes
    )


def _as_array(column: Any) -> Any:
    """A chunked array as one array."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

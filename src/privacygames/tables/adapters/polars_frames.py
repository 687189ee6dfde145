"""Polars, eager and lazy. A lazy frame stays one: its rows need an identity, and no filter passes the draw."""

from typing import Any

import numpy as np

from privacygames.tables.adapters.arrow_tables import surveyed
from privacygames.tables.kernel import CHUNK, Kernel, RowCounts
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_setup import Setup


def release(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    """A frame of the same kind with answers in it."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        return _lazy(frame, setup)
    kernel = setup.kernel(frame.head(0).to_arrow().schema)
    survey = surveyed(frame.select(setup.watched).to_arrow().to_batches(CHUNK), setup, kernel, odd=False)
    survey.manifest()  # refuses before anything is drawn
    made, counts = _transform(frame, kernel, 0)
    return made, survey.committed(counts)


def _lazy(frame: Any, setup: Setup) -> tuple[Any, Manifest]:
    import polars as pl

    setup.require_identity("a lazy frame of Polars")
    empty = pl.DataFrame(schema=frame.collect_schema())
    kernel = setup.kernel(empty.to_arrow().schema)
    columns = list(dict.fromkeys([*kernel.needs, *setup.watched]))
    batches = (batch for part in _parts(frame.select(columns)) for batch in part.to_arrow().to_batches(CHUNK))
    survey = surveyed(batches, setup, kernel, odd=True)
    manifest = survey.committed()
    kernel.expect(survey.marks)

    def answered(part: Any) -> Any:
        return _transform(part, kernel, 0)[0]

    # Polars 1 moves filters, columns and slices before a function unless it is told not to: a filter on answers would
    # then be one on secrets.
    made = frame.map_batches(
        answered,
        schema=_transform(empty, kernel, 0)[0].schema,
        streamable=True,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )
    return made, manifest


def _parts(frame: Any) -> Any:
    """A lazy frame piece by piece; at once where Polars is older than that."""
    return frame.collect_batches() if hasattr(frame, "collect_batches") else [frame.collect()]


def _transform(frame: Any, kernel: Kernel, at: int) -> tuple[Any, RowCounts]:
    import polars as pl

    counts = RowCounts()
    table = frame.select(kernel.needs).to_arrow()
    pieces = []
    for first in range(0, frame.height, CHUNK) or [0]:
        some = table.slice(first, CHUNK).combine_chunks()
        columns = {name: _whole(some.column(name)) for name in kernel.needs}
        answered = kernel.answer(columns, some.num_rows, at + first)
        counts.add(answered.counts)
        part = frame.slice(first, CHUNK)
        rest = part if answered.keep is None else part.filter(pl.Series(np.asarray(answered.keep)))
        pieces.append(_assembled(rest, frame, kernel, answered.columns))
    return pl.concat(pieces), counts


def _assembled(rest: Any, frame: Any, kernel: Kernel, answers: dict[str, Any]) -> Any:
    import polars as pl

    made = []
    for name, origin in kernel.layout.columns:
        if origin == "answer":
            series = pl.Series(name, answers[name])
            before = frame.schema.get(name)
            if isinstance(before, pl.Enum):
                made.append(_enum(series, answers[name]))
                continue
            plain = before is not None and series.dtype != before  # categories and the like stay what they were
            made.append(series.cast(before) if plain and _same_kind(series.dtype, before) else series)
        elif origin == "null":
            made.append(pl.Series(name, [None] * rest.height, dtype=rest.schema[name]))
        else:
            made.append(rest[name])
    return pl.DataFrame(made)


def _enum(series: Any, answers: Any) -> Any:
    """An Enum of the possible answers, where they have an order; categories that are no answers may be secrets."""
    import polars as pl

    ordered = getattr(answers.type, "ordered", False)
    return series.cast(pl.Enum(answers.dictionary.to_pylist())) if ordered else series


def _same_kind(one: Any, other: Any) -> bool:
    import polars as pl

    texts = (pl.String, pl.Categorical)
    return any(isinstance(one, kind) or one == kind for kind in texts) and any(
        isinstance(other, kind) or other == kind for kind in texts
    )


def _whole(column: Any) -> Any:
    """A chunked array of one chunk at most as an array."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

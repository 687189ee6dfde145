"""The column of a table that says whose row it is: rows that name nobody are refused, never taken for one person."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import UnknownLabel

MOST_ROWS = 5
"""Row numbers that a message lists."""


def require_people(column: Any, name: str = "", at: int | None = None) -> None:
    """Refuse rows whose user is null, NaN or an empty text.

    Args:
        column: an Arrow array.
        name: of the column, for the message.
        at: where its first row stands in the table; None where only its batch is known.

    Raises:
        UnknownLabel: how many such rows there are, and which are the first.
    """
    missing = np.flatnonzero(_missing(column))
    if len(missing):
        rows = ", ".join(str((at or 0) + int(row)) for row in missing[:MOST_ROWS])
        more = ", …" if len(missing) > MOST_ROWS else ""
        raise UnknownLabel(
            f"user column {name and repr(name) + ' '}is empty in {len(missing)} rows (null, NaN or an empty text): "
            f"nobody can be charged for them. Rows{'' if at is not None else ' of a batch'}, from 0: {rows}{more}"
        )


def _missing(column: Any) -> NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    missing = np.asarray(pc.is_null(plain, nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)
    if any(test(plain.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        empty = pc.equal(plain, pa.scalar("", plain.type)).fill_null(False)  # how nothing looks in CSV files
        missing = missing | np.asarray(empty.to_numpy(zero_copy_only=False), dtype=bool)
    return missing

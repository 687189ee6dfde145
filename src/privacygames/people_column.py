"""The user column of a table: rows without a user are refused, never counted as one more user."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import UnknownLabel

MAX_ROWS_LISTED = 5
"""Number of row numbers that a message lists."""


def require_user_ids(column: Any, name: str = "", at: int | None = None) -> None:
    """Raise if the user of any row is null, NaN or an empty string.

    Args:
        column: the user column, an Arrow array.
        name: the name of the column in the message.
        at: the table's row number of the first row; None where only the position in a batch is known.

    Raises:
        UnknownLabel: says how many such rows there are, and lists the first.
    """
    missing = np.flatnonzero(_missing(column))
    if len(missing):
        rows = ", ".join(str((at or 0) + int(row)) for row in missing[:MAX_ROWS_LISTED])
        more = ", …" if len(missing) > MAX_ROWS_LISTED else ""
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
        empty = pc.equal(plain, pa.scalar("", plain.type)).fill_null(False)  # a missing value in CSV files
        missing = missing | np.asarray(empty.to_numpy(zero_copy_only=False), dtype=bool)
    return missing

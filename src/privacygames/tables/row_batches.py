"""Record batches with their positions, and in groups."""

from collections.abc import Iterator
from typing import Any


def numbered(batches: Iterator[Any], start: int) -> Iterator[tuple[int, Any]]:
    """Batches with the position of their first row."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def grouped(batches: Iterator[tuple[int, Any]], rows: int) -> Iterator[tuple[int, Iterator[tuple[int, Any]]]]:
    """Batches in groups of at least so many rows, each group read as it is asked for."""
    for start, first in batches:

        def group(at: int = start, batch: Any = first) -> Iterator[tuple[int, Any]]:
            yield at, batch
            count = batch.num_rows
            while count < rows:
                following = next(batches, None)
                if following is None:
                    return
                count += following[1].num_rows
                yield following

        yield start, group()

"""Batches: small pieces of work that are sent to a worker together."""

from collections.abc import Iterator, Sequence

ENTRIES_PER_BATCH = 100_000
"""Entries of all outputs' blocks (n²m for each design) in one batch: a few tenths of a second, which is much longer
than it takes to send a job, and short enough to be done again where a worker dies."""

MIN_BATCHES = 32
"""Number of batches that work is divided into at least, one piece each if need be, so that workers end together."""


def batches(entries: Sequence[int]) -> Iterator[slice]:
    """Slices of a sequence of designs, in order, each of which is one job.

    >>> from privacygames.jobs import batches
    >>> [len(range(100)[batch]) for batch in batches([1000] * 100)] == [3] * 33 + [1]
    True

    Args:
        entries: n²m of each design.
    """
    most = max(1, len(entries) // MIN_BATCHES)
    start, total = 0, 0
    for position, size in enumerate(entries):
        if position > start and (position - start == most or total + size > ENTRIES_PER_BATCH):
            yield slice(start, position)
            start, total = position, 0
        total += size
    if entries:
        yield slice(start, len(entries))

"""Observed moves: pairs of secrets one step apart, from a sequence of labels or from visits in time slots."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces import Label, Space
from privacygames.validation import as_list


class Moves(NamedTuple):
    """Observed moves from one step to the next.

    Attributes:
        before: indices of secrets.
        after: the index of each one step later.
        times: when each move began, in unix seconds; None if unknown.
        visits: indices of all secrets seen, with or without a move.
        slot: seconds per step; None if unknown.
    """

    before: IntArray
    after: IntArray
    times: IntArray | None
    visits: IntArray
    slot: float | None


@runtime_checkable
class SlottedVisits(Protocol):
    """Visits in time slots, from which moves can be extracted: :class:`privacygames.traces.Visits`."""

    @property
    def users(self) -> tuple[str, ...]:
        """The users' names."""
        ...

    def moves(self, grid: Any, user: str, *, within: float | None = None) -> Moves:
        """The moves of one person between the cells of a grid."""
        ...


def extract_moves(
    space: Space, visits: SlottedVisits | Sequence[Label | None], user: str | None, within: float | None
) -> Moves:
    """The moves in one person's visits, or in a sequence of labels."""
    if isinstance(visits, SlottedVisits):
        if user is None and len(visits.users) != 1:
            raise InvalidProblem(f"the visits are of {len(visits.users)} people: say whose with user=")
        return visits.moves(space, visits.users[0] if user is None else user, within=within)
    if user is not None or within is not None:
        raise InvalidProblem(
            "user and within go with privacygames.traces.Visits; labels are one person's, a step apart"
        )
    if isinstance(visits, str | bytes | dict | set | frozenset):
        raise InvalidProblem("a trace must be a list of labels in the order of time, with None where nothing is known")
    labels = as_list(visits, "the trace")
    known = [at for at, label in enumerate(labels) if label is not None]
    cells = np.full(len(labels), -1, dtype=np.int64)
    if known:
        cells[known] = space.indices([labels[at] for at in known])
    before, after = cells[:-1], cells[1:]
    both = (before >= 0) & (after >= 0)
    return Moves(before[both], after[both], None, cells[cells >= 0], None)

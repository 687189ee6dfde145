"""What tells rows apart, as 128 bits for each: key columns, a person, or, for one draw only, the position.

Key columns and people are identities: the same row has the same one through every engine and file, in any order. A
position is none: it changes with every sort, filter, join or partition. So positions serve eager engines and files,
which draw each row once under a key that is forgotten; wherever a row may be drawn again, an identity is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privacygames.errors import Field, InvalidProblem
from privacygames.tables.identity_encoding import value_tags
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words

Arrays = Mapping[str, Any]
"""Arrow arrays by the name of the column."""

LASTING = (
    "name ",
    Field("key_columns"),
    " that tell every row from every other (an id, several columns together, or a row number that is stored with the "
    "data), or ",
    Field("user"),
    " and ",
    Field("repeat"),
    "='same'",
)
"""What to do where an identity is needed, as parts of a message."""


@dataclass(frozen=True)
class Identity:
    """What tells rows apart.

    Attributes:
        columns: the key columns in alphabetical order; none: the position in the table or file.
        source: the file that positions are in, where one release has as_list.
        per_secret: the columns name a person rather than a row, so that all their rows with the same secret get the
            same answer (``repeat="same"``).
    """

    columns: tuple[str, ...] = ()
    source: str = ""
    per_secret: bool = False

    @property
    def by_position(self) -> bool:
        """Whether rows are told apart by their position only."""
        return not self.columns

    def purpose(self) -> tuple[str, ...]:
        """What subkeys are derived from: positions are only comparable within a source."""
        return ("position", self.source) if self.by_position else ("columns", *self.columns)

    def tags(self, key: ReleaseKey, columns: Arrays, count: int, at: int) -> Words:
        """128 bits for each row, (rows, 2)."""
        tags = np.zeros((count, 2), dtype=np.uint64)
        if self.by_position:
            tags[:, 0] = np.arange(at, at + count, dtype=np.uint64)
            return tags
        chain = KeyedBits(key.derive("identity", *self.columns))
        for name in self.columns:
            tags = chain.encrypt(tags ^ value_tags(columns[name], name, lambda kind: key.derive("value", kind)))
        return tags

    def explain(self) -> str:
        """For manifests and messages."""
        if self.by_position:
            return "position in its file" if self.source else "position in the table"
        kind = "the person" if self.per_secret else "key columns"
        return f"{kind}: {', '.join(self.columns)}"


def identity_of(*, key_columns: str | Sequence[str] | None, repeat: str, user: str | None) -> Identity:
    """What tells rows apart, from what the caller said."""
    columns = (key_columns,) if isinstance(key_columns, str) else tuple(key_columns or ())
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise InvalidProblem(Field("key_columns"), " must be names of columns, each once")
    if repeat == "fresh":
        return Identity(tuple(sorted(columns)))
    if repeat != "same":
        raise InvalidProblem(
            Field("repeat"), f" is {repr(repeat)[:40]}; choose 'fresh' (every row is drawn for itself) or 'same'"
        )
    if columns:
        raise InvalidProblem(
            "with ",
            Field("repeat"),
            "='same' a person's secret is drawn once: leave ",
            Field("key_columns"),
            " out, and give ",
            Field("user"),
        )
    if user is None:
        raise InvalidProblem(Field("repeat"), "='same' needs ", Field("user"), ": the column that says whose row it is")
    return Identity((user,), per_secret=True)

"""Which row it is, as 128 bits: where it stands, or what its key columns say. The same through every engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidProblem
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words

Arrays = Mapping[str, Any]
"""Arrow arrays by the name of the column."""

At = int | NDArray[np.integer[Any]]
"""Where rows stand in their source: the position of the first, or of each."""


@dataclass(frozen=True)
class Identity:
    """What tells rows apart.

    Attributes:
        columns: the key columns; none: the position in the table or file.
        source: the file or table that positions are in; says nothing where there are key columns.
        per_secret: the columns name a person rather than a row, so that all her rows with the same secret get the same
            answer (``repeat="same"``).
    """

    columns: tuple[str, ...] = ()
    source: str = ""
    per_secret: bool = False

    @property
    def by_position(self) -> bool:
        """Whether rows are told apart by where they stand."""
        return not self.columns

    def purpose(self) -> tuple[str, ...]:
        """What subkeys are derived from: positions are only comparable within a source."""
        return ("position", self.source) if self.by_position else ("columns", *self.columns)

    def tags(self, key: ReleaseKey, columns: Arrays, count: int, at: "At") -> Words:
        """128 bits for each row, (rows, 2)."""
        tags = np.zeros((count, 2), dtype=np.uint64)
        if self.by_position:
            tags[:, 0] = np.arange(at, at + count, dtype=np.uint64) if isinstance(at, int) else at
            return tags
        chain = KeyedBits(key.derive("identity", *self.columns))
        for name in self.columns:
            tags = chain.encrypt(tags ^ _tags_of(columns[name], name, key))
        return tags

    def in_words(self) -> str:
        """For manifests and messages."""
        if self.by_position:
            return "position in its file" if self.source else "position in the table"
        kind = "the person" if self.per_secret else "key columns"
        return f"{kind}: {', '.join(self.columns)}"


def _tags_of(array: Any, name: str, key: ReleaseKey) -> Words:
    """128 bits for each value of a column: whole numbers by AES, texts by keyed BLAKE2b, each distinct one once."""
    pa = needed_for_tables("pyarrow")
    if array.null_count:
        raise InvalidProblem(
            f"key column {name!r} is empty in {array.null_count} rows: rows cannot be told apart by it"
        )
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_null(kind):  # no rows at all: what they would hold cannot be told
        return np.zeros((0, 2), dtype=np.uint64)
    if _is_text(kind):
        return _text_tags(array, key.derive("text", name))
    return _whole_tags(array, name, kind, KeyedBits(key.derive("whole", name)))


def _text_tags(array: Any, key: bytes) -> Words:
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    coded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    texts = coded.dictionary.to_pylist()
    found = [
        blake2b(text.encode() if isinstance(text, str) else text or b"", key=key, digest_size=16) for text in texts
    ]
    table = np.frombuffer(b"".join(each.digest() for each in found), dtype="<u8").reshape(-1, 2)
    return np.asarray(table[coded.indices.to_numpy(zero_copy_only=False)], dtype=np.uint64)


def _whole_tags(array: Any, name: str, kind: Any, bits: KeyedBits) -> Words:
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, kind)
    try:
        if pa.types.is_timestamp(kind):  # engines keep different units: microseconds is what they have in common
            array = pc.cast(array, pa.timestamp("us", tz=kind.tz)).view(pa.int64())
        elif pa.types.is_date(kind):
            array = pc.cast(pc.cast(array, pa.date32()), pa.int32())
        elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise InvalidProblem(
                f"key column {name!r} is of type {kind}; key columns may be whole numbers, texts, dates and times"
            )
        whole = pc.cast(array, pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise InvalidProblem(
            f"key column {name!r} has values that do not fit 64 bits, or times finer than 1 µs"
        ) from None
    blocks = np.zeros((len(whole), 2), dtype=np.uint64)
    blocks[:, 0] = whole.astype(np.int64).view(np.uint64)
    return bits.encrypt(blocks)


def _is_text(kind: Any) -> bool:
    types = needed_for_tables("pyarrow").types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


def identity_of(*, key_columns: str | Sequence[str] | None, repeat: str, user: str | None, source: str) -> Identity:
    """What tells rows apart, from what the caller said."""
    columns = (key_columns,) if isinstance(key_columns, str) else tuple(key_columns or ())
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise InvalidProblem("key_columns must be names of columns, each once")
    if not isinstance(source, str):
        raise InvalidProblem("source must be a text: the name of the file or table that positions are in")
    if repeat == "fresh":
        return Identity(columns, source)
    if repeat != "same":
        raise InvalidProblem(f"repeat is {repr(repeat)[:40]}; choose 'fresh' (every row is drawn for itself) or 'same'")
    if columns:
        raise InvalidProblem("with repeat='same' a person's secret is drawn once: leave key_columns out, and give user")
    if user is None:
        raise InvalidProblem("repeat='same' needs user: the column that says whose row it is")
    return Identity((user,), per_secret=True)

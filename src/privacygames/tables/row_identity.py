"""Row identity: 128 bits that tell a row from all others, from key columns, a person or, for one draw only, a position.

Key columns and people are identities: the same row has the same one through every engine and file, in any order. A
position is none: it changes with every sort, filter, join or partition. Positions serve eager engines and files, which
draw each row once under a key that is then forgotten; wherever a row may be drawn again, an identity is needed.

Readers of tables disagree on types: a CSV file says ``007``, pandas makes 7 of it, DuckDB an INTEGER, Polars a category.
All of them must name the same row. So values are encoded by what they say, in one canonical form:

| Kind | Values | Encoded as |
|---|---|---|
| number | integers of any width, decimals, floats without a fraction, numerals (``7``, ``007``, ``7.0``) | 64-bit integer; beyond that, or with a fraction, its shortest numeral |
| time | dates (their midnight), timestamps of any unit, texts in ISO 8601; with a time zone: the instant in UTC | microseconds since 1970 |
| Boolean | Booleans, and the texts true, false, t and f in any case | ``true``, ``false`` |
| text | every other text, categories and dictionaries of texts, bytes in UTF-8 | UTF-8 |

Two different texts may thereby be one identity (``007`` and ``7``). Within a table that is noticed and refused, since key
columns must be unique; across readers it is what is wanted. Floats with a fraction, or from 2^53 on, are refused, since
readers round them; so are missing values, empty texts and times finer than a microsecond.
"""  # noqa: E501

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np

from privacygames.arrays import IntArray
from privacygames.errors import Field, InvalidProblem
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_key import KeyedBits, ReleaseKey, Words

DeriveKey = Callable[[str], bytes]
"""Returns the key for one kind of value."""

IDENTITY_ADVICE = (
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

EXACT_FLOATS = 2.0**53
"""Floats below this represent every whole number."""

SHORT_INTEGER = r"^[ \t]*-?[0-9]{1,18}[ \t]*$"
NUMERAL = re.compile(r"[ \t]*([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,6}))?[ \t]*", re.ASCII)
MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]+))? ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?",
    re.ASCII,
)
BOOLEANS = {"true": "true", "t": "true", "false": "false", "f": "false"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class RowIdentity:
    """How rows are told apart.

    Attributes:
        columns: the key columns in alphabetical order; none: the position in the table or file.
        source: the file that positions are in, if a release has several.
        per_secret: whether the columns name a person rather than a row, so that all their rows with the same secret get
            the same output (``repeat="same"``).
    """

    columns: tuple[str, ...] = ()
    source: str = ""
    per_secret: bool = False

    @property
    def by_position(self) -> bool:
        """Whether rows are told apart by their position only."""
        return not self.columns

    def purpose(self) -> tuple[str, ...]:
        """What keys are derived for: positions can only be compared within a source."""
        return ("position", self.source) if self.by_position else ("columns", *self.columns)

    def tags(self, key: ReleaseKey, columns: Mapping[str, Any], count: int, start: int) -> Words:
        """128 bits for each row, of shape (rows, 2), from Arrow arrays of the key columns."""
        tags = np.zeros((count, 2), dtype=np.uint64)
        if self.by_position:
            tags[:, 0] = np.arange(start, start + count, dtype=np.uint64)
            return tags
        bits = KeyedBits(key.derive("identity", *self.columns))
        for name in self.columns:
            tags = bits.encrypt(tags ^ value_tags(columns[name], name, lambda kind: key.derive("value", kind)))
        return tags

    def describe(self) -> str:
        """The identity in words, for manifests and messages."""
        if self.by_position:
            return "position in its file" if self.source else "position in the table"
        kind = "the person" if self.per_secret else "key columns"
        return f"{kind}: {', '.join(self.columns)}"


def resolve_identity(*, key_columns: str | Sequence[str] | None, repeat: str, user: str | None) -> RowIdentity:
    """The row identity that a caller's arguments ask for."""
    columns = (key_columns,) if isinstance(key_columns, str) else tuple(key_columns or ())
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise InvalidProblem(Field("key_columns"), " must be names of columns, each once")
    if repeat == "fresh":
        return RowIdentity(tuple(sorted(columns)))
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
    return RowIdentity((user,), per_secret=True)


def value_tags(array: Any, name: str, derive: DeriveKey) -> Words:
    """128 bits for each value of a key column, (rows, 2): equal for equal values, unpredictable without the key."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    if pa.types.is_null(array.type) and not len(array):
        return np.zeros((0, 2), dtype=np.uint64)
    if not pa.types.is_dictionary(array.type):
        if not _is_text(array.type):
            return _plain_tags(array, name, derive)
        _require_values(array, name)
        array = pc.dictionary_encode(array)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    _require_values(array, name)
    used, codes = np.unique(array.indices.to_numpy(zero_copy_only=False).astype(np.int64), return_inverse=True)
    values = array.dictionary
    if pa.types.is_string_view(values.type):  # which have no take
        values = pc.cast(values, pa.large_string())
    return _plain_tags(values.take(pa.array(used)), name, derive)[codes]


def _plain_tags(array: Any, name: str, derive: DeriveKey) -> Words:
    """The tags of an array that is not dictionary-encoded."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    _require_values(array, name)
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        try:
            return _integer_tags(pc.cast(array, pa.int64()), derive("number"))
        except pa.ArrowInvalid:  # a fraction, or beyond 64 bits
            return _text_tags(pc.cast(array, pa.string()).to_pylist(), name, derive)
    if pa.types.is_floating(kind):
        return _integer_tags(_whole_floats(array, name), derive("number"))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _integer_tags(_microseconds(array, name), derive("time"))
    if pa.types.is_boolean(kind):
        return _text_tags(["true" if value else "false" for value in array.to_pylist()], name, derive)
    if _is_text(kind):
        return _text_array_tags(array, name, derive)
    raise InvalidProblem(
        f"key column {name!r} is of type {kind}; key columns may be whole numbers, texts, dates, times and booleans: "
        "cast it to text"
    )


def _text_array_tags(array: Any, name: str, derive: DeriveKey) -> Words:
    """The tags of texts; plain integers, as most are in CSV files, are encoded in bulk."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    if _is_binary(array.type):
        return _text_tags(array.to_pylist(), name, derive)
    texts = pc.cast(array, pa.large_string())
    short = np.asarray(pc.match_substring_regex(texts, SHORT_INTEGER).to_numpy(zero_copy_only=False), dtype=bool)
    tags = np.zeros((len(texts), 2), dtype=np.uint64)
    numbers = pc.utf8_trim(texts.filter(pa.array(short)), " \t")
    tags[short] = _integer_tags(pc.cast(numbers, pa.int64()), derive("number"))
    tags[~short] = _text_tags(texts.filter(pa.array(~short)).to_pylist(), name, derive)
    return tags


def _text_tags(texts: list[Any], name: str, derive: DeriveKey) -> Words:
    """The tags of texts or bytes, by what each says."""
    number_key, time_key, text_key = (derive(kind) for kind in ("number", "time", "text"))
    tags = np.zeros((len(texts), 2), dtype=np.uint64)
    integers: dict[bytes, list[tuple[int, int]]] = {number_key: [], time_key: []}
    for row, text_or_bytes in enumerate(texts):
        canonical = _canonical(text_or_bytes, name)
        if isinstance(canonical, bytes):
            tags[row] = np.frombuffer(blake2b(canonical, key=text_key, digest_size=16).digest(), dtype="<u8")
        else:
            integers[number_key if canonical[0] == "number" else time_key].append((row, canonical[1]))
    for key, pairs in integers.items():
        if pairs:
            rows, values = zip(*pairs, strict=True)
            tags[list(rows)] = _integer_tags(np.array(values, dtype=np.int64), key)
    return tags


def _canonical(value: str | bytes, name: str) -> tuple[str, int] | bytes:
    """A kind and an integer, or the bytes of a text."""
    if isinstance(value, bytes):
        try:
            return _canonical(value.decode(), name)
        except UnicodeDecodeError:
            return value
    if not value:
        raise _empty(name, 1)
    if numeral := NUMERAL.fullmatch(value):
        number = _number(*numeral.groups(default=""))
        if number is not None:
            return ("number", number) if isinstance(number, int) else number
    if (moment := MOMENT.fullmatch(value)) and (time := _moment(*moment.groups(default=""), name=name)) is not None:
        return "time", time
    text: str = BOOLEANS.get(value.lower(), value)
    return text.encode()


def _number(sign: str, whole: str, fraction: str, exponent: str) -> int | bytes | None:
    """A numeral as a 64-bit integer, or as its shortest numeral; None where it has no digits."""
    if not whole + fraction:
        return None
    digits = (whole + fraction).lstrip("0")
    shift = int(exponent or 0) - len(fraction) + len(digits)
    digits = digits.rstrip("0")
    shift -= len(digits)
    if not digits:
        return 0
    if shift >= 0 and len(digits) + shift <= 19:
        integer: int = int(f"{sign}{digits}") * 10**shift
        if -(2**63) <= integer < 2**63:
            return integer
    return f"{sign.replace('+', '')}{digits}e{shift}".encode()


def _moment(day: str, clock: str, fraction: str, zone: str, *, name: str) -> int | None:
    """An ISO date or time as microseconds; None where there is no such day or hour."""
    finer = fraction[6:].strip("0")
    if len(zone) > 1 and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:] or '00'}"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}")
    except ValueError:
        return None
    if finer:
        raise _too_fine(name)
    instant = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (instant - EPOCH) // MICROSECOND + int(fraction[:6].ljust(6, "0"))


def _microseconds(array: Any, name: str) -> Any:
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    zone = array.type.tz if pa.types.is_timestamp(array.type) else None
    try:
        return pc.cast(array, pa.timestamp("us", tz=zone)).view(pa.int64())
    except pa.ArrowInvalid:
        raise _too_fine(name) from None


def _whole_floats(array: Any, name: str) -> IntArray:
    values = np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    if np.isnan(values).any():
        raise _empty(name, int(np.isnan(values).sum()))
    if not ((values == np.rint(values)) & (np.abs(values) < EXACT_FLOATS)).all():
        raise InvalidProblem(
            f"key column {name!r} holds floats that are no whole numbers below 2^53: readers round them, so they tell "
            "no rows apart; cast it to text or decimals"
        )
    return values.astype(np.int64)


def _integer_tags(values: Any, key: bytes) -> Words:
    plain = values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)
    blocks = np.zeros((len(plain), 2), dtype=np.uint64)
    blocks[:, 0] = plain.astype(np.int64).view(np.uint64)
    return KeyedBits(key).encrypt(blocks)


def _require_values(array: Any, name: str) -> None:
    if array.null_count:
        raise _empty(name, array.null_count)


def _empty(name: str, rows: int) -> InvalidProblem:
    return InvalidProblem(f"key column {name!r} is empty in {rows} rows: rows cannot be told apart by it")


def _too_fine(name: str) -> InvalidProblem:
    return InvalidProblem(f"key column {name!r} has times finer than 1 µs, which engines cut off: cast it to text")


def _is_text(kind: Any) -> bool:
    types = import_optional("pyarrow").types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or _is_binary(kind)


def _is_binary(kind: Any) -> bool:
    types = import_optional("pyarrow").types
    return bool(types.is_binary(kind) or types.is_large_binary(kind))

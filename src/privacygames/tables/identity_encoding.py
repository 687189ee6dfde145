"""The canonical encoding of key values: one value has one identity, whatever type an engine or a file gives it.

A table reaches us through readers that disagree on types: a CSV file says ``007``, pandas makes 7 of it, DuckDB an
INTEGER, Polars a category. All of them must name the same row. So values are encoded by what they say:

| Kind | Values | Encoded as |
|---|---|---|
| number | integers of any width, decimals, floats without a fraction, texts that are numerals (``7``, ``007``, ``7.0``) | 64-bit integer; beyond that, or with a fraction, its shortest numeral |
| time | dates (their midnight), timestamps of any unit, texts in ISO 8601; with a time zone: the instant in UTC | microseconds since 1970 |
| truth | booleans, and the texts true, false, t and f in any case | ``true``, ``false`` |
| text | every other text, categories and dictionaries of texts, bytes in UTF-8 | UTF-8 |

Two different texts may thereby become one identity (``007`` and ``7``). Within a table that is noticed and refused,
since key columns must be unique; across readers it is what is wanted. Floats with a fraction, or from 2^53 on, are
refused, since readers round them; so are empty values, empty texts and times finer than a microsecond.
"""  # noqa: E501

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_key import KeyedBits, Words

Derive = Callable[[str], bytes]
"""Gives the key for one kind of value."""

EXACT_FLOATS = 2.0**53
"""Floats below this hold every whole number."""

SHORT_INTEGER = r"^[ \t]*-?[0-9]{1,18}[ \t]*$"
NUMERAL = re.compile(r"[ \t]*([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,6}))?[ \t]*", re.ASCII)
MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]+))? ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?",
    re.ASCII,
)
TRUTH = {"true": "true", "t": "true", "false": "false", "f": "false"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def value_tags(array: Any, name: str, derive: Derive) -> Words:
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


def _plain_tags(array: Any, name: str, derive: Derive) -> Words:
    """The same for an array that is no dictionary."""
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
        return _text_tags(["true" if each else "false" for each in array.to_pylist()], name, derive)
    if _is_text(kind):
        return _read_tags(array, name, derive)
    raise InvalidProblem(
        f"key column {name!r} is of type {kind}; key columns may be whole numbers, texts, dates, times and booleans: "
        "cast it to text"
    )


def _read_tags(array: Any, name: str, derive: Derive) -> Words:
    """Tags of texts; those that are plain integers, as most are in CSV files, all at once."""
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


def _text_tags(texts: list[Any], name: str, derive: Derive) -> Words:
    """Tags of texts (or bytes) by what each says."""
    number, moment, text = (derive(kind) for kind in ("number", "time", "text"))
    tags = np.zeros((len(texts), 2), dtype=np.uint64)
    integers: dict[bytes, list[tuple[int, int]]] = {number: [], moment: []}
    for row, each in enumerate(texts):
        found = _canonical(each, name)
        if isinstance(found, bytes):
            tags[row] = np.frombuffer(blake2b(found, key=text, digest_size=16).digest(), dtype="<u8")
        else:
            integers[number if found[0] == "number" else moment].append((row, found[1]))
    for key, listed in integers.items():
        if listed:
            rows, values = zip(*listed, strict=True)
            tags[list(rows)] = _integer_tags(np.array(values, dtype=np.int64), key)
    return tags


def _canonical(given: str | bytes, name: str) -> tuple[str, int] | bytes:
    """A kind and an integer, or the bytes of a text."""
    if isinstance(given, bytes):
        try:
            return _canonical(given.decode(), name)
        except UnicodeDecodeError:
            return given
    if not given:
        raise _empty(name, 1)
    if numeral := NUMERAL.fullmatch(given):
        number = _number(*numeral.groups(default=""))
        if number is not None:
            return ("number", number) if isinstance(number, int) else number
    if (moment := MOMENT.fullmatch(given)) and (time := _moment(*moment.groups(default=""), name=name)) is not None:
        return "time", time
    text: str = TRUTH.get(given.lower(), given)
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
        value: int = int(f"{sign}{digits}") * 10**shift
        if -(2**63) <= value < 2**63:
            return value
    return f"{sign.replace('+', '')}{digits}e{shift}".encode()


def _moment(day: str, clock: str, fraction: str, zone: str, *, name: str) -> int | None:
    """An ISO date or time as microseconds; None where there is no such day or hour."""
    finer = fraction[6:].strip("0")
    if len(zone) > 1 and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:] or '00'}"
    try:
        found = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}")
    except ValueError:
        return None
    if finer:
        raise _too_fine(name)
    plain = found if found.tzinfo else found.replace(tzinfo=UTC)
    return (plain - EPOCH) // MICROSECOND + int(fraction[:6].ljust(6, "0"))


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

"""A person's record as bytes: the length of a header (4 bytes), the header (JSON), and the arrays that it lists.

Arrays are little-endian. Nothing in a record is executed, and every length is checked.
"""

import json
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidFile

TYPES = ("<f8", "<i8", "<u4", "<u2", "|u1")

Record = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""A header, and arrays by name."""


def encode(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """A record's payload."""
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in little.items()]
    text = json.dumps(header | {"arrays": listed}, ensure_ascii=False, allow_nan=False).encode()
    return b"".join([len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in little.values())])


def header_in(payload: bytes) -> tuple[dict[str, Any], int]:
    """A payload's header, and where its arrays begin."""
    start = 4 + int.from_bytes(payload[:4], "little")
    if len(payload) < 4 or start > len(payload):
        raise InvalidFile("a record of the fleet is cut short")
    try:
        header = json.loads(payload[4:start], parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidFile("a record of the fleet is damaged: its header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
        raise InvalidFile("a record of the fleet is damaged: its header lists no arrays")
    if not isinstance(header.get("name"), str):
        raise InvalidFile("a record of the fleet is damaged: it does not say whose it is")
    return header, start


def decode(payload: bytes) -> Record:
    """Header and arrays of a payload; the arrays are views of its bytes, and nothing is left over."""
    header, start = header_in(payload)
    arrays: dict[str, NDArray[Any]] = {}
    for entry in header["arrays"]:
        name, kind, shape = _array_entry(entry)
        size = prod(shape) * np.dtype(kind).itemsize
        if name in arrays or start + size > len(payload):
            raise InvalidFile("a record of the fleet is damaged: its arrays do not fit its length")
        arrays[name] = np.frombuffer(payload[start : start + size], dtype=kind).reshape(shape)
        start += size
    if start != len(payload):
        raise InvalidFile("a record of the fleet is damaged: its arrays do not fit its length")
    return header, arrays


def name_hash(name: str) -> bytes:
    """What stands for a name in the index, which is sorted by it."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()


def _array_entry(entry: object) -> tuple[str, str, list[int]]:
    if isinstance(entry, list) and len(entry) == 3:
        name, kind, shape = entry
        known = isinstance(name, str) and kind in TYPES and isinstance(shape, list) and len(shape) in (1, 2)
        if known and all(type(size) is int and 0 <= size < 2**32 for size in shape):
            return name, kind, shape
    raise InvalidFile("a record of the fleet is damaged: its list of arrays")


def _refuse(constant: str) -> None:
    raise ValueError(constant)

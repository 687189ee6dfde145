"""The canonical encoding of labels and other plain values as bytes, and digests of it.

Every digest, every keyed draw and every name of a stored result is computed from these bytes. Equal values have the
same encoding and different values have different ones, in every process, on every machine and in every release of
Python and NumPy: nothing depends on ``repr``, on ``hash`` or on the iteration order of a set or mapping.

    N                                              None
    B  00 | 01                                     False, True
    I  length, two's complement                    an integer, of bit_length // 8 + 1 bytes
    F  8 bytes                                     any other number: IEEE 754, double
    S  length, UTF-8                               a string
    Y  length, the bytes                           bytes
    T  count, the items                            a list or a tuple
    E  count, the members by their encodings       a set
    M  count, keys with values by encoded keys     a mapping

Lengths and counts are 8 bytes; all numbers are big-endian. Since every content is preceded by its length, the encoding
is injective and prefix-free.

Python treats 1, 1.0 and True as one dictionary key. A number has therefore one encoding, whatever its type (1, 1.0 and
NumPy's; 0.0 and -0.0; subclasses), and NaN, which is not even equal to itself, is refused. Booleans are settings and
never labels (a space refuses them), and have a tag of their own. Strings are not normalised: "é" written as one code
point or as two is two dictionary keys, hence two encodings.
"""

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import isnan
from typing import Any

import numpy as np

FORMAT = "privacygames digest 2"
"""The first value of every digest. Digests of format 1 were computed from Python's ``repr``."""


def encode(value: object) -> bytes:
    """The canonical bytes of a plain value.

    >>> encode(1) == encode(1.0) and encode(1) != encode("1")
    True
    >>> encode(frozenset({"Alien", "Brazil"})) == encode(frozenset({"Brazil", "Alien"}))
    True
    """
    for kinds, encoder in _ENCODERS:
        if isinstance(value, kinds):
            return encoder(value)
    raise TypeError(f"a {type(value).__name__} has no canonical encoding; arrays are named by content_hash")


def digest_of(purpose: str, *values: object) -> str:
    """SHA-256 of values, in hexadecimal; equal values for different purposes have different digests.

    Args:
        purpose: what the digest identifies, such as ``"mechanism"``.
        values: the content: plain values, :func:`privacygames.arrays.content_hash` of arrays, other digests.

    >>> digest_of("example", ("a", 1)) == digest_of("example", ["a", 1.0])
    True
    """
    return sha256(encode((FORMAT, purpose, *values))).hexdigest()


def _encode_number(value: float) -> bytes:
    if isinstance(value, int) or value.is_integer():
        integer = int(value)
        return _with_length(b"I", integer.to_bytes(integer.bit_length() // 8 + 1, "big", signed=True))
    if isnan(value):
        raise TypeError("NaN has no canonical encoding: it is not equal to itself")
    return b"F" + struct.pack(">d", value)


def _encode_text(value: str) -> bytes:
    return _with_length(b"S", str.encode(value, "utf-8", "surrogatepass"))  # file names may contain surrogates


def _encode_scalar(value: np.generic) -> bytes:
    if value.dtype.kind in "biufUS" and value.dtype != np.longdouble:
        return encode(value.item())
    raise TypeError(f"a NumPy {value.dtype} has no canonical encoding")


def _encode_mapping(value: Mapping[object, object]) -> bytes:
    return _counted(b"M", sorted(encode(key) + encode(entry) for key, entry in value.items()))


def _with_length(tag: bytes, content: bytes) -> bytes:
    return tag + len(content).to_bytes(8, "big") + content


def _counted(tag: bytes, encoded: list[bytes]) -> bytes:
    return tag + len(encoded).to_bytes(8, "big") + b"".join(encoded)


_ENCODERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], bytes]], ...] = (
    (type(None), lambda _: b"N"),
    (np.generic, _encode_scalar),  # some of them are floats, strings or bytes, too
    (bool, lambda value: b"B\x01" if value else b"B\x00"),  # before numbers: a boolean is an int, too
    ((int, float), _encode_number),
    (str, _encode_text),
    (bytes, lambda value: _with_length(b"Y", value)),
    ((list, tuple), lambda value: _counted(b"T", [encode(item) for item in value])),
    ((set, frozenset), lambda value: _counted(b"E", sorted(map(encode, value)))),
    (Mapping, _encode_mapping),
)
"""The encoder of each type; the first match is used."""

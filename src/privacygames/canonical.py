"""One encoding of labels and other plain values as bytes, and the digests made of it.

Every digest, every draw that follows from a key and every name of stored work is made of these bytes. Values that are
equal have one encoding and values that differ have two, in every process, on every machine and in every release of
Python and NumPy: nothing depends on ``repr``, on ``hash`` or on the order in which a set or a mapping is gone through.

    N                                              None
    B  00 | 01                                     False, True
    I  length, two's complement                    a whole number, of bit_length // 8 + 1 bytes
    F  8 bytes                                     any other number: IEEE 754, double
    S  length, UTF-8                               a text
    Y  length, the bytes                           bytes
    T  count, the items                            a list or a tuple
    E  count, the members by their encodings       a set
    M  count, keys with values by encoded keys     a mapping

Lengths and counts are 8 bytes; all numbers are big-endian. Since every content is preceded by its length, no two values
share an encoding, and none is the beginning of another.

Python counts 1, 1.0 and True as one dictionary key. A number has therefore one encoding, whatever its type (1, 1.0 and
NumPy's; 0.0 and -0.0; subclasses), and NaN, which is not even equal to itself, is refused. Truth values are settings
and never labels (a space refuses them), and have a tag of their own. Texts are not normalised: "é" written as one code
point or as two is two dictionary keys, hence two encodings.
"""

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import isnan
from typing import Any

import numpy as np

FORMAT = "privacygames digest 2"
"""The first value of every digest. Digests of format 1 were made of what Python's ``repr`` showed."""


def encode(value: object) -> bytes:
    """The canonical bytes of a plain value.

    >>> encode(1) == encode(1.0) and encode(1) != encode("1")
    True
    >>> encode(frozenset({"Alien", "Brazil"})) == encode(frozenset({"Brazil", "Alien"}))
    True
    """
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    raise TypeError(f"a {type(value).__name__} has no canonical encoding; arrays are named by content_hash")


def digest_of(purpose: str, *values: object) -> str:
    """SHA-256 of values, in hexadecimal; digests for different purposes have nothing in common.

    Args:
        purpose: what the digest names, such as ``"mechanism"``.
        values: what it is made of: plain values, :func:`privacygames.arrays.content_hash` of arrays, other digests.

    >>> digest_of("example", ("a", 1)) == digest_of("example", ["a", 1.0])
    True
    """
    return sha256(encode((FORMAT, purpose, *values))).hexdigest()


def _encode_number(value: float) -> bytes:
    if isinstance(value, int) or value.is_integer():
        whole = int(value)
        return _with_length(b"I", whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True))
    if isnan(value):
        raise TypeError("NaN has no canonical encoding: it is not equal to itself")
    return b"F" + struct.pack(">d", value)


def _encode_text(value: str) -> bytes:
    return _with_length(b"S", str.encode(value, "utf-8", "surrogatepass"))  # the name of a file may hold surrogates


def _encode_scalar(value: np.generic) -> bytes:
    if value.dtype.kind in "biufUS" and value.dtype != np.longdouble:
        return encode(value.item())
    raise TypeError(f"a NumPy {value.dtype} has no canonical encoding")


def _encode_mapping(value: Mapping[object, object]) -> bytes:
    return _counted(b"M", sorted(encode(key) + encode(each) for key, each in value.items()))


def _with_length(tag: bytes, content: bytes) -> bytes:
    return tag + len(content).to_bytes(8, "big") + content


def _counted(tag: bytes, encoded: list[bytes]) -> bytes:
    return tag + len(encoded).to_bytes(8, "big") + b"".join(encoded)


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], bytes]], ...] = (
    (type(None), lambda _: b"N"),
    (np.generic, _encode_scalar),  # some of which are floats, texts or bytes, too
    (bool, lambda value: b"B\x01" if value else b"B\x00"),  # before numbers: a truth value is a whole number, too
    ((int, float), _encode_number),
    (str, _encode_text),
    (bytes, lambda value: _with_length(b"Y", value)),
    ((list, tuple), lambda value: _counted(b"T", [encode(each) for each in value])),
    ((set, frozenset), lambda value: _counted(b"E", sorted(map(encode, value)))),
    (Mapping, _encode_mapping),
)
"""How each kind of value is encoded; the first that fits."""

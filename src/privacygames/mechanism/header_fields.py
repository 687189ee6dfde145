"""Single fields of a mechanism file, taken out with the type they must have."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import GuaranteeViolated, InvalidFile
from privacygames.mechanism.binary_container import Arrays

MALFORMED = (
    KeyError,
    TypeError,
    ValueError,  # InvalidProblem among them
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What taking apart the content of a file from a stranger may raise."""


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Raise :class:`InvalidFile` where content cannot be taken apart: whatever is inside, nothing else escapes.

    Args:
        what: the content, for the message.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (InvalidFile, GuaranteeViolated):
        raise
    except MALFORMED as error:
        raise InvalidFile(f"{what} does not fit together ({type(error).__name__})") from None


def array_of(arrays: Arrays, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of this type and shape."""
    array = arrays[name]
    if array.dtype != np.dtype(kind) or array.shape != shape:
        raise InvalidFile(f"array {name!r} has the wrong type or shape")
    return array


def positions_of(arrays: Arrays, name: str, shape: tuple[int, ...], limit: int) -> NDArray[np.int32]:
    """An array of positions, all below a limit."""
    array = array_of(arrays, name, "<i4", shape)
    if ((array < 0) | (array >= limit)).any():
        raise InvalidFile(f"array {name!r} points outside")
    return array


def real_of(value: object) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not abs(float(value)) < np.inf:  # type: ignore[arg-type]
        raise InvalidFile("a number in the header is something else")
    return float(value)  # type: ignore[arg-type]


def integer_of(value: object) -> int:
    """A whole number."""
    if type(value) is not int:
        raise InvalidFile("a number in the header is not whole")
    return value


def text_of(value: object) -> str:
    """A short, plain text."""
    if not isinstance(value, str) or not value.isprintable() or len(value) > 200:
        raise InvalidFile("a text in the header is too long or not plain text")
    return value

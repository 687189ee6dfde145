"""What callers pass: of the right kind, or refused with a message that says what is wanted and does not show it all."""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from privacygames.errors import InvalidProblem

Kind = TypeVar("Kind")

LARGEST_WHOLE = int(sys.float_info.max)


def of_kind(value: object, kind: type[Kind], name: str) -> Kind:
    """The value itself, if it is an instance of ``kind``."""
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise InvalidProblem(f"{name} must be {article} {kind.__name__}; got {_named(value)}")


def one_of(value: object, choices: Iterable[str], name: str) -> None:
    """Nothing, if the value is one of the texts to choose from."""
    if not (isinstance(value, str) and value in choices):
        raise InvalidProblem(f"{name} is {repr(value)[:40]}; choose from {', '.join(map(repr, choices))}")


def is_number(value: object) -> bool:
    """Whether it is a number and not a truth value; NaN and ∞ are numbers, what no float can hold is not."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= LARGEST_WHOLE
    return isinstance(value, float | np.integer | np.floating)


def is_whole(value: object, *, least: int = 1) -> bool:
    """Whether it is a whole number, and not below the least."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def several(values: Any, name: str) -> list[Any]:
    """What can be gone through, as a list."""
    if isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim == 0):
        return list(values)
    raise InvalidProblem(f"{name} must be a list; got {_named(values)}")


def ordered(values: Any, name: str) -> list[Any]:
    """What has an order, as a list: a set is refused, since every process would go through it in another order."""
    if isinstance(values, set | frozenset):
        raise InvalidProblem(f"{name} must be in an order, and a set has none: give a list, such as sorted(…)")
    return several(values, name)


def _named(value: object) -> str:
    """The type of a value that is not of the right kind: its content may be a secret."""
    return "None" if value is None else f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")

"""Checks of what callers pass: each returns the value, or raises ``InvalidProblem`` with a message that names it.

Messages show the type of a wrong value, never its content, which may be a secret.
"""

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from privacygames.errors import Field, InvalidProblem

Kind = TypeVar("Kind")

LARGEST_INTEGER = int(sys.float_info.max)
"""The largest integer that converts to a float."""


def require_instance(value: object, kind: type[Kind], name: str) -> Kind:
    """The value, if it is an instance of ``kind``; ``name`` is the parameter's name in the message."""
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise InvalidProblem(_subject(name), f" must be {article} {kind.__name__}; got {_type_name(value)}")


def require_choice(value: object, choices: Iterable[str], name: str) -> None:
    """Raise unless the value is one of these strings."""
    if not (isinstance(value, str) and value in choices):
        raise InvalidProblem(_subject(name), f" is {repr(value)[:40]}; choose from {', '.join(map(repr, choices))}")


def is_number(value: object) -> bool:
    """Whether a value is a real number that a float can hold: NaN and ∞ are, booleans are not."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    return isinstance(value, float | np.integer | np.floating)


def is_integer(value: object, *, minimum: int = 1) -> bool:
    """Whether a value is an integer, not a boolean, and at least the minimum."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= minimum)


def as_list(values: Any, name: str) -> list[Any]:
    """An iterable as a list."""
    if isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim == 0):
        return list(values)
    raise InvalidProblem(_subject(name), f" must be a list; got {_type_name(values)}")


def as_ordered_list(values: Any, name: str) -> list[Any]:
    """An iterable with an order as a list; sets are refused, because their order differs between processes."""
    if isinstance(values, set | frozenset):
        raise InvalidProblem(_subject(name), " must be in an order, and a set has none: give a list, such as sorted(…)")
    return as_list(values, name)


def _subject(name: str) -> str:
    """What a message is about: a parameter by its name, or a phrase such as ``"the problem"``."""
    return Field(name) if name.isidentifier() else name


def _type_name(value: object) -> str:
    """The name of a value's type, with its module unless it is a builtin."""
    return "None" if value is None else f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def require_sides(sides: tuple[float, float]) -> tuple[float, float]:
    """The width and the height of a map, if they are positive numbers."""
    given = tuple(sides) if isinstance(sides, tuple | list) else ()
    if len(given) != 2 or not all(is_number(side) and 0 < side < np.inf for side in given):
        raise InvalidProblem(Field("sides"), " must be the width and the height of a map, two positive numbers")
    return float(given[0]), float(given[1])

"""Immutable values: objects that never change after construction and are equal when their content is."""

from functools import cached_property
from math import isfinite
from typing import NoReturn


class Value:
    """Base class of immutable objects that are compared and hashed by content.

    A subclass sets its attributes once, with ``self._fill(…)``, and returns from ``_content`` what it consists of: a
    tuple of plain hashable values, other ``Value`` objects, or hashes of arrays
    (:func:`privacygames.arrays.content_hash`).
    """

    def _fill(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: build another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: build another one")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and isinstance(other, Value) and self._content == other._content

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content))


def to_json_value(value: object) -> object:
    """A value made of types that JSON has: ∞ and NaN become strings, sets and tuples become lists."""
    if isinstance(value, dict):
        return {str(key): to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [to_json_value(entry) for entry in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value

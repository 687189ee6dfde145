"""Values: objects that never change once built, and are equal to whatever has the same content."""

from functools import cached_property
from math import isfinite
from typing import NoReturn


class Value:
    """Immutable, comparable and hashable by content.

    A subclass fills its attributes once, with ``self._fill(…)``, and says in ``_content`` what it is made of: a tuple
    of plain hashable values, other values, or hashes of arrays (:func:`privacygames.arrays.content_hash`).
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


def plain(value: object) -> object:
    """Values that JSON has: ∞ becomes the text "inf", sets become lists."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value

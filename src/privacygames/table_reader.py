"""Typed reading of a table (a mapping from a TOML or JSON document) key by key; errors name the key at fault."""

from collections.abc import Mapping
from typing import Any

from privacygames.errors import Field, InvalidProblem, TooLarge

REQUIRED: Any = object()
"""The default of keys that must be there."""


class TableReader:
    """A table whose keys must be among those allowed, and whose values are read with the type they must have.

    Messages show keys and never values, which may be personal.

    Args:
        table: the mapping, as parsed.
        name: what messages call it, such as ``"[space]"``.
        allowed: the keys it may have.
    """

    def __init__(self, table: object, name: str, allowed: tuple[str, ...]) -> None:
        if not isinstance(table, Mapping):
            raise InvalidProblem("must be a table of keys and values", location=name)
        for key in table:
            if key not in allowed:
                raise InvalidProblem(f"has no key {str(key)[:40]!r}; it may have {', '.join(allowed)}", location=name)
        self.table, self.name = dict(table), name

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def value(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key, of any type; without a default the key must be there."""
        if key not in self.table and default is REQUIRED:
            raise InvalidProblem(f"needs {key!r}", field=key, location=self.name)
        return self.table.get(key, default)

    def integer(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be an integer."""
        return self._typed(key, default, (int,), "a whole number")

    def number(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be a number."""
        return self._typed(key, default, (int, float), "a number")

    def string(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be a string."""
        return self._typed(key, default, (str,), "a text")

    def boolean(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be true or false."""
        value = self.value(key, default)
        if value is not default and not isinstance(value, bool):
            raise self.type_error(key, "true or false")
        return value

    def array(self, key: str, default: Any = REQUIRED, *, max_length: int | None = None) -> Any:
        """The value of a key that must be a list; the limit holds for it and for each list in it."""
        value = self._typed(key, default, (list,), "a list")
        if max_length is not None and isinstance(value, list):
            longest = max((len(entries) for entries in (value, *value) if isinstance(entries, list)), default=0)
            if longest > max_length:
                raise TooLarge(
                    Field(key), f" has {longest} entries; at most {max_length} are allowed here", location=self.name
                )
        return value

    def type_error(self, key: str, expected: str) -> InvalidProblem:
        """The error for a key whose value has the wrong type, to be raised by the caller."""
        return InvalidProblem(Field(key), f" must be {expected}", location=self.name)

    def _typed(self, key: str, default: Any, kinds: tuple[type, ...], expected: str) -> Any:
        value = self.value(key, default)
        if value is default and key not in self.table:
            return value
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise self.type_error(key, expected)
        return value

"""Tables of keys and values from a document or a file's header, read key by key; errors name the key at fault."""

from collections.abc import Mapping
from typing import Any

from privacygames.errors import InvalidProblem, TooLarge

MISSING: Any = object()


class Keys:
    """A table whose keys are all known, and whose values are asked for with the type they must have.

    No message shows a value: it may be somebody's.

    Args:
        table: what was read.
        name: what messages call it: ``"[space]"``.
        allowed: the keys it may have.
    """

    def __init__(self, table: object, name: str, allowed: tuple[str, ...]) -> None:
        if not isinstance(table, Mapping):
            raise InvalidProblem(f"{name} must be a table of keys and values")
        for key in table:
            if key not in allowed:
                raise InvalidProblem(f"{name} has no key {str(key)[:40]!r}; it may have {', '.join(allowed)}")
        self.table, self.name = dict(table), name

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def value(self, key: str, default: Any = MISSING) -> Any:
        """Whatever the key has; it must be there unless there is a default."""
        if key not in self.table and default is MISSING:
            raise InvalidProblem(f"{self.name} needs {key!r}")
        return self.table.get(key, default)

    def whole(self, key: str, default: Any = MISSING) -> Any:
        """A whole number."""
        return self._typed(key, default, (int,), "a whole number")

    def number(self, key: str, default: Any = MISSING) -> Any:
        """A number."""
        return self._typed(key, default, (int, float), "a number")

    def text(self, key: str, default: Any = MISSING) -> Any:
        """A text."""
        return self._typed(key, default, (str,), "a text")

    def flag(self, key: str, default: Any = MISSING) -> Any:
        """True or false."""
        found = self.value(key, default)
        if found is not default and not isinstance(found, bool):
            raise self.wrong(key, "true or false")
        return found

    def listed(self, key: str, default: Any = MISSING, *, most: int | None = None) -> Any:
        """A list, and each list in it, of at most so many entries."""
        found = self._typed(key, default, (list,), "a list")
        if most is not None and isinstance(found, list):
            longest = max((len(each) for each in (found, *found) if isinstance(each, list)), default=0)
            if longest > most:
                raise TooLarge(f"{self.name} {key} has {longest} entries; at most {most} are allowed here")
        return found

    def wrong(self, key: str, expected: str) -> InvalidProblem:
        """The error for a key whose value is not what it must be."""
        return InvalidProblem(f"{self.name} {key} must be {expected}")

    def _typed(self, key: str, default: Any, kinds: tuple[type, ...], expected: str) -> Any:
        found = self.value(key, default)
        if found is default and key not in self.table:
            return found
        if isinstance(found, bool) or not isinstance(found, kinds):
            raise self.wrong(key, expected)
        return found

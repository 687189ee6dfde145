"""A store of items in memory, under names nobody can guess, until they are too many, too large or too old."""

from collections import OrderedDict
from collections.abc import Callable
from secrets import token_urlsafe
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

from privacygames.studio.http_errors import Refused

Item = TypeVar("Item")

NAME_BYTES = 12
"""Bytes of randomness in a name: 96 bits cannot be guessed."""


class ExpiringStore(Generic[Item]):
    """The most recently used items; an item's name is the only way to it, and there is no list of names.

    Args:
        kind: what messages call an item.
        most: the largest number of items.
        seconds: time after which an unused item is dropped.
        size: the bytes of an item.
        most_bytes: the bytes of all items; one that is larger on its own is refused.
        on_drop: called with each item that is forgotten.

    >>> store = ExpiringStore("note", most=2, seconds=60.0, size=len, most_bytes=100)
    >>> first, second, third = map(store.put, ("a", "b", "c"))
    >>> len(store), store.get(third), store.forget(first), store.forget(second)
    (2, 'c', False, True)
    """

    def __init__(
        self,
        kind: str,
        *,
        most: int,
        seconds: float,
        size: Callable[[Item], int],
        most_bytes: int,
        on_drop: Callable[[Item], None] = lambda _: None,
    ) -> None:
        self.kind, self.most, self.seconds = kind, most, seconds
        self._size, self._most_bytes, self._on_drop = size, most_bytes, on_drop
        self._items: OrderedDict[str, tuple[float, Item]] = OrderedDict()
        self._lock = Lock()

    def put(self, item: Item) -> str:
        """Store an item, dropping the least recently used ones until all fit; returns its name."""
        if self._size(item) > self._most_bytes:
            limit = f"{self._most_bytes / 2**20:.3g} MiB"
            raise Refused(413, "TOO_LARGE", f"this {self.kind} takes more memory than the {limit} there are for all")
        name = token_urlsafe(NAME_BYTES)
        with self._lock:
            self._items[name] = (monotonic(), item)
            self._expire()
        return name

    def get(self, name: str) -> Item:
        """The item of that name, which counts as used; refused where there is none."""
        with self._lock:
            self._expire()
            if name not in self._items:
                raise Refused(404, "NOT_FOUND", f"there is no such {self.kind} here; it may have been forgotten")
            _, item = self._items.pop(name)
            self._items[name] = (monotonic(), item)
            return item

    def forget(self, name: str) -> bool:
        """Drop an item; returns whether it was there."""
        with self._lock:
            entry = self._items.pop(name, None)
        if entry is not None:
            self._on_drop(entry[1])
        return entry is not None

    def forget_where(self, test: Callable[[Item], bool]) -> list[str]:
        """Drop the items that pass a test; returns their names."""
        with self._lock:
            names = [name for name, (_, item) in self._items.items() if test(item)]
        return [name for name in names if self.forget(name)]

    def expire(self) -> None:
        """Drop items that are too old, too many or too large together."""
        with self._lock:
            self._expire()

    def clear(self) -> None:
        """Drop every item."""
        for name in list(self._items):
            self.forget(name)

    def __len__(self) -> int:
        return len(self._items)

    def _expire(self) -> None:
        oldest = monotonic() - self.seconds
        total = sum(self._size(item) for _, item in self._items.values())
        while self._items:
            name, (used, item) = next(iter(self._items.items()))
            if len(self._items) <= self.most and used >= oldest and total <= self._most_bytes:
                return
            del self._items[name]
            total -= self._size(item)
            self._on_drop(item)

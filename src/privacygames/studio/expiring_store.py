"""Shelves: what a server keeps in memory, under names nobody can guess, until it is too much or too old."""

from collections import OrderedDict
from collections.abc import Callable
from secrets import token_urlsafe
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

from privacygames.studio.http_errors import Refused

Thing = TypeVar("Thing")


class ExpiringStore(Generic[Thing]):
    """The things used last; the name of a thing is the only way to it, and there is no list of names.

    Args:
        what: what a thing is called in messages.
        most: how many are kept.
        seconds: how long one is kept that nobody asks for.
        size: the bytes of a thing, and
        most_bytes: of all of them; what is larger on its own is refused.
        drop: called with what is forgotten.
    """

    def __init__(
        self,
        what: str,
        *,
        most: int,
        seconds: float,
        size: Callable[[Thing], int],
        most_bytes: int,
        drop: Callable[[Thing], None] = lambda _: None,
    ) -> None:
        self.what, self.most, self.seconds = what, most, seconds
        self._size, self._most_bytes, self._drop = size, most_bytes, drop
        self._things: OrderedDict[str, tuple[float, Thing]] = OrderedDict()
        self._lock = Lock()

    def put(self, thing: Thing) -> str:
        """Keep a thing, and drop what was used longest ago until all fit; returns its name."""
        if self._size(thing) > self._most_bytes:
            limit = f"{self._most_bytes / 2**20:.3g} MiB"
            raise Refused(413, "TOO_LARGE", f"this {self.what} takes more memory than the {limit} there are for all")
        name = token_urlsafe(12)
        with self._lock:
            self._things[name] = (monotonic(), thing)
            self._tidy()
        return name

    def get(self, name: str) -> Thing:
        """The thing of that name, or a refusal; it counts as used."""
        with self._lock:
            self._tidy()
            if name not in self._things:
                raise Refused(404, "NOT_FOUND", f"there is no such {self.what} here; it may have been forgotten")
            _, thing = self._things.pop(name)
            self._things[name] = (monotonic(), thing)
            return thing

    def forget(self, name: str) -> bool:
        """Drop a thing; says whether it was there."""
        with self._lock:
            found = self._things.pop(name, None)
        if found is not None:
            self._drop(found[1])
        return found is not None

    def forget_where(self, test: Callable[[Thing], bool]) -> list[str]:
        """Drop the things that pass a test; returns their names."""
        with self._lock:
            names = [name for name, (_, thing) in self._things.items() if test(thing)]
        return [name for name in names if self.forget(name)]

    def tidy(self) -> None:
        """Drop what is too old, or too much."""
        with self._lock:
            self._tidy()

    def clear(self) -> None:
        """Drop everything."""
        for name in list(self._things):
            self.forget(name)

    def __len__(self) -> int:
        return len(self._things)

    def _tidy(self) -> None:
        oldest = monotonic() - self.seconds
        total = sum(self._size(thing) for _, thing in self._things.values())
        while self._things:
            name, (used, thing) = next(iter(self._things.items()))
            if len(self._things) <= self.most and used >= oldest and total <= self._most_bytes:
                return
            del self._things[name]
            total -= self._size(thing)
            self._drop(thing)

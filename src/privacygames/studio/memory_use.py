"""Memory use: about how many bytes plain values take, found without recursion."""

import sys
from collections.abc import Mapping
from typing import Any


def bytes_of(values: Any) -> int:
    """The bytes of nested tables, lists and the values in them."""
    total, left = 0, [values]
    while left:
        value = left.pop()
        total += sys.getsizeof(value)
        if isinstance(value, Mapping):
            left.extend(value.keys())
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
    return total

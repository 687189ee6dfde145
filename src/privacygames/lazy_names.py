"""Names of a package that are imported on first use, so that nobody waits for what they do not need."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports some of its names from its modules when they are first asked for.

    Args:
        package: the package's name.
        modules: the names that each of its modules defines.

    >>> from privacygames.lazy_names import lazy_names
    >>> lazy_names("privacygames", {"version": ["VERSION"]})("VERSION") == pg.__version__
    True
    """
    defined_in = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in defined_in:
            raise AttributeError(f"{package} has no name {name!r}")
        return getattr(import_module(f"{package}.{defined_in[name]}"), name)

    return get

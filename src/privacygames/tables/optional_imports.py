"""Imports of optional libraries, where they are used; the error says what to install."""

from importlib import import_module
from typing import Any

from privacygames.errors import InvalidProblem


def import_optional(module: str) -> Any:
    """A module of a library that only tables need."""
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise InvalidProblem(
            f"applying mechanisms to tables needs {library}: pip install 'privacygames[tables]'"
        ) from None

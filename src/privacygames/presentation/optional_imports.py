"""Libraries that only figures and pages need: imported where they are used, and named where they are missing."""

from importlib import import_module
from typing import Any

from privacygames.errors import InvalidProblem


def needed(module: str, *, what: str) -> Any:
    """A module of an optional library, or an error that says what to install."""
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise InvalidProblem(f"{what} needs {library}: pip install 'privacygames[figures]'") from None

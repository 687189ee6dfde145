"""The bounds of a command: those in the problem file, and those given as options."""

from pathlib import Path
from typing import Any


def merged_bounds(file: Path, from_file: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The file's bounds, with those given added or in place of them; errors say where a value stands."""
    from privacygames.errors import InvalidProblem
    from privacygames.problem import Bounds

    options = {name: value for name, value in given.items() if value is not None}
    merged = from_file | options
    try:
        Bounds(**merged)
    except InvalidProblem as error:
        name = str(error).split(" ", 1)[0]
        if name in from_file and name not in options:
            raise InvalidProblem(f"{file.name}, [bounds] {error}") from None
        if name in options:
            raise InvalidProblem(f"--{name.replace('_', '-')}{str(error).removeprefix(name)}") from None
        raise
    return merged

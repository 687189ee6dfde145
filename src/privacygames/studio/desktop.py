"""The studio in the menu of applications: a desktop entry of freedesktop.org, for this person only."""

import os
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from privacygames.atomic_io import write_bytes, write_text
from privacygames.errors import InvalidProblem

NAME = "privacygames-studio"
"""The name of the entry and of its icon."""

ENTRY = """[Desktop Entry]
Type=Application
Version=1.5
Name=Privacygames studio
Comment=Protect places, ages and categories on this machine
Exec={command}
Icon={name}
Terminal=true
Categories=Utility;Science;
Keywords=privacy;location;anonymise;
"""
"""The entry. It runs in a terminal, which says where the studio is; to close that ends it. Each takes a free port, so
that a second one starts, too, and nobody else can wait at its address."""


def install_entry(data: Path) -> Path:
    """Add the studio to the menu of applications; returns the entry.

    Args:
        data: the person's data directory.

    Raises:
        InvalidProblem: the entry cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     install_entry(Path(folder)).name
    'privacygames-studio.desktop'
    """
    entry, icon = _files(data)
    command = f"{_quoted(sys.executable)} -m privacygames studio --port 0"
    try:
        for file in (entry, icon):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(icon, (files("privacygames.studio") / "page" / "icon.svg").read_bytes())
        write_text(entry, ENTRY.format(command=command, name=NAME))
    except OSError as error:
        raise InvalidProblem(f"the menu of applications cannot be changed: {error.strerror}") from None
    return entry


def remove_entry(data: Path) -> bool:
    """Take the studio out of the menu of applications; whether it was there.

    >>> remove_entry(Path("nowhere"))
    False
    """
    entry, icon = _files(data)
    there = entry.exists()
    for file in (entry, icon):
        file.unlink(missing_ok=True)
    return there


def data_directory() -> Path:
    """The person's own data directory, as the XDG specification names it.

    >>> data_directory().is_absolute()
    True
    """
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".local" / "share"


def _files(data: Path) -> tuple[Path, Path]:
    icons = data / "icons" / "hicolor" / "scalable" / "apps"
    return data / "applications" / f"{NAME}.desktop", icons / f"{NAME}.svg"


def _quoted(argument: str) -> str:
    """An argument as desktop entries quote it."""
    if shlex.quote(argument) == argument and "%" not in argument:
        return argument
    escaped = "".join(f"\\{each}" if each in '"`$\\' else each for each in argument).replace("%", "%%")
    return '"' + escaped.replace("\\", "\\\\") + '"'

"""The command line: thin commands over the library, and the one place that turns errors into messages."""

from privacygames.cli.app import main

__all__ = ["main"]

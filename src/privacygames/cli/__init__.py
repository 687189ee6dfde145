"""The command line: thin commands over the library, and the one place that turns errors into messages."""

import signal
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """The console script. Until a command begins, Ctrl-C ends it at once and without a message."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise the parent process ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("privacygames.cli.app").run()

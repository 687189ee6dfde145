"""The command line: thin commands over the library, and the one place that turns errors into messages."""

import signal
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """The console script. Until everything is imported, Ctrl-C ends it at once, as it ends any program."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    run = import_module("privacygames.cli.app").run
    signal.signal(signal.SIGINT, before)
    run()

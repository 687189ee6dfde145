"""``python -m privacygames``."""

from privacygames.cli import main

main()

"""Refusing what would not fit, before it is tried."""

import os

from privacygames.errors import TooLarge

SHARE = 0.6
"""Of the machine's memory, how much one solve may plan to use."""


def require_memory(gigabytes: float, secrets: int, observables: int, engine: str) -> None:
    """Raise, with the estimate, if a solve is not going to fit into this machine."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if gigabytes > SHARE * machine:
        raise TooLarge(
            f"{engine} would need about {gigabytes:.0f} GiB of memory for {secrets} secrets and {observables} "
            f"observables; this machine has {machine:.0f}: use fewer secrets or observables"
        )

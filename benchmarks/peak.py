"""How much memory this process has used at most."""

import re
from math import nan
from pathlib import Path


def peak_mebibytes() -> float:
    """Its own peak: not ``ru_maxrss``, which starts from that of the process that started it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else nan

"""Peak memory of this process."""

import re
from math import nan
from pathlib import Path


def peak_mebibytes() -> float:
    """The peak resident memory of this process in MiB; ``ru_maxrss`` would include the parent's."""
    status = Path("/proc/self/status")
    match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(match[1]) / 1024 if match else nan

"""Refusing what would not fit, before it is tried."""

import os
from pathlib import Path
from typing import Any

from privacygames.errors import TooLarge

SHARE = 0.6
"""Of the machine's memory, how much one solve may plan to use."""

DEVICE_SHARE = 0.9
"""Of a device's free memory, how much one solve may plan to use."""

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much memory a container may use."""


def require_memory(gigabytes: float, secrets: int, observables: int, engine: str) -> None:
    """Raise, with the estimate, if a solve is not going to fit into this machine."""
    machine = available_gigabytes()
    if gigabytes > SHARE * machine:
        raise TooLarge(
            f"{engine} would need about {gigabytes:.0f} GiB of memory for {secrets} secrets and {observables} "
            f"observables; this machine has {machine:.0f}. What needs less: fewer observables (the optimum is exact "
            "for those: Problem(…, observables=…)), or fewer secrets"
        )


def available_gigabytes() -> float:
    """The machine's memory, or what this container may use of it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, LIMITS))]) / 2**30


def device_free(device: Any) -> tuple[float, float]:
    """Bytes that are free on one of PyTorch's devices, and how many it has."""
    if device.type != "cuda":
        whole = SHARE * available_gigabytes() * 2**30
        return whole, whole
    import torch

    free, whole = torch.cuda.mem_get_info(device)
    known = torch.cuda.memory_stats_as_nested_dict(device)  # the flat ones take a millisecond
    reserved, allocated = (known.get(each, {}) for each in ("reserved_bytes", "allocated_bytes"))
    cached = reserved.get("all", {}).get("current", 0) - allocated.get("all", {}).get("current", 0)
    return free + cached, whole


def _limit(path: str) -> int | None:
    """The number in a file of the system's; None where there is none."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None

"""Memory of this machine and its devices, and the refusal of programs that would not fit."""

import os
from pathlib import Path
from typing import Any

from privacygames.errors import TooLarge

SHARE = 0.6
"""Fraction of the machine's memory that one solve may plan to use: the rest is for everything else."""

DEVICE_SHARE = 0.9
"""Fraction of a device's free memory that one solve may plan to use: nothing else should use the device."""

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux says how much memory a container may use."""


def require_memory(gigabytes: float, secrets: int, observables: int, solver: str) -> None:
    """Raise, with the estimate, if a solve would not fit into this machine."""
    machine = available_gigabytes()
    if gigabytes > SHARE * machine:
        raise TooLarge(
            f"{solver} would need about {gigabytes:.0f} GiB of memory for {secrets} secrets and {observables} "
            f"observables; this machine has {machine:.0f}. What needs less: fewer observables (the optimum is exact "
            "for those: Problem(…, observables=…)), or fewer secrets"
        )


def available_gigabytes() -> float:
    """The machine's memory, or what this container may use of it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, LIMITS))]) / 2**30


def device_free(device: Any) -> tuple[float, float]:
    """Free bytes of one of PyTorch's devices, and all of its bytes."""
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
    """The number in a file of the system; None where there is none."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None

"""Mechanisms for many people over one space: designed in parallel, packed, opened in milliseconds."""

from privacygames.fleet.fleet import Fleet, FleetRowSampler
from privacygames.fleet.operations import add, compact, design, remove, update

__all__ = ["Fleet", "FleetRowSampler", "add", "compact", "design", "remove", "update"]


def __dir__() -> list[str]:
    return __all__

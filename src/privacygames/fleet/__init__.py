"""Mechanisms for many people over one space: designed in parallel, packed, opened in milliseconds."""

from privacygames.fleet.fleet import Fleet
from privacygames.fleet.opening import AnyFleet, open_fleet
from privacygames.fleet.operations import add, compact, design, remove, update
from privacygames.fleet.point_fleet import PointFleet
from privacygames.fleet.stored_fleet import FleetRowSampler, StoredFleet

__all__ = [
    "AnyFleet",
    "Fleet",
    "FleetRowSampler",
    "PointFleet",
    "StoredFleet",
    "add",
    "compact",
    "design",
    "open_fleet",
    "remove",
    "update",
]


def __dir__() -> list[str]:
    return __all__

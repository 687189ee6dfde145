"""Opening the folder of a fleet, whatever its secrets are."""

import os
from pathlib import Path

from privacygames.fleet.fleet import Fleet
from privacygames.fleet.point_fleet import PointFleet
from privacygames.fleet.shared_problem import SharedPoints
from privacygames.fleet.snapshot import Snapshot
from privacygames.fleet.stored_fleet import Unknown

AnyFleet = Fleet | PointFleet
"""A fleet whose secrets are cells or labels, or points."""


def open_fleet(folder: str | os.PathLike[str], *, unknown: Unknown = "refuse") -> AnyFleet:
    """The fleet in a folder: a :class:`Fleet`, or a :class:`PointFleet` where secrets are points.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> _ = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="fleet", epsilon=0.1, jobs=1)
    >>> pg.fleet.open_fleet("fleet")
    Fleet(1 people, 3 secrets, 3 observables)

    Args:
        folder: a folder that :func:`design` wrote.
        unknown: as in :class:`Fleet`.
    """
    points = isinstance(Snapshot.open(Path(folder).absolute()).shared, SharedPoints)
    return PointFleet(folder, unknown=unknown) if points else Fleet(folder, unknown=unknown)

"""Traces: from GeoLife, check-ins, GPX and tables, or invented, to visits, priors and moves between cells."""

from privacygames.traces.counts import VisitCounts, read_counts
from privacygames.traces.demo_resident import demo_resident
from privacygames.traces.format_detection import detect_format
from privacygames.traces.public_lattice import is_public_box
from privacygames.traces.reading import read
from privacygames.traces.synthetic_people import SYNTHETIC_WINDOW, synthetic
from privacygames.traces.visits import VisitData, Visits

__all__ = [
    "SYNTHETIC_WINDOW",
    "VisitCounts",
    "VisitData",
    "Visits",
    "demo_resident",
    "detect_format",
    "is_public_box",
    "read",
    "read_counts",
    "synthetic",
]


def __dir__() -> list[str]:
    return __all__

"""Traces: from GeoLife, check-ins, GPX and tables, or invented, to visits, priors and moves between cells."""

from privacygames.traces.counts import Counts, read_counts
from privacygames.traces.format_detection import guess_format
from privacygames.traces.public_lattice import is_public_box
from privacygames.traces.reading import read
from privacygames.traces.synthetic_people import WINDOW, synthetic
from privacygames.traces.visits import Visited, Visits

__all__ = ["WINDOW", "Counts", "Visited", "Visits", "guess_format", "is_public_box", "read", "read_counts", "synthetic"]


def __dir__() -> list[str]:
    return __all__

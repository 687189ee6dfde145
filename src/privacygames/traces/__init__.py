"""Traces: from GeoLife, check-ins, GPX and tables, or invented, to visits, priors and moves between cells."""

from privacygames.traces.counts import Counts, read_counts
from privacygames.traces.people import WINDOW, synthetic
from privacygames.traces.reader import Progress, read
from privacygames.traces.visits import Visited, Visits

__all__ = ["WINDOW", "Counts", "Progress", "Visited", "Visits", "read", "read_counts", "synthetic"]

"""Location traces: recordings and exports of many formats, or synthetic people, as visits, priors and transitions.

>>> visits = pg.traces.synthetic(users=2, days=7)
>>> grid = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3)
>>> visits.prior(grid, "person-0").space == grid
True
"""

from privacygames.traces.demo_resident import demo_resident
from privacygames.traces.format_detection import detect_format
from privacygames.traces.habits import Habit, from_habits, read_habits
from privacygames.traces.public_lattice import is_public_box
from privacygames.traces.read_traces import read
from privacygames.traces.readers import RowBatch, TraceFormat, TraceSource
from privacygames.traces.synthetic_people import SYNTHETIC_WINDOW, synthetic
from privacygames.traces.timestamps import DateOrder
from privacygames.traces.visit_counts import VisitCounts, read_counts
from privacygames.traces.visits import VisitData, Visits

__all__ = [
    "SYNTHETIC_WINDOW",
    "DateOrder",
    "Habit",
    "RowBatch",
    "TraceFormat",
    "TraceSource",
    "VisitCounts",
    "VisitData",
    "Visits",
    "demo_resident",
    "detect_format",
    "from_habits",
    "is_public_box",
    "read",
    "read_counts",
    "read_habits",
    "synthetic",
]


def __dir__() -> list[str]:
    return __all__

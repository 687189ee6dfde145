"""Work that is handed out: to this process, to several, or to a cluster; results are kept, and put into tables."""

from privacygames.jobs.store import Store
from privacygames.jobs.tables import Measured, Row, Table, Value, number, read_table, where, write_table
from privacygames.jobs.workers import (
    Cluster,
    Finished,
    Here,
    Job,
    Processes,
    Workers,
    bind_to_parent,
    unfinished,
    workers_for,
)

__all__ = [
    "Cluster",
    "Finished",
    "Here",
    "Job",
    "Measured",
    "Processes",
    "Row",
    "Store",
    "Table",
    "Value",
    "Workers",
    "bind_to_parent",
    "number",
    "read_table",
    "unfinished",
    "where",
    "workers_for",
    "write_table",
]

"""Work that is handed out: to this process, to several, or to a cluster; results are kept, and put into tables."""

from privacygames.jobs.csv_tables import Measured, Row, Table, Value, number, read_table, where, write_table
from privacygames.jobs.executors import (
    DaskExecutor,
    Executor,
    Finished,
    Job,
    ProcessExecutor,
    SerialExecutor,
    bind_to_parent,
    executor_for,
    unfinished,
)
from privacygames.jobs.result_store import Store

__all__ = [
    "DaskExecutor",
    "Executor",
    "Finished",
    "Job",
    "Measured",
    "ProcessExecutor",
    "Row",
    "SerialExecutor",
    "Store",
    "Table",
    "Value",
    "bind_to_parent",
    "executor_for",
    "number",
    "read_table",
    "unfinished",
    "where",
    "write_table",
]

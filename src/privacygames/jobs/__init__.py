"""Executors that run jobs in this process, in several or on a cluster; stores of results, and CSV tables."""

from privacygames.jobs.batches import ENTRIES_PER_BATCH, batches
from privacygames.jobs.csv_tables import Measurements, Row, Table, Value, number, read_table, where, write_table
from privacygames.jobs.executors import (
    DaskExecutor,
    Executor,
    Job,
    ProcessExecutor,
    Scheduler,
    SerialExecutor,
    TaskResults,
    bind_to_parent,
    executor_for,
    remaining_tasks,
    require_sendable,
)
from privacygames.jobs.result_store import Store

__all__ = [
    "ENTRIES_PER_BATCH",
    "DaskExecutor",
    "Executor",
    "Job",
    "Measurements",
    "ProcessExecutor",
    "Row",
    "Scheduler",
    "SerialExecutor",
    "Store",
    "Table",
    "TaskResults",
    "Value",
    "batches",
    "bind_to_parent",
    "executor_for",
    "number",
    "read_table",
    "remaining_tasks",
    "require_sendable",
    "where",
    "write_table",
]

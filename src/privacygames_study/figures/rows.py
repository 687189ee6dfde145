"""The rows of a figure, selected from a study's tables: its CSV file holds them, and the figure draws them."""

from collections.abc import Iterable

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.jobs import Row, Table, Value, number

MECHANISMS = ("differential", "distortion", "joint")
SETTING = ("user", "epsilon", "d_m_km")


def done(table: Table) -> Table:
    """The rows that have a result."""
    return [row for row in table if row.get("status", "done") == "done"]


def side_by_side(
    table: Table,
    keys: tuple[str, ...],
    measures: tuple[str, ...],
    *,
    also: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
) -> Table:
    """One row per setting, its mechanisms' measures next to each other: ``joint_cost``, ``joint_privacy_km``, ….

    Args:
        table: one row per setting and mechanism.
        keys: the columns that identify a setting.
        measures: the columns that differ between mechanisms.
        also: columns that are equal for all mechanisms of a setting.
        needs: columns of the result; settings without a value in one of them are left out.
    """
    settings: dict[tuple[Value, ...], dict[str, Value]] = {}
    for row in done(table):
        key = tuple(row.get(name) for name in keys)
        setting = settings.setdefault(key, dict(zip(keys, key, strict=True)))
        setting.update({name: row.get(name) for name in also})
        setting.update({f"{row['mechanism']}_{measure}": row.get(measure) for measure in measures})
    return [row for row in settings.values() if all(row.get(column) is not None for column in needs)]


def wide(measures: tuple[str, ...], mechanisms: tuple[str, ...] = MECHANISMS) -> tuple[str, ...]:
    """The columns that :func:`side_by_side` makes of these measures."""
    return tuple(f"{mechanism}_{measure}" for measure in measures for mechanism in mechanisms)


def columns(rows: Table, *names: str) -> tuple[FloatArray, ...]:
    """Columns as arrays, from the rows in which all of them have a value."""
    full = [row for row in rows if all(row.get(name) is not None for name in names)]
    return tuple(np.array([number(row, name) for row in full], dtype=float) for name in names)


def distinct(rows: Iterable[Row], *names: str) -> list[tuple[Value, ...]]:
    """The distinct combinations of values in these columns, in order of first appearance."""
    return list(dict.fromkeys(tuple(row.get(name) for name in names) for row in rows))

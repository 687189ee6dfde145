"""``tables.apply``: mechanisms on the columns of a table of any kind."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from privacygames.tables.adapters import release_table
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger
from privacygames.tables.release_plan import plan_release
from privacygames.tables.rules import Repeat, Rules


def apply(
    table: Any,
    rules: Rules,
    *,
    key: ReleaseKey | None = None,
    key_columns: str | Sequence[str] | None = None,
    user: str | None = None,
    repeat: Repeat = "fresh",
    any_pair_limit: float | None = None,
    per_unit_limit: float | Mapping[str, float] | None = None,
    epsilon_limit: None = None,
    ledger: ReleaseLedger | str | PathLike[str] | None = None,
    connection: Any = None,
) -> tuple[Any, Manifest]:
    """Replace the secrets in a table by random outputs; returns the released table and the manifest of the release.

    Tables may be of pandas, Polars (eager and lazy), PyArrow (tables, batches, readers, datasets), DuckDB, Dask and
    Spark; the released table is of the same kind (of a dataset, a reader). Other columns, their order, types and
    metadata stay as they are.

    Args:
        table: the table.
        rules: for a column, or a tuple of columns that belong together such as ``("longitude", "latitude")``, a
            mechanism, a fleet or a :class:`Rule`.
        key: makes outputs reproducible, by the identity of rows (``key_columns``, or ``repeat="same"``), on any engine.
            By default a new one from the operating system, which is forgotten after the release.
        key_columns: the identity of rows: columns that tell every row from every other, in any order. Needed with a
            key, and for tables that are computed later, perhaps several times (lazy Polars, DuckDB, Dask, Spark).
            Without them, every call draws anew.
        user: the column that says whose row it is: the cost is then composed over each person's rows, and fleets find
            each person's mechanism.
        repeat: ``"fresh"`` draws every row independently. ``"same"`` draws each secret of a person once, and repeats
            the output: averaging over repeats reveals nothing more, but where outputs differ, the secrets do.
        any_pair_limit: refuse a release if the log-ratios between any two secrets, summed over a person's rows and
            columns (over columns, without ``user``), may exceed this. It has no unit.
        per_unit_limit: the same for ε in the unit of each column (per km, per year): one number if all columns have
            one unit, else a mapping such as ``{"per km": 2.0, "per year": 0.5}``.
        epsilon_limit: refused: it did not say which of the two it limits.
        ledger: a ledger, or its path, that is charged before anything is returned; the same release is charged once.
        connection: the connection of a DuckDB relation.

    Raises:
        InvalidProblem: arguments do not fit, a row holds no secret (unless a rule says what becomes of it), or the cost
            is above a limit. Nothing is released.
        BudgetExceeded: the ledger's budget has no room for the release. Nothing is released or charged.

    >>> import pyarrow as pa
    >>> ages = pg.Numbers(range(20, 30), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=0.5)
    >>> released, manifest = pg.tables.apply(pa.table({"age": [21, 27], "paid": [3.5, 2.0]}), {"age": mechanism})
    >>> released.column_names, manifest.rows_out, manifest.per_row.epsilons
    (['age', 'paid'], 2, {'per year': 0.5})
    """
    plan = plan_release(
        rules,
        key=key,
        key_columns=key_columns,
        user=user,
        repeat=repeat,
        any_pair_limit=any_pair_limit,
        per_unit_limit=per_unit_limit,
        epsilon_limit=epsilon_limit,
        ledger=ledger,
    )
    return release_table(table, plan, connection)

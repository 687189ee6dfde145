"""``apply``: mechanisms on a table of any kind; the same kind comes back, with a manifest."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from privacygames.mechanism import Sampleable
from privacygames.tables.accounting import CostLimits, refuse_epsilon_limit
from privacygames.tables.adapters import released
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger
from privacygames.tables.release_setup import setup_from
from privacygames.tables.rules import Rule

Repeat = Literal["fresh", "same"]
"""Whether every row is drawn for itself, or each person's secret once."""

Rules = Mapping[Any, Sampleable | Rule]
"""What becomes of which columns: ``{"age": mechanism, ("lon", "lat"): Rule(…)}``."""


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
    """The table with random answers in place of its secrets, and the manifest of the release.

    pandas, Polars (eager and lazy), PyArrow (tables, batches, readers, datasets), DuckDB, Dask and Spark; what comes
    back is of the same kind (of a dataset, a reader). Other columns, their order, types and metadata stay as they are.

    Args:
        table: the table.
        rules: what becomes of which columns: a mechanism, a fleet, or a :class:`Rule` for a column or for a tuple of
            columns that belong together, such as ``("longitude", "latitude")``.
        key: what makes answers repeatable, by rows' identity (``key_columns``, or ``repeat="same"``), on any engine; by
            default a new one from the operating system, which ends with the release.
        key_columns: the rows' identity: columns that tell every row from every other, in any order. Needed with a key,
            and for tables that are computed later, perhaps several times (lazy Polars, DuckDB, Dask, Spark). Otherwise
            every call draws anew.
        user: the column that says whose row it is: ε is then composed for people, and fleets find their mechanisms.
        repeat: ``"fresh"`` draws every row for itself. ``"same"`` draws each secret of a person once, and repeats the
            answer: who averages over repeats learns nothing more, but sees which answers differ.
        any_pair_limit: refuse a release in which the exponents between any two secrets, summed over a person's rows and
            columns (over columns, without ``user``), may exceed this: a log-ratio, without a unit.
        per_unit_limit: the same for ε as each column counts it (per km, per year): one number where all count alike,
            else a mapping such as ``{"per km": 2.0, "per year": 0.5}``.
        epsilon_limit: refused: it did not say which of the two it limits.
        ledger: what the release is charged to before anything of it is returned; the same release is charged once.
        connection: of a DuckDB relation, which does not say itself which connection it is of.

    Raises:
        InvalidProblem: what does not fit, a row that is no secret (unless a rule says what becomes of it), or a release
            above the limit. Nothing is released then.
        BudgetExceeded: the ledger's budget has no room for it. Nothing is released or charged then.
    """
    refuse_epsilon_limit(epsilon_limit)
    setup = setup_from(
        rules,
        key=key,
        key_columns=key_columns,
        user=user,
        repeat=repeat,
        limits=CostLimits(any_pair_limit, per_unit_limit),
        ledger=ledger,
    )
    return released(table, setup, connection)

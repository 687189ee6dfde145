"""``apply``: mechanisms on a table of any kind; the same kind comes back, with a manifest."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from privacygames.tables.adapters import released
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_setup import setup_from
from privacygames.tables.rules import Mechanisms, Rule

Repeat = Literal["fresh", "same"]
"""Whether every row is drawn for itself, or each person's secret once."""

Rules = Mapping[Any, Mechanisms | Rule]
"""What becomes of which columns: ``{"age": mechanism, ("lon", "lat"): Rule(…)}``."""


def apply(
    table: Any,
    rules: Rules,
    *,
    key: ReleaseKey | None = None,
    key_columns: str | Sequence[str] | None = None,
    user: str | None = None,
    repeat: Repeat = "fresh",
    source: str = "",
    epsilon_limit: float | None = None,
    connection: Any = None,
) -> tuple[Any, Manifest]:
    """The table with random answers in place of its secrets, and the manifest of the release.

    pandas, Polars (eager and lazy), PyArrow (tables, batches, readers, datasets), DuckDB, Dask and Spark; what comes
    back is of the same kind (of a dataset, a reader). Other columns, their order, types and metadata stay as they are.

    Args:
        table: the table.
        rules: what becomes of which columns: a mechanism, a fleet, or a :class:`Rule` for a column or for a tuple of
            columns that belong together, such as ``("longitude", "latitude")``.
        key: what makes answers repeatable; by default a new one from the operating system, which ends with the release.
        key_columns: what tells rows apart; by default their position.
        user: the column that says whose row it is: ε is then composed for people, and fleets find their mechanisms.
        repeat: ``"fresh"`` draws every row for itself. ``"same"`` draws each secret of a person once, and repeats the
            answer: who averages over repeats learns nothing more, but sees which answers differ.
        source: the name of what positions are counted in, where several tables share a key.
        epsilon_limit: refuse a release whose ε, composed over a person's rows and columns (over columns, without
            ``user``), is above this.
        connection: of a DuckDB relation, which does not say itself which connection it is of.

    Raises:
        InvalidProblem: what does not fit, a row that is no secret (unless a rule says what becomes of it), or a release
            above the limit. Nothing is drawn then.
    """
    setup = setup_from(
        rules,
        key=key,
        key_columns=key_columns,
        user=user,
        repeat=repeat,
        source=source,
        epsilon_limit=epsilon_limit,
    )
    return released(table, setup, connection)

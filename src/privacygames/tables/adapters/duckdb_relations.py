"""DuckDB relations, through a function in SQL that is marked as having side effects.

DuckDB may call a function once for equal arguments, or again for each use of its result, and computes a relation anew
for each query. The mark prevents the first, so that equal secrets get independent outputs; the release key makes the
second harmless, since each call gets the identity of its row. A row's position is no identity: it may change between
queries.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.adapters.arrow_tables import prescan_batches
from privacygames.tables.kernel import CHUNK, Kernel
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_plan import ReleasePlan

OUTPUTS, KEEP = "__privacygames_outputs", "keep"
"""Names of the column of structs that holds the outputs, and of its field that says whether a row stays."""


def release(relation: Any, plan: ReleasePlan, connection: Any) -> tuple[Any, Manifest]:
    """Release a relation; its data is scanned once before."""
    plan.require_identity("DuckDB")
    kernel = plan.kernel(relation.limit(0).to_arrow_table().schema)
    if OUTPUTS in relation.columns:
        raise InvalidProblem(f"the column name {OUTPUTS!r} is taken")
    columns = list(dict.fromkeys([*kernel.needs, *plan.prescan_columns]))
    batches = relation.select(*map(_quote, columns)).to_arrow_reader(CHUNK)
    prescan = prescan_batches(batches, plan, kernel, count_rows=True)
    manifest = plan.commit(prescan.account(), prescan.counts)
    kernel.expect(prescan.marks)
    name = f"privacygames_{uuid4().hex}"
    _register(connection, name, kernel, dict(zip(relation.columns, relation.types, strict=True)))
    arguments = ", ".join(f"{_quote(column)} := {_quote(column)}" for column in kernel.needs)
    drawn = relation.project(f"*, {name}(struct_pack({arguments})) AS {_quote(OUTPUTS)}")
    return drawn.filter(f"{_quote(OUTPUTS)}.{KEEP}").project(", ".join(_columns(kernel, relation))), manifest


def _columns(kernel: Kernel, relation: Any) -> list[str]:
    """The columns of the released relation, as SQL expressions."""
    types = dict(zip(relation.columns, relation.types, strict=True))
    columns = []
    for name, origin in kernel.layout.columns:
        if origin == "output":
            columns.append(f"{_quote(OUTPUTS)}.{_quote(name)} AS {_quote(name)}")
        elif origin == "null":
            columns.append(f"NULL::{types[name]} AS {_quote(name)}")
        else:
            columns.append(_quote(name))
    return columns


def _register(connection: Any, name: str, kernel: Kernel, types: dict[str, Any]) -> None:
    """Register the function that draws the outputs of a row."""
    import duckdb

    pa = import_optional("pyarrow")
    fields = [
        pa.field(KEEP, pa.bool_()),
        *(kernel.schema.field(output) for rule in kernel.rules for output in rule.outputs),
    ]
    empty = pa.table({OUTPUTS: pa.array([], pa.struct(fields))})
    return_type = connection.from_arrow(empty).types[0]
    connection.create_function(
        name,
        _draw_function(kernel, fields),
        [duckdb.struct_type({column: types[column] for column in kernel.needs})],
        return_type,
        type="arrow",
        null_handling="special",
        side_effects=True,
    )


def _draw_function(kernel: Kernel, fields: list[Any]) -> Callable[..., Any]:
    pa = import_optional("pyarrow")

    def draw(rows: Any) -> Any:
        structs = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        columns = {name: structs.field(name) for name in kernel.needs}
        drawn = kernel.draw(columns, len(structs), 0)
        keep = np.ones(len(structs), dtype=bool) if drawn.keep is None else drawn.keep
        indices = pa.array(np.cumsum(keep) - 1, mask=~keep)
        arrays = [drawn.columns[field.name].take(indices) for field in fields[1:]]
        return pa.StructArray.from_arrays([pa.array(keep), *arrays], fields=fields)

    return draw


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

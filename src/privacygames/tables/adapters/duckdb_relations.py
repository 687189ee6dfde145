"""DuckDB: a function in SQL, marked as having side effects, and relations.

DuckDB may call a function once for equal arguments, or again for each use of its result, and computes a relation anew
for each query. The mark keeps it from taking one answer for all rows; the release key, from drawing a row twice: each
call is told which row it is for, by its identity. The order of rows is none: it may change between two queries.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.adapters.arrow_tables import surveyed
from privacygames.tables.kernel import Kernel
from privacygames.tables.manifest import Manifest
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_setup import Setup

FOUND, KEEP = "__privacygames_found", "keep"


def release(relation: Any, setup: Setup, connection: Any) -> tuple[Any, Manifest]:
    """A relation with answers in it; the data is looked at once before."""
    setup.require_identity("DuckDB")
    kernel = setup.kernel(relation.limit(0).to_arrow_table().schema)
    if FOUND in relation.columns:
        raise InvalidProblem(f"the column name {FOUND!r} is taken")
    columns = list(dict.fromkeys([*kernel.needs, *setup.watched]))
    batches = relation.select(*map(_quoted, columns)).to_arrow_reader(1 << 17)
    survey = surveyed(batches, setup, kernel, odd=True)
    manifest = survey.committed()
    kernel.expect(survey.marks)
    name = f"privacygames_{uuid4().hex}"
    _register(connection, name, kernel, dict(zip(relation.columns, relation.types, strict=True)))
    arguments = ", ".join(f"{_quoted(each)} := {_quoted(each)}" for each in kernel.needs)
    drawn = relation.project(f"*, {name}(struct_pack({arguments})) AS {_quoted(FOUND)}")
    return drawn.filter(f"{_quoted(FOUND)}.{KEEP}").project(", ".join(_columns(kernel, relation))), manifest


def _columns(kernel: Kernel, relation: Any) -> list[str]:
    kinds = dict(zip(relation.columns, relation.types, strict=True))
    listed = []
    for name, origin in kernel.layout.columns:
        if origin == "answer":
            listed.append(f"{_quoted(FOUND)}.{_quoted(name)} AS {_quoted(name)}")
        elif origin == "null":
            listed.append(f"NULL::{kinds[name]} AS {_quoted(name)}")
        else:
            listed.append(_quoted(name))
    return listed


def _register(connection: Any, name: str, kernel: Kernel, kinds: dict[str, Any]) -> None:
    import duckdb

    pa = import_optional("pyarrow")
    fields = [
        pa.field(KEEP, pa.bool_()),
        *(kernel.schema.field(each) for rule in kernel.rules for each in rule.outputs),
    ]
    empty = pa.table({FOUND: pa.array([], pa.struct(fields))})
    returned = connection.from_arrow(empty).types[0]
    connection.create_function(
        name,
        _answering(kernel, fields),
        [duckdb.struct_type({each: kinds[each] for each in kernel.needs})],
        returned,
        type="arrow",
        null_handling="special",
        side_effects=True,
    )


def _answering(kernel: Kernel, fields: list[Any]) -> Callable[..., Any]:
    pa = import_optional("pyarrow")

    def answered(rows: Any) -> Any:
        whole = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        count = len(whole)
        columns = {name: whole.field(name) for name in kernel.needs}
        found = kernel.answer(columns, count, 0)
        keep = np.ones(count, dtype=bool) if found.keep is None else found.keep
        places = pa.array(np.cumsum(keep) - 1, mask=~keep)
        arrays = [found.columns[field.name].take(places) for field in fields[1:]]
        return pa.StructArray.from_arrays([pa.array(keep), *arrays], fields=fields)

    return answered


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

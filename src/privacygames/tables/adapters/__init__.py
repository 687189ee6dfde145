"""Thin adapters: each takes and returns its engine's kind of table, and ends in the one kernel."""

from privacygames.tables.adapters.choosing import released
from privacygames.tables.adapters.duckdb_relations import release as release_duckdb

__all__ = ["release_duckdb", "released"]

"""Adapters: one for each engine, which takes and returns the engine's kind of table and draws through the kernel."""

from privacygames.tables.adapters.dispatch import release_table

__all__ = ["release_table"]

"""Thin adapters: each takes and returns its engine's kind of table, and ends in the one kernel."""

from privacygames.tables.adapters.dispatch import released

__all__ = ["released"]

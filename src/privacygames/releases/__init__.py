"""Sharing over time: beliefs that move, budgets that are kept."""

from privacygames.releases import tracking

__all__ = ["tracking"]

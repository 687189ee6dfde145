"""Mechanisms for many people over one space: designed in parallel, packed, opened in milliseconds."""

from privacygames.fleet.fleet import Fleet, People
from privacygames.fleet.people_design import design

__all__ = ["Fleet", "People", "design"]

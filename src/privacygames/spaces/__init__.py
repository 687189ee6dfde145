"""What secrets and observables are, and how far apart."""

from privacygames.spaces.base import Label, Space, shown
from privacygames.spaces.categories import Categories
from privacygames.spaces.graph import Graph
from privacygames.spaces.grid import Grid
from privacygames.spaces.numbers import Numbers
from privacygames.spaces.sets import Sets
from privacygames.spaces.subsets import Subsets

__all__ = ["Categories", "Graph", "Grid", "Label", "Numbers", "Sets", "Space", "Subsets", "shown"]

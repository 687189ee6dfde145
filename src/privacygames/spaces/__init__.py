"""What secrets and observables are, and how far apart."""

from privacygames.spaces.categories import Categories
from privacygames.spaces.codec import SizeBudget, blaming, describe, space_digest, space_from
from privacygames.spaces.given_labels import counted, listed
from privacygames.spaces.graph import Graph
from privacygames.spaces.grid import Box, Grid, Outside, checked_box
from privacygames.spaces.numbers import Numbers
from privacygames.spaces.product import Product
from privacygames.spaces.sets import Sets
from privacygames.spaces.space import DistanceSpace, Label, Space, find_label, label_text, shown
from privacygames.spaces.subsets import Subsets

__all__ = [
    "Box",
    "Categories",
    "DistanceSpace",
    "Graph",
    "Grid",
    "Label",
    "Numbers",
    "Outside",
    "Product",
    "Sets",
    "SizeBudget",
    "Space",
    "Subsets",
    "blaming",
    "checked_box",
    "counted",
    "describe",
    "find_label",
    "label_text",
    "listed",
    "shown",
    "space_digest",
    "space_from",
]

"""Spaces of secrets and outputs: labels, and named distances between them."""

from privacygames.spaces.area import Area
from privacygames.spaces.categories import Categories
from privacygames.spaces.codec import (
    REGION_KINDS,
    LabelBudget,
    decode_region,
    decode_space,
    encode_region,
    encode_space,
    error_context,
    is_region,
    refuse_region,
    region_digest,
    register_space,
    space_digest,
)
from privacygames.spaces.graph import Graph
from privacygames.spaces.grid import Box, Grid, Outside, checked_box
from privacygames.spaces.interval import Interval
from privacygames.spaces.label_input import count_visits, list_labels
from privacygames.spaces.numbers import Numbers
from privacygames.spaces.places import Places
from privacygames.spaces.product import Product
from privacygames.spaces.region import Region, require_region
from privacygames.spaces.sets import Sets
from privacygames.spaces.space import DistanceSpace, Label, Space, display_label, find_label, label_text
from privacygames.spaces.subsets import Subsets

__all__ = [
    "REGION_KINDS",
    "Area",
    "Box",
    "Categories",
    "DistanceSpace",
    "Graph",
    "Grid",
    "Interval",
    "Label",
    "LabelBudget",
    "Numbers",
    "Outside",
    "Places",
    "Product",
    "Region",
    "Sets",
    "Space",
    "Subsets",
    "checked_box",
    "count_visits",
    "decode_region",
    "decode_space",
    "display_label",
    "encode_region",
    "encode_space",
    "error_context",
    "find_label",
    "is_region",
    "label_text",
    "list_labels",
    "refuse_region",
    "region_digest",
    "register_space",
    "require_region",
    "space_digest",
]

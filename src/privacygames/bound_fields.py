"""What each bound is called, measured in and told as: one table for messages, command options and HTTP requests.

It imports nothing, so that the command line knows its options without loading NumPy. The values are those of
:class:`privacygames.Bounds`, which has one field for each entry.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["distinguishability", "exponent", "error", "cost", "none"]
"""What a bound is measured in: distances between secrets, log-ratios (per unit of distance), errors, costs; a switch
has no unit."""


@dataclass(frozen=True)
class BoundField:
    """What is known of a bound besides its name.

    Attributes:
        help: one sentence, as the command line and the HTTP API show it.
        unit: what the number is measured in; ``"none"`` for a switch.
        positive: whether 0 is refused.
    """

    help: str
    unit: Unit
    positive: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether the bound is on or off, rather than a number."""
        return self.unit == "none"


BOUND_FIELDS = {
    "epsilon": BoundField("Differential privacy, per unit of distance.", "exponent", positive=True),
    "within": BoundField("Threshold form: epsilon up to this distance.", "distinguishability"),
    "distortion": BoundField("Least error of the best attack.", "error"),
    "cost_at_most": BoundField("Maximise distortion for at most this cost.", "cost"),
    "worst_case": BoundField("Count the worst secret's cost.", "none"),
    "worst_cost_at_most": BoundField("No secret's cost is above this, while the average counts.", "cost"),
}
"""Every bound, in the order of the fields of :class:`privacygames.Bounds`."""

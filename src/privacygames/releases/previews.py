"""What the next release would be, before anybody looks at the secret."""

from dataclasses import dataclass
from decimal import Decimal

from privacygames.beliefs import Prior
from privacygames.problem import DistortionGuarantee
from privacygames.releases.policies import Choice
from privacygames.releases.timeline import When


@dataclass(frozen=True, eq=False)
class Preview:
    """What the next release would be, from what is public alone: nobody's secret was looked at.

    Attributes:
        number: its place in the ledger, from 1.
        when: when it would count as made.
        belief: what is believed before it, at its time.
        choice: the mechanism, and the test before it; None where the budget is spent.
        charges: the most it may cost, by account; a memoised place that counts already costs nothing.
        promised: under the declared chain, how far off the best attack on now would be on average; None where that is
            not known.
        after: who is after something else by now, and
        apart: how far off her best guess would be on average.
    """

    number: int
    when: When
    belief: Prior
    choice: Choice | None
    charges: tuple[Decimal, ...]
    promised: float | None
    after: tuple[DistortionGuarantee, ...]
    apart: tuple[float, ...]

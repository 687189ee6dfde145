"""What memoised releases over weeks guarantee about one place, and how much their pattern may show."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import pairwise
from math import comb, factorial, log2
from typing import Any

from privacygames.problem import Scale
from privacygames.releases.decimal_epsilon import NOTHING, total
from privacygames.releases.ledger import ReleaseRecord


@dataclass(frozen=True)
class PlaceGuarantee:
    """What all releases so far guarantee about where one place lies, such as home (docs/theory/weeks.md).

    Between two histories with the same pattern of visits that differ only in where one place lies, no sequence of
    outputs shifts the odds by more than exp(``epsilon`` · distance), however many releases there are and whatever the
    adversary knows. The pattern itself is not protected: which releases are at the same place, and when it changes.

    Attributes:
        scale: of the distance that ε counts in.
        epsilon: ε of the one draw for a place; the sum over all keys and mechanisms that were in use.
        radius: how far from a place its fixes may be; between fixes, distances count up to twice as much more.
        releases: number of releases.
        places: number of distinct places with an output of their own.
        moves: how often the output of another place followed.
        independent_epsilon: ε of all independent draws together: histories that differ there add up to as much times
            the distance of their points.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> policy = pg.policies.FrequentPlaces(b"0123456789abcdef", [1.0, 3.0], radius=0.2)
    >>> releases = pg.PointReleases(mechanism, policy=policy)
    >>> weeks = [releases.release(point) for point in [1.0, 1.1, 3.0, 2.9, 0.9] * 14]
    >>> guarantee = releases.place_guarantee()
    >>> guarantee.epsilon, guarantee.places, guarantee.moves, guarantee.log_ratio(2.0)
    (0.5, 2, 28, 1.0)
    """

    scale: Scale
    epsilon: float
    radius: float
    releases: int
    places: int
    moves: int
    independent_epsilon: float

    def log_ratio(self, distance: float) -> float:
        """The largest shift of log-odds between a place and another one at this distance, whatever was released.

        Args:
            distance: between the two possible places, in the unit of distances.
        """
        return self.epsilon * distance if self.epsilon else 0.0

    @property
    def pattern_bits(self) -> float:
        """The logarithm of the number of patterns with as many releases, places and moves.

        The pattern multiplies the probability of any guess of an adversary by at most 2 to this power.
        """
        return log2(patterns(self.releases, self.places + (self.independent_epsilon > 0), self.moves))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "counted": self.scale.per(), "pattern_bits": self.pattern_bits}

    def __str__(self) -> str:
        lines = [
            f"where a place lies: epsilon {self.epsilon:g} {self.scale.per()}, whatever the number of releases (so far "
            f"{self.releases}), between histories with the same pattern of visits",
            f"between fixes: each distance counts up to {2 * self.radius:.4g} more",
            f"not protected: the pattern, {self.places} places and {self.moves} moves between them (at most "
            f"{self.pattern_bits:.0f} bits)",
        ]
        if self.independent_epsilon:
            lines.append(f"away from places: independent draws, epsilon {self.independent_epsilon:g} in all")
        return "\n".join(lines)


def place_guarantee(records: Sequence[ReleaseRecord], scale: Scale, radius: float) -> PlaceGuarantee:
    """The guarantee about a place after these releases.

    Args:
        records: all releases of a ledger, in order.
        scale: of the distance that ε counts in.
        radius: how far from a place its fixes may be.
    """
    draws: dict[str | None, Decimal] = {}
    independent = []
    visits: list[str | None] = []
    for record in records:
        if record.secret_mark is not None:
            draws[record.mechanism] = max(draws.get(record.mechanism, NOTHING), record.charges[0])
        elif record.mechanism is not None:
            independent.append(record.charges[0])
        else:
            continue
        visits.append(record.secret_mark)
    return PlaceGuarantee(
        scale=scale,
        epsilon=float(total(list(draws.values()))),
        radius=radius,
        releases=len(records),
        places=len(set(visits) - {None}),
        moves=sum(before != after for before, after in pairwise(visits)),
        independent_epsilon=float(total(independent)),
    )


def patterns(releases: int, places: int, moves: int) -> int:
    """The number of sequences of visits up to the names of the places: set partitions with this many changes.

    There are C(releases − 1, moves) ways to choose when the place changes, and S(moves, places − 1) ways to choose
    which visits are to the same place, with S the Stirling numbers of the second kind.

    Args:
        releases: the length of the sequence.
        places: the number of distinct places in it.
        moves: the number of times that a place differs from the one before.
    """
    if releases == 0:
        return 1
    blocks = places - 1
    signs = (1 if (blocks - each) % 2 == 0 else -1 for each in range(blocks + 1))
    signed = sum(sign * comb(blocks, each) * each**moves for each, sign in enumerate(signs))
    return comb(releases - 1, moves) * int(signed // factorial(blocks))

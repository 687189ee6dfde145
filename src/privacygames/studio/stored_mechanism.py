"""A mechanism that the server keeps, with the problem it was designed for and what was computed from it."""

from dataclasses import dataclass
from functools import cached_property

from privacygames import attacks
from privacygames.analysis import PointReport, Report, evaluate
from privacygames.attacks import Attack
from privacygames.mechanism import Mechanism
from privacygames.points import PointAttack, PointMechanism, optimal_attack
from privacygames.problem import Adversary
from privacygames.studio.limits import bytes_of
from privacygames.studio.problem_source import ProblemSource, Tables

PROBLEM_ADVERSARY_NAME = "knows your habits"
"""What the page calls the adversary who knows the problem's prior and guesses the secret."""


@dataclass(frozen=True)
class StoredMechanism:
    """A mechanism with its problem, where that is known.

    Attributes:
        mechanism: the mechanism.
        tables: the problem document it was designed from, bounds included; None for a file or a baseline.
        source: the problem; None for a file.
        problem: the name under which the problem is stored.
        label: what the page calls the mechanism.
        seconds: how long the design took.
        bounds_by_user: whether its bounds were given by the user, rather than computed from the prior.
    """

    mechanism: Mechanism
    tables: Tables | None = None
    source: ProblemSource | None = None
    problem: str = ""
    label: str = ""
    seconds: float | None = None
    bounds_by_user: bool = True

    @property
    def size(self) -> int:
        """Approximate bytes, with its problem, its dual values and what is computed from it."""
        return 8 * self.mechanism.weights.nbytes + (0 if self.source is None else self.source.size)

    @cached_property
    def report(self) -> Report:
        """Its cost and privacy."""
        return evaluate(self.mechanism, self.mechanism.problem)

    @cached_property
    def attacks(self) -> list[tuple[Adversary, Attack]]:
        """The optimal attacks of the adversary who knows the prior, and of every one with a guarantee of their own."""
        named = self.mechanism.certificate.bounds.named_adversaries
        others = [adversary for adversary in named if adversary.prior or adversary.errors is not None]
        problem = self.mechanism.problem
        return [
            (adversary, attacks.optimal(self.mechanism, problem, adversary=adversary))
            for adversary in (Adversary(PROBLEM_ADVERSARY_NAME), *others)
        ]


@dataclass(frozen=True)
class StoredPointMechanism:
    """A mechanism for points that the server keeps, with its problem, where that is known.

    Attributes:
        mechanism: the mechanism.
        tables: the problem document it was designed from, bounds included; None for a file.
        problem: the name under which the problem is stored; empty for a file.
        label: what the page calls the mechanism.
        seconds: how long the design took.
    """

    mechanism: PointMechanism
    tables: Tables | None = None
    problem: str = ""
    label: str = "from a file"
    seconds: float | None = None

    @property
    def size(self) -> int:
        """Approximate bytes, with its problem and its dual values."""
        return 8 * (self.mechanism.weights.nbytes + self.mechanism.problem.costs.nbytes) + bytes_of(self.tables)

    @cached_property
    def report(self) -> PointReport:
        """Its cost and privacy."""
        return evaluate(self.mechanism)

    @cached_property
    def attack(self) -> PointAttack:
        """The optimal attack of the adversary who knows the prior, whose guesses may be any point."""
        return optimal_attack(self.mechanism, self.mechanism.problem)

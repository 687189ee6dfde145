"""What is asked of a mechanism, and what its certificate will promise."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any, Self

import numpy as np

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray
from privacygames.errors import Field, InvalidProblem
from privacygames.problem.adversary import Adversary, AdversaryArrays
from privacygames.problem.problem import Problem
from privacygames.validation import is_number

Distortion = float | Mapping[Adversary, float | None] | None
"""Distortion privacy asked for: a number against the problem's own adversary, or one for each of several."""

NUMBERS = ("epsilon", "within", "distortion", "cost_at_most", "worst_cost_at_most")
MOST_ADVERSARIES = 100
PROBLEM_ADVERSARY = Adversary("the paper's")
"""The adversary who knows the problem's prior and guesses the secret; the name is the one stored and shown."""


@dataclass(frozen=True)
class DistortionGuarantee:
    """What is promised against one adversary: she errs by at least ``distortion``; None: by as much as possible."""

    adversary: Adversary
    distortion: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Bounds:
    """The promises asked for; any may be left out, but not all.

    Attributes:
        epsilon: ε_m. Metric form (eq:constraint:privacy:diff:mult): p(o|s) ≤ exp(ε·d^ε(s,s')) p(o|s').
        within: d^ε_m. Threshold form (eq:constraint:privacy:diff:mult2): exp(ε) between secrets at most this
            far apart, nothing between others.
        distortion: d_m, the least distortion privacy against the optimal attack.
        cost_at_most: turns the problem round: most distortion privacy for at most this cost.
        worst_case: count the cost of the worst secret (eq:utility:maxmetric) instead of the average.
        worst_cost_at_most: no secret's cost is above this, while the average counts.
        against: instead of ``distortion``, what is promised against each of several adversaries. With
            ``cost_at_most`` privacy against the first is what is maximised.
    """

    epsilon: float | None = None
    within: float | None = None
    distortion: float | None = None
    cost_at_most: float | None = None
    worst_case: bool = False
    worst_cost_at_most: float | None = None
    against: tuple[DistortionGuarantee, ...] = ()

    @classmethod
    def asked(cls, *, distortion: Distortion, **others: Any) -> Self:
        """Bounds with a distortion that is a number or a mapping from adversaries to numbers."""
        if not isinstance(distortion, Mapping):
            return cls(distortion=distortion, **others)
        if not distortion:
            raise InvalidProblem(Field("distortion"), " names no adversary: give one at least, or a number")
        return cls(against=tuple(DistortionGuarantee(*each) for each in distortion.items()), **others)

    def __post_init__(self) -> None:
        if not isinstance(self.worst_case, bool):
            raise InvalidProblem(Field("worst_case"), " must be True or False")
        for name in NUMBERS:  # NumPy's numbers become plain floats
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        if self.epsilon == 0:
            raise InvalidProblem(Field("epsilon"), " is 0.0; it must be a positive number, or None for no such bound")
        if self.within is not None and self.epsilon is None:
            raise InvalidProblem(
                Field("within"),
                " says which secrets ",
                Field("epsilon"),
                " holds between; give ",
                Field("epsilon"),
                " too",
            )
        if self.distortion is not None and self.cost_at_most is not None:
            raise InvalidProblem(
                "give ",
                Field("distortion"),
                " (and get the least cost) or ",
                Field("cost_at_most"),
                " (and get the most distortion)",
            )
        if self.worst_case and self.worst_cost_at_most is not None:
            raise InvalidProblem(
                Field("worst_case"),
                " already makes the worst secret's cost the one that counts; ",
                Field("worst_cost_at_most"),
                " limits it where the average counts: give one of them",
            )
        self._check_adversaries()
        if self.epsilon is None and self.distortion is None and self.cost_at_most is None and not self.against:
            raise InvalidProblem(
                "nothing is promised: give ", Field("epsilon"), ", ", Field("distortion"), " or ", Field("cost_at_most")
            )

    def _check_adversaries(self) -> None:
        if self.against and self.distortion is not None:
            raise InvalidProblem(
                "give ", Field("distortion"), " as a number or for each of several adversaries, not both"
            )
        if len(self.against) > MOST_ADVERSARIES:
            raise InvalidProblem(f"there are {len(self.against)} adversaries; at most {MOST_ADVERSARIES} are allowed")
        plain = []
        for place, promise in enumerate(self.against):
            adversary, asked = promise.adversary, promise.distortion
            if not isinstance(adversary, Adversary):
                raise InvalidProblem(
                    Field("distortion"), " maps adversaries to numbers: its keys must be of type Adversary"
                )
            if asked is None and (place or not self.maximises_distortion):
                raise InvalidProblem(
                    f"the distortion against {adversary.name!r} is None; only with ",
                    Field("cost_at_most"),
                    ", which makes that against the first adversary as large as possible, may the first one be left "
                    "open",
                    field="distortion",
                )
            plain.append(DistortionGuarantee(adversary, _number("distortion", asked, f" against {adversary.name!r}")))
        names = [promise.adversary.name for promise in plain]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidProblem(f"two adversaries are called {twice[0]!r}; names tell them apart")
        object.__setattr__(self, "against", tuple(plain))

    @property
    def maximises_distortion(self) -> bool:
        """Whether the cost is bounded and distortion privacy is maximised, rather than the other way round."""
        return self.cost_at_most is not None

    @property
    def cost_limits(self) -> list[tuple[bool, float]]:
        """The limits on costs: whether each is on the worst secret's (or on the average), and what it is."""
        found = [] if self.cost_at_most is None else [(self.worst_case, self.cost_at_most)]
        return found if self.worst_cost_at_most is None else [*found, (True, self.worst_cost_at_most)]

    def adversary_arrays(self, prior: FloatArray, distance: FloatArray) -> tuple[AdversaryArrays, ...]:
        """Everybody something is promised against, in plain numbers; with ``cost_at_most`` the first is maximised.

        Args:
            prior: the problem's, for those who have none of their own.
            distance: the problem's, likewise.
        """
        if self.against:
            return tuple(each.adversary.arrays_for(prior, distance, each.distortion) for each in self.against)
        if self.distortion is None and not self.maximises_distortion:
            return ()
        return (AdversaryArrays(PROBLEM_ADVERSARY.name, prior, distance, self.distortion),)

    def adversaries(self, problem: Problem) -> tuple[AdversaryArrays, ...]:
        """Everybody something is promised against; an error if somebody's numbers are not about a problem's secrets."""
        for promise in self.against:
            promise.adversary.require_fit(problem)
        return self.adversary_arrays(problem.prior.probabilities, problem.distance)

    def log_ratio_bounds(self, distinguishability: FloatArray) -> FloatArray:
        """The bound on ln p(o|s) − ln p(o|s') for every ordered pair (s, s'); ∞ where nothing is asked."""
        if self.epsilon is None:
            return np.full_like(distinguishability, inf)
        if self.within is None:
            exponents = self.epsilon * distinguishability
        else:
            exponents = np.where(distinguishability <= self.within, self.epsilon, inf)
        np.fill_diagonal(exponents, inf)
        return exponents

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON; adversaries by their names, with the SHA-256 of their numbers."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["against"] = [
            {"adversary": each.adversary.name, "distortion": each.distortion, "sha256": each.adversary.digest}
            for each in self.against
        ]
        return found

    @property
    def content(self) -> dict[str, object]:
        """What is promised, for digests: the bounds that were given; adversaries by their own digests."""
        found = {name: getattr(self, name) for name in NUMBERS if getattr(self, name) is not None}
        if self.worst_case:
            found["worst_case"] = True
        if self.against:
            found["against"] = [(each.adversary.digest, each.distortion) for each in self.against]
        return found

    def __repr__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, empty in (("worst_cost_at_most", None), ("against", ())):
            if given[name] == empty:
                del given[name]
        return f"Bounds({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _number(name: str, value: object, against: str = "") -> float | None:
    """A bound as a float, or an error that says what it may be."""
    if value is None:
        return None
    if is_number(value):
        try:
            plain = float(value)  # type: ignore[arg-type]
        except OverflowError:
            plain = inf
        if plain == 0 or SMALLEST_POSITIVE <= plain <= LARGEST_FINITE:
            return plain
        value = plain
    if isinstance(value, Mapping):
        raise InvalidProblem(
            Field(name), " is one number here; numbers for several adversaries are for design and find"
        )
    kind = "a positive number" if name == "epsilon" else "a finite number, 0 or more"
    other = "; or a dict from adversaries to such numbers" if name == "distortion" and not against else ""
    wanted = f"{against} is {repr(value)[:40]}; it must be {kind}, no larger than {LARGEST_FINITE:g}{other}"
    raise InvalidProblem("the " if against else "", Field(name), wanted)

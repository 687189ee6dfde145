"""The bounds a mechanism has to keep: the guarantees asked of it, checked once and in one form."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, TypedDict

import numpy as np

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray
from privacygames.bound_fields import BOUND_FIELDS
from privacygames.errors import Field, InvalidProblem
from privacygames.problem.adversary import Adversary, AdversaryArrays
from privacygames.problem.problem import Problem
from privacygames.validation import is_number

MAX_ADVERSARIES = 100
"""Largest number of adversaries one mechanism may have guarantees against: each adds m variables and m rows a guess."""

PROBLEM_ADVERSARY = Adversary("the paper's")
"""The adversary who knows the problem's prior and guesses the secret; files and tables show this name."""


@dataclass(frozen=True)
class DistortionGuarantee:
    """Distortion privacy against one adversary.

    Attributes:
        adversary: the adversary.
        distortion: d_m, the least expected error of their best attack; None: as large as possible.

    >>> pg.Bounds(distortion=1.2).distortion[0].distortion
    1.2
    """

    adversary: Adversary
    distortion: float | None


Distortion = float | Mapping[Adversary, float | None] | tuple[DistortionGuarantee, ...] | None
"""Distortion privacy as an argument: a number against the problem's own adversary, or one for each of several."""


class BoundsArguments(TypedDict, total=False):
    """The keyword arguments of :class:`Bounds`, for functions that pass them on."""

    epsilon: float | None
    within: float | None
    distortion: Distortion
    cost_at_most: float | None
    worst_case: bool
    worst_cost_at_most: float | None


@dataclass(frozen=True, init=False, repr=False)
class Bounds:
    """The guarantees asked of a mechanism; each may be left out, but not all.

    Args:
        epsilon: ε_m. Metric form (eq:constraint:privacy:diff:mult): p(o|s) ≤ exp(ε·d^ε(s,s')) p(o|s').
        within: d^ε_m. Threshold form (eq:constraint:privacy:diff:mult2): exp(ε) between secrets at most this far apart,
            no bound between others.
        distortion: d_m, the least distortion privacy against the optimal attack: a number is about the adversary who
            knows the problem's prior and guesses the secret; a mapping gives one for each of several adversaries.
        cost_at_most: maximise distortion privacy under this limit on the cost, instead of minimising the cost. With
            several adversaries it is the first one's, whose number may be None.
        worst_case: the cost is that of the worst secret (eq:utility:maxmetric) instead of the average.
        worst_cost_at_most: limit on every secret's cost, while the average is minimised.

    Attributes:
        distortion: a :class:`DistortionGuarantee` for each adversary; the problem's own adversary is one of them.

    >>> pg.Bounds(epsilon=0.5, distortion=1.2)
    Bounds(epsilon=0.5, within=None, distortion=1.2, cost_at_most=None, worst_case=False)
    """

    epsilon: float | None
    within: float | None
    distortion: tuple[DistortionGuarantee, ...]
    cost_at_most: float | None
    worst_case: bool
    worst_cost_at_most: float | None

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        within: float | None = None,
        distortion: Distortion = None,
        cost_at_most: float | None = None,
        worst_case: bool = False,
        worst_cost_at_most: float | None = None,
    ) -> None:
        if not isinstance(worst_case, bool):
            raise InvalidProblem(Field("worst_case"), " must be True or False")
        numbers = {
            "epsilon": epsilon,
            "within": within,
            "cost_at_most": cost_at_most,
            "worst_cost_at_most": worst_cost_at_most,
        }
        for name, value in numbers.items():
            object.__setattr__(self, name, checked_number(name, value))
        object.__setattr__(self, "worst_case", worst_case)
        guarantees = _guarantees(distortion, maximised=cost_at_most is not None)
        object.__setattr__(self, "distortion", guarantees)
        self._check()

    def _check(self) -> None:
        """Raise where bounds contradict each other, or nothing is bounded."""
        if self.within is not None and self.epsilon is None:
            raise InvalidProblem(
                Field("within"),
                " says which secrets ",
                Field("epsilon"),
                " holds between; give ",
                Field("epsilon"),
                " too",
            )
        if self.worst_case and self.worst_cost_at_most is not None:
            raise InvalidProblem(
                Field("worst_case"),
                " already makes the worst secret's cost the one that counts; ",
                Field("worst_cost_at_most"),
                " limits it where the average counts: give one of them",
            )
        if self.epsilon is None and not self.distortion:
            raise InvalidProblem(
                "no guarantee is requested: give ",
                Field("epsilon"),
                ", ",
                Field("distortion"),
                " or ",
                Field("cost_at_most"),
            )

    @property
    def maximises_distortion(self) -> bool:
        """Whether the cost is bounded and distortion privacy is maximised, rather than the other way round."""
        return self.cost_at_most is not None

    @property
    def cost_limits(self) -> list[tuple[bool, float]]:
        """The limits on costs: whether each is on the worst secret's (or on the average), and what it is."""
        limits = [(self.worst_case, self.cost_at_most), (True, self.worst_cost_at_most)]
        return [(worst_case, limit) for worst_case, limit in limits if limit is not None]

    @property
    def problem_distortion(self) -> float | None:
        """The distortion guaranteed against the problem's own adversary; None where nothing is, or it is maximised.

        >>> pg.Bounds(distortion=1.2).problem_distortion
        1.2
        """
        own = (each.distortion for each in self.distortion if each.adversary == PROBLEM_ADVERSARY)
        return next(own, None)

    @property
    def named_adversaries(self) -> tuple[Adversary, ...]:
        """The adversaries that a reader has to be told by name: none where the problem's own is the only one."""
        only = None if self.maximises_distortion else self.problem_distortion
        if self.distortion in ((), (DistortionGuarantee(PROBLEM_ADVERSARY, only),)):
            return ()
        return tuple(guarantee.adversary for guarantee in self.distortion)

    def adversary_arrays(self, prior: FloatArray, distance: FloatArray) -> tuple[AdversaryArrays, ...]:
        """Every adversary something is guaranteed against, as arrays; with ``cost_at_most`` the first is maximised.

        Args:
            prior: the problem's, for those who have none of their own.
            distance: the problem's, likewise.
        """
        return tuple(each.adversary.arrays_for(prior, distance, each.distortion) for each in self.distortion)

    def adversaries(self, problem: Problem) -> tuple[AdversaryArrays, ...]:
        """The same for a problem; an error if an adversary's arrays are not about its secrets.

        >>> space = pg.Numbers(range(3))
        >>> problem = pg.Problem(pg.Prior.uniform(space))
        >>> [adversary.distortion for adversary in pg.Bounds(distortion=0.5).adversaries(problem)]
        [0.5]
        """
        for guarantee in self.distortion:
            guarantee.adversary.require_fit(problem)
        return self.adversary_arrays(problem.prior.probabilities, problem.distance)

    def log_ratio_bounds(self, distinguishability: FloatArray) -> FloatArray:
        """The upper bound on ln p(o|s) − ln p(o|s') for every ordered pair (s, s'); ∞ where there is none.

        >>> pg.Bounds(epsilon=0.5).log_ratio_bounds(np.array([[0.0, 2.0], [2.0, 0.0]]))
        array([[inf,  1.],
               [ 1., inf]])
        """
        if self.epsilon is None:
            return np.full_like(distinguishability, inf)
        if self.within is None:
            exponents = self.epsilon * distinguishability
        else:
            exponents = np.where(distinguishability <= self.within, self.epsilon, inf)
        np.fill_diagonal(exponents, inf)
        return exponents

    def tightened(self, *, epsilon: float = 0.0, distortion: float = 0.0, cost: float = 0.0) -> "Bounds":
        """Bounds that are stricter by relative margins, for solvers whose results are rounded afterwards.

        Args:
            epsilon: by how much ε is lowered.
            distortion: by how much every distortion is raised.
            cost: by how much every limit on a cost is lowered.

        >>> pg.Bounds(epsilon=1.0, distortion=0.5).tightened(epsilon=0.25, distortion=1.0)
        Bounds(epsilon=0.75, within=None, distortion=1.0, cost_at_most=None, worst_case=False)
        """
        factors = {"exponent": 1 - epsilon, "cost": 1 - cost}
        changed: dict[str, Any] = {}
        for name, about in BOUND_FIELDS.items():
            value = getattr(self, name)
            if about.unit in factors and value is not None:
                changed[name] = value * factors[about.unit]
        changed["distortion"] = tuple(
            replace(each, distortion=None if each.distortion is None else each.distortion * (1 + distortion))
            for each in self.distortion
        )
        return replace(self, **changed)

    def plain_values(self) -> dict[str, float | bool | None]:
        """Every bound by name as a plain value: the distortion is a number, or None where adversaries are named."""
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        values["distortion"] = None if self.named_adversaries else self.problem_distortion
        return values

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON; named adversaries by their names, with the SHA-256 of their arrays."""
        named = self.distortion if self.named_adversaries else ()
        against = [
            {"adversary": each.adversary.name, "distortion": each.distortion, "sha256": each.adversary.digest}
            for each in named
        ]
        return {**self.plain_values(), "against": against}

    @property
    def content(self) -> dict[str, object]:
        """What is guaranteed, for digests: the bounds that were given; named adversaries by their own digests."""
        values: dict[str, object] = {
            name: value for name, value in self.plain_values().items() if value is not None and value is not False
        }
        if self.named_adversaries:
            values["against"] = [(each.adversary.digest, each.distortion) for each in self.distortion]
        return values

    def __repr__(self) -> str:
        shown: dict[str, object] = dict(self.plain_values())
        if self.named_adversaries:
            shown["distortion"] = self.distortion
        if shown["worst_cost_at_most"] is None:
            del shown["worst_cost_at_most"]
        return f"Bounds({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def checked_number(name: str, value: object, against: str = "") -> float | None:
    """A bound as a float, or an error that says which values it may have.

    Args:
        name: the field of :class:`Bounds`.
        value: the number; None for no such bound.
        against: whom a distortion is against, for the message.
    """
    if value is None:
        return None
    about = BOUND_FIELDS[name]
    if is_number(value):
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            number = inf
        if number == 0 and about.positive:
            raise InvalidProblem(Field(name), " is 0.0; it must be a positive number, or None for no such bound")
        if number == 0 or SMALLEST_POSITIVE <= number <= LARGEST_FINITE:
            return number
        value = number
    if isinstance(value, Mapping):
        raise InvalidProblem(
            Field(name), " is one number here; numbers for several adversaries are for design and find"
        )
    allowed = "a positive number" if about.positive else "a finite number, 0 or more"
    other = "; or a dict from adversaries to such numbers" if name == "distortion" and not against else ""
    wanted = f"{against} is {repr(value)[:40]}; it must be {allowed}, no larger than {LARGEST_FINITE:g}{other}"
    raise InvalidProblem("the " if against else "", Field(name), wanted)


def _guarantees(distortion: Distortion, *, maximised: bool) -> tuple[DistortionGuarantee, ...]:
    """The one form of distortion guarantees, from a number, a mapping or guarantees.

    Args:
        distortion: as given.
        maximised: whether the cost is bounded, and the distortion against the first adversary maximised.
    """
    if isinstance(distortion, tuple):
        guarantees = distortion
    elif isinstance(distortion, Mapping):
        if not distortion:
            raise InvalidProblem(Field("distortion"), " names no adversary: give one at least, or a number")
        guarantees = tuple(DistortionGuarantee(*item) for item in distortion.items())
    else:
        number = checked_number("distortion", distortion)
        if number is not None and maximised:
            raise InvalidProblem(
                "give ",
                Field("distortion"),
                " (and get the least cost) or ",
                Field("cost_at_most"),
                " (and get the most distortion)",
            )
        guarantees = () if number is None else (DistortionGuarantee(PROBLEM_ADVERSARY, number),)
    if not guarantees and maximised:
        guarantees = (DistortionGuarantee(PROBLEM_ADVERSARY, None),)
    if len(guarantees) > MAX_ADVERSARIES:
        raise InvalidProblem(f"there are {len(guarantees)} adversaries; at most {MAX_ADVERSARIES} are allowed")
    checked = tuple(
        _checked_guarantee(each, open_allowed=maximised and position == 0) for position, each in enumerate(guarantees)
    )
    names = [guarantee.adversary.name for guarantee in checked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidProblem(f"two adversaries are called {twice[0]!r}; names tell them apart")
    return checked


def _checked_guarantee(guarantee: DistortionGuarantee, *, open_allowed: bool) -> DistortionGuarantee:
    """A guarantee with a plain number; ``open_allowed`` says whether the number may be None."""
    adversary = guarantee.adversary
    if not isinstance(adversary, Adversary):
        raise InvalidProblem(Field("distortion"), " maps adversaries to numbers: its keys must be of type Adversary")
    if guarantee.distortion is None and not open_allowed:
        raise InvalidProblem(
            f"the distortion against {adversary.name!r} is None; only with ",
            Field("cost_at_most"),
            ", which makes that against the first adversary as large as possible, may the first one be left open",
            field="distortion",
        )
    number = checked_number("distortion", guarantee.distortion, f" against {adversary.name!r}")
    return DistortionGuarantee(adversary, number)


def require_epsilon(epsilon: float) -> float:
    """Return ε as a float, or raise where it is no positive number."""
    validated = Bounds(epsilon=epsilon).epsilon
    if validated is None:
        raise InvalidProblem(Field("epsilon"), " is None; give a positive number")
    return validated

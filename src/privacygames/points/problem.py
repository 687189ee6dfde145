"""The problem for points: a prior over the points of a region, outputs with costs, and what a guess does."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, content_hash, freeze_floats, require_nonnegative
from privacygames.beliefs import PointPrior
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.points.guesses import best_guesses
from privacygames.points.mesh import MOST_CONTROLS, Mesh
from privacygames.points.refinement import default_controls
from privacygames.problem import PROBLEM_ADVERSARY, Adversary
from privacygames.spaces import Area, Grid, Numbers, Places, Region, Space
from privacygames.validation import is_integer, require_instance

CostFunction = Callable[[FloatArray, FloatArray], ArrayLike]
"""A cost: points (points, axes) and outputs (outputs, axes), in the unit of distances, to a table (points, outputs)."""

GIVEN = "given"
"""The name of a cost that is a function of the user's own."""

FEASIBLE = 1 - 1e-12
"""Share of the largest distortion that a design may be asked for: the rest is room for rounding."""

MOST_ENTRIES = 10**8
"""Largest number of pairs of a point of the prior and an output."""


def norms(points: FloatArray, others: FloatArray) -> FloatArray:
    """Euclidean distances, (points, others)."""
    offsets = points[:, None] - others[None]
    return np.abs(offsets[..., 0]) if offsets.shape[-1] == 1 else np.hypot(offsets[..., 0], offsets[..., 1])


def squared_norms(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squared Euclidean distances, (points, others)."""
    return np.asarray(((points[:, None] - others[None]) ** 2).sum(axis=-1))


@dataclass(frozen=True)
class PointCost:
    """What an output costs at a point.

    Attributes:
        name: ``"euclidean"`` (``"absolute"`` on a line), ``"squared"``, or ``"given"`` for a function.
        function: the cost of points and outputs.

    >>> city = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(city, [(0.0, 0.0)]), [(1.0, 0.0)], cost="squared")
    >>> problem.cost.name, problem.costs.tolist()
    ('squared', [[1.0]])
    """

    name: str
    function: CostFunction

    @property
    def is_convex(self) -> bool:
        """Whether the cost is known to be a convex function of the point, so that its largest value can be bounded."""
        return self.name != GIVEN

    def matrix(self, points: FloatArray, outputs: FloatArray) -> FloatArray:
        """The cost of every output at every point, (points, outputs), checked."""
        values = self.function(points, outputs)
        shape = (len(points), len(outputs))
        return require_nonnegative(values, what="the cost", shape=shape, meaning="(points, outputs)")


class PointProblem(Value):
    """The input of a design for points, immutable: a prior over points, outputs, costs and distances.

    Args:
        prior: π, weighted points of an area or interval.
        outputs: what may be released: points (outputs, axes) in the region's coordinates, a :class:`privacygames.Grid`
            (the centres of its cells), :class:`privacygames.Places`, or :class:`privacygames.Numbers`.
        cost: c(o, x): ``"euclidean"`` (``"absolute"`` on an interval) by default, ``"squared"``, or a function of
            points and outputs in the unit of distances.
        distance: d(ŝ, x), the error of the guess ŝ, which may be any point: as for the cost, but not a function.
        mesh: where the control points are. By default a design refines a mesh where the prior and epsilon ask for it,
            up to some 300 control points; a number says up to how many: the cost falls, and the time grows with the
            cube. A :class:`privacygames.points.Mesh` is taken as it is.

    >>> city = pg.Area(2.0, 2.0)
    >>> pg.PointProblem(pg.PointPrior(city, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.5)])
    PointProblem(2 points of Area(2 × 2 km), 2 outputs)
    """

    prior: PointPrior
    observables: Space
    outputs: FloatArray
    """The outputs in the unit of distances, (outputs, axes)."""
    cost: PointCost
    distance: str
    mesh: Mesh | int | None

    def __init__(
        self,
        prior: PointPrior,
        outputs: ArrayLike | Space,
        *,
        cost: str | CostFunction | None = None,
        distance: str | None = None,
        mesh: Mesh | int | None = None,
    ) -> None:
        require_instance(prior, PointPrior, "the prior")
        region = prior.region
        observables = outputs if isinstance(outputs, Space) else _places(region, outputs)
        if len(prior) * len(observables) > MOST_ENTRIES:
            raise InvalidProblem(
                f"{len(prior)} points and {len(observables)} outputs are too many: their costs would have more than "
                f"{MOST_ENTRIES} entries; aggregate the visits, or use fewer outputs"
            )
        if mesh is not None:
            _require_mesh(mesh, region)
        name = _named(region.distance_names[0] if distance is None else distance, region, "distance")
        coordinates = output_coordinates(region, observables)
        self._fill(
            prior=prior,
            observables=observables,
            outputs=freeze_floats(coordinates),
            cost=_cost(region.distance_names[0] if cost is None else cost, region),
            distance=name,
            mesh=mesh,
        )
        _ = self.costs

    @property
    def region(self) -> Region:
        """The region of the secrets."""
        return self.prior.region

    @cached_property
    def costs(self) -> FloatArray:
        """The cost of every output at every point of the prior, (points, outputs)."""
        return self.cost.matrix(self.prior.xy, self.outputs)

    def distances(self, guesses: FloatArray, points: FloatArray) -> FloatArray:
        """d(ŝ, x), (guesses, points), of points in the unit of distances."""
        return DISTANCES[self.distance](guesses, points)

    def max_distortion(self, adversary: Adversary | None = None) -> float:
        """The largest distortion privacy of any mechanism: the error of the best guess without an output.

        Rounded down, so that it can be guaranteed and verified.

        >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 3.0])
        >>> problem.max_distortion().__round__(6)
        1.0

        Args:
            adversary: against whom; by default one who knows the problem's prior and guesses the point.
        """
        arrays = adversary_arrays(self, PROBLEM_ADVERSARY if adversary is None else adversary, None)
        return largest_distortion(self, arrays) * FEASIBLE

    def first_mesh(self, epsilon: float | None) -> Mesh:
        """The mesh of the problem, or the one that a design refines for an epsilon."""
        return self.mesh if isinstance(self.mesh, Mesh) else Mesh.for_epsilon(self.region, epsilon)

    def most_controls(self, first: Mesh) -> int:
        """The number of control points up to which a design refines its first mesh."""
        if isinstance(self.mesh, Mesh):
            return first.controls
        return default_controls(first, len(self.outputs)) if self.mesh is None else self.mesh

    def with_mesh(self, mesh: Mesh | int) -> "PointProblem":
        """The same problem on another mesh, or with another number of control points."""
        _require_mesh(mesh, self.region)
        return self._replace(mesh=mesh)

    def with_prior(self, prior: PointPrior) -> "PointProblem":
        """The same problem with another prior over the same region."""
        if require_instance(prior, PointPrior, "the prior").region != self.region:
            raise InvalidProblem("the prior is over another region than the problem's")
        return self._replace(prior=prior)

    def _replace(self, **attributes: object) -> "PointProblem":
        copy = object.__new__(type(self))
        names = ("prior", "observables", "outputs", "cost", "distance", "mesh")
        copy._fill(**({name: getattr(self, name) for name in names} | attributes))
        return copy

    @cached_property
    def _content(self) -> tuple[object, ...]:
        cost = self.cost.name if self.cost.is_convex else content_hash(self.costs)
        return self.prior, self.observables, cost, self.distance, self.mesh

    def __repr__(self) -> str:
        return f"PointProblem({len(self.prior)} points of {self.region!r}, {len(self.observables)} outputs)"


EUCLIDEAN = "euclidean"
"""The name of the Euclidean distance; on a line it is called "absolute", too."""

DISTANCES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {EUCLIDEAN: norms, "squared": squared_norms}
"""Distances between points by name."""


@dataclass(frozen=True)
class PointAdversary:
    """An adversary as arrays over points.

    Attributes:
        name: the adversary's.
        xy: the points of their belief, (points, axes).
        probabilities: π_k of each.
        errors: E_k(g, x), (guesses, points); None where they guess the point itself, which may be any point.
        distortion: the distortion guaranteed against them; None where it is maximised.
    """

    name: str
    xy: FloatArray
    probabilities: FloatArray
    errors: FloatArray | None
    distortion: float | None


def adversary_arrays(problem: PointProblem, adversary: Adversary, distortion: float | None) -> PointAdversary:
    """An adversary of the bounds as arrays, with the problem's prior where they have none of their own."""
    prior = problem.prior if adversary.prior is None else adversary.prior
    if not isinstance(prior, PointPrior) or prior.region != problem.region:
        raise InvalidProblem(f"{adversary.name!r} needs a PointPrior over the region of the problem")
    if adversary.errors is not None and adversary.errors.shape[1] != len(prior):
        raise InvalidProblem(
            f"the errors of {adversary.name!r} are about {adversary.errors.shape[1]} points and their prior has "
            f"{len(prior)}: give shape (guesses, points), in the order of prior.points"
        )
    return PointAdversary(adversary.name, prior.xy, prior.probabilities, adversary.errors, distortion)


def largest_distortion(problem: PointProblem, adversary: PointAdversary) -> float:
    """The expected error of an adversary's best guess without an output, rounded down: no mechanism has more."""
    masses = adversary.probabilities[None]
    if adversary.errors is not None:
        return float((adversary.errors @ adversary.probabilities).min()) * (1 - masses.size * 2.0**-51)
    return best_guesses(masses, adversary.xy, problem.distance).total_lower


def output_coordinates(region: Region, observables: Space) -> FloatArray:
    """The coordinates of the labels of a space in the unit of distances of a region, (outputs, axes)."""
    if isinstance(region, Area):
        if isinstance(observables, Grid | Places):
            in_degrees = observables.degrees if isinstance(observables, Places) else observables.box is not None
            if bool(in_degrees) != (region.box is not None):
                raise InvalidProblem("one of area and outputs is in plain kilometres and the other over degrees")
            if isinstance(observables, Places):
                return region.project(observables.points)
            return region.project(observables.centres if observables.box is None else observables.degrees)
        raise InvalidProblem("the outputs of an area are points, Places or a Grid")
    if isinstance(observables, Numbers):
        if observables.unit and region.unit and observables.unit != region.unit:
            raise InvalidProblem(f"the outputs are in {observables.unit} and the secrets in {region.unit}")
        return region.project(observables.values)
    raise InvalidProblem("the outputs of an interval are numbers")


def _require_mesh(mesh: Mesh | int, region: Region) -> None:
    """Refuse a mesh over another region, and a number of control points that no mesh has."""
    if not isinstance(mesh, Mesh):
        if not (is_integer(mesh) and 2 <= mesh <= MOST_CONTROLS):
            raise InvalidProblem(f"the mesh must be a Mesh, or a number of control points from 2 to {MOST_CONTROLS}")
    elif mesh.region != region:
        raise InvalidProblem("the mesh and the prior are over different regions")


def _places(region: Region, outputs: ArrayLike) -> Space:
    """A space of outputs for points that are given as an array."""
    given = as_floats(outputs, "the list of outputs")
    if isinstance(region, Area):
        if given.ndim == 2 and given.shape[1] == 2 and region.looks_swapped(given):
            raise InvalidProblem(
                "no output lies in the area, and most would with longitude and latitude swapped: give (longitude, "
                "latitude), in this order"
            )
        return Places(given, degrees=region.box is not None)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise InvalidProblem(f"the outputs of an interval are a list of numbers; got shape {given.shape}")
    return Numbers(given.tolist(), unit=region.unit)


def _cost(cost: str | CostFunction, region: Region) -> PointCost:
    if callable(cost):
        return PointCost(GIVEN, cost)
    name = _named(cost, region, "cost", " or give a function of points and outputs")
    return PointCost(name, DISTANCES[name])


def _named(name: object, region: Region, what: str, otherwise: str = "") -> str:
    if not isinstance(name, str) or name not in (*region.distance_names, EUCLIDEAN):
        names = ", ".join(map(repr, region.distance_names))
        raise InvalidProblem(
            f"the {what} {repr(name)[:40]} is not known; choose from {names}{otherwise and ',' + otherwise}"
        )
    return EUCLIDEAN if name == region.distance_names[0] else name

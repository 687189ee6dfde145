"""Mechanisms for points: an exact distribution over finitely many outputs for every point of a region."""

import os
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, content_hash, freeze
from privacygames.canonical import digest_of
from privacygames.certificates import Provenance, Usefulness, largest_log_ratio
from privacygames.errors import Field, GuaranteeViolated, InvalidFile, InvalidProblem
from privacygames.mechanism import (
    POINTS_KIND,
    POINTS_VERSION,
    Arrays,
    Disclosure,
    EpsilonGuarantee,
    Header,
    Mechanism,
    RandomWords,
    RowSampler,
    container_content,
    well_formed,
    write_container,
)
from privacygames.points.certificate import BETWEEN, PointCertificate, epsilon_rows, per_unit
from privacygames.points.content import (
    PointContent,
    decode_content,
    decode_mesh,
    encode_content,
    encode_mesh,
)
from privacygames.points.finite import finite_problem
from privacygames.points.mesh import Mesh
from privacygames.points.problem import PointAdversary, PointProblem, adversary_arrays, largest_distortion
from privacygames.points.relaxation import RelaxedPart, relaxation_bound
from privacygames.points.variation import variation_rate
from privacygames.points.verification import PointVerification, check, check_epsilon, check_weights
from privacygames.points.weight_table import Point, PointTable
from privacygames.problem import Bounds
from privacygames.spaces import (
    Area,
    LabelBudget,
    Region,
    Space,
    decode_space,
    encode_region,
    encode_space,
    region_digest,
    space_digest,
)
from privacygames.validation import is_number

SAME_PROBABILITY = 1e-9
"""Largest difference of probabilities between control points at which outputs count as independent of the secret."""

WITHHELD = ["prior", "cost"]
"""What a file without the prior says that it leaves out."""


@dataclass(frozen=True)
class PointRowSampler:
    """Draws the outputs of a batch of rows whose secrets are encoded points."""

    table: PointTable

    def tweak(self, secrets: IntArray) -> IntArray:
        """The encoded point: all rows have the same mechanism."""
        return secrets

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        return self.table.draw_with(secrets, random_words)


class Position(NamedTuple):
    """A longitude and a latitude in degrees: a pair in the order of points over degrees, with names.

    >>> pg.points.Position(longitude=6.63, latitude=46.52).latitude
    46.52
    """

    longitude: float
    latitude: float


class PointSampleable:
    """What mechanisms for points have in common, with their prior or without it.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> isinstance(mechanism, pg.points.PointSampleable), mechanism.probabilities([2.2]).shape
    (True, (1, 3))
    """

    _table: PointTable

    @property
    def mesh(self) -> Mesh:
        """The mesh whose control points the rows of weights belong to."""
        return self._table.mesh

    @property
    def secrets(self) -> Region:
        """The region of the secrets."""
        return self.mesh.region

    @property
    def observables(self) -> Space:
        """The space of outputs."""
        return self._table.observables

    @property
    def outputs(self) -> FloatArray:
        """The outputs in the region's coordinates, (outputs, axes)."""
        return self._table.outputs

    @property
    def weights(self) -> IntArray:
        """Integers (control points, outputs); every row sums to ``2**bits``. Exactly what is sampled."""
        return self._table.weights

    @property
    def bits(self) -> int:
        """The power of two that every row of weights sums to."""
        return self._table.bits

    @property
    def bounds(self) -> Bounds:
        """What is guaranteed."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 that names the mechanism in ledgers and manifests; other draws have another digest."""
        lines = [content_hash(axis) for axis in self.mesh.lines]
        return digest_of(
            "mechanism for points",
            content_hash(self.weights),
            self.bits,
            self.bounds.content,
            region_digest(self.secrets),
            self.mesh.degree,
            lines,
            content_hash(self.mesh.tree.cells),
            space_digest(self.observables),
        )

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """The guarantee of differential privacy of one output, between any two points, with its unit."""
        unit = self.secrets.unit
        return EpsilonGuarantee(self.bounds.epsilon, per_unit(unit), unit, self.any_pair)

    @cached_property
    def any_pair(self) -> float:
        """The largest ln p(o|x)/p(o|x') between any two points, at most: p(o|x) is a mean over control points."""
        return largest_log_ratio(self.weights)

    @cached_property
    def variation_rate(self) -> float:
        """The total variation of the outputs of two points per unit of their distance, at most.

        >>> line = pg.Interval(0.0, 4.0)
        >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
        >>> mechanism.variation_rate <= 0.25 * (1 + 1e-6)  # ε/2 by the guarantee alone
        True
        """
        return variation_rate(self.weights, self.bits, self.mesh)

    def keeps_epsilon(self, epsilon: float) -> bool:
        """Whether the verifier confirms an ε between any two points, on the very weights that are sampled.

        >>> line = pg.Interval(0.0, 4.0)
        >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
        >>> mechanism.keeps_epsilon(0.5), mechanism.keeps_epsilon(0.4)
        (True, False)
        """
        try:
            check_weights(self.weights, self.bits, self.mesh)
            check_epsilon(self.weights, self.mesh, epsilon)
        except GuaranteeViolated:
            return False
        return True

    @property
    def ignores_secret(self) -> bool:
        """Whether outputs are independent of the secret, exactly: nothing is then charged."""
        return bool((self.weights == self.weights[0]).all())

    @property
    def resolution(self) -> float:
        """Points are rounded by at most this much, in the unit of distances."""
        return self.mesh.resolution

    def encode_places(self, places: FloatArray) -> IntArray:
        """Points of the region in the unit of distances, (points, axes), as the row sampler takes them."""
        return self.mesh.encode(places)

    @property
    def per_user(self) -> bool:
        """False: everybody's outputs are drawn from the same mechanism."""
        return False

    @property
    def constant(self) -> bool:
        """Whether outputs are independent of the secret."""
        return float(np.ptp(self._table.rows, axis=0).max()) <= SAME_PROBABILITY

    @property
    def usefulness(self) -> Usefulness | None:
        """None: the information in an output is computed by :func:`privacygames.evaluate`."""
        return None

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """p(o|x) at points in the region's coordinates, (points, outputs); points outside are moved to the edge."""
        return self._table.probabilities(points)

    @overload
    def sample(self, point: tuple[float, float], generator: np.random.Generator | None = None) -> Point: ...
    @overload
    def sample(self, point: float, generator: np.random.Generator | None = None) -> float: ...
    @overload
    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> FloatArray | Point: ...
    def sample(self, point: ArrayLike, generator: np.random.Generator | None = None) -> FloatArray | Point:
        """A random output for a point, or an array of them for several points.

        Args:
            point: (x, y) in kilometres, or (longitude, latitude) where the area is over degrees; a number, for an
                interval; or an array of them.
            generator: a seeded generator for experiments; leave it out for anything private.
        """
        return self._table.sample(point, generator)

    def sample_at(self, *, latitude: float, longitude: float, generator: np.random.Generator | None = None) -> Position:
        """A random output for a position, by names: :meth:`sample` for areas over degrees, whatever the order.

        A position outside the area is moved to its nearest point.

        Args:
            latitude: in degrees, from -90 to 90.
            longitude: in degrees, from -180 to 180.
            generator: a seeded generator for experiments; leave it out for anything private.

        Raises:
            InvalidProblem: the secrets are no positions in degrees, a number is not one of degrees, or the position
                lies in the area only with both swapped. The message shows none of them.

        >>> lausanne = pg.Area.over((6.5, 46.45, 6.8, 46.6))
        >>> stations = [(6.5788, 46.5370), (6.6291, 46.5168)]  # longitude, latitude
        >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(lausanne, stations), stations), epsilon=0.5)
        >>> mechanism.sample_at(latitude=46.52, longitude=6.63).latitude.__round__(4) in (46.537, 46.5168)
        True
        """
        region = self.secrets
        if not (isinstance(region, Area) and region.box is not None):
            coordinates = "(x, y) in kilometres" if isinstance(region, Area) else "numbers"
            raise InvalidProblem(f"sample_at takes degrees, and the secrets are {coordinates} here: use sample")
        for name, degrees, limit in (("latitude", latitude, 90), ("longitude", longitude, 180)):
            if not (is_number(degrees) and abs(degrees) <= limit):
                raise InvalidProblem(Field(name), f" must be a number of degrees, from -{limit} to {limit}")
        if region.looks_swapped([(longitude, latitude)]):
            raise InvalidProblem(
                "the position lies outside the area, and inside with latitude and longitude swapped: give each its own"
            )
        released = cast("tuple[float, float]", self.sample((float(longitude), float(latitude)), generator))
        return Position(longitude=released[0], latitude=released[1])

    def draw(self, points: ArrayLike, generator: np.random.Generator | None = None) -> IntArray:
        """The index of a random output for each point."""
        return self._table.draw(self.encode(points), generator)

    def encode(self, points: ArrayLike) -> IntArray:
        """Points as the row sampler takes them: the cell and where in it, as one integer each."""
        return self.encode_places(self.secrets.clamp(points))

    def row_sampler(self, users: Any = None) -> RowSampler:  # noqa: ARG002 - of the protocol
        """The sampler for the rows of a batch, the same for all users; secrets are points that the mesh encodes."""
        return PointRowSampler(self._table)

    def to_manifest(self) -> dict[str, Any]:
        """What the manifest of a release says of this mechanism in particular: nothing of the prior.

        >>> line = pg.Interval(0.0, 4.0)
        >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
        >>> pg.design(problem, epsilon=0.5).to_manifest()["certificate"]["region"]
        {'kind': 'interval', 'low': 0.0, 'high': 4.0, 'unit': ''}
        """
        return {"certificate": {"region": encode_region(self.secrets), "resolution": self.resolution}}


class PointMechanism(PointSampleable):
    """A random output for every point of a region, certified for any two points.

    Rows of integer weights belong to the control points of a mesh. The distribution at a point is their mean, weighted
    by the Bernstein polynomials there. Get one from :func:`privacygames.design` or :func:`privacygames.load`.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.design(problem, epsilon=1.0)
    >>> near, far = mechanism.probabilities([(0.5, 0.5), (0.501, 0.5)])
    >>> bool(np.abs(np.log(near / far)).max() <= 0.001 + 1e-6)
    True
    """

    def __init__(
        self,
        content: PointContent,
        verification: PointVerification,
        bound: float | None,
        adversaries: tuple[PointAdversary, ...],
    ) -> None:
        self._content, self._verification, self._bound, self._adversaries = content, verification, bound, adversaries
        self._table = PointTable(content.mesh, content.problem.observables, content.weights, content.bits)

    @classmethod
    def from_container(cls, header: Header, arrays: Arrays) -> "PointMechanism":
        """A mechanism from the header and arrays of a file, every guarantee verified.

        Raises:
            InvalidFile: they are invalid or inconsistent.
            GuaranteeViolated: the weights do not keep the guarantees.
        """
        content = decode_content(header, arrays)
        with well_formed("the content of the file"):
            return certify_points(
                content.problem,
                content.bounds,
                content.mesh,
                content.weights,
                content.bits,
                relaxation=content.relaxation,
                provenance=content.provenance,
            )

    @property
    def problem(self) -> PointProblem:
        """The problem that this mechanism was certified for, with its mesh."""
        return self._content.problem

    @property
    def bounds(self) -> Bounds:
        """What is guaranteed."""
        return self._content.bounds

    @cached_property
    def certificate(self) -> PointCertificate:
        """What is guaranteed, and what the verifier found."""
        return PointCertificate(
            bounds=self.bounds,
            verification=self._verification,
            bound=self._bound,
            unit=self.secrets.unit,
            resolution=self.mesh.resolution,
            any_pair=self.any_pair,
            max_distortions=tuple(largest_distortion(self.problem, adversary) for adversary in self._adversaries),
            provenance=self._content.provenance,
            constant=self.constant,
        )

    def at_points(self, problem: PointProblem | None = None) -> Mechanism:
        """The mechanism between the points of a problem's prior alone: an ordinary mechanism, for analysis.

        Its secrets are the points of the prior, so attacks, metrics and comparisons of finite mechanisms apply. Its
        guarantees are about these points only, and its guesses are among them.

        >>> town = pg.Area(2.0, 2.0)
        >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
        >>> pg.design(problem, epsilon=1.0).at_points()
        Mechanism(2 secrets, 2 observables, cost 0.3389)
        """
        given = self.problem if problem is None else problem
        finite = finite_problem(given)
        return Mechanism.from_probabilities(
            finite, self._table.probabilities(given.prior.points), origin=f"{self!r}, between the points of a prior"
        )

    def save(self, path: str | os.PathLike[str], *, dual_solution: bool = True) -> None:
        """Write one self-contained file, for :func:`privacygames.load` to read.

        Args:
            path: the file.
            dual_solution: whether to store the dual values; without them the file is smaller and proves no bound.
        """
        write_container(path, *encode_content(self._content, dual_solution=dual_solution), version=POINTS_VERSION)

    def to_bytes(self, *, dual_solution: bool = True) -> bytes:
        """The bytes of the file that :meth:`save` writes."""
        return b"".join(
            container_content(*encode_content(self._content, dual_solution=dual_solution), version=POINTS_VERSION)
        )

    def __repr__(self) -> str:
        return f"PointMechanism({self.mesh!r}, {len(self.observables)} outputs, cost {self.certificate.cost:.4g})"


def certify_points(
    problem: PointProblem,
    bounds: Bounds,
    mesh: Mesh,
    weights: IntArray,
    bits: int,
    *,
    relaxation: tuple[RelaxedPart, ...] = (),
    provenance: Provenance,
) -> PointMechanism:
    """A mechanism whose guarantees were all verified.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 3.0])
    >>> constant = np.full((4, 2), 2**61)
    >>> origin = pg.design(problem, epsilon=0.5).certificate.provenance
    >>> pg.points.certify_points(
    ...     problem, pg.Bounds(epsilon=0.1), pg.points.Mesh(line, 1), constant, 62, provenance=origin
    ... ).certificate.cost.__round__(6)
    1.0

    Args:
        problem: the prior, cost and distance that it is certified for.
        bounds: what is guaranteed.
        mesh: the mesh.
        weights: (control points, outputs).
        bits: what the rows sum to, as a power of two.
        relaxation: dual solutions that prove the bound on the optimum.
        provenance: solver and version.

    Raises:
        GuaranteeViolated: a guarantee does not hold.
    """
    adversaries = tuple(adversary_arrays(problem, each.adversary, each.distortion) for each in bounds.distortion)
    verification = check(problem, bounds, adversaries, mesh=mesh, weights=weights, bits=bits)
    bound = relaxation_bound(problem, bounds, adversaries, relaxation)
    content = PointContent(problem.with_mesh(mesh), mesh, bounds, freeze(weights), bits, relaxation, provenance)
    mechanism = PointMechanism(content, verification, bound, adversaries)
    certificate = mechanism.certificate
    if bound is not None and not (
        bound >= certificate.achieved if bounds.maximises_distortion else bound <= certificate.cost
    ):
        raise GuaranteeViolated("the dual values claim more than this very mechanism allows")
    return mechanism


@dataclass(frozen=True)
class PublicPointCertificate:
    """What can be verified of a mechanism for points without its prior: epsilon.

    Attributes:
        epsilon: the guarantee, per unit of distance between any two points.
        unit: the unit of distances.
        resolution: coordinates are rounded by at most this much.
        any_pair: the largest log-ratio between any two points, at most.

    >>> line = pg.Interval(0.0, 4.0, unit="hours")
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> certificate = pg.points.PublicPointMechanism.of(mechanism).certificate
    >>> certificate.epsilon, certificate.unit
    (0.5, 'hours')
    """

    epsilon: float
    unit: str
    resolution: float
    any_pair: float

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"counted": f"{per_unit(self.unit)} {BETWEEN}"}

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as pairs of name and value."""
        return [
            *epsilon_rows(self.epsilon, self.unit, self.resolution, self.any_pair),
            ("distortion, cost", "cannot be verified: prior and cost are withheld"),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<24}{value}" for name, value in self.rows())


class PublicPointMechanism(PointSampleable):
    """A mechanism for points without its prior: weights, mesh and the guarantee of epsilon.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> public = pg.points.PublicPointMechanism.of(pg.design(problem, epsilon=1.0))
    >>> public.certificate.epsilon
    1.0
    """

    def __init__(self, table: PointTable, epsilon: float) -> None:
        check_weights(table.weights, table.bits, table.mesh)
        check_epsilon(table.weights, table.mesh, epsilon)
        self._table, self._epsilon = table, epsilon

    @classmethod
    def of(cls, mechanism: PointMechanism) -> "PublicPointMechanism":
        """A mechanism without its prior and cost."""
        epsilon = mechanism.bounds.epsilon
        if epsilon is None:
            raise GuaranteeViolated(
                "only epsilon can be verified without the prior, and this mechanism guarantees none"
            )
        return cls(mechanism._table, epsilon)

    @classmethod
    def from_container(cls, header: Header, arrays: Arrays) -> "PublicPointMechanism":
        """A mechanism without prior and cost from the header and arrays of a file, epsilon verified.

        Raises:
            InvalidFile: they are invalid or inconsistent.
            GuaranteeViolated: the weights do not keep the guaranteed ε.
        """
        with well_formed("the content of the file"):
            expected = {"kind", "withheld", "disclosure", "mesh", "observables", "promises", "bits", "arrays", "format"}
            if set(header) != expected or not set(arrays) <= {"weights", "lines_0", "lines_1", "cells"}:
                raise InvalidFile("the file must hold exactly the parts of a mechanism without prior and cost")
            mesh, weights = decode_mesh(header["mesh"], arrays), arrays["weights"]
            observables = decode_space(header["observables"], size=weights.shape[1], allowance=LabelBudget())
            if set(header["promises"]) != {"epsilon"} or type(header["bits"]) is not int:
                raise InvalidFile("a file without prior and cost guarantees epsilon")
            bounds = Bounds(**header["promises"])
            table = PointTable(mesh, observables, freeze(weights), header["bits"])
            return cls(table, cast("float", bounds.epsilon))

    @property
    def bounds(self) -> Bounds:
        """What is guaranteed: epsilon."""
        return Bounds(epsilon=self._epsilon)

    @property
    def certificate(self) -> PublicPointCertificate:
        """The certificate: the verified guarantee of epsilon."""
        return PublicPointCertificate(self._epsilon, self.secrets.unit, self.mesh.resolution, self.any_pair)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file without prior and cost, for :func:`privacygames.load_public` to read."""
        arrays: dict[str, Any] = {"weights": self.weights}
        header = {
            "kind": POINTS_KIND,
            "withheld": WITHHELD,
            "disclosure": Disclosure.COMPUTED.value,
            "mesh": encode_mesh(self.mesh, arrays),
            "observables": encode_space(self.observables),
            "promises": {"epsilon": self._epsilon},
            "bits": self.bits,
        }
        write_container(path, header, arrays, version=POINTS_VERSION)

    def __repr__(self) -> str:
        epsilon = self.epsilon_guarantee
        return f"PublicPointMechanism({self.mesh!r}, {len(self.observables)} outputs, ε {epsilon})"

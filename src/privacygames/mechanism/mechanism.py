"""The mechanism p(o|s): exact integer weights, their certificate, exact sampling, and files."""

import os
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.certificates import Certificate, DualSolution, Provenance, Statement, Usefulness, Verification, check
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.mechanism import binary_container
from privacygames.mechanism.certification import RealisedBounds, certify_content
from privacygames.mechanism.mechanism_content import (
    MechanismContent,
    decode_content,
    encode_content,
    oldest_version,
)
from privacygames.mechanism.protocol import EpsilonGuarantee
from privacygames.mechanism.sampling import Sampler
from privacygames.mechanism.weight_table import Many, WeightRowSampler, WeightTable
from privacygames.problem import Bounds, Problem, measure_scale
from privacygames.spaces import Grid, Label, Space, Subsets, space_digest
from privacygames.validation import require_instance


class Mechanism(Displayed):
    """A certified obfuscation mechanism: for every secret, a distribution over outputs.

    Get one from :func:`privacygames.design`, a baseline, :meth:`from_probabilities` or :func:`privacygames.load`. The
    integers that are certified, ``weights``, are exactly the ones that are sampled.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> mechanism = pg.design(pg.Problem(pg.Prior(ages, [0.5, 0.25, 0.25])), epsilon=0.1)
    >>> mechanism
    Mechanism(3 secrets, 3 observables, cost 0.3362)
    >>> mechanism.probabilities.round(3)
    array([[0.731, 0.17 , 0.099],
           [0.269, 0.462, 0.269],
           [0.099, 0.17 , 0.731]])
    >>> mechanism.sample(20) in ages.labels
    True
    """

    def __init__(self, content: MechanismContent, verification: Verification) -> None:
        self._content, self._verification = content, verification
        statement = content.statement
        self._table = WeightTable(statement.weights, statement.bits, content.secrets, content.observables)

    @classmethod
    def from_container(cls, header: binary_container.Header, arrays: binary_container.Arrays) -> "Mechanism":
        """A mechanism from the header and arrays of a file, every guarantee verified.

        Raises:
            InvalidFile: they are invalid or inconsistent.
            GuaranteeViolated: the weights do not keep the guarantees.
        """
        content = decode_content(header, arrays)
        return cls(content, check(content.statement))

    @cached_property
    def certificate(self) -> Certificate:
        """What is guaranteed, and what the verifier found."""
        scale = measure_scale(self.distinguishability, self.secrets)
        cells = isinstance(self.secrets, Grid)
        return Certificate.of(self.statement, self._verification, self._content.provenance, scale, cells=cells)

    @staticmethod
    def from_probabilities(
        problem: Problem,
        probabilities: ArrayLike,
        *,
        origin: str = "given probabilities",
        within: float | None = None,
    ) -> "Mechanism":
        """A mechanism from elsewhere, certified for the tightest bounds that it keeps.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
        >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
        >>> round(coin.bounds.epsilon, 4), round(coin.certificate.cost, 4)
        (1.0986, 0.25)

        Args:
            problem: the prior, cost and distances that it is certified for.
            probabilities: p(o|s), (secrets, observables), every row summing to 1 within 1e-6.
            origin: where it comes from, for the certificate.
            within: determine ε in the threshold form, between secrets at most this far apart.
        """
        return certify(problem, RealisedBounds(within), as_floats(probabilities, "the mechanism"), origin=origin)

    @staticmethod
    def from_weights(
        problem: Problem, weights: IntArray, *, origin: str = "given weights", within: float | None = None
    ) -> "Mechanism":
        """A mechanism from exact weights whose rows sum to 2^62, certified for the tightest bounds that it keeps.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
        >>> coin = pg.Mechanism.from_weights(problem, np.array([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]))
        >>> coin.probabilities.tolist()
        [[0.75, 0.25], [0.25, 0.75]]

        Args:
            problem: the prior, cost and distances that it is certified for.
            weights: (secrets, observables) 64-bit integers.
            origin: where it comes from, for the certificate.
            within: determine ε in the threshold form, between secrets at most this far apart.
        """
        if weights.dtype != np.int64:
            raise InvalidProblem(f"the weights must be 64-bit integers of shape {problem.shape}")
        return certify(problem, RealisedBounds(within), weights, origin=origin)

    def sharing(self, problem: Problem) -> "Mechanism":
        """The same mechanism with the matrices of an equal problem in the place of its own copies, to save memory.

        Raises:
            InvalidProblem: the problem is another one than the mechanism's.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40])))
        >>> import pickle
        >>> copy = pickle.loads(pickle.dumps(pg.design(problem, epsilon=0.1)))
        >>> copy.sharing(problem).statement.cost is problem.cost
        True
        """
        own = self.statement
        shared = replace(
            own,
            prior=problem.prior.probabilities,
            cost=problem.cost,
            distance=problem.distance,
            distinguishability=problem.distinguishability,
        )
        matrices = [(one.prior, one.cost, one.distance, one.distinguishability) for one in (own, shared)]
        same_spaces = (self.secrets, self.observables) == (problem.space, problem.observables)
        if not (same_spaces and all(map(np.array_equal, *matrices))):
            raise InvalidProblem("the problem is another one than the mechanism's")
        content = replace(self._content, statement=shared, secrets=problem.space, observables=problem.observables)
        return Mechanism(content, self._verification)

    @property
    def provenance(self) -> Provenance:
        """The solver and release that made it, as in :attr:`certificate`."""
        return self._content.provenance

    @property
    def statement(self) -> Statement:
        """The exact numbers that the certificate is about: the verifier's input."""
        return self._content.statement

    @property
    def bounds(self) -> Bounds:
        """What is guaranteed."""
        return self.statement.bounds

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances per unit of which epsilon counts."""
        return self.statement.distinguishability

    @property
    def weights(self) -> IntArray:
        """Integers (secrets, observables); every row sums to ``2**bits``. Exactly what is sampled."""
        return self.statement.weights

    @property
    def bits(self) -> int:
        """The power of two that every row of weights sums to."""
        return self.statement.bits

    @property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats."""
        return self._table.probabilities

    @property
    def secrets(self) -> Space:
        """The space of secrets."""
        return self._content.secrets

    @property
    def observables(self) -> Space:
        """The space of outputs."""
        return self._content.observables

    @cached_property
    def problem(self) -> Problem:
        """The problem that this mechanism was certified for, with its measures as matrices."""
        statement = self.statement
        return Problem(
            Prior(self.secrets, statement.prior),
            cost=statement.cost,
            distance=statement.distance,
            distinguishability=statement.distinguishability,
            observables=self.observables,
        )

    @property
    def dual_solution(self) -> DualSolution | None:
        """The dual values that prove the certificate's bound on the optimum; None where there are none."""
        return self.statement.dual_solution

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the exact weights, of the guarantees, and of the prior, cost and distances these are about.

        It is the same for the same mechanism, whoever designed it, with or without its proof of optimality. It names
        the mechanism in ledgers and manifests.
        """
        statement = self.statement
        spaces = space_digest(self.secrets), space_digest(self.observables)
        subject = asdict(statement.content_hashes)
        return digest_of("mechanism", content_hash(self.weights), self.bits, self.bounds.content, subject, *spaces)

    @overload
    def sample(self, secret: Label | set[str], generator: "np.random.Generator | None" = None) -> Label: ...
    @overload
    def sample(self, secret: Many, generator: "np.random.Generator | None" = None) -> list[Label]: ...
    def sample(
        self, secret: Label | set[str] | Many, generator: "np.random.Generator | None" = None
    ) -> Label | list[Label]:
        """One output for a secret, or a list of outputs for several secrets.

        >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"]))))
        >>> mechanism.sample("yes"), mechanism.sample(["no", "yes"])
        ('yes', ['no', 'yes'])

        Args:
            secret: a label of the secrets; or a list, an array or a column of labels. For a coordinate it is the label
                of its cell (``grid.cell(point)``), and what is protected is the cell.
            generator: a seeded generator, for outputs that are reproducible and not private. By default, randomness
                comes from the operating system.
        """
        return self._table.sample(secret, generator)

    def locate(self, x: float, y: float, *, outside: Literal["error", "nearest"] = "error") -> Label:
        """The secret at a point: (x, y) in kilometres, or (longitude, latitude) where the grid is over degrees.

        >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Grid(2, 1, 2.0, 1.0))))
        >>> mechanism.locate(1.7, 0.2), mechanism.locate(5.0, 0.2, outside="nearest")
        ('cell-1', 'cell-1')

        Args:
            x: the coordinate to the east, or the longitude.
            y: the coordinate to the north, or the latitude.
            outside: what to do about a point outside the grid: raise an ``"error"``, or take the ``"nearest"`` cell.
        """
        if not isinstance(self.secrets, Grid):
            raise InvalidProblem("only secrets that are the cells of a Grid have places")
        return self.secrets.cell((x, y), outside=outside)

    def coordinates(self, observable: Label) -> tuple[float, float]:
        """The centre of an output's cell, or the mean centre of its cells; (longitude, latitude) over degrees.

        >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Grid(2, 1, 2.0, 1.0))))
        >>> mechanism.coordinates("cell-1")
        (1.5, 0.5)
        """
        if isinstance(self.observables, Grid):
            return self.observables.centre(observable)
        grid = self.observables.underlying if isinstance(self.observables, Subsets) else None
        if not isinstance(grid, Grid) or not isinstance(self.observables, Subsets):
            raise InvalidProblem("only observables that are cells of a Grid, or sets of them, have places")
        members = self.observables.members[self.observables.index(observable)]
        x, y = np.mean([grid.centre(grid.labels[member]) for member in members], axis=0)
        return float(x), float(y)

    def sampler(self, generator: "np.random.Generator | None" = None) -> Sampler:
        """The sampler behind :meth:`sample`, which takes and returns indices instead of labels."""
        return self._table.sampler if generator is None else self._table.sampler.using(generator)

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """What one output guarantees of differential privacy, with its unit."""
        certificate = self.certificate
        per, unit = certificate.scale.per(self.bounds.within), certificate.scale.unit
        return EpsilonGuarantee(self.bounds.epsilon, per, unit, certificate.any_pair)

    @property
    def per_user(self) -> bool:
        """False: everybody's outputs are drawn from the same mechanism."""
        return False

    @property
    def usefulness(self) -> Usefulness:
        """How much an output tells about the secret."""
        return self.certificate.usefulness

    @property
    def constant(self) -> bool:
        """Whether outputs are independent of the secret."""
        return self.usefulness.constant

    def row_sampler(self, users: Any = None) -> WeightRowSampler:  # noqa: ARG002 - of the protocol
        """The sampler for the rows of a batch, whoever their users are."""
        return self._table.row_sampler()

    def to_manifest(self) -> dict[str, Any]:
        """What the certificate says, in plain values, for the manifest of a release; nothing of the prior."""
        certificate = self.certificate
        verification = certificate.verification
        return {
            "certificate": {
                "largest_ratio": verification.largest_ratio,
                "distortion": verification.distortion,
                "cost": certificate.cost,
                "gap": certificate.gap,
                "distance": certificate.hashes.distance,
                "distinguishability": certificate.hashes.distinguishability,
                "bits_per_answer": certificate.usefulness.bits,
            }
        }

    def posterior(self, observable: Label, prior: Prior | None = None) -> Prior:
        """What an adversary believes after seeing an output, by Bayes' rule.

        >>> problem = pg.Problem(pg.Prior(pg.Categories(["yes", "no"]), [0.2, 0.8]))
        >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
        >>> coin.posterior("yes").probabilities.round(4)
        array([0.4286, 0.5714])

        Args:
            observable: the output.
            prior: what they believed before; by default the problem's prior.

        Raises:
            InvalidProblem: the mechanism never gives this output, or gives it only for secrets that the prior excludes.
        """
        belief = self.problem.prior if prior is None else prior
        require_secrets(self, belief)
        likelihood = self.probabilities[:, self.observables.index(observable)]
        if not likelihood.any():
            raise InvalidProblem(
                "this output is never given: its probability is 0 for every secret, so there is no belief after it; "
                "outputs that are given have a positive column in mechanism.probabilities"
            )
        return belief.posterior(likelihood)

    def save(self, path: str | os.PathLike[str], *, dual_solution: bool = True) -> None:
        """Write one self-contained file, for :func:`privacygames.load` to read.

        Args:
            path: the file.
            dual_solution: whether to store the dual values; without them the file is smaller and proves no optimality.
        """
        header, arrays = encode_content(self._content, dual_solution=dual_solution)
        binary_container.write(path, header, arrays, version=oldest_version(header))

    def to_bytes(self, *, dual_solution: bool = True) -> bytes:
        """The bytes of the file that :meth:`save` writes."""
        header, arrays = encode_content(self._content, dual_solution=dual_solution)
        return b"".join(binary_container.content(header, arrays, version=oldest_version(header)))

    def shown(self) -> ShownTable:
        """The table that people see."""
        secrets, observables = self.weights.shape
        caption = f"Mechanism for {secrets} secrets with {observables} outputs"
        return ShownTable(caption, ("", ""), self.certificate.rows(), texts=(1,))

    def __repr__(self) -> str:
        secrets, observables = self.weights.shape
        return f"Mechanism({secrets} secrets, {observables} observables, cost {self.certificate.cost:.4g})"


def certify(
    problem: Problem,
    bounds: Bounds | RealisedBounds,
    table: FloatArray | IntArray,
    dual_solution: DualSolution | None = None,
    *,
    origin: str,
    cheapest: Mechanism | None = None,
    unrepaired: FloatArray | None = None,
) -> Mechanism:
    """A certified mechanism with exact weights, as near to a table of probabilities as its bounds allow.

    >>> from privacygames.mechanism import certify
    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> mechanism = certify(problem, pg.Bounds(epsilon=1.0), np.array([[0.74, 0.26], [0.26, 0.74]]), origin="a coin")
    >>> mechanism.bounds.epsilon, bool(mechanism.probabilities.max() < 0.74)
    (1.0, True)

    Args:
        problem: the prior, cost and distances that it is certified for.
        bounds: what to guarantee; the table is repaired until it is. :class:`RealisedBounds` changes nothing but last
            digits and guarantees the tightest bounds that the table keeps.
        table: (secrets, observables): probabilities; or exact weights whose rows sum to 2^62, which are not changed.
        dual_solution: dual values that prove how far from the optimum the mechanism is.
        origin: where it comes from, for the certificate.
        cheapest: a mechanism that keeps the ratios and costs less than is allowed, where the cost is limited.
        unrepaired: the table that the cost of the repair is measured against; by default ``table``.

    Raises:
        GuaranteeViolated: no mechanism near the table keeps the bounds.
        InvalidProblem: the table does not fit the problem.
    """
    require_instance(problem, Problem, "the problem")
    weights = None if cheapest is None else cheapest.weights
    content, verification = certify_content(
        problem, bounds, table, dual_solution, origin=origin, cheapest=weights, unrepaired=unrepaired
    )
    return Mechanism(content, verification)


def require_secrets(mechanism: Mechanism, prior: Prior) -> None:
    """Raise unless a prior is over a mechanism's secrets: an equal space, not only equal labels."""
    secrets = require_instance(mechanism, Mechanism, "the mechanism").secrets
    if require_instance(prior, Prior, "the prior").space != secrets:
        raise InvalidProblem(f"the prior is over other secrets than the mechanism's: {prior.space!r}, not {secrets!r}")


def require_fit(mechanism: Mechanism, problem: Problem) -> None:
    """Raise unless a problem has a mechanism's secrets and observables: equal spaces, not equal labels."""
    require_instance(mechanism, Mechanism, "the mechanism")
    require_instance(problem, Problem, "the problem")
    for what, own, other in (
        ("secrets", mechanism.secrets, problem.space),
        ("observables", mechanism.observables, problem.observables),
    ):
        if own != other:
            raise InvalidProblem(
                f"the mechanism and the problem have different {what}: {own!r} and {other!r}; "
                "mechanism.problem is the one it was made for"
            )

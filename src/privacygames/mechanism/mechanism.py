"""The mechanism p(o|s): exact integer weights, what they promise, and how to sample from them."""

import os
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.certificates import Certificate, DualSolution, Statement, Usefulness, Verification, check
from privacygames.errors import InvalidFile, InvalidProblem, TooLarge
from privacygames.mechanism import binary_container
from privacygames.mechanism.certification import RealisedValues, certified
from privacygames.mechanism.mechanism_content import MechanismContent, decode_content, encode_content, oldest_version
from privacygames.mechanism.protocol import EpsilonGuarantee
from privacygames.mechanism.sampling import Sampler
from privacygames.mechanism.weight_table import Many, WeightRowSampler, WeightTable
from privacygames.problem import Bounds, Problem, measure_scale
from privacygames.spaces import Grid, Label, Space, Subsets, space_digest
from privacygames.validation import require_instance


class Mechanism:
    """A random answer for every secret, certified.

    Get one from :func:`privacygames.design`, a baseline, :meth:`from_probabilities` or
    :func:`privacygames.load`. What is certified is, bit for bit, what is sampled: the integer ``weights``.
    """

    def __init__(self, contents: MechanismContent, verification: Verification) -> None:
        self._contents, self._findings = contents, verification
        statement = contents.statement
        self._table = WeightTable(statement.weights, statement.bits, contents.secrets, contents.observables)

    @cached_property
    def certificate(self) -> Certificate:
        """What is promised, and what was found when it was checked."""
        scale = measure_scale(self.distinguishability, self.secrets)
        return Certificate.of(self.statement, self._findings, self._contents.provenance, scale)

    @staticmethod
    def from_probabilities(
        problem: Problem,
        probabilities: ArrayLike,
        *,
        origin: str = "given probabilities",
        within: float | None = None,
    ) -> "Mechanism":
        """A mechanism from elsewhere, certified for the bounds it really has.

        Args:
            problem: what it is judged against.
            probabilities: p(o|s), (secrets, observables), every row summing to 1 within 1e-6.
            origin: where it comes from, for the certificate.
            within: state ε in the threshold form, between secrets at most this far apart.
        """
        return certify(problem, RealisedValues(within), as_floats(probabilities, "the mechanism"), origin=origin)

    @staticmethod
    def from_weights(
        problem: Problem, weights: IntArray, *, origin: str = "given weights", within: float | None = None
    ) -> "Mechanism":
        """A mechanism from exact weights, every row summing to 2^62, certified for the bounds it really has."""
        if weights.dtype != np.int64:
            raise InvalidProblem(f"the weights must be 64-bit integers of shape {problem.shape}")
        return certify(problem, RealisedValues(within), weights, origin=origin)

    @property
    def statement(self) -> Statement:
        """The exact numbers that the certificate is about: what a verifier takes."""
        return self._contents.statement

    @property
    def bounds(self) -> Bounds:
        """What is promised."""
        return self.statement.bounds

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances in which epsilon counts."""
        return self.statement.distinguishability

    @property
    def weights(self) -> IntArray:
        """Integers (secrets, observables); every row sums to ``2**bits``. Exactly what is sampled."""
        return self.statement.weights

    @property
    def bits(self) -> int:
        """The power of two every row of weights sums to."""
        return self.statement.bits

    @property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats."""
        return self._table.probabilities

    @property
    def secrets(self) -> Space:
        """What may be secret."""
        return self._contents.secrets

    @property
    def observables(self) -> Space:
        """What may be answered."""
        return self._contents.observables

    @cached_property
    def problem(self) -> Problem:
        """The problem this mechanism was certified for, with its measures as matrices."""
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
        """The evidence behind the certificate's bound."""
        return self.statement.dual_solution

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the exact weights, of what they promise and of what the promise is about.

        The same for the same mechanism, whoever designed it, with or without its proof of optimality: it names what is
        released in ledgers and manifests.
        """
        statement = self.statement
        spaces = space_digest(self.secrets), space_digest(self.observables)
        subject = asdict(statement.content_hashes)
        return digest_of("mechanism", content_hash(self.weights), self.bits, self.bounds.content, subject, *spaces)

    @overload
    def sample(self, secret: Label | set[str], generator: np.random.Generator | None = None) -> Label: ...
    @overload
    def sample(self, secret: Many, generator: np.random.Generator | None = None) -> list[Label]: ...
    def sample(
        self, secret: Label | set[str] | Many, generator: np.random.Generator | None = None
    ) -> Label | list[Label]:
        """One observable for a secret, or a list of them for several (a list, an array, a column of a table).

        Randomness comes from the operating system, unless a seeded generator is passed (then the answers are
        reproducible, and not private).
        """
        return self._table.sample(secret, generator)

    def locate(self, x: float, y: float, *, outside: Literal["error", "nearest"] = "error") -> Label:
        """The secret at a place: (x, y) in kilometres, or (longitude, latitude) where the grid is over degrees.

        Args:
            x: east, or the longitude.
            y: north, or the latitude.
            outside: what becomes of a place outside the grid: an ``"error"``, or the ``"nearest"`` cell.
        """
        if not isinstance(self.secrets, Grid):
            raise InvalidProblem("only secrets that are the cells of a Grid have places")
        return self.secrets.cell((x, y), outside=outside)

    def place(self, observable: Label) -> tuple[float, float]:
        """Where an observable is: the centre of its cell, or of its cells; (longitude, latitude) over degrees."""
        if isinstance(self.observables, Grid):
            return self.observables.centre(observable)
        within = self.observables.underlying if isinstance(self.observables, Subsets) else None
        if not isinstance(within, Grid) or not isinstance(self.observables, Subsets):
            raise InvalidProblem("only observables that are cells of a Grid, or sets of them, have places")
        members = self.observables.members[self.observables.index(observable)]
        x, y = np.mean([within.centre(within.labels[member]) for member in members], axis=0)
        return float(x), float(y)

    def sampler(self, generator: np.random.Generator | None = None) -> Sampler:
        """The sampler behind :meth:`sample`, for positions instead of labels; it says where its bits come from."""
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
        """What an adversary believes after seeing ``observable``.

        Args:
            observable: what was answered.
            prior: what they believed before; by default the problem's prior.

        Raises:
            InvalidProblem: the mechanism never gives this output, or gives it only for secrets that the prior excludes:
                nobody can see it, so there is nothing to believe after it.
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
        """Write one self-contained file; without ``multipliers`` it is smaller and proves no optimality."""
        header, arrays = encode_content(self._contents, dual_solution=dual_solution)
        binary_container.write(path, header, arrays, version=oldest_version(header))

    def to_bytes(self, *, dual_solution: bool = True) -> bytes:
        """What :meth:`save` writes, kept in memory: :func:`privacygames.mechanism.load_bytes` reads it back."""
        header, arrays = encode_content(self._contents, dual_solution=dual_solution)
        return b"".join(binary_container.content(header, arrays, version=oldest_version(header)))

    def __repr__(self) -> str:
        secrets, observables = self.weights.shape
        return f"Mechanism({secrets} secrets, {observables} observables, cost {self.certificate.cost:.4g})"


def certify(
    problem: Problem,
    bounds: Bounds | RealisedValues,
    table: FloatArray | IntArray,
    dual_solution: DualSolution | None = None,
    *,
    origin: str,
    cheapest: Mechanism | None = None,
    before: FloatArray | None = None,
) -> Mechanism:
    """A mechanism near a table of numbers, with exact weights, that keeps its promises; or an error.

    Args:
        problem: what it is judged against.
        bounds: what it is to promise: the table is repaired until it does. With :class:`RealisedValues` nothing but
            last digits is changed, and what it keeps is promised.
        table: (secrets, observables): probabilities, or exact weights whose rows sum to 2^62 (kept as they are).
        dual_solution: evidence for how far from the best possible it is.
        origin: where it comes from, for the certificate.
        cheapest: a mechanism that keeps the ratios and costs less than the limit, where the cost is limited.
        before: what the cost of the repair is counted from; by default the table.

    Raises:
        GuaranteeViolated: the promises cannot be kept near the table.
        InvalidProblem: the table does not fit the problem.
    """
    require_instance(problem, Problem, "the problem")
    weights = None if cheapest is None else cheapest.weights
    return Mechanism(*certified(problem, bounds, table, dual_solution, origin=origin, cheapest=weights, before=before))


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism file, re-checking every promise in it."""
    return _checked(*binary_container.read(path))


def load_bytes(content: bytes, *, most: int | None = None) -> Mechanism:
    """Read the content of a mechanism file, re-checking every promise in it.

    Args:
        content: the bytes.
        most: rows and columns that a table in it may have; larger files are refused before anything is built.
    """
    header, arrays = binary_container.parse(content)
    if most is not None and any(max(each.shape) > most for each in arrays.values() if each.ndim == 2):
        raise TooLarge(f"the file has a table of more than {most} rows or columns; at most {most} are taken here")
    return _checked(header, arrays)


def _checked(header: binary_container.Header, arrays: binary_container.Arrays) -> Mechanism:
    if "withheld" in header:
        raise InvalidFile("this file was exported without prior and cost: read it with load_public")
    contents = decode_content(header, arrays)
    return Mechanism(contents, check(contents.statement))


def verify(path: str | os.PathLike[str]) -> Certificate:
    """Re-check every promise in a mechanism file and return the certificate it earns.

    Raises:
        InvalidFile: the file is damaged, altered, too large or of another version.
        GuaranteeViolated: the file is in order but the mechanism does not keep what it promises.
    """
    return load(path).certificate


def require_secrets(mechanism: Mechanism, prior: Prior) -> None:
    """Raise unless a belief is about a mechanism's secrets: the same space, not only labels that look alike."""
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

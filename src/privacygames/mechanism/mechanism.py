"""The mechanism p(o|s): exact integer weights, what they promise, and how to sample from them."""

import os
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from math import inf
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, IntArray, checked
from privacygames.bounds import Bounds
from privacygames.errors import BrokenPromise, InvalidProblem
from privacygames.mechanism import container
from privacygames.mechanism.certificate import Certificate, Provenance
from privacygames.mechanism.files import Contents, pack, unpack
from privacygames.mechanism.ratios import realised_epsilon
from privacygames.mechanism.repair import to_weights
from privacygames.mechanism.sampling import Sampler
from privacygames.mechanism.statement import BITS, Statement
from privacygames.mechanism.verifier import Findings, check, distortion_below, probabilities
from privacygames.multipliers import Multipliers
from privacygames.prior import Prior
from privacygames.problem import Problem
from privacygames.spaces import Label, Space

SUM_TOLERANCE = 1e-6
LEAST_EPSILON = 1e-12

Many = list[Any] | tuple[Any, ...] | NDArray[Any]


class Mechanism:
    """A random answer for every secret, certified.

    Get one from :func:`privacygames.design`, a baseline, :meth:`from_probabilities` or
    :func:`privacygames.load`. What is certified is, bit for bit, what is sampled: the integer ``weights``.
    """

    def __init__(self, contents: Contents, findings: Findings) -> None:
        self._contents = contents
        self.certificate = Certificate.of(contents.statement, findings, contents.hashes, contents.provenance)

    @classmethod
    def from_probabilities(
        cls,
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
        given = checked(probabilities, what="the mechanism", shape=problem.shape, meaning="(secrets, observables)")
        sums = given.sum(axis=1, keepdims=True)
        if (abs(sums - 1) > SUM_TOLERANCE).any():
            raise InvalidProblem("every row of the mechanism must sum to 1: p(·|s) is a distribution")
        return cls.from_weights(problem, to_weights(given / sums, BITS), origin=origin, within=within)

    @classmethod
    def from_weights(
        cls,
        problem: Problem,
        weights: IntArray,
        *,
        origin: str = "given weights",
        within: float | None = None,
        known: float = inf,
    ) -> "Mechanism":
        """A mechanism from exact weights, every row summing to 2^62, certified for the bounds it really has.

        Rounding makes the ε stated a few last digits larger than the realised one; ``known``, an ε that is known to
        hold, caps it.
        """
        if weights.shape != problem.shape or weights.dtype != np.int64:
            raise InvalidProblem(f"the weights must be 64-bit integers of shape {problem.shape}")
        draft = draft_statement(problem, Bounds(distortion=0.0))
        statement, findings = _certify_realised(replace(draft, weights=weights), within, known)
        return cls(Contents(statement, problem.space, problem.observables, Provenance(origin, own_version())), findings)

    @property
    def weights(self) -> IntArray:
        """Integers (secrets, observables); every row sums to ``2**bits``. Exactly what is sampled."""
        return self._contents.statement.weights

    @property
    def bits(self) -> int:
        """The power of two every row of weights sums to."""
        return self._contents.statement.bits

    @cached_property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats."""
        values = probabilities(self._contents.statement)
        values.flags.writeable = False
        return values

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
        statement = self._contents.statement
        return Problem(
            Prior(self.secrets, statement.prior),
            cost=statement.cost,
            distance=statement.distance,
            distinguishability=statement.distinguishability,
            observables=self.observables,
        )

    @property
    def multipliers(self) -> Multipliers | None:
        """The evidence behind the certificate's bound."""
        return self._contents.statement.multipliers

    @overload
    def sample(self, secret: Label | set[str], generator: np.random.Generator | None = None) -> Label: ...
    @overload
    def sample(self, secret: Many, generator: np.random.Generator | None = None) -> list[Label]: ...
    def sample(
        self, secret: Label | set[str] | Many, generator: np.random.Generator | None = None
    ) -> Label | list[Label]:
        """One observable for a secret, or a list of them for a list (or array) of secrets.

        Randomness comes from the operating system, unless a seeded generator is passed (then the answers are
        reproducible, and not private).
        """
        many = isinstance(secret, list | tuple | np.ndarray)
        secrets = self.secrets.indices(secret if many else [secret])  # type: ignore[arg-type]
        drawn = self.sampler(generator).draw(secrets)
        labels: list[Label] = self._answers[drawn].tolist()
        return labels if many else labels[0]

    def sampler(self, generator: np.random.Generator | None = None) -> Sampler:
        """The sampler behind :meth:`sample`, for positions instead of labels; it says where its bits come from."""
        return self._private_sampler if generator is None else Sampler(self.weights, self.bits, generator)

    @cached_property
    def _answers(self) -> NDArray[np.object_]:
        answers = np.empty(len(self.observables), dtype=object)
        answers[:] = self.observables.labels
        return answers

    @cached_property
    def _private_sampler(self) -> Sampler:
        return Sampler(self.weights, self.bits)

    def posterior(self, observable: Label, prior: Prior | None = None) -> Prior:
        """What an adversary believes after seeing ``observable`` (by default starting from the problem's prior)."""
        belief = self.problem.prior if prior is None else prior
        if belief.space.labels != self.secrets.labels:
            raise InvalidProblem("the prior is over other secrets than the mechanism's")
        return belief.posterior(self.probabilities[:, self.observables.index(observable)])

    def save(self, path: str | os.PathLike[str], *, multipliers: bool = True) -> None:
        """Write one self-contained file; without ``multipliers`` it is smaller and proves no optimality."""
        container.write(path, *pack(self._contents, multipliers=multipliers))

    def __repr__(self) -> str:
        secrets, observables = self.weights.shape
        return f"Mechanism({secrets} secrets, {observables} observables, cost {self.certificate.cost:.4g})"


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism file, re-checking every promise in it."""
    contents = unpack(*container.read(path))
    return Mechanism(contents, check(contents.statement))


def draft_statement(problem: Problem, bounds: Bounds, multipliers: Multipliers | None = None) -> Statement:
    """A statement about a problem whose weights are still to come."""
    return Statement(
        weights=np.zeros((0, 0), dtype=np.int64),
        bits=BITS,
        prior=problem.prior.probabilities,
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=bounds,
        multipliers=multipliers,
    )


def own_version() -> str:
    """This release, as it appears in certificates."""
    return version("privacygames")


def _certify_realised(statement: Statement, within: float | None, known: float) -> tuple[Statement, Findings]:
    """Promise exactly what the weights keep: the largest distortion and the smallest epsilon that verify."""
    distortion = distortion_below(statement)
    epsilon = realised_epsilon(statement.weights, statement.distinguishability, within)
    margin = 1e-14
    while np.isfinite(epsilon) and margin < 1:
        promised = min(max(epsilon * (1 + margin), LEAST_EPSILON), known)
        certified = replace(statement, bounds=Bounds(epsilon=promised, within=within, distortion=distortion))
        try:
            return certified, check(certified)
        except BrokenPromise:
            margin *= 8
    plain = replace(statement, bounds=Bounds(distortion=distortion))
    return plain, check(plain)

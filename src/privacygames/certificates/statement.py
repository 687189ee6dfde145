"""A statement: a mechanism's exact weights together with everything needed to check what it guarantees."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import LARGEST_FINITE, FloatArray, IntArray, content_hash, in_range
from privacygames.certificates.allowed import allowed_outputs
from privacygames.certificates.dual_solution import DualSolution
from privacygames.errors import GuaranteeViolated
from privacygames.problem import AdversaryArrays, Bounds

BITS = 62
"""Every row of weights sums to 2^62, the most that signed 64-bit integers add up comfortably."""


@dataclass(frozen=True)
class RatioStatement:
    """The numbers that differential privacy is about: all that is needed to check epsilon.

    Attributes:
        weights: (secrets, observables) integers; p(o|s) = weights[s, o] / 2**bits, exactly.
        bits: what the rows sum to, as a power of two.
        distinguishability: d^ε(s, s'), (secrets, secrets).
        bounds: what is guaranteed.
    """

    weights: IntArray
    bits: int
    distinguishability: FloatArray
    bounds: Bounds


@dataclass(frozen=True)
class Statement(RatioStatement):
    """The numbers a certificate is about; nothing else is consulted when it is checked.

    Attributes:
        prior: π(s).
        cost: c(o, s), (observables, secrets); ∞ where the output is never allowed.
        distance: d(ŝ, s), (secrets, secrets).
        dual_solution: evidence for the bound on the optimum; None if it was left out.
    """

    prior: FloatArray
    cost: FloatArray
    distance: FloatArray
    dual_solution: DualSolution | None

    @cached_property
    def adversaries(self) -> tuple[AdversaryArrays, ...]:
        """Every adversary something is guaranteed against, as arrays."""
        return self.bounds.adversary_arrays(self.prior, self.distance)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which outputs each secret may give at all, (secrets, observables)."""
        return allowed_outputs(self.cost, self.distinguishability, self.bounds)

    @property
    def content_hashes(self) -> "ContentHashes":
        """What the guarantees are about, by content."""
        prior, cost, distance = (content_hash(matrix) for matrix in (self.prior, self.cost, self.distance))
        same = self.distinguishability is self.distance  # as it is by default
        return ContentHashes(prior, cost, distance, distance if same else content_hash(self.distinguishability))


@dataclass(frozen=True)
class ContentHashes:
    """What guarantees are about: SHA-256 of the exact numbers."""

    prior: str
    cost: str
    distance: str
    distinguishability: str


def check_form(statement: Statement) -> None:
    """Refuse a statement that is not made of numbers of the right shape, sign and size.

    Every number is 0 or between 10^-60 and 10^60, so that no product of a few of them under- or overflows: the
    verifier's error bounds rely on it. Only the distinguishability may be ∞, and the cost of an output that a secret
    must never give.
    """
    check_ratio_form(statement)
    n, m = statement.weights.shape
    for name, values, shape in (
        ("prior", statement.prior, (n,)),
        ("cost", statement.cost, (m, n)),
        ("distance", statement.distance, (n, n)),
    ):
        _check_numbers(name, values, shape)
    _check_prior(statement.prior, "the prior")
    _check_diagonal(statement.distance)
    for adversary in statement.adversaries:
        _check_adversary(adversary, n)
    if statement.dual_solution is not None:
        _check_dual_solution(statement, statement.dual_solution)


def check_ratio_form(statement: RatioStatement) -> None:
    """Refuse weights and distances that are not of the right shape, sign and size, as :func:`check_form` does."""
    weights = statement.weights
    if weights.ndim != 2 or weights.size == 0 or weights.dtype != np.int64:
        raise GuaranteeViolated("the weights must be a table of 64-bit integers")
    _check_numbers("distinguishability", statement.distinguishability, (len(weights), len(weights)))
    _check_diagonal(statement.distinguishability)


def _check_numbers(name: str, values: FloatArray, shape: tuple[int, ...]) -> None:
    if values.shape != shape or values.dtype != np.float64:
        raise GuaranteeViolated(f"the {name} must be floating-point numbers of shape {shape}")
    if not in_range(values, infinite=name in ("cost", "distinguishability")):
        raise GuaranteeViolated(f"the {name} must be 0 or between 1e-60 and 1e60 throughout")


def _check_diagonal(distances: FloatArray) -> None:
    if np.diagonal(distances).any():
        raise GuaranteeViolated("distances must be 0 on the diagonal")


def _check_prior(prior: FloatArray, what: str) -> None:
    if not (prior <= 1).all() or not abs(float(prior.sum()) - 1) <= 1e-12:
        raise GuaranteeViolated(f"{what} must sum to one")


def _check_adversary(adversary: AdversaryArrays, n: int) -> None:
    guesses = len(adversary.errors)
    for values, shape in ((adversary.prior, (n,)), (adversary.errors, (guesses, n))):
        if values.shape != shape or values.dtype != np.float64 or not values.size or not in_range(values):
            raise GuaranteeViolated(f"the numbers of {adversary.name!r} must be of shape {shape}, 0 or within 1e±60")
    _check_prior(adversary.prior, f"the prior of {adversary.name!r}")


def _check_dual_solution(statement: Statement, duals: DualSolution) -> None:
    """Refuse dual values that are negative, too large, or of the wrong shape."""
    n, m = len(statement.prior), len(statement.cost)
    ratios, rows = duals.ratios, duals.rows
    of_secrets = [each for each in (duals.secret_weights, duals.worst_cost_duals) if each is not None]
    attacks = [each.attack for each in duals.adversaries]
    numbers = np.array([duals.cost_dual, *(each.dual for each in duals.adversaries)])
    for values in (numbers, ratios.value, *of_secrets, *attacks):
        if not ((values >= 0) & (values <= LARGEST_FINITE)).all():
            raise GuaranteeViolated("dual values must lie between 0 and 1e60")
    if not len(ratios.observable) == len(ratios.secret) == len(ratios.other) == len(ratios.value):
        raise GuaranteeViolated("the dual values of ratios are not of equal length")
    if any(each.shape != (n,) for each in of_secrets) or duals.output_rows.shape != (m,) or not 1 <= rows <= m:
        raise GuaranteeViolated("the dual values do not fit the secrets and outputs")
    positions = ((duals.output_rows, rows), (ratios.observable, rows), (ratios.secret, n), (ratios.other, n))
    if any(len(values) and not (values.min() >= 0 and values.max() < size) for values, size in positions):
        raise GuaranteeViolated("the dual values point outside")
    if len(attacks) != len(statement.adversaries):
        raise GuaranteeViolated("the dual values are not about the adversaries that something is guaranteed against")
    for attack, adversary in zip(attacks, statement.adversaries, strict=True):
        if attack.shape != (rows, len(adversary.errors)):
            raise GuaranteeViolated(f"the dual values do not fit the guesses of {adversary.name!r}")

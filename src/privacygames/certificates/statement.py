"""A statement: a mechanism's exact numbers together with everything needed to re-check what it promises."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, content_hash, in_range
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
        """Everybody something is promised against, in plain numbers."""
        return self.bounds.adversary_arrays(self.prior, self.distance)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which outputs each secret may give at all, (secrets, observables)."""
        return allowed_outputs(self.cost, self.distinguishability, self.bounds)

    @property
    def content_hashes(self) -> "ContentHashes":
        """What the promise is about, by content."""
        matrices = (self.prior, self.cost, self.distance, self.distinguishability)
        return ContentHashes(*(content_hash(matrix) for matrix in matrices))


@dataclass(frozen=True)
class ContentHashes:
    """What a promise is about: SHA-256 of the exact numbers."""

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
        _check_multipliers(statement.dual_solution, n, m)
        _check_against(statement)


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


def _check_multipliers(given: DualSolution, n: int, m: int) -> None:
    ratios, rows = given.ratios, len(given.attack)
    duals = np.array([given.cost_dual, given.distortion_dual])
    weights = np.zeros(n) if given.secret_weights is None else given.secret_weights
    limited = np.zeros(n) if given.limit_weights is None else given.limit_weights
    for values in (duals, given.attack, ratios.value, weights, limited):
        if not ((values >= 0) & (values <= 1e60)).all():
            raise GuaranteeViolated("multipliers must lie between 0 and 1e60")
    if given.attack.shape != (rows, n) or weights.shape != (n,) or limited.shape != (n,) or given.like.shape != (m,):
        raise GuaranteeViolated("the multipliers do not fit the secrets and observables")
    columns = ((given.like, rows), (ratios.observable, rows), (ratios.secret, n), (ratios.other, n))
    if any(len(positions) and not (positions.min() >= 0 and positions.max() < limit) for positions, limit in columns):
        raise GuaranteeViolated("the multipliers point outside")
    if not len(ratios.observable) == len(ratios.secret) == len(ratios.other) == len(ratios.value):
        raise GuaranteeViolated("the multipliers of ratios are not of equal length")


def _check_against(statement: Statement) -> None:
    """Multipliers against several adversaries: one set for each, of her shape."""
    given, bounds = statement.dual_solution, statement.bounds
    if given is None or not bounds.against:
        return
    rows, adversaries = len(given.attack), statement.adversaries
    if len(given.against) != len(adversaries):
        raise GuaranteeViolated("the multipliers are not about the adversaries that something is promised against")
    for each, adversary in zip(given.against, adversaries, strict=True):
        if each.attack.shape != (rows, len(adversary.errors)):
            raise GuaranteeViolated(f"the multipliers do not fit the guesses of {adversary.name!r}")
        if not (0 <= each.dual <= 1e60 and ((each.attack >= 0) & (each.attack <= 1e60)).all()):
            raise GuaranteeViolated("multipliers must lie between 0 and 1e60")

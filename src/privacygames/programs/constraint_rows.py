"""The families of constraints of the paper's programs, one function each.

The variables are p(o|s) at position s·m + o, x(o) at position o, and one y. Every family is named so that its
dual values can be found again.
"""

from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.problem import AdversaryArrays, Bounds, Problem
from privacygames.programs.linear_program import Rows

LARGEST_EXPONENT = 36.0
"""Logarithm of the largest ratio that gets a row: above e^36 ≈ 4·10^15, mixing in 10^-13 of a constant mechanism keeps
a ratio."""


def row_sums(problem: Problem) -> Rows:
    """p(·|s) is a distribution: Σ_o p(o|s) = 1 for every s (eq:game:mixedstrategies:p). Rows: n."""
    from scipy.sparse import csr_array, kron

    secrets, observables = problem.shape
    ones = np.ones(secrets)
    sums = kron(csr_array(np.eye(secrets)), csr_array(np.ones((1, observables))))
    return Rows("sums", {"p": sums}, ones, ones)


def guess_rows(problem: Problem, adversary: AdversaryArrays, position: int = 0) -> Rows:
    """x_k(o) is at most the error of any guess: Σ_s π_k(s) p(o|s) E_k(g,s) ≥ x_k(o) for all o, g.

    Paper: eq:lp:user:utility-privacy:game:c1, for the problem's own adversary, whose E is d. Rows: m·G, at o·G + g.

    Args:
        problem: the problem.
        adversary: π_k and E_k.
        position: k, the position of the adversary in the bounds; each has an x of their own.
    """
    from scipy.sparse import coo_array

    secrets, observables = problem.shape
    error = adversary.joint_errors  # (g, s)
    guesses = len(error)
    guess, secret = np.nonzero(error)
    o = np.arange(observables)
    rows = (o[:, None] * guesses + guess).ravel()
    columns = (secret * observables + o[:, None]).ravel()
    values = np.tile(error[guess, secret], observables)
    size = observables * guesses
    errors = coo_array((values, (rows, columns)), shape=(size, secrets * observables))
    ties = coo_array((-np.ones(size), (np.arange(size), np.repeat(o, guesses))), shape=(size, observables))
    coefficients = {"p": errors.tocsr(), numbered("x", position): ties.tocsr()}
    return Rows(numbered("guesses", position), coefficients, np.zeros(size), np.full(size, np.inf))


def distortion_row(problem: Problem, distortion: float, position: int = 0) -> Rows:
    """Distortion privacy is at least d_m: Σ_o x_k(o) ≥ d_m (eq:lp:user:utility-privacy:game:c2). Rows: 1."""
    from scipy.sparse import csr_array

    _, observables = problem.shape
    total = csr_array(np.ones((1, observables)))
    return Rows(
        numbered("distortion", position), {numbered("x", position): total}, np.array([distortion]), np.array([np.inf])
    )


def adversary_rows(problem: Problem, bounds: Bounds) -> list[Rows]:
    """The rows of every distortion guarantee; the first has no ``distortion_row`` where its error is maximised."""
    families = []
    for position, adversary in enumerate(bounds.adversaries(problem)):
        families.append(guess_rows(problem, adversary, position))
        if adversary.distortion is not None:
            families.append(distortion_row(problem, adversary.distortion, position))
    return families


def numbered(name: str, position: int) -> str:
    """The name of a block or family that every adversary has one of: the first one's is the plain name."""
    return f"{name}{position}" if position else name


def ratio_pairs(problem: Problem, bounds: Bounds) -> tuple[IntArray, IntArray, FloatArray]:
    """The ordered pairs of secrets (s, s') whose ratio is bounded, and the logarithm of that bound."""
    exponents = bounds.log_ratio_bounds(problem.distinguishability)
    secret, other = np.nonzero(exponents <= LARGEST_EXPONENT)
    return secret, other, exponents[secret, other]


def ratio_rows(problem: Problem, bounds: Bounds) -> Rows | None:
    """Every bounded ratio, balanced: p(o|s)/√γ − √γ·p(o|s') ≤ 0 with γ = exp(ε·d^ε(s,s')).

    Paper: eq:constraint:privacy:diff:mult (or …:mult2 when ``bounds.within`` is given).
    Rows: n(n−1)·m at position pair·m + o. Deviation: ratios above e^36 are left to the repair.
    """
    from scipy.sparse import coo_array

    secrets, observables = problem.shape
    secret, other, exponent = ratio_pairs(problem, bounds)
    if len(secret) == 0:
        return None
    root = np.repeat(np.exp(exponent / 2), observables)
    o = np.tile(np.arange(observables), len(secret))
    left = np.repeat(secret, observables) * observables + o
    right = np.repeat(other, observables) * observables + o
    rows = np.arange(len(o))
    ratios = coo_array(
        (np.concatenate([1 / root, -root]), (np.concatenate([rows, rows]), np.concatenate([left, right]))),
        shape=(len(o), secrets * observables),
    )
    return Rows("ratios", {"p": ratios.tocsr()}, np.full(len(o), -np.inf), np.zeros(len(o)))


def expected_cost(problem: Problem) -> FloatArray:
    """The coefficients of Σ_s π(s) Σ_o p(o|s) c(o,s) (eq:utility:avgmetric)."""
    return (problem.prior.probabilities[:, None] * _finite_cost(problem)).ravel()


def never_allowed(problem: Problem) -> dict[str, FloatArray]:
    """Upper bounds of p: p(o|s) = 0 where c(o,s) is infinite. Nothing where no cost is."""
    forbidden = np.isinf(problem.cost.T).ravel()
    return {"p": np.where(forbidden, 0.0, np.inf)} if forbidden.any() else {}


def _finite_cost(problem: Problem) -> FloatArray:
    """C(o,s), (secrets, observables), with 0 for what is never allowed."""
    return np.where(np.isinf(problem.cost.T), 0.0, problem.cost.T)


def cost_per_secret(problem: Problem) -> Any:
    """The matrix that maps p to Σ_o p(o|s) c(o,s) for every secret s."""
    from scipy.sparse import csr_array

    secrets, observables = problem.shape
    columns = np.arange(secrets * observables)
    rows = np.repeat(np.arange(secrets), observables)
    return csr_array((_finite_cost(problem).ravel(), (rows, columns)), shape=(secrets, secrets * observables))


def worst_cost_rows(problem: Problem) -> Rows:
    """Y is at least every secret's cost: Σ_o p(o|s) c(o,s) ≤ y (eq:utility:maxmetric). Rows: n."""
    from scipy.sparse import csr_array

    secrets, _ = problem.shape
    tie = csr_array(-np.ones((secrets, 1)))
    return Rows("costs", {"p": cost_per_secret(problem), "y": tie}, np.full(secrets, -np.inf), np.zeros(secrets))


def cost_limit(problem: Problem, bounds: Bounds) -> Rows:
    """The cost (average, or every secret's in the worst case) is at most the bound. Rows: 1 or n."""
    from scipy.sparse import csr_array

    costs = cost_per_secret(problem) if bounds.worst_case else csr_array(expected_cost(problem)[None, :])
    size = costs.shape[0]
    limit = np.inf if bounds.cost_at_most is None else bounds.cost_at_most
    return Rows("costs", {"p": costs}, np.full(size, -np.inf), np.full(size, limit))


def worst_cost_limit(problem: Problem, limit: float) -> Rows:
    """No secret's cost is above a limit: Σ_o p(o|s) c(o,s) ≤ W. Rows: n."""
    costs = cost_per_secret(problem)
    size = costs.shape[0]
    return Rows("worst", {"p": costs}, np.full(size, -np.inf), np.full(size, limit))

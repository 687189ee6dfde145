"""The paper's programs for the adversary: which attack q(ŝ|o) errs least against a given mechanism.

The variables are q(ŝ|o) at position o·n + ŝ (and one y); q(·|o) is a distribution for every o. ``mechanism`` is
p(o|s) as an (n, m) matrix and ``distance`` is d(ŝ, s).
"""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.programs.linear_program import LinearProgram, Rows, assemble


def weighted_attack_program(mechanism: FloatArray, distance: FloatArray, weights: FloatArray) -> LinearProgram:
    r"""Least weighted error.

    Paper: eq:lp:adversary:bayesian when the weights are the prior, eq:lp:adversary:diff when all are 1.

    .. math:: \min_q \sum_{s,o,ŝ} w(s)\,p(o|s)\,q(ŝ|o)\,d(ŝ,s)

    Size: n·m variables, m rows.
    """
    error = (mechanism.T * weights) @ distance.T  # (o, ŝ)
    return assemble({"q": error.ravel()}, _attack_sums(mechanism))


def minmax_attack_program(mechanism: FloatArray, distance: FloatArray) -> LinearProgram:
    r"""Least error for the secret on which the attack does worst.

    Paper: eq:lp:adversary:diff:minmax.

    .. math:: \min_{q,y} y \quad\text{s.t.}\quad \sum_{o,ŝ} p(o|s)\,q(ŝ|o)\,d(ŝ,s) ≤ y\ ∀s

    Size: n·m + 1 variables, n + m rows, n²·m non-zeros.
    """
    from scipy.sparse import csr_array

    secrets, observables = mechanism.shape
    errors = (mechanism[:, :, None] * distance.T[:, None, :]).reshape(secrets, observables * secrets)
    family = Rows(
        "errors",
        {"q": csr_array(errors), "y": csr_array(-np.ones((secrets, 1)))},
        np.full(secrets, -np.inf),
        np.zeros(secrets),
    )
    return assemble(
        {"q": np.zeros(observables * secrets), "y": np.ones(1)}, _attack_sums(mechanism), family, free=("y",)
    )


def least_favourable_program(
    mechanism: FloatArray, distance: FloatArray, observable: IntArray, guess: IntArray
) -> LinearProgram:
    r"""The prior under which the best attack errs most, seen from some guesses: the dual of the program above.

    .. math:: \max_{λ,x} \sum_o x(o) \quad\text{s.t.}\quad x(o) ≤ \sum_s λ(s)\,p(o|s)\,d(ŝ,s)
        \text{ for the pairs }(o,ŝ)\text{ listed};\quad \sum_s λ(s) = 1

    With all pairs its value is that of eq:lp:adversary:diff:minmax, and the dual values of the rows are q(ŝ|o).
    Size: n + m variables; a row per pair listed, n non-zeros each.
    """
    from scipy.sparse import csr_array

    secrets, observables = mechanism.shape
    count = len(observable)
    errors = mechanism.T[observable] * distance[guess]  # (pair, secret)
    ties = csr_array((-np.ones(count), (np.arange(count), observable)), shape=(count, observables))
    one = np.ones(1)
    return assemble(
        {"prior": np.zeros(secrets), "x": -np.ones(observables)},
        Rows("guesses", {"prior": csr_array(errors), "x": ties}, np.zeros(count), np.full(count, np.inf)),
        Rows("sum", {"prior": csr_array(np.ones((1, secrets)))}, one, one),
        free=("x",),
    )


def minmax_pairs_attack_program(mechanism: FloatArray, distance: FloatArray) -> LinearProgram:
    r"""Least largest error over pairs of secret and estimate.

    Paper: eq:lp:adversary:diff:minmax2.

    .. math:: \min_{q,y} y \quad\text{s.t.}\quad \sum_o p(o|s)\,q(ŝ|o)\,d(ŝ,s) ≤ y\ ∀s,ŝ

    Size: n·m + 1 variables, n² + m rows, n²·m non-zeros.
    """
    from scipy.sparse import coo_array, csr_array

    secrets, observables = mechanism.shape
    s, guess, o = (axis.ravel() for axis in np.indices((secrets, secrets, observables)))
    values = mechanism[s, o] * distance[guess, s]
    errors = coo_array((values, (s * secrets + guess, o * secrets + guess)), shape=(secrets**2, observables * secrets))
    family = Rows(
        "errors",
        {"q": errors.tocsr(), "y": csr_array(-np.ones((secrets**2, 1)))},
        np.full(secrets**2, -np.inf),
        np.zeros(secrets**2),
    )
    return assemble(
        {"q": np.zeros(observables * secrets), "y": np.ones(1)}, _attack_sums(mechanism), family, free=("y",)
    )


def _attack_sums(mechanism: FloatArray) -> Rows:
    """q(·|o) is a distribution for every o (eq:game:mixedstrategies:q)."""
    from scipy.sparse import csr_array, kron

    secrets, observables = mechanism.shape
    ones = np.ones(observables)
    sums = kron(csr_array(np.eye(observables)), csr_array(np.ones((1, secrets))))
    return Rows("sums", {"q": sums}, ones, ones)

"""Programs of quantitative information flow: post-processing of one channel into another, capacities over priors.

``channel`` is p(o|s) as an (n, m) matrix, ``gains`` g(w, s) as a (k, n) matrix. The theory is in
docs/theory/leakage.md.
"""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.programs.linear_program import LinearProgram, Rows, assemble


def post_processing_program(channel: FloatArray, refined: FloatArray) -> LinearProgram:
    r"""The post-processing R of a channel A that comes nearest to a channel B, in total variation summed over secrets.

    .. math:: \min_{R,e} \sum_{s,z} e(s,z) \quad\text{s.t.}\quad e ≥ B - A R,\quad e ≥ 0,\quad R \text{ row-stochastic}

    The dual values of the rows e ≥ B − A R are a gain function g(z, s) in [0, 1] by which B beats A, if the minimum is
    positive. Size: m·k + n·k variables, n·k + m rows, n·m·k non-zeros, for k outputs of B.
    """
    from scipy.sparse import csr_array, eye_array, kron

    (secrets, outputs), columns = channel.shape, refined.shape[1]
    cells = secrets * columns
    cover = Rows(
        "cover",
        {"r": kron(csr_array(channel), eye_array(columns), format="csr"), "e": eye_array(cells, format="csr")},
        refined.ravel(),
        np.full(cells, np.inf),
    )
    sums = Rows("sums", {"r": kron(eye_array(outputs), np.ones((1, columns)), format="csr")}, *_equal(outputs, 1.0))
    return assemble({"r": np.zeros(outputs * columns), "e": np.ones(cells)}, cover, sums)


def best_prior_program(gains: FloatArray, strategy: FloatArray, *, multiplicative: bool) -> LinearProgram:
    r"""The prior under which an adversary with a fixed strategy gains most over the best guess without an output.

    .. math:: \max_{π,v} \sum_s a(s)\,π(s) - v \quad\text{s.t.}\quad v ≥ \sum_s π(s)\,g(w,s)\ ∀w,\quad \sum_s π(s) = 1

    With ``multiplicative`` it is max Σ a(s) π(s) with v = 1, and π need not sum to one. As a minimum, negated.
    Size: n + 1 variables, k + 1 rows.

    Args:
        gains: g(w, s).
        strategy: a(s), the expected gain of the strategy given each secret.
        multiplicative: whether the ratio or the difference is maximised.
    """
    from scipy.sparse import csr_array

    guesses, secrets = gains.shape
    value = Rows(
        "value",
        {"prior": csr_array(-gains), "value": csr_array(np.ones((guesses, 1)))},
        np.zeros(guesses),
        np.full(guesses, np.inf),
    )
    objective = {"prior": -strategy, "value": np.zeros(1) if multiplicative else np.ones(1)}
    return assemble(objective, value, _unit(secrets, multiplicative=multiplicative), free=("value",))


def prior_capacity_program(channel: FloatArray, gains: FloatArray, *, multiplicative: bool) -> LinearProgram:
    r"""An upper bound on the leakage for every prior: the first-level linearisation of a bilinear program.

    The leakage is :math:`\sum_{s,o,w} p(o|s)\,g(w,s)\,π(s)\,q(w|o) - v` with :math:`v ≥ \sum_s π(s)\,g(w',s)` for every
    w', a strategy q and a prior π. The products :math:`j(s,o,w) = π(s)\,q(w|o)` and :math:`h(o,w) = v\,q(w|o)` become
    variables, with what q's sums and the multiplied rows of v imply.

    .. math:: \sum_w j(s,o,w) = π(s),\quad \sum_w h(o,w) = v,\quad h(o,w) ≥ \sum_s g(w',s)\,j(s,o,w)\ ∀w'

    With ``multiplicative`` v = 1, and π need not sum to one. As a minimum, negated.
    Size: n·m·k + m·k + n + 1 variables, m·k² + n·m + m + 1 rows, n·m·k² non-zeros.
    """
    from scipy.sparse import csr_array, eye_array, hstack, kron

    (secrets, outputs), guesses = channel.shape, len(gains)
    ones = np.ones((1, guesses))
    pairs = secrets * outputs
    split = Rows(
        "split",
        {
            "joint": kron(eye_array(pairs), ones, format="csr"),
            "prior": kron(eye_array(secrets), -np.ones((outputs, 1)), format="csr"),
        },
        *_equal(pairs, 0.0),
    )
    shares = Rows(
        "shares",
        {"share": kron(eye_array(outputs), ones, format="csr"), "value": csr_array(-np.ones((outputs, 1)))},
        *_equal(outputs, 0.0),
    )
    cells = eye_array(outputs * guesses)
    best = Rows(
        "best",
        {
            "joint": hstack([kron(cells, -gains[:, [secret]]) for secret in range(secrets)], format="csr"),
            "share": kron(cells, np.ones((guesses, 1)), format="csr"),
        },
        np.zeros(outputs * guesses**2),
        np.full(outputs * guesses**2, np.inf),
    )
    objective = {
        "joint": -(channel[:, :, None] * gains.T[:, None, :]).ravel(),
        "share": np.zeros(outputs * guesses),
        "prior": np.zeros(secrets),
        "value": np.zeros(1) if multiplicative else np.ones(1),
    }
    unit = _unit(secrets, multiplicative=multiplicative)
    return assemble(objective, split, shares, best, unit, free=("share", "value"))


def _unit(secrets: int, *, multiplicative: bool) -> Rows:
    """What is scaled to one: the prior vulnerability where it is divided by, else the sum of the prior."""
    from scipy.sparse import csr_array

    sums = {"value": np.ones((1, 1))} if multiplicative else {"prior": np.ones((1, secrets))}
    return Rows("unit", {name: csr_array(row) for name, row in sums.items()}, *_equal(1, 1.0))


def _equal(count: int, value: float) -> tuple[FloatArray, FloatArray]:
    return np.full(count, value), np.full(count, value)

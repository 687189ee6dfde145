"""Whether answers say anything: an optimum may be the same answer for everybody, and then nobody should be surprised.

Nothing here is promised or needed for a promise; it is what a reader of a certificate should be told.
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates.statement import Statement
from privacygames.certificates.verifier import probabilities

SAME = 1e-6
"""Rows that differ by less than this, in any answer, are the same."""

ALIKE = 0.01
"""Rows less than this apart (in total variation: the share of answers that differ) are almost the same."""

NEVER = 1e-6
"""What happens with a smaller probability never happens."""

MOST_KINDS = 100
MEANINGLESS = 43.0
"""e^43 > 2^62: between weights such a ratio says no more than "not zero"."""


@dataclass(frozen=True)
class Usefulness:
    """What answers are good for.

    Attributes:
        bits: what an answer tells about the secret, on average over the prior: mutual information.
        constant: whether the outputs do not depend on the secret at all.
        kinds: how many kinds of rows the secrets that occur (prior > 0) have, those with almost the same row counting
            as one; at most 100 are told apart.
        unserved: positions of the secrets that occur and never get an answer that costs them least.
        unserved_share: how likely such a secret is, by the prior.
        limitless: whether the ε promised is so large that it limits no ratio of 62-bit weights.
    """

    bits: float
    constant: bool
    kinds: int
    unserved: tuple[int, ...]
    unserved_share: float
    limitless: bool


def usefulness(statement: Statement) -> Usefulness:
    """How much the answers of a mechanism say, and whom they never serve."""
    table, prior = probabilities(statement), statement.prior
    best = statement.cost <= statement.cost.min(axis=0) * (1 + 1e-12)
    served = (table * best.T).sum(axis=1)
    unserved = np.flatnonzero((served < NEVER) & (prior > 0))
    return Usefulness(
        bits=_information(prior, table),
        constant=bool((table.max(axis=0) - table.min(axis=0)).max() <= SAME),
        kinds=_kinds(table[prior > 0]),
        unserved=tuple(unserved.tolist()),
        unserved_share=float(prior[unserved].sum()),
        limitless=_limitless(statement),
    )


def _limitless(statement: Statement) -> bool:
    if statement.bounds.epsilon is None:
        return False
    exponents = statement.bounds.log_ratio_bounds(statement.distinguishability)
    return not (exponents < MEANINGLESS).any()


def _information(prior: FloatArray, table: FloatArray) -> float:
    """Mutual information in bits: Σ π(s) p(o|s) log₂ p(o|s)/p(o)."""
    chance = prior @ table
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0, np.log2(table / chance), 0.0)
    return max(float((prior[:, None] * table * np.where(np.isfinite(logs), logs, 0.0)).sum()), 0.0)


def _kinds(table: FloatArray) -> int:
    """How many rows are not almost the same as one before."""
    left = table
    for kinds in range(MOST_KINDS):
        if not len(left):
            return kinds
        left = left[np.abs(left - left[0]).sum(axis=1) / 2 >= ALIKE]
    return MOST_KINDS

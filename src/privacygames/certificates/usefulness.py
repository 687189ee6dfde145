"""How much outputs say about secrets: an optimal mechanism may give every secret the same output.

Nothing here is guaranteed or needed for a guarantee; it is what a reader of a certificate should know.
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import information
from privacygames.certificates.statement import Statement
from privacygames.certificates.verifier import probabilities

EQUAL_ROWS = 1e-6
"""Largest difference of a probability between rows that count as equal: solvers' rounding is below it."""

SIMILAR_ROWS = 0.01
"""Total variation below which rows count as similar: one output in a hundred differs."""

NEVER = 1e-6
"""Probability below which an output counts as never given: once in a million."""

MOST_KINDS = 100
"""Kinds of rows that are counted at most: the count takes that many passes over the table."""

OUTPUTS_PER_GROUP = 32
"""Outputs whose probabilities are added up before rows are compared one output at a time."""

MEANINGLESS_EXPONENT = 43.0
"""Exponents from here on bound no ratio of 62-bit weights: e^43 > 2^62."""


@dataclass(frozen=True)
class Usefulness:
    """How much outputs say about secrets, and which secrets they never serve.

    Attributes:
        bits: information about the secret in an output, on average over the prior: mutual information.
        constant: whether the outputs do not depend on the secret at all.
        kinds: how many kinds of rows the secrets that occur (prior > 0) have, those with almost the same row counting
            as one; at most 100 are told apart.
        unserved: positions of the secrets that occur and never get an output of least cost.
        unserved_share: the prior probability of such a secret.
        limitless: whether the guaranteed ε is so large that it bounds no ratio of 62-bit weights.
    """

    bits: float
    constant: bool
    kinds: int
    unserved: tuple[int, ...]
    unserved_share: float
    limitless: bool


def usefulness(statement: Statement) -> Usefulness:
    """How much the outputs of a mechanism say, and which secrets they never serve."""
    table, prior = probabilities(statement), statement.prior
    best = statement.cost <= statement.cost.min(axis=0) * (1 + 1e-12)
    served = (table * best.T).sum(axis=1)
    unserved = np.flatnonzero((served < NEVER) & (prior > 0))
    return Usefulness(
        bits=information(prior, table),
        constant=bool((table.max(axis=0) - table.min(axis=0)).max() <= EQUAL_ROWS),
        kinds=_kinds(table[prior > 0]),
        unserved=tuple(unserved.tolist()),
        unserved_share=float(prior[unserved].sum()),
        limitless=_limitless(statement),
    )


def _limitless(statement: Statement) -> bool:
    if statement.bounds.epsilon is None:
        return False
    exponents = statement.bounds.log_ratio_bounds(statement.distinguishability)
    return not (exponents < MEANINGLESS_EXPONENT).any()


def _kinds(table: FloatArray) -> int:
    """Number of rows that are not similar to one before."""
    # Rows whose outputs differ in groups differ in their outputs: a few groups tell most rows apart.
    groups = np.add.reduceat(table, np.arange(0, table.shape[1], OUTPUTS_PER_GROUP), axis=1)
    rest = np.arange(len(table))
    for kinds in range(MOST_KINDS):
        if not len(rest):
            return kinds
        first = rest[0]
        different = np.abs(groups[rest] - groups[first]).sum(axis=1) / 2 >= 2 * SIMILAR_ROWS
        near = np.flatnonzero(~different)
        different[near] = np.abs(table[rest[near]] - table[first]).sum(axis=1) / 2 >= SIMILAR_ROWS
        rest = rest[different]
    return MOST_KINDS

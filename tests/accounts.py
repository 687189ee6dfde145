"""What tests of composition share: random pairs and mechanisms, and accounts by enumeration in exact fractions."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod

import numpy as np
from hypothesis import strategies as st

import privacygames as pg
from privacygames.arrays import IntArray
from privacygames.composition import DominatingPair

UNITS = 16
"""Small weights sum to this before they are scaled to 2^62."""


@st.composite
def rows(draw: st.DrawFn, outputs: int) -> list[int]:
    """Weights that sum to UNITS, zeros included."""
    cuts = sorted(draw(st.lists(st.integers(0, UNITS), min_size=outputs - 1, max_size=outputs - 1)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, UNITS], strict=True)]


@st.composite
def pairs(draw: st.DrawFn, outputs: int = 3) -> DominatingPair:
    """Pairs of small weights, so that equal likelihood ratios and infinite losses occur."""
    return DominatingPair(np.array(draw(rows(outputs))), np.array(draw(rows(outputs))), 4)


@st.composite
def close_pairs(draw: st.DrawFn, outputs: int = 4) -> DominatingPair:
    """Pairs without infinite losses, of weights with all their digits."""
    first, second = ([draw(st.integers(2**40, 2**44)) for _ in range(outputs)] for _ in range(2))
    total = 2**50
    return DominatingPair(
        np.array([*first, total - sum(first)]), np.array([*second, total - sum(second)]), total.bit_length() - 1
    )


def mechanism_of(weights: Sequence[Sequence[int]], space: pg.Space | None = None) -> pg.Mechanism:
    """A mechanism with these small weights; secrets are 1 apart from their neighbours."""
    table: IntArray = np.array(weights, dtype=np.int64) * (2**62 // sum(weights[0]))
    secrets = pg.Numbers(range(len(weights))) if space is None else space
    outputs = pg.Categories([f"o{each}" for each in range(table.shape[1])])
    problem = pg.Problem(pg.Prior.uniform(secrets), np.zeros(table.T.shape), observables=outputs)
    return pg.Mechanism.from_weights(problem, table)


def divergence(first: Sequence[int], second: Sequence[int], ratio: Fraction) -> Fraction:
    """Σ max(P − ratio·Q, 0) of two rows of equal sum."""
    return sum((max(p - ratio * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0)) / sum(first)


def enumerated(releases: Sequence[tuple[Sequence[int], Sequence[int]]], ratio: Fraction) -> Fraction:
    """The same of the sequences of outputs of several releases, each of them enumerated; equal ones are counted."""
    sequences = {(1, 1): 1}
    for first, second in releases:
        longer: dict[tuple[int, int], int] = {}
        for (p, q), count in sequences.items():
            for a, b in zip(first, second, strict=True):
                longer[p * int(a), q * int(b)] = longer.get((p * int(a), q * int(b)), 0) + count
        sequences = longer
    a, b = ratio.numerator, ratio.denominator
    total = sum(count * max(b * p - a * q, 0) for (p, q), count in sequences.items())
    return Fraction(total, b * prod(sum(map(int, first)) for first, _ in releases))


def both_rows(pair: DominatingPair) -> tuple[list[int], list[int]]:
    """The weights of a pair as Python's integers."""
    return pair.first.tolist(), pair.second.tolist()


def worst_policy(
    choices: Sequence[DominatingPair], fits: Callable[[tuple[int, ...]], bool], ratio: Fraction, releases: int
) -> Fraction:
    """The largest divergence of any policy that chooses each mechanism, or stops, from all outputs so far.

    Args:
        choices: what may be chosen.
        fits: whether a filter lets these choices pass.
        ratio: of the divergence.
        releases: at most this many.
    """
    shares = [
        [(Fraction(p, 2**c.bits), Fraction(q, 2**c.bits)) for p, q in zip(*both_rows(c), strict=True)] for c in choices
    ]

    def worst(chosen: tuple[int, ...], p: Fraction, q: Fraction) -> Fraction:
        largest = max(p - ratio * q, Fraction(0))
        for choice, outputs in enumerate(shares if len(chosen) < releases else []):
            if fits((*chosen, choice)):
                divergence = sum((worst((*chosen, choice), p * a, q * b) for a, b in outputs), Fraction(0))
                largest = max(largest, divergence)
        return largest

    return worst((), Fraction(1), Fraction(1))

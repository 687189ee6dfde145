"""Hyper-distributions: the posteriors that a mechanism produces, and how likely each is."""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from privacygames.leakage.channel import Belief, Channel, Disclosing, joint_weights
from privacygames.spaces import Label, Space


@dataclass(frozen=True)
class Hyper:
    """A distribution over posteriors, reduced: outputs with the same posterior count as one.

    All leakage of a mechanism under a prior is in its hyper-distribution; the outputs' names are not.

    Attributes:
        secrets: what the posteriors are about.
        outer: the probability of each posterior, the likeliest first.
        inners: the posteriors, a tuple with a probability for each secret.
        outputs: the outputs that lead to each posterior.

    >>> illnesses = pg.Categories(["flu", "cold"])
    >>> channel = pg.leakage.Channel(illnesses, pg.Categories("abc"), [[0.5, 0.25, 0.25], [0, 0.5, 0.5]])
    >>> hyper = pg.leakage.hyper(channel, pg.Prior.uniform(illnesses))
    >>> hyper.outer, hyper.outputs
    ((Fraction(3, 4), Fraction(1, 4)), (('b', 'c'), ('a',)))
    >>> hyper.inners[0]
    (Fraction(1, 3), Fraction(2, 3))
    """

    secrets: Space
    outer: tuple[Fraction, ...]
    inners: tuple[tuple[Fraction, ...], ...]
    outputs: tuple[tuple[Label, ...], ...]


def hyper(mechanism: Disclosing, prior: Belief) -> Hyper:
    """The reduced hyper-distribution [π▷C]; outputs that never occur are left out.

    Posteriors are compared exactly: weights that were rounded tell posteriors apart that were meant to be equal.

    Args:
        mechanism: a mechanism or a channel.
        prior: the adversary's belief.

    >>> problem = pg.Problem(pg.Prior.from_counts(pg.Categories("abc"), [2, 1, 1]))
    >>> pg.leakage.hyper(pg.baselines.constant(problem), problem.prior).inners
    ((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),)
    """
    channel = Channel.of(mechanism)
    columns, scale = joint_weights(channel, prior)
    masses: dict[tuple[int, ...], int] = {}
    outputs: dict[tuple[int, ...], list[Label]] = {}
    for column, label in zip(columns.T.tolist(), channel.outputs.labels, strict=True):
        common = gcd(*column)
        if common:
            direction = tuple(number // common for number in column)
            masses[direction] = masses.get(direction, 0) + sum(column)
            outputs.setdefault(direction, []).append(label)
    ordered = sorted(masses, key=lambda direction: -masses[direction])
    return Hyper(
        secrets=channel.secrets,
        outer=tuple(Fraction(masses[direction], scale) for direction in ordered),
        inners=tuple(tuple(Fraction(number, sum(direction)) for number in direction) for direction in ordered),
        outputs=tuple(tuple(outputs[direction]) for direction in ordered),
    )

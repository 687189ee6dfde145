"""Proofs of refinement and of its absence, and their verification in fractions: imports no solver."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacygames.errors import GuaranteeViolated
from privacygames.leakage.channel import Channel, Integers
from privacygames.leakage.composition import cascade
from privacygames.leakage.gains import MatrixGain
from privacygames.leakage.measures import posterior_vulnerability


@dataclass(frozen=True)
class Refinement:
    """Whether one channel is at least as safe as another against every adversary, with the proof.

    Attributes:
        channel: A, the channel that is refined or not.
        refined: B, the channel that is asked about.
        holds: whether B refines A: no adversary gains more from B than from A, whatever their prior and gain.
        post_processing: R with A R = B, up to ``excess``, where it holds; else None.
        excess: where it holds, the largest total variation between a row of A R and that of B: 0 is a proof without
            rounding, and otherwise no gain in [0, 1] has more than this much more vulnerability from B, for any prior.
        counterexample: where it does not hold, a gain in [0, 1] that has more vulnerability from B than from A, under
            the uniform prior; else None.
        advantage: how much more.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    >>> answer = pg.leakage.refinement(coin, pg.baselines.identity(problem))
    >>> answer.holds, answer.advantage
    (False, Fraction(1, 4))
    >>> answer.verify()
    """

    channel: Channel
    refined: Channel
    holds: bool
    post_processing: Channel | None
    excess: Fraction | None
    counterexample: MatrixGain | None
    advantage: Fraction | None

    def verify(self) -> None:
        """Check the proof in fractions, from the two channels and the proof alone.

        Raises:
            GuaranteeViolated: the proof does not show what the answer says.
        """
        proof, gain = self.post_processing, self.counterexample
        if (
            self.holds
            and proof is not None
            and self.excess == row_variation(cascade(self.channel, proof), self.refined)
        ):
            return
        if not self.holds and gain is not None and self.advantage is not None and self.advantage > 0:
            bounded = all(0 <= value <= 1 for row in gain.fractions for value in row)
            if bounded and self.advantage == gain_advantage(self.channel, self.refined, gain):
                return
        raise GuaranteeViolated("the proof does not show whether one mechanism refines the other: do not rely on it")

    def __repr__(self) -> str:
        if self.holds:
            return f"Refinement(holds, excess {float(self.excess or 0):.3g})"
        return f"Refinement(does not hold, advantage {float(self.advantage or 0):.3g})"


def row_variation(channel: Channel, other: Channel) -> Fraction:
    """The largest total variation between the rows of two channels with the same outputs."""
    difference: Integers = channel.integers * other.denominator - other.integers * channel.denominator
    total = int(np.abs(difference).sum(axis=1).max())
    return Fraction(total, 2 * channel.denominator * other.denominator)


def gain_advantage(channel: Channel, refined: Channel, gain: MatrixGain) -> Fraction:
    """How much more vulnerability a gain has from one channel than from the other, under the uniform prior."""
    uniform = [Fraction(1, len(channel.secrets))] * len(channel.secrets)
    return posterior_vulnerability.exact(refined, uniform, gain) - posterior_vulnerability.exact(channel, uniform, gain)

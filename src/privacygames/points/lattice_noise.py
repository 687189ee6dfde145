r"""Planar noise with a plateau on a fine lattice, drawn exactly: no floating-point number decides an output.

The noise z, in steps of the lattice, has the probability

.. math:: p(z) \propto e^{-E(z)}, \qquad E(z) = a \max(0, \lfloor |z| \rfloor_{32} - R),

where the distance is rounded down to 2⁻³² of a step. With a at most :math:`(1 - 2^{-31})` of ε times the step, two
points of the lattice at the distance d ≥ 1 steps have exponents that differ by at most
:math:`a (d + 2^{-32}) \le ε\,d`: ε holds between any two points of the lattice, in exact arithmetic, wherever the
output lies. Draws are accepted from a product of two distributions whose exponents are at most E, with the exact
Bernoulli trials of Canonne, Kamath and Steinke (2020).
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np

from privacygames.arrays import IntArray

SLOPE_BITS, DISTANCE_BITS = 64, 32
"""Fractional bits of ε in a step, and of distances in steps."""

BITS = SLOPE_BITS + DISTANCE_BITS
"""Fractional bits of exponents."""

SLACK_BITS = 31
"""The slope is smaller than ε by this power of two, relative to it, at least: room for distances that were rounded."""

DIAGONAL = Fraction(7071, 10_000)
"""Slope of the proposal along an axis, relative to that of the noise: below √½, so that their sum never exceeds it."""

WORD_BITS = 64

AT_ONCE = 64
"""Words that are fetched at once: several draws' worth."""

Words = Callable[[], int]
"""Uniform random integers of 64 bits."""


class RandomBits:
    """Uniform random bits, taken from words as they are needed.

    Args:
        words: where they come from.
    """

    def __init__(self, words: Words) -> None:
        self._words, self._pool, self._left = words, 0, 0

    def take(self, count: int) -> int:
        """A uniform integer of so many bits."""
        while self._left < count:
            self._pool |= self._words() << self._left
            self._left += WORD_BITS
        taken = self._pool & ((1 << count) - 1)
        self._pool >>= count
        self._left -= count
        return taken

    def below(self, bound: int) -> int:
        """A uniform integer from 0 to below a bound."""
        count = (bound - 1).bit_length()
        while (taken := self.take(count)) >= bound:
            pass
        return taken

    def survives(self, exponent: int) -> bool:
        """True with the probability exp(−exponent / 2^BITS), exactly."""
        one = 1 << BITS
        while exponent > one:
            if not self._survives_once(one):
                return False
            exponent -= one
        return self._survives_once(exponent)

    def _survives_once(self, exponent: int) -> bool:
        """The same for exponents up to 1: the length of a run of trials with 1, 1/2, 1/3, … of it is odd."""
        length = 1
        while exponent >> BITS or self.take(BITS) < exponent:
            if self.below(length):
                break
            length += 1
        return length % 2 == 1


def random_words(generator: np.random.Generator | None = None) -> Words:
    """Random words from the operating system, or from a seeded generator for experiments."""
    random_bytes = os.urandom if generator is None else generator.bytes
    return _words(random_bytes).__next__


def _words(random_bytes: Callable[[int], bytes]) -> Iterator[int]:
    while True:
        yield from np.frombuffer(random_bytes(AT_ONCE * WORD_BITS // 8), dtype=np.uint64).tolist()


@dataclass(frozen=True)
class LatticeNoise:
    """Noise of integer steps along two axes that guarantees ε between any two points of a lattice.

    >>> from fractions import Fraction
    >>> noise = pg.points.LatticeNoise(Fraction(10), plateau=Fraction(1, 4), step=Fraction(1, 1000))
    >>> noise.sample(3).shape, noise.keeps_epsilon(Fraction(10)), noise.keeps_epsilon(Fraction(9))
    ((3, 2), True, False)

    Attributes:
        epsilon: ε per unit of distance.
        plateau: the radius up to which all steps are equally likely, in the unit of distances.
        step: of the lattice, in the unit of distances.
    """

    epsilon: Fraction
    plateau: Fraction
    step: Fraction

    @cached_property
    def slope(self) -> int:
        """How fast exponents grow with the distance, as an integer over 2^SLOPE_BITS for each step."""
        exact = int(self.epsilon * self.step * 2**SLOPE_BITS)
        return exact - (exact >> (SLACK_BITS - 1)) - 1  # twice the room, so that an ε in decimals is kept, too

    def keeps_epsilon(self, epsilon: Fraction) -> bool:
        """Whether the proof covers an ε, per unit of distance between any two points of the lattice."""
        exact = epsilon * self.step * 2**SLOPE_BITS
        return bool(self.slope * 2**SLACK_BITS <= exact * (2**SLACK_BITS - 1))

    @cached_property
    def radius(self) -> int:
        """The radius of the plateau in steps, as an integer over 2^DISTANCE_BITS."""
        return int(self.plateau / self.step * 2**DISTANCE_BITS)

    def exponent(self, column: int, row: int) -> int:
        """−ln p(z), but for a constant, as an integer over 2^BITS."""
        distance = isqrt((column * column + row * row) << (2 * DISTANCE_BITS))
        return self.slope * max(0, distance - self.radius)

    def draw(self, bits: RandomBits) -> tuple[int, int]:
        """Random steps along both axes."""
        while True:
            (column, beyond), (row, above) = self._propose(bits), self._propose(bits)
            exponent = self.exponent(column, row) - self.axis_slope * (beyond + above)
            if exponent < 0:
                raise AssertionError("the proposal falls faster than the noise")
            if bits.survives(exponent):
                return column, row

    def sample(self, count: int, generator: np.random.Generator | None = None) -> IntArray:
        """Random steps, (count, 2), from the operating system or a seeded generator."""
        bits = RandomBits(random_words(generator))
        return np.array([self.draw(bits) for _ in range(count)], dtype=np.int64).reshape(count, 2)

    def _propose(self, bits: RandomBits) -> tuple[int, int]:
        """Steps along one axis, and how many of them lie beyond the plateau: p ∝ exp(−slope · those beyond).

        The first steps beyond are drawn in blocks of about 1/slope, and accepted with the probability of the place in
        the block; the number of further blocks is geometric. Steps of the plateau survive as no further block does.
        """
        middle, block = 2 * self.reach + 1, self._block
        while True:
            drawn = bits.below(middle + 2 * block)
            if drawn < middle:
                if not bits.survives(self.axis_slope * block):
                    return drawn - self.reach, 0
                continue
            side, place = divmod(drawn - middle, block)
            beyond = place + 1
            if bits.survives(self.axis_slope * beyond):
                while bits.survives(self.axis_slope * block):
                    beyond += block
                return (self.reach + beyond) * (1 if side else -1), beyond

    @cached_property
    def axis_slope(self) -> int:
        """How fast the exponents of a proposal grow along an axis, as an integer over 2^BITS for each step."""
        return int(self.slope * DIAGONAL) << DISTANCE_BITS

    @cached_property
    def reach(self) -> int:
        """The radius of the plateau in whole steps, rounded up."""
        return -(-self.radius >> DISTANCE_BITS)

    @cached_property
    def _block(self) -> int:
        return (1 << BITS) // self.axis_slope + 1

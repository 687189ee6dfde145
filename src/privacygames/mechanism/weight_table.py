"""Integer weights over a space of secrets and one of outputs: their probabilities, and exact sampling by label."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.mechanism.protocol import RandomWords
from privacygames.mechanism.sampling import Sampler
from privacygames.spaces import Label, Space, list_labels

Many = Sequence[Any] | NDArray[Any] | Iterable[Any]
"""Several labels: a list, a tuple, an array, a column of a table."""


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Exact weights and what their rows and columns mean.

    Attributes:
        weights: (secrets, observables) integers whose rows sum to ``2**bits``.
        bits: that power.
        secrets: what the rows mean.
        observables: what the columns mean.
    """

    weights: IntArray
    bits: int
    secrets: Space
    observables: Space

    @cached_property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats, each within a relative 2^-53."""
        return freeze(np.ldexp(self.weights.astype(np.float64), -self.bits))

    @cached_property
    def sampler(self) -> Sampler:
        """The sampler with randomness from the operating system."""
        return Sampler(self.weights, self.bits)

    def sample(
        self, secret: Label | set[str] | Many, generator: "np.random.Generator | None" = None
    ) -> Label | list[Label]:
        """One output for a secret, or a list of outputs for several secrets."""
        several = list_labels(secret)
        sampler = self.sampler if generator is None else self.sampler.using(generator)
        drawn = sampler.draw(self.secrets.indices([secret] if several is None else several))
        outputs: list[Label] = self._output_labels[drawn].tolist()
        return outputs[0] if several is None else outputs

    def row_sampler(self) -> "WeightRowSampler":
        """The sampler for the rows of a batch, all of which are drawn from these weights."""
        return WeightRowSampler(self.sampler)

    @cached_property
    def _output_labels(self) -> NDArray[np.object_]:
        labels = np.empty(len(self.observables), dtype=object)
        labels[:] = self.observables.labels
        return labels


@dataclass(frozen=True)
class WeightRowSampler:
    """Draws the outputs of a batch of rows from one table of weights."""

    sampler: Sampler

    def tweak(self, secrets: IntArray) -> IntArray:
        """The secret: all rows have the same mechanism."""
        return secrets

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        return self.sampler.draw_with(secrets, random_words(0))

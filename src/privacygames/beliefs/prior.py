"""The prior: a belief over secrets, π in the paper (eq:prior:pdf)."""

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import (
    SMALLEST_POSITIVE,
    FloatArray,
    as_floats,
    content_hash,
    freeze_floats,
    require_nonnegative,
)
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Label, Space, count_visits
from privacygames.validation import is_integer, is_number, require_instance

SUM_TOLERANCE = 1e-9


class Prior(Value):
    """A probability for every secret of a space: the adversary's belief before they see an output.

    Args:
        space: the secrets.
        weights: one probability per secret, in the order of the space's labels, summing to 1. Counts go to
            :meth:`from_visits` or :meth:`from_counts`, which normalise.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> prior = pg.Prior(ages, [0.5, 0.25, 0.25])
    >>> prior[20], prior.entropy()
    (0.5, 1.5)
    """

    space: Space
    probabilities: FloatArray

    def __init__(self, space: Space, weights: ArrayLike) -> None:
        require_instance(space, Space, "what a Prior is over")
        plain = np.asarray(weights)
        if plain.dtype.kind == "f":
            plain = np.where((plain > 0) & (plain < SMALLEST_POSITIVE), 0.0, plain)  # as good as impossible
        given = require_nonnegative(plain, what="the prior", shape=(len(space),), meaning="one probability per secret")
        total = float(given.sum())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InvalidProblem(
                f"the prior sums to {total:.9g}, not 1; pass counts to Prior.from_counts to have them normalised"
            )
        # Already as near to one as floats add up: kept bit for bit, so that saving and loading changes nothing.
        self._fill(space=space, probabilities=given if abs(total - 1.0) <= 1e-12 else freeze_floats(given / total))

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.space, content_hash(self.probabilities)

    @classmethod
    def uniform(cls, space: Space) -> "Prior":
        """The uniform prior: every secret is equally likely.

        >>> pg.Prior.uniform(pg.Categories("abcd"))["c"]
        0.25
        """
        return cls(space, np.full(len(space), 1.0 / len(space)))

    @classmethod
    def from_counts(cls, space: Space, counts: ArrayLike, *, smoothing: float = 0.0) -> "Prior":
        """Normalised counts, one per secret in the order of the space's labels.

        Args:
            space: the secrets.
            counts: how often each was seen; need not be whole.
            smoothing: added to every count first (0 is maximum likelihood, as in the paper).

        >>> pg.Prior.from_counts(pg.Categories("abc"), [6, 3, 1])["a"]
        0.6
        """
        seen = require_nonnegative(counts, what="the counts", shape=(len(space),), meaning="one count per secret")
        if not (is_number(smoothing) and 0 <= smoothing < np.inf):
            raise InvalidProblem(f"smoothing is {repr(smoothing)[:40]}; it must be a number, 0 or more")
        total = float((seen + smoothing).sum())
        if not 0 < total < np.inf:
            raise InvalidProblem("there are no visits to estimate a prior from; give some, or smoothing > 0")
        return cls(space, (seen + smoothing) / total)

    @classmethod
    def from_visits(
        cls, space: Space, visits: Iterable[Label] | Mapping[Label, float], *, smoothing: float = 0.0
    ) -> "Prior":
        """The prior estimated from visits.

        Args:
            space: the secrets.
            visits: labels one by one (a list, an array, a column of a table); or counts by label (a dict, a Counter,
                what pandas' ``value_counts()`` returns). Anything ambiguous is refused.
            smoothing: as in :meth:`from_counts`.

        >>> pg.Prior.from_visits(pg.Categories("abc"), ["a", "b", "a", "a"])["a"]
        0.75
        """
        positions, times = count_visits(space, visits)
        counts = np.zeros(len(space))
        np.add.at(counts, positions, times)
        return cls.from_counts(space, counts, smoothing=smoothing)

    @classmethod
    def bootstrap(
        cls,
        space: Space,
        visits: Iterable[Label] | Mapping[Label, float],
        times: int,
        *,
        smoothing: float = 0.0,
        generator: "np.random.Generator | None" = None,
    ) -> list["Prior"]:
        """Priors estimated from bootstrap resamples of the visits.

        Each is estimated from as many visits, drawn with replacement. A guarantee against all of them holds for every
        mixture of them, and so does not depend on one estimate (docs/how-to/against-whom.md).

        Args:
            space: the secrets.
            visits: as in :meth:`from_visits`, whole numbers of them.
            times: number of priors.
            smoothing: as in :meth:`from_counts`.
            generator: for a reproducible draw.

        >>> priors = pg.Prior.bootstrap(pg.Categories("ab"), {"a": 60, "b": 40}, times=5)
        >>> len(priors)
        5
        """
        if not is_integer(times):
            raise InvalidProblem(f"times is {repr(times)[:40]}; it must be a whole number, 1 or more")
        positions, seen = count_visits(space, visits)
        counts = np.zeros(len(space))
        np.add.at(counts, positions, seen)
        total = float(counts.sum())
        if not 0 < total < 2**53 or (counts != np.round(counts)).any():
            raise InvalidProblem("resampling draws visits: there must be some, and their counts must be whole numbers")
        draws = (np.random.default_rng() if generator is None else generator).multinomial(
            int(total), counts / total, times
        )
        return [cls.from_counts(space, each, smoothing=smoothing) for each in draws]

    def sharpen(self, strength: float, *, places: int = 2) -> "Prior":
        """The belief of an adversary with more evidence on likely secrets, such as home and work (section 8.4).

        This is Bayes' rule with evidence that is ``strength`` times as likely if the secret is one of the ``places``
        most likely ones. These gain probability and keep their order, so that the new belief majorises the old one, and
        the entropy does not increase.

        Args:
            strength: likelihood ratio of the evidence; 1 is no evidence.
            places: number of the most likely secrets that the evidence is about.

        >>> pg.Prior(pg.Categories("abc"), [0.5, 0.25, 0.25]).sharpen(4.0, places=1)["a"]
        0.8
        """
        if not (is_number(strength) and 1 <= strength < np.inf):
            raise InvalidProblem(f"strength is {repr(strength)[:40]}; it must be a number, 1 or more")
        if not is_integer(places):
            raise InvalidProblem(f"places is {repr(places)[:40]}; it must be a whole number, 1 or more")
        likelihood = np.ones(len(self.space))
        likelihood[np.argsort(-self.probabilities, kind="stable")[:places]] = strength
        return self.posterior(likelihood)

    def posterior(self, likelihood: ArrayLike) -> "Prior":
        """The belief after an output, by Bayes' rule.

        Args:
            likelihood: p(o|s) for every secret.

        Raises:
            InvalidProblem: the observation was impossible, since p(o|s) is 0 for every secret that the belief allows.

        >>> round(pg.Prior.uniform(pg.Categories("ab")).posterior([0.9, 0.1])["a"], 6)
        0.9
        """
        values = as_floats(likelihood, "the likelihood")
        require_nonnegative(
            _scaled(values), what="the likelihood", shape=(len(self.space),), meaning="p(o|s) per secret"
        )
        joint = self.probabilities * _scaled(np.where(self.probabilities > 0, values, 0.0))
        total = float(joint.sum())
        if not total > 0:
            raise InvalidProblem(
                "the observation is impossible under this belief: p(o|s) is 0 for every secret that it allows, so "
                "there is no posterior"
            )
        return Prior(self.space, joint / total)

    def entropy(self) -> float:
        """Shannon entropy in bits: 0 if the secret is known, log₂ n for the uniform prior."""
        return entropy(self.probabilities)

    def __getitem__(self, label: Label) -> float:
        return float(self.probabilities[self.space.index(label)])

    def __repr__(self) -> str:
        possible = int((self.probabilities > 0).sum())
        return f"Prior({possible} of {len(self.space)} secrets possible, {self.entropy():.3g} bits)"


def _scaled(likelihood: FloatArray) -> FloatArray:
    """A likelihood divided by its largest entry; entries negligible beside it become 0."""
    scale = float(likelihood.max(initial=0.0))
    scaled = likelihood / scale if 0 < scale < np.inf else likelihood
    return np.where((scaled > 0) & (scaled < SMALLEST_POSITIVE), 0.0, scaled)


def entropy(probabilities: FloatArray) -> float:
    """Shannon entropy in bits of probabilities that sum to one, with 0·log 0 = 0."""
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log2(positive)).sum()) + 0.0


def conditional_entropy(joint: FloatArray) -> float:
    """Expected entropy, in bits, of the secret given the output, for joint probabilities (outputs, secrets)."""
    return entropy(joint.ravel()) - entropy(joint.sum(axis=1))


def information(prior: FloatArray, table: FloatArray) -> float:
    """Mutual information in bits, Σ π(s) p(o|s) log₂ p(o|s)/p(o): summed as ratios, so that little does not cancel.

    Args:
        prior: π(s), one per secret.
        table: p(o|s), (secrets, outputs).
    """
    chance = prior @ table
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0, np.log2(table / chance), 0.0)
    return max(float((prior[:, None] * table * np.where(np.isfinite(logs), logs, 0.0)).sum()), 0.0)

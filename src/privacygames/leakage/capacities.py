"""Capacities: the largest leakage over priors, or over gain functions, for a mechanism whatever its use."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log2, nextafter

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, SolveFailed, TooLarge
from privacygames.leakage.channel import Belief, Channel, Disclosing, Integers, joint_weights, prior_weights
from privacygames.leakage.gains import Gain, GainArgument, Tries, as_gain
from privacygames.leakage.measures import additive_leakage, multiplicative_leakage
from privacygames.leakage.rational import rational
from privacygames.programs import LinearProgram, best_prior_program, prior_capacity_program
from privacygames.solvers import Highs

MOST_ENTRIES = 5_000_000
"""Largest number of non-zeros of the program that bounds a capacity over priors: a minute, a gigabyte."""

MOST_SUBSETS = 2**14
"""Largest number of sets of secrets that are all tried: beyond it, the capacity is bounded like that of any gain."""

ROUNDING = 1e-9
"""Added to upper bounds from linear programs, relative to the largest gain: far more than rounding explains."""

RANDOM_STARTS = 20
"""Random priors that the search for a large leakage starts from: more of them rarely find more (10 × 10 channels)."""

MAX_ROUNDS = 50
"""Rounds of alternating between the best strategy and the worst prior: each leaks more; few are needed."""


@dataclass(frozen=True)
class Capacity:
    """Bounds on the largest leakage over all priors.

    Attributes:
        lower: the leakage for ``prior``.
        upper: a bound that no prior exceeds. It equals ``lower``, but for rounding, where the capacity is known.
        prior: the prior with the most leakage that was found.

    >>> problem = pg.Problem(pg.Prior.from_counts(pg.Categories(["yes", "no"]), [9, 1]))
    >>> capacity = pg.leakage.multiplicative_capacity(pg.baselines.identity(problem))
    >>> capacity.lower, capacity.upper, capacity.prior["yes"]
    (2.0, 2.0, 0.5)
    """

    lower: float
    upper: float
    prior: Prior


@rational
def bayes_capacity(mechanism: Disclosing, prior: Belief | None = None) -> Fraction:
    r"""The largest multiplicative leakage over all priors and non-negative gains: :math:`\sum_o \max_s p(o|s)`.

    The uniform prior and the identity gain attain it, so it is the multiplicative Bayes capacity, too; and every
    prior that allows all secrets attains it with some gain.

    Args:
        mechanism: a mechanism or a channel.
        prior: only the secrets that this prior allows count; by default all.

    >>> coin = pg.Mechanism.from_probabilities(
    ...     pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"]))), [[0.75, 0.25], [0.25, 0.75]]
    ... )
    >>> pg.leakage.bayes_capacity(coin)
    1.5
    """
    integers, denominator = _possible(mechanism, prior)
    return Fraction(int(integers.max(axis=0).sum()), denominator)


def min_capacity(mechanism: Disclosing) -> float:
    """The largest min-entropy leakage over all priors, in bits: log₂ of the Bayes capacity.

    >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Categories("abcd"))))
    >>> pg.leakage.min_capacity(mechanism)
    2.0
    """
    return log2(bayes_capacity.exact(mechanism))


@rational
def additive_gain_capacity(mechanism: Disclosing, prior: Belief) -> Fraction:
    """The largest additive leakage over gains that vary by at most 1 for each guess, for this prior.

    It is the expected total variation between the prior and the posterior.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> pg.leakage.additive_gain_capacity(pg.baselines.identity(problem), problem.prior)
    0.75
    """
    columns, scale = joint_weights(mechanism, prior)
    weights, total = prior_weights(prior, len(columns))
    expected = np.array(weights, dtype=object)[:, None] * columns.sum(axis=0)[None, :]
    return Fraction(int(np.abs(columns * total - expected).sum()), 2 * scale * total)


@rational
def additive_vulnerability_capacity(mechanism: Disclosing, prior: Belief | None = None) -> Fraction:
    r"""The largest additive leakage over gains whose vulnerability varies by at most 1, :math:`1-\sum_o \min_s p(o|s)`.

    Gains in [0, 1] are among them. Every prior that allows the same secrets has the same value.

    Args:
        mechanism: a mechanism or a channel.
        prior: only the secrets that this prior allows count; by default all.

    >>> coin = pg.Mechanism.from_probabilities(
    ...     pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"]))), [[0.75, 0.25], [0.25, 0.75]]
    ... )
    >>> pg.leakage.additive_vulnerability_capacity(coin)
    0.5
    """
    integers, denominator = _possible(mechanism, prior)
    return 1 - Fraction(int(integers.min(axis=0).sum()), denominator)


def multiplicative_capacity(mechanism: Disclosing, gain: GainArgument = "identity") -> Capacity:
    """Bounds on the largest multiplicative leakage over all priors, for one gain.

    For the identity it is the Bayes capacity, at the uniform prior. For another gain no closed form is known: the upper
    bound is that of a linear program, never above the Bayes capacity; the lower bound is attained.

    Args:
        mechanism: a mechanism or a channel.
        gain: a gain function without negative entries.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40])))
    >>> near = pg.leakage.multiplicative_capacity(pg.baselines.identity(problem), "absolute")
    >>> round(near.lower, 3), round(near.upper, 3)
    (2.0, 2.0)
    """
    channel = Channel.of(mechanism)
    named = as_gain(gain, channel.secrets)
    bound = bayes_capacity.exact(channel)
    if named == Tries(1):
        return Capacity(_down(bound), _up(bound), Prior.uniform(channel.secrets))
    gains = named.matrix(len(channel.secrets))
    if (gains < 0).any() or not gains.any():
        raise InvalidProblem("a factor of leakage needs a gain without negative entries, and some that is positive")
    upper, relaxed = _upper_bound(channel, gains, multiplicative=True)
    priors = _search(channel, named, relaxed, multiplicative=True)
    best = max(priors, key=lambda prior: multiplicative_leakage(channel, prior, named))
    return Capacity(_down(multiplicative_leakage.exact(channel, best, named)), min(upper, _up(bound)), best)


def additive_capacity(mechanism: Disclosing, gain: GainArgument = "identity") -> Capacity:
    """Bounds on the largest additive leakage over all priors, for one gain.

    For the identity a uniform prior on some secrets is the worst: up to fourteen secrets all of these are tried, and
    the capacity is exact. Otherwise (the problem is NP-hard) the upper bound is that of a linear program.

    Args:
        mechanism: a mechanism or a channel.
        gain: a gain function.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> capacity = pg.leakage.additive_capacity(pg.baselines.identity(problem))
    >>> capacity.lower, capacity.upper
    (0.75, 0.75)
    """
    channel = Channel.of(mechanism)
    named = as_gain(gain, channel.secrets)
    secrets = len(channel.secrets)
    if named == Tries(1) and 2**secrets <= MOST_SUBSETS:
        best = _best_subset(channel)
        leakage = additive_leakage.exact(channel, best)
        return Capacity(_down(leakage), _up(leakage), best)
    upper, relaxed = _upper_bound(channel, named.matrix(secrets), multiplicative=False)
    priors = _search(channel, named, relaxed, multiplicative=False)
    best = max(priors, key=lambda prior: additive_leakage(channel, prior, named))
    return Capacity(_down(additive_leakage.exact(channel, best, named)), upper, best)


def _possible(mechanism: Disclosing, prior: Belief | None) -> tuple[Integers, int]:
    """The rows of the secrets that a prior allows."""
    channel = Channel.of(mechanism)
    if prior is None:
        return channel.integers, channel.denominator
    joint_weights(channel, prior)  # the prior is of these secrets
    weights, _ = prior_weights(prior, len(channel.secrets))
    return channel.integers[[weight > 0 for weight in weights]], channel.denominator


def _best_subset(channel: Channel) -> Prior:
    """The uniform prior on the set of secrets with the most additive Bayes leakage, of all sets."""
    table = channel.probabilities
    maxima = np.zeros((1, table.shape[1]))
    members = np.zeros((1, 0), dtype=bool)
    for row in table:  # sets with and without each secret in turn
        without, with_it = np.zeros((len(members), 1), dtype=bool), np.ones((len(members), 1), dtype=bool)
        members = np.vstack([np.hstack([members, without]), np.hstack([members, with_it])])
        maxima = np.vstack([maxima, np.maximum(maxima, row)])
    sizes = np.maximum(members.sum(axis=1), 1)
    leakages = np.where(members.any(axis=1), (maxima.sum(axis=1) - 1) / sizes, -inf)
    best = members[leakages.argmax()]
    return Prior(channel.secrets, best / best.sum())


def _search(channel: Channel, gain: Gain, relaxed: FloatArray, *, multiplicative: bool) -> list[Prior]:
    """Priors that leak much, by alternating between the best strategy for a prior and the worst prior for it.

    Args:
        channel: the channel.
        gain: the gain function.
        relaxed: the prior of the program that bounds the capacity, the first of the starts.
        multiplicative: whether the ratio or the difference counts.
    """
    table = channel.probabilities
    gains = gain.matrix(len(table))
    ends = []
    for start in _starts(relaxed):
        prior, leakage = start, -inf
        for _ in range(MAX_ROUNDS):
            strategy = (table * gain.choose(table * prior[:, None]).T).sum(axis=1)
            program = best_prior_program(gains, strategy, multiplicative=multiplicative)
            solution = Highs("simplex").solve_program(program)
            value = -float(program.objective @ solution.values)
            weights = np.maximum(solution.block("prior"), 0.0)
            if value <= leakage + ROUNDING or not weights.any():
                break
            prior, leakage = weights / weights.sum(), value
        ends.append(np.where(prior > 1e-15, prior, 0.0))
    priors = [Prior(channel.secrets, end / end.sum()) for end in ends]
    if multiplicative:  # a prior that allows nothing to be gained has no factor
        priors = [prior for prior in priors if float((gains @ prior.probabilities).max()) > 0]
    return priors


def _starts(relaxed: FloatArray) -> Iterator[FloatArray]:
    """The priors that the search starts from: a relaxation's, the uniform one, and some drawn with a fixed seed."""
    secrets = len(relaxed)
    yield relaxed / relaxed.sum() if relaxed.sum() > 0 else np.full(secrets, 1.0 / secrets)
    yield np.full(secrets, 1.0 / secrets)
    generator = np.random.default_rng(0)
    for _ in range(RANDOM_STARTS):
        yield generator.dirichlet(np.ones(secrets))


def _upper_bound(channel: Channel, gains: FloatArray, *, multiplicative: bool) -> tuple[float, FloatArray]:
    """What no prior exceeds, by weak duality with a margin for rounding, and the prior of the relaxation.

    The bound holds whatever the solver's accuracy.
    """
    (secrets, outputs), guesses = channel.probabilities.shape, len(gains)
    if secrets * outputs * guesses**2 > MOST_ENTRIES:
        raise TooLarge(
            f"bounding a capacity of {secrets} secrets, {outputs} outputs and {guesses} guesses takes a program of "
            f"{secrets * outputs * guesses**2} entries; at most {MOST_ENTRIES} are allowed: merge secrets or guesses"
        )
    program = prior_capacity_program(channel.probabilities, gains, multiplicative=multiplicative)
    solution = Highs("simplex").solve_program(program)
    largest = float(np.abs(gains).max())
    scale = 1.0 if multiplicative else largest
    bound = -solution.bound(_boxes(program, gains, multiplicative=multiplicative))
    if not bound < inf:
        raise SolveFailed("no finite bound on this capacity was proved")
    return bound + ROUNDING * max(scale, abs(bound)), np.maximum(solution.block("prior"), 0.0)


def _boxes(program: LinearProgram, gains: FloatArray, *, multiplicative: bool) -> dict[str, tuple[float, float]]:
    """The least and greatest value of each block of variables at an optimum."""
    largest = float(np.abs(gains).max())
    best = gains.max(axis=0)
    mass = 1.0 / float(best[best > 0].min()) if multiplicative else 1.0
    value = 1.0 if multiplicative else largest
    boxes = {"joint": (0.0, mass), "share": (-value, value), "prior": (0.0, mass), "value": (-value, value)}
    return {name: boxes[name] for name in program.columns}


def _down(value: Fraction) -> float:
    """A float that is no larger."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)


def _up(value: Fraction) -> float:
    """A float that is no smaller."""
    return -_down(-value)

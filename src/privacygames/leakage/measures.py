"""Vulnerability and leakage of a mechanism under one prior: what an adversary gains, before and after an output."""

from fractions import Fraction
from math import log2

import numpy as np

from privacygames.beliefs import Prior, information
from privacygames.errors import InvalidProblem
from privacygames.leakage.channel import Belief, Channel, Disclosing, Integers, divide, joint_weights, prior_weights
from privacygames.leakage.gains import GainArgument, as_gain
from privacygames.leakage.rational import rational
from privacygames.validation import as_ordered_list


@rational
def prior_vulnerability(prior: Belief, gain: GainArgument = "identity") -> Fraction:
    r"""The expected gain of the best guess before any output, :math:`V_g(π) = \max_w \sum_s π(s)\,g(w,s)`.

    Args:
        prior: the adversary's belief.
        gain: the gain function; by default the identity, so that the value is the probability of a right guess.

    >>> prior = pg.Prior(pg.Categories(["flu", "cold", "none"]), [0.5, 0.25, 0.25])
    >>> pg.leakage.prior_vulnerability(prior), pg.leakage.prior_vulnerability.exact(prior)
    (0.5, Fraction(1, 2))
    """
    weights, total = prior_weights(prior, _size(prior))
    columns: Integers = np.array(weights, dtype=object)[:, None]
    space = prior.space if isinstance(prior, Prior) else None
    return as_gain(gain, space).best(columns, total) / total


@rational
def posterior_vulnerability(mechanism: Disclosing, prior: Belief, gain: GainArgument = "identity") -> Fraction:
    r"""The expected gain of the best guess after an output, :math:`\sum_o \max_w \sum_s π(s)\,p(o|s)\,g(w,s)`.

    Args:
        mechanism: a mechanism or a channel.
        prior: the adversary's belief.
        gain: the gain function.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [2, 1, 1]))
    >>> pg.leakage.posterior_vulnerability(pg.baselines.identity(problem), problem.prior)
    1.0
    """
    columns, scale = joint_weights(mechanism, prior)
    return as_gain(gain, Channel.of(mechanism).secrets).best(columns, scale) / scale


@rational
def multiplicative_leakage(mechanism: Disclosing, prior: Belief, gain: GainArgument = "identity") -> Fraction:
    """By what factor an output raises the adversary's gain: posterior over prior vulnerability.

    Args:
        mechanism: a mechanism or a channel.
        prior: the adversary's belief.
        gain: the gain function.

    Raises:
        InvalidProblem: the prior vulnerability is not positive, so that there is no ratio.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> pg.leakage.multiplicative_leakage(pg.baselines.identity(problem), problem.prior)
    4.0
    """
    named = as_gain(gain, Channel.of(mechanism).secrets)
    before = prior_vulnerability.exact(prior, named)
    if before <= 0:
        raise InvalidProblem("the adversary gains nothing before an output, so no factor tells what they gain by it")
    return posterior_vulnerability.exact(mechanism, prior, named) / before


@rational
def additive_leakage(mechanism: Disclosing, prior: Belief, gain: GainArgument = "identity") -> Fraction:
    """By how much an output raises the adversary's gain: posterior minus prior vulnerability.

    Args:
        mechanism: a mechanism or a channel.
        prior: the adversary's belief.
        gain: the gain function.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> pg.leakage.additive_leakage(pg.baselines.identity(problem), problem.prior)
    0.75
    """
    named = as_gain(gain, Channel.of(mechanism).secrets)
    return posterior_vulnerability.exact(mechanism, prior, named) - prior_vulnerability.exact(prior, named)


def min_entropy_leakage(mechanism: Disclosing, prior: Belief) -> float:
    """By how much an output lowers the min-entropy of the secret, in bits: log₂ of the multiplicative Bayes leakage.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> pg.leakage.min_entropy_leakage(pg.baselines.identity(problem), problem.prior)
    2.0
    """
    return log2(multiplicative_leakage.exact(mechanism, prior))


def shannon_leakage(mechanism: Disclosing, prior: Belief) -> float:
    """By how much an output lowers the Shannon entropy of the secret, in bits: mutual information.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    >>> pg.leakage.shannon_leakage(pg.baselines.identity(problem), problem.prior)
    2.0
    """
    channel = Channel.of(mechanism)
    joint_weights(channel, prior)  # the prior is of these secrets
    weights, total = prior_weights(prior, len(channel.secrets))
    return information(divide(np.array([weights], dtype=object), total)[0], channel.probabilities)


@rational
def guessing_entropy(prior: Belief) -> Fraction:
    """Expected number of guesses, one after the other, until the adversary names the secret.

    >>> prior = pg.Prior(pg.Categories(["flu", "cold", "none"]), [0.5, 0.25, 0.25])
    >>> pg.leakage.guessing_entropy(prior)
    1.75
    """
    weights, total = prior_weights(prior, _size(prior))
    return Fraction(_guesses(weights), total)


@rational
def posterior_guessing_entropy(mechanism: Disclosing, prior: Belief) -> Fraction:
    """Expected number of guesses that the adversary needs after an output.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    >>> mechanism = pg.baselines.constant(problem)
    >>> pg.leakage.posterior_guessing_entropy(mechanism, problem.prior)
    2.0
    """
    columns, scale = joint_weights(mechanism, prior)
    return Fraction(sum(_guesses(tuple(column)) for column in columns.T), scale)


def _guesses(weights: tuple[int, ...]) -> int:
    return sum(place * weight for place, weight in enumerate(sorted(weights, reverse=True), start=1))


def _size(prior: Belief) -> int:
    return len(prior.space) if isinstance(prior, Prior) else len(as_ordered_list(prior, "the prior"))

"""Compositions of mechanisms: one after another, both at once, and one of two by a choice that everybody sees."""

import numpy as np

from privacygames.errors import Field, InvalidProblem
from privacygames.leakage.channel import Channel, Disclosing, Number, as_fraction
from privacygames.spaces import Categories, Product, label_text


def cascade(mechanism: Disclosing, post_processing: Disclosing) -> Channel:
    """A mechanism, whose output alone is the input of another: what only the last output tells.

    Args:
        mechanism: the first.
        post_processing: the second; its secrets are the outputs of the first.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    >>> pg.leakage.cascade(coin, coin).probabilities[0].tolist()
    [0.625, 0.375]
    """
    first, second = Channel.of(mechanism), Channel.of(post_processing)
    if second.secrets != first.outputs:
        raise InvalidProblem(
            f"the second mechanism takes {second.secrets!r}, but the first gives {first.outputs!r}: these must be equal"
        )
    denominator = first.denominator * second.denominator
    return Channel.from_integers(first.secrets, second.outputs, first.integers @ second.integers, denominator)


def parallel(first: Disclosing, second: Disclosing) -> Channel:
    """Both outputs for the same secret, drawn independently: what two releases tell together.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    >>> twice = pg.leakage.parallel(coin, coin)
    >>> twice.outputs.labels[1], twice.probabilities[0].tolist()
    ('yes | no', [0.5625, 0.1875, 0.1875, 0.0625])
    """
    one, other = _same_secrets(first, second)
    outputs = Product([one.outputs, other.outputs])
    pairs = (one.integers[:, :, None] * other.integers[:, None, :]).reshape(len(one.secrets), -1)
    return Channel.from_integers(one.secrets, outputs, pairs, one.denominator * other.denominator)


def visible_choice(probability: Number, first: Disclosing, second: Disclosing) -> Channel:
    """One of two mechanisms, by a coin that does not depend on the secret; the adversary sees which one.

    Its posterior vulnerability is the same mixture of the two, for every gain and prior.

    Args:
        probability: the probability of the first.
        first: a mechanism or a channel.
        second: another of the same secrets.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> either = pg.leakage.visible_choice(0.25, pg.baselines.identity(problem), pg.baselines.constant(problem))
    >>> either.outputs.labels
    ('first | yes', 'first | no', 'second | yes', 'second | no')
    >>> pg.leakage.posterior_vulnerability(either, problem.prior)
    0.625
    """
    one, other = _same_secrets(first, second)
    share = as_fraction(probability, "the probability of a choice")
    if not 0 <= share <= 1:
        raise InvalidProblem(Field("probability"), " of a choice must be between 0 and 1")
    outputs = Categories(
        f"{name} | {label_text(label)}"
        for name, channel in (("first", one), ("second", other))
        for label in channel.outputs.labels
    )
    denominator = share.denominator * one.denominator * other.denominator
    columns = [
        one.integers * (share.numerator * other.denominator),
        other.integers * ((share.denominator - share.numerator) * one.denominator),
    ]
    return Channel.from_integers(one.secrets, outputs, np.hstack(columns), denominator)


def _same_secrets(first: Disclosing, second: Disclosing) -> tuple[Channel, Channel]:
    one, other = Channel.of(first), Channel.of(second)
    if one.secrets != other.secrets:
        raise InvalidProblem(f"the mechanisms have different secrets: {one.secrets!r} and {other.secrets!r}")
    return one, other

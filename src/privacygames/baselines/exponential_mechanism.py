"""Baselines for any set of secrets: the exponential mechanism and k-ary randomised response."""

import numpy as np

from privacygames.baselines.certify_baseline import certify_baseline, require_same_labels
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import ANY_PAIR, Problem, distinguishability_scale, require_epsilon
from privacygames.validation import require_instance


def exponential(problem: Problem, epsilon: float) -> Mechanism:
    """The exponential mechanism (McSherry and Talwar 2007): p(o|s) ∝ exp(−(ε/2)·d^ε(s,o)).

    The factor ½ guarantees ε in the metric form, because both the numerator and the normaliser change by at most
    exp((ε/2)·d^ε(s,s')). Where the normaliser hardly changes (far from any border) the realised ε, which the
    certificate states, decreases towards ε/2.

    Needs outputs that are the secrets, and a symmetric distinguishability with the triangle inequality.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.from_counts(ages, [1, 2, 1]), cost="absolute")
    >>> mechanism = pg.baselines.exponential(problem, 0.1)
    >>> bool(0.05 < mechanism.certificate.bounds.epsilon <= 0.1)
    True
    """
    require_instance(problem, Problem, "the problem")
    epsilon = require_epsilon(epsilon)
    require_same_labels(problem, "exponential")
    distance = problem.distinguishability
    if not np.array_equal(distance, distance.T):
        raise InvalidProblem("the exponential mechanism needs a symmetric distinguishability")
    if any((distance > (distance[:, [k]] + distance[[k], :]) * (1 + 1e-9)).any() for k in range(len(distance))):
        raise InvalidProblem("the exponential mechanism needs a distinguishability with the triangle inequality")
    scores = np.exp(-epsilon / 2 * distance)
    table = scores / scores.sum(axis=1, keepdims=True)
    description = distinguishability_scale(problem).epsilon(f"{epsilon:g}")
    return certify_baseline(problem, table, epsilon * distance, origin=f"exponential mechanism, ε = {description}")


def randomised_response(problem: Problem, epsilon: float) -> Mechanism:
    """k-ary randomised response (Warner 1965; Kairouz, Oh and Viswanath 2016): the secret, or any other label.

    p(s|s) = e^ε / (e^ε + k − 1), and every other output has probability 1 / (e^ε + k − 1). Here ε bounds the log-ratio
    between *any* two secrets, near or far; the certificate states the ε realised in the problem's distinguishability:
    the same where all distances are 1, and ε divided by the smallest distance elsewhere.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.baselines.randomised_response(problem, np.log(2)).probabilities[0].round(4).tolist()
    [0.5, 0.25, 0.25]
    """
    require_instance(problem, Problem, "the problem")
    epsilon = require_epsilon(epsilon)
    require_same_labels(problem, "randomised response")
    size = len(problem.space)
    other_probability = np.exp(-epsilon) / (1 + (size - 1) * np.exp(-epsilon))
    table = np.full((size, size), other_probability)
    np.fill_diagonal(table, 1 / (1 + (size - 1) * np.exp(-epsilon)))
    log_ratio_bounds = np.full((size, size), epsilon)
    return certify_baseline(problem, table, log_ratio_bounds, origin=f"randomised response, ε = {epsilon:g} {ANY_PAIR}")

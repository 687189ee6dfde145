"""Mechanisms to compare with: simple ones that need no optimisation."""

import numpy as np

from privacygames.bounds import Bounds
from privacygames.errors import InvalidProblem
from privacygames.mechanism.mechanism import Mechanism
from privacygames.problem import Problem


def uniform(problem: Problem) -> Mechanism:
    """Any observable, equally likely, whatever the secret: reveals nothing, costs much."""
    return Mechanism.from_probabilities(problem, np.full(problem.shape, 1.0 / problem.shape[1]))


def cheapest(problem: Problem) -> Mechanism:
    """The cheapest observable for each secret, always: costs least, reveals most (the identity, usually)."""
    best = problem.cost.argmin(axis=0)
    return Mechanism.from_probabilities(problem, np.eye(problem.shape[1])[best])


def constant(problem: Problem) -> Mechanism:
    """The one observable that is cheapest on average, always: the least a mechanism costs that reveals nothing."""
    best = int((problem.cost @ problem.prior.probabilities).argmin())
    row = np.zeros(problem.shape[1])
    row[best] = 1.0
    return Mechanism.from_probabilities(problem, np.tile(row, (problem.shape[0], 1)))


def exponential(problem: Problem, epsilon: float) -> Mechanism:
    """The exponential mechanism: p(o|s) ∝ exp(−(ε/2)·d^ε(s,o)), which keeps ε in the metric form.

    Needs observables that are the secrets, and a symmetric distinguishability with the triangle inequality:
    then both the numerator and the normaliser change by at most exp((ε/2)·d^ε(s,s')).
    """
    distance = problem.distinguishability
    Bounds(epsilon=epsilon)  # refuses what is not an epsilon
    if problem.observables is not problem.space:
        raise InvalidProblem("the exponential mechanism needs the observables to be the secrets")
    if not np.array_equal(distance, distance.T):
        raise InvalidProblem("the exponential mechanism needs a symmetric distinguishability")
    if any((distance > (distance[:, [k]] + distance[[k], :]) * (1 + 1e-9)).any() for k in range(len(distance))):
        raise InvalidProblem("the exponential mechanism needs a distinguishability with the triangle inequality")
    scores = np.exp(-epsilon / 2 * distance)
    return Mechanism.from_probabilities(problem, scores / scores.sum(axis=1, keepdims=True))

"""Mechanisms without a parameter, and the best post-processing of any mechanism."""

import numpy as np

from privacygames.arrays import loss_matmul
from privacygames.certificates import BITS
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_secrets
from privacygames.problem import Problem, cheapest_constant
from privacygames.validation import require_instance


def uniform(problem: Problem) -> Mechanism:
    """Any observable, equally likely, whatever the secret: reveals nothing, costs much."""
    require_instance(problem, Problem, "the problem")
    everything = np.full(problem.shape, 1.0 / problem.shape[1])
    return Mechanism.from_probabilities(problem, everything, origin="uniform")


def cheapest(problem: Problem) -> Mechanism:
    """The cheapest observable for each secret, always: costs least, reveals most (the identity, usually)."""
    require_instance(problem, Problem, "the problem")
    best = problem.cost.argmin(axis=0)
    return Mechanism.from_probabilities(problem, np.eye(problem.shape[1])[best], origin="cheapest observable")


def constant(problem: Problem) -> Mechanism:
    """The one observable that is cheapest on average, always: the least a mechanism costs that reveals nothing."""
    require_instance(problem, Problem, "the problem")
    row = np.zeros(problem.shape[1])
    row[cheapest_constant(problem)] = 1.0
    return Mechanism.from_probabilities(problem, np.tile(row, (problem.shape[0], 1)), origin="constant")


def identity(problem: Problem) -> Mechanism:
    """The secret itself, always: no privacy. Needs every secret to be among the observables."""
    require_instance(problem, Problem, "the problem")
    apart = problem.space.distance("hamming", problem.observables)
    if apart.min(axis=0).any():
        raise InvalidProblem("the identity needs every secret to be among the observables")
    own = apart.argmin(axis=0)
    return Mechanism.from_probabilities(problem, np.eye(problem.shape[1])[own], origin="identity")


def remap(mechanism: Mechanism, problem: Problem) -> Mechanism:
    r"""The best deterministic post-processing: each answer replaced by what costs least given that answer.

    .. math:: o ↦ \operatorname{argmin}_{o'} \sum_s π(s)\,p(o|s)\,c(o',s)

    No post-processing of this mechanism, random or not, costs less for this prior and cost
    (docs/theory/baselines.md). Weights are added up as integers, so every ratio the mechanism kept is kept exactly,
    and distortion privacy does not fall. The ε certified is the realised one, in the form (metric or threshold) the
    mechanism promised. Answers move among the *problem's* observables, which may be others than the mechanism's.
    """
    require_instance(problem, Problem, "the problem")
    require_secrets(mechanism, problem.prior)
    joint = problem.prior.probabilities[:, None] * mechanism.probabilities
    target = loss_matmul(problem.cost, joint).argmin(axis=0)
    weights = np.zeros(problem.shape, dtype=np.int64)
    np.add.at(weights.T, target, mechanism.weights.T)
    weights <<= BITS - mechanism.bits  # files may have fewer bits than we write: the same shares of more
    certificate = mechanism.certificate
    origin = f"remapped: {certificate.provenance.solver}"
    return Mechanism.from_weights(problem, weights, origin=origin[:200], within=certificate.bounds.within)

"""Baselines without a parameter, and the optimal post-processing of any mechanism."""

import numpy as np

from privacygames.arrays import loss_matmul
from privacygames.certificates import BITS
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_secrets
from privacygames.problem import Problem, cheapest_constant
from privacygames.validation import require_instance


def uniform(problem: Problem) -> Mechanism:
    """Every output with the same probability, whatever the secret: reveals nothing, at a high cost.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.baselines.uniform(problem).probabilities[0].round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    require_instance(problem, Problem, "the problem")
    probabilities = np.full(problem.shape, 1.0 / problem.shape[1])
    return Mechanism.from_probabilities(problem, probabilities, origin="uniform")


def cheapest(problem: Problem) -> Mechanism:
    """The cheapest output for each secret: minimal cost, no privacy (usually the identity).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.baselines.cheapest(problem).sample("flu")
    'flu'
    """
    require_instance(problem, Problem, "the problem")
    best = problem.cost.argmin(axis=0)
    return Mechanism.from_probabilities(problem, np.eye(problem.shape[1])[best], origin="cheapest observable")


def constant(problem: Problem) -> Mechanism:
    """The one output that is cheapest on average: least cost among the mechanisms that reveal nothing.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.baselines.constant(problem).sample("flu")
    'none'
    """
    require_instance(problem, Problem, "the problem")
    row = np.zeros(problem.shape[1])
    row[cheapest_constant(problem)] = 1.0
    return Mechanism.from_probabilities(problem, np.tile(row, (problem.shape[0], 1)), origin="constant")


def identity(problem: Problem) -> Mechanism:
    """The secret itself: no privacy. Needs every secret to be among the outputs.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.baselines.identity(problem).sample("cold")
    'cold'
    """
    require_instance(problem, Problem, "the problem")
    differs = problem.space.distance("hamming", problem.observables)
    if differs.min(axis=0).any():
        raise InvalidProblem("the identity needs every secret to be among the observables")
    secret_outputs = differs.argmin(axis=0)
    return Mechanism.from_probabilities(problem, np.eye(problem.shape[1])[secret_outputs], origin="identity")


def remap(mechanism: Mechanism, problem: Problem) -> Mechanism:
    r"""Optimal deterministic post-processing: each output is replaced by the cheapest output given its posterior.

    .. math:: o ↦ \operatorname{argmin}_{o'} \sum_s π(s)\,p(o|s)\,c(o',s)

    No post-processing of this mechanism, random or not, costs less for this prior and cost (docs/theory/baselines.md).
    Weights are added as integers, so every ratio bound of the mechanism holds exactly, and its distortion privacy does
    not decrease. The certified ε is the realised one, in the form (metric or threshold) of the mechanism's guarantee.
    Outputs are the *problem's*, which may differ from the mechanism's.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.baselines.randomised_response(problem, 0.1)
    >>> remapped = pg.baselines.remap(mechanism, problem)
    >>> remapped.sample("flu")
    'none'
    """
    require_instance(problem, Problem, "the problem")
    require_secrets(mechanism, problem.prior)
    joint = problem.prior.probabilities[:, None] * mechanism.probabilities
    target = loss_matmul(problem.cost, joint).argmin(axis=0)
    weights = np.zeros(problem.shape, dtype=np.int64)
    np.add.at(weights.T, target, mechanism.weights.T)
    weights <<= BITS - mechanism.bits  # a file may have weights of fewer bits: scale them up
    certificate = mechanism.certificate
    origin = f"remapped: {certificate.provenance.solver}"
    return Mechanism.from_weights(problem, weights, origin=origin[:200], within=certificate.bounds.within)

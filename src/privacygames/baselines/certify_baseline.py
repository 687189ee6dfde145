"""Certification of a published mechanism: exact weights and the ε they realise, from its probabilities and theorem."""

from math import inf

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, RealisedBounds, certify
from privacygames.problem import Bounds, Problem

MIN_REPAIRED_EPSILON = 1e-9
"""Smallest ε implied by a theorem for which weights are repaired; below it the mechanism is certified unrepaired."""


def certify_baseline(
    problem: Problem,
    probabilities: FloatArray,
    log_ratio_bounds: FloatArray,
    *,
    origin: str,
    within: float | None = None,
) -> Mechanism:
    """Certify a mechanism whose log-ratios a theorem bounds, with exact weights that satisfy the bound.

    Probabilities below 2^-62 have no weight and would violate every ε. The repair mixes in a tiny fraction of a
    constant mechanism, which raises them; the certificate states the ε that the weights realise.

    Args:
        problem: the problem it is certified against.
        probabilities: p(o|s), (secrets, outputs).
        log_ratio_bounds: the theorem's bound on ln p(o|s) − ln p(o|s'), (secrets, secrets).
        origin: the name and parameters of the mechanism, for the certificate.
        within: the threshold of ε; None for the metric form.
    """
    epsilon = _implied_epsilon(problem, log_ratio_bounds, within)
    if not MIN_REPAIRED_EPSILON <= epsilon < inf:
        return Mechanism.from_probabilities(problem, probabilities, origin=origin, within=within)
    repaired = certify(problem, Bounds(epsilon=epsilon, within=within), probabilities, origin=origin)
    return certify(problem, RealisedBounds(within, max_epsilon=epsilon), repaired.weights, origin=origin)


def _implied_epsilon(problem: Problem, log_ratio_bounds: FloatArray, within: float | None) -> float:
    """The ε that the theorem implies in the problem's own distinguishability; ∞ if it implies none."""
    distinguishability = problem.distinguishability
    distinct = ~np.eye(len(distinguishability), dtype=bool)
    if within is not None:
        return float(log_ratio_bounds[distinct & (distinguishability <= within)].max(initial=0.0))
    bounded = distinct & np.isfinite(distinguishability)
    if (log_ratio_bounds[bounded & (distinguishability == 0)] > 0).any():
        return inf
    separated = bounded & (distinguishability > 0)
    return float((log_ratio_bounds[separated] / distinguishability[separated]).max(initial=0.0))


def require_same_labels(problem: Problem, name: str) -> None:
    """Raise unless the outputs are the secrets, in the same order (and, for cells, in the same places)."""
    if problem.observables == problem.space:
        return
    secrets, observables = problem.shape
    if secrets != observables or problem.space.distance("hamming", problem.observables).diagonal().any():
        raise InvalidProblem(f"the {name} mechanism needs the observables to be the secrets")

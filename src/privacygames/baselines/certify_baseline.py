"""From a published mechanism's probabilities and theorem to exact weights, and what they really keep."""

from math import inf

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, RealisedBounds, certify
from privacygames.problem import Bounds, Problem

LEAST_PROMISE = 1e-9


def certify_baseline(
    problem: Problem, probabilities: FloatArray, kept: FloatArray, *, origin: str, within: float | None = None
) -> Mechanism:
    """A mechanism whose ratios a theorem bounds, with exact weights that keep that bound.

    Tails below 2^-62 do not fit into the weights and would break every ε. The repair mixes in a whisper of a
    constant mechanism that lifts them; what is then certified is what the weights realise.

    Args:
        problem: what it is judged against.
        probabilities: p(o|s), (secrets, observables).
        kept: the theorem, (secrets, secrets): ln p(o|s) − ln p(o|s') is at most this.
        origin: name and parameters, for the certificate.
        within: state ε in the threshold form.
    """
    epsilon = _implied(problem, kept, within)
    if not LEAST_PROMISE <= epsilon < inf:
        return Mechanism.from_probabilities(problem, probabilities, origin=origin, within=within)
    kept_to = certify(problem, Bounds(epsilon=epsilon, within=within), probabilities, origin=origin)
    return certify(problem, RealisedBounds(within, max_epsilon=epsilon), kept_to.weights, origin=origin)


def _implied(problem: Problem, kept: FloatArray, within: float | None) -> float:
    """The ε that the theorem implies in the problem's own distinguishability; ∞ if it implies none."""
    apart = problem.distinguishability
    others = ~np.eye(len(apart), dtype=bool)
    if within is not None:
        return float(kept[others & (apart <= within)].max(initial=0.0))
    compared = others & np.isfinite(apart)
    if (kept[compared & (apart == 0)] > 0).any():
        return inf
    measured = compared & (apart > 0)
    return float((kept[measured] / apart[measured]).max(initial=0.0))


def require_epsilon(epsilon: float) -> float:
    """The ε asked for as a float, if it is one."""
    plain = Bounds(epsilon=epsilon).epsilon
    if plain is None:
        raise InvalidProblem(Field("epsilon"), " is None; give a positive number")
    return plain


def require_same_labels(problem: Problem, name: str) -> None:
    """Raise unless the answers are the secrets themselves, in the same order (and, for cells, in the same places)."""
    if problem.observables == problem.space:
        return
    secrets, observables = problem.shape
    if secrets != observables or problem.space.distance("hamming", problem.observables).diagonal().any():
        raise InvalidProblem(f"the {name} mechanism needs the observables to be the secrets")

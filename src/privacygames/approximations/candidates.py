"""Candidates for the repair of a relaxed program's solution, and the cheapest of them, certified."""

from dataclasses import dataclass

from privacygames import baselines
from privacygames.arrays import FloatArray
from privacygames.certificates import DualSolution, least_mixture
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, distortion_rounding


@dataclass(frozen=True)
class Candidate:
    """A mechanism that may violate constraints slightly, and how it was made."""

    probabilities: FloatArray
    how: str


def cheapest_repaired(
    problem: Problem,
    bounds: Bounds,
    relaxed: FloatArray,
    candidates: list[Candidate],
    *,
    dual_solution: DualSolution | None,
    origin: str,
) -> Mechanism:
    """The cheapest of some candidates once each keeps every promise exactly, certified for the exact problem.

    The multipliers of a program with fewer constraints are multipliers of the exact one, too (the dual value of what
    was left out is 0), so the bound they prove is one on the exact optimum.

    Args:
        problem: the exact problem.
        bounds: the promises to keep.
        relaxed: what the relaxed program mechanism: its cost is what the repair's cost is counted from.
        candidates: what to choose from, one at least.
        dual_solution: of the relaxed program.
        origin: for the certificate.
    """
    repaired = (
        certify(problem, bounds, each.probabilities, dual_solution, origin=f"{origin}{each.how}", unrepaired=relaxed)
        for each in candidates
    )
    return min(repaired, key=lambda mechanism: mechanism.certificate.cost)


def mixtures(problem: Problem, bounds: Bounds, relaxed: FloatArray) -> list[Candidate]:
    """Candidates that need no further solve: the least mixture with a constant mechanism, and the constant itself."""
    constant = baselines.constant(problem).probabilities
    mixed = least_mixture(bounds.log_ratio_bounds(problem.distinguishability), relaxed)
    share = _share_for_distortion(problem, bounds, mixed)
    return [
        Candidate((1 - share) * mixed + share * constant, "; repaired by mixing in a constant mechanism"),
        Candidate(constant, "; nothing better than a constant mechanism was found"),
    ]


def _share_for_distortion(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """Share of a constant mechanism that restores the distortion, which is concave and largest for a constant."""
    errors = problem.distance * problem.prior.probabilities
    had, most = float((errors @ table).min(axis=0).sum()), float(errors.sum(axis=1).min())
    if bounds.problem_distortion is None or had >= bounds.problem_distortion or most <= had:
        return 0.0
    return min(1.0, (bounds.problem_distortion - had) / (most - had) + distortion_rounding(problem))

"""Candidates for the repair of the solution of a relaxed program, and the cheapest of them, certified."""

from dataclasses import dataclass

from privacygames import baselines
from privacygames.arrays import FloatArray
from privacygames.certificates import DualSolution, least_mixture
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, distortion_rounding


@dataclass(frozen=True)
class Candidate:
    """A mechanism that may violate constraints slightly, with a note for its provenance."""

    probabilities: FloatArray
    note: str


def cheapest_repaired(
    problem: Problem,
    bounds: Bounds,
    relaxed: FloatArray,
    candidates: list[Candidate],
    *,
    dual_solution: DualSolution | None,
    origin: str,
) -> Mechanism:
    """Repair the candidates so that every guarantee holds exactly, and return the cheapest, certified.

    Dual values of a program with fewer constraints are dual values of the exact one (those of omitted constraints are
    0), so they prove a bound on the exact optimum.

    Args:
        problem: the exact problem.
        bounds: the guarantees.
        relaxed: the solution of the relaxed program, relative to whose cost the repair's cost is stated.
        candidates: at least one candidate.
        dual_solution: the dual values of the relaxed program.
        origin: the provenance for the certificate.
    """
    repaired = (
        certify(
            problem,
            bounds,
            candidate.probabilities,
            dual_solution,
            origin=f"{origin}{candidate.note}",
            unrepaired=relaxed,
        )
        for candidate in candidates
    )
    return min(repaired, key=lambda mechanism: mechanism.certificate.cost)


def mixtures(problem: Problem, bounds: Bounds, relaxed: FloatArray) -> list[Candidate]:
    """Candidates without another solve: the smallest mixture with a constant mechanism, and the constant one."""
    constant = baselines.constant(problem).probabilities
    mixed = least_mixture(bounds.log_ratio_bounds(problem.distinguishability), relaxed)
    share = _share_for_distortion(problem, bounds, mixed)
    return [
        Candidate((1 - share) * mixed + share * constant, "; repaired by mixing in a constant mechanism"),
        Candidate(constant, "; no better mechanism than a constant one was found"),
    ]


def _share_for_distortion(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """Share of a constant mechanism that restores the distortion, which is concave and largest for a constant."""
    errors = problem.distance * problem.prior.probabilities
    current, maximum = float((errors @ table).min(axis=0).sum()), float(errors.sum(axis=1).min())
    if bounds.problem_distortion is None or current >= bounds.problem_distortion or maximum <= current:
        return 0.0
    return min(1.0, (bounds.problem_distortion - current) / (maximum - current) + distortion_rounding(problem))

"""From the answer of a relaxed program to a certified mechanism for the exact one."""

from dataclasses import dataclass

from privacygames.arrays import FloatArray
from privacygames.bounds import Bounds
from privacygames.mechanism import baselines
from privacygames.mechanism.certificate import Provenance
from privacygames.mechanism.files import Contents
from privacygames.mechanism.mechanism import Mechanism, draft_statement, own_version
from privacygames.mechanism.repair import least_mixture, repair
from privacygames.mechanism.verifier import probabilities
from privacygames.multipliers import Multipliers
from privacygames.problem import Problem, rounding


@dataclass(frozen=True)
class Candidate:
    """A mechanism that may break a few promises by a little, and how it came about."""

    probabilities: FloatArray
    how: str


def cheapest_mended(
    problem: Problem,
    bounds: Bounds,
    relaxed: FloatArray,
    candidates: list[Candidate],
    *,
    multipliers: Multipliers | None,
    origin: str,
) -> Mechanism:
    """The cheapest of some candidates once each keeps every promise exactly, certified for the exact problem.

    The multipliers of a program with fewer constraints are multipliers of the exact one, too (the price of what was
    left out is 0), so the bound they prove is one on the exact optimum.

    Args:
        problem: the exact problem.
        bounds: the promises to keep.
        relaxed: what the relaxed program found: its cost is what the repair's cost is counted from.
        candidates: what to choose from, one at least.
        multipliers: of the relaxed program.
        origin: for the certificate.
    """
    draft = draft_statement(problem, bounds, multipliers)
    start = cost_of(problem, bounds, relaxed)

    def mended(candidate: Candidate) -> Mechanism:
        statement, findings = repair(draft, candidate.probabilities)
        added = cost_of(problem, bounds, probabilities(statement)) - start
        provenance = Provenance(f"{origin}{candidate.how}", own_version(), added)
        return Mechanism(Contents(statement, problem.space, problem.observables, provenance), findings)

    return min(map(mended, candidates), key=lambda found: found.certificate.cost)


def mixtures(problem: Problem, bounds: Bounds, relaxed: FloatArray) -> list[Candidate]:
    """What can be had without solving again: the least mixture with a constant mechanism, and a constant one."""
    constant = baselines.constant(problem).probabilities
    mixed = least_mixture(draft_statement(problem, bounds), relaxed)
    share = _share_for_distortion(problem, bounds, mixed)
    return [
        Candidate((1 - share) * mixed + share * constant, "; repaired by mixing in a constant mechanism"),
        Candidate(constant, "; nothing better than a constant mechanism was found"),
    ]


def _share_for_distortion(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """How much of a constant mechanism restores the distortion: it has the most, and distortion is concave."""
    errors = problem.distance * problem.prior.probabilities
    had, most = float((errors @ table).min(axis=0).sum()), float(errors.sum(axis=1).min())
    if bounds.distortion is None or had >= bounds.distortion or most <= had:
        return 0.0
    return min(1.0, (bounds.distortion - had) / (most - had) + rounding(problem))


def cost_of(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """The cost the bounds speak of: the average, or the worst secret's."""
    per_secret = (table * problem.cost.T).sum(axis=1)
    return float(per_secret.max() if bounds.worst_case else problem.prior.probabilities @ per_secret)

"""What the numbers of a report mean, as findings with their units; and names for the axes of figures."""

from collections.abc import Iterable
from math import isfinite

import numpy as np

from privacygames.analysis import (
    HAMMING_COST,
    HAMMING_DISTANCE,
    AdversaryError,
    BestGuess,
    Comparison,
    Finding,
    Limitation,
    OddsBound,
    Quantity,
    Report,
    Scale,
    UnboundedOdds,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    usefulness_warnings,
)
from privacygames.arrays import FloatArray
from privacygames.certificates import AdversaryResult
from privacygames.problem import Adversary, Bounds, Problem
from privacygames.spaces import Grid, Space
from privacygames.validation import require_instance


class Explanation(tuple[Finding, ...]):
    """Findings in the order to read them in; printed, their sentences one after the other."""

    __slots__ = ()

    def __str__(self) -> str:
        return " ".join(map(str, self))


def explain(report: Report, problem: Problem, *, adversaries: Iterable[Adversary] = ()) -> Explanation:
    """What a mechanism leaves to an adversary, as findings; warnings that a user should know come first.

    How far the best guess is off and how often the likeliest one is exact, with the output and without; and how far an
    output can shift the odds between two secrets. "Best" is the guess with the least expected error in the problem's
    distance. Kilometres and other units are named where the distance is one the space knows by name.

    Args:
        report: what :func:`privacygames.evaluate` measured.
        problem: the problem it was measured for.
        adversaries: those of the report, which say in what each of them errs; by default errors against them are
            numbers without a unit.

    Returns:
        Findings, each with a kind, a severity, its numbers and its sentence; printed, all of the sentences.

    >>> ages = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30], unit="years")), cost="hamming")
    >>> mechanism = pg.Mechanism.from_probabilities(ages, [[0.75, 0.25], [0.25, 0.75]])
    >>> explanation = pg.explain(pg.evaluate(mechanism, ages), ages)
    >>> [finding.kind for finding in explanation]
    ['best_guess', 'best_guess', 'odds_bound']
    >>> explanation[0].error
    Quantity(value=2.5, unit='years')
    >>> print(explanation[0])
    An adversary's best guess is off by 2.5 years on average; their likeliest guess is exact in 75 % of cases.
    """
    require_instance(problem, Problem, "the problem")
    known = {each.name: each for each in adversaries}
    errors = [adversary_error(result, problem, known.get(result.adversary)) for result in report.adversary_results]
    return Explanation(
        [
            *usefulness_warnings(report.usefulness, problem),
            best_guess(report, problem),
            _guess_without_output(report, problem),
            odds(report, problem),
            *errors,
        ]
    )


def limitations(bounds: Bounds, space: Space | None = None) -> Explanation:
    """What the guarantees of a mechanism do not cover.

    Args:
        bounds: what is guaranteed.
        space: the space of the secrets: where they are cells of a grid, ε does not hold between coordinates.

    >>> print(limitations(pg.Bounds(epsilon=1.0))[0])
    It holds for one output. Each further output for the same secret reveals more.
    """
    guarantees_error = bool(bounds.distortion)
    about = ["single_output"]
    if bounds.epsilon is None:
        about.append("no_epsilon")
    elif isinstance(space, Grid):
        about.append("cells")
    about.append("average_error" if guarantees_error else "no_error")
    return Explanation(map(Limitation, about))


def adversary_error(result: AdversaryResult, problem: Problem, adversary: Adversary | None = None) -> AdversaryError:
    """The error of one adversary's best guesses, in the unit in which that adversary errs.

    Args:
        result: what is guaranteed, realised and possible against them.
        problem: the problem, whose distance is that of adversaries without errors of their own.
        adversary: the adversary; None where only their name is known, and so not the unit.
    """
    if adversary is None:
        unit = ""
    elif adversary.errors is None:
        unit = _distance_unit(problem)
    else:
        unit = "share" if _counts_wrong_guesses(adversary.errors) else ""
    guaranteed = None if result.guaranteed is None else Quantity(result.guaranteed, unit)
    return AdversaryError(result.adversary, Quantity(result.realised, unit), guaranteed, Quantity(result.maximum, unit))


def explain_comparison(comparison: Comparison) -> dict[str, BestGuess]:
    """The first adversary's best guess after an output of each mechanism, by the mechanism's name."""
    first = comparison.rows[0].adversary
    return {row.label: best_guess(row.report, comparison.problem) for row in comparison.rows if row.adversary == first}


def best_guess(report: Report, problem: Problem) -> BestGuess:
    """How good the best guess is after an output."""
    return BestGuess(
        Quantity(report.distortion, _distance_unit(problem)), report.vulnerability, distance_scale(problem).name
    )


def odds(report: Report, problem: Problem) -> Finding:
    """What the realised ε means."""
    if not (report.epsilon_guaranteed and isfinite(report.epsilon)):
        return UnboundedOdds()
    scale = distinguishability_scale(problem)
    alike = scale.name == "hamming" and not scale.unit  # any two secrets are at distance 1
    return OddsBound(
        report.epsilon, f"1 {scale.singular_unit}" if scale.unit else "", None if alike else report.any_pair
    )


def cost_label(problem: Problem) -> str:
    """What the cost counts, for an axis: ``"cost, km"``."""
    scale = cost_scale(problem)
    return HAMMING_COST if scale.name == "hamming" else _with_unit("cost", scale)


def distortion_label(problem: Problem) -> str:
    """What distortion privacy counts, for an axis: ``"error, km"``."""
    scale = distance_scale(problem)
    return HAMMING_DISTANCE if scale.name == "hamming" else _with_unit("error", scale)


def epsilon_label(problem: Problem, within: float | None = None) -> str:
    """What ε counts, for an axis: ``"epsilon, per km"``."""
    return f"epsilon, {distinguishability_scale(problem).per(within)}"


def _with_unit(what: str, scale: Scale) -> str:
    return f"{what}, {scale.unit}" if scale.unit else what


def _distance_unit(problem: Problem) -> str:
    scale = distance_scale(problem)
    return "share" if scale.name == "hamming" else scale.unit


def _guess_without_output(report: Report, problem: Problem) -> BestGuess:
    error = Quantity(report.distortion_from_prior, _distance_unit(problem))
    return BestGuess(error, report.prior_vulnerability, distance_scale(problem).name, after_output=False)


def _counts_wrong_guesses(errors: FloatArray) -> bool:
    """Whether an error is the probability of a wrong guess: of k guesses exactly one is right, for each secret."""
    return bool(np.allclose(errors.sum(axis=0), errors.shape[0] - 1) and errors.min() >= 0 and errors.max() <= 1)

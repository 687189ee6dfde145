"""Numbers as people say them: what an attacker gets out of an answer, in sentences, and names for figures' axes."""

from math import exp, isfinite

from privacygames.analysis import (
    UNTRUE,
    WRONG,
    Comparison,
    Report,
    Scale,
    amount,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    percent,
    remarks,
)
from privacygames.certificates import AdversaryResult
from privacygames.problem import Problem
from privacygames.validation import require_instance

LARGEST_FACTOR = 1e4


def explain(report: Report, problem: Problem) -> str:
    """What a mechanism leaves to an attacker, in sentences; what a user should know before that comes first.

    How far the best guess is off and how often it is exact, with the answer and without; and how far an answer can
    shift the odds between two secrets. "Best" is the guess with the least expected error in the problem's distance.
    Kilometres and other units are named where the distance is one the space knows by name.
    """
    require_instance(problem, Problem, "the problem")
    warnings = remarks(report.usefulness, problem)
    others = [explain_adversary(stand) for stand in report.against]
    return " ".join([*warnings, risk(report, problem), _before(report, problem), odds(report, problem), *others])


def explain_adversary(stand: AdversaryResult) -> str:
    """Where an adversary stands: what her best guesses err by, beside what is promised and what is possible."""
    share = (
        f", {percent(stand.realised / stand.possible)} of what she errs by without an answer" if stand.possible else ""
    )
    promised = "" if stand.promised is None else f" ({amount(stand.promised)} is promised)"
    return f"Against “{stand.adversary}” the best guesses err by {amount(stand.realised)}{promised}{share}."


def explain_comparison(compared: Comparison) -> str:
    """A sentence a mechanism: what the first adversary gets out of an answer."""
    first = compared.rows[0].adversary
    rows = [row for row in compared.rows if row.adversary == first]
    return "\n".join(f"{row.name}: {risk(row.report, compared.problem)}" for row in rows)


def risk(report: Report, problem: Problem) -> str:
    """The first sentence of :func:`explain`: how good the best guess is after an answer."""
    return f"An attacker's best guess {_guess(report.distortion, report.exact, problem)}."


def odds(report: Report, problem: Problem) -> str:
    """The last sentence of :func:`explain`: what the realised ε means."""
    if not (report.epsilon_promised and isfinite(report.epsilon)):
        return "Nothing limits how far an answer shifts the odds between two secrets."
    scale = distinguishability_scale(problem)
    if scale.unit:
        pair = f"two secrets 1 {scale.one} apart"
    else:
        pair = "any two secrets" if scale.name == "hamming" else "two secrets at distance 1"
    near = f"No answer shifts the odds between {pair} by more than a factor of {_factor(report.epsilon)}"
    if scale.name == "hamming" and not scale.unit:
        return f"{near}."
    if not isfinite(report.any_pair):
        return f"{near}; between some secrets nothing limits it."
    return f"{near}, or between any two secrets by more than {_factor(report.any_pair)}."


def cost_label(problem: Problem) -> str:
    """What the cost counts, for an axis: ``"cost, km"``."""
    scale = cost_scale(problem)
    return UNTRUE if scale.name == "hamming" else _with_unit("cost", scale)


def distortion_label(problem: Problem) -> str:
    """What distortion privacy counts, for an axis: ``"error, km"``."""
    scale = distance_scale(problem)
    return WRONG if scale.name == "hamming" else _with_unit("error", scale)


def epsilon_label(problem: Problem, within: float | None = None) -> str:
    """What ε counts, for an axis: ``"epsilon, per km"``."""
    return f"epsilon, {distinguishability_scale(problem).per(within)}"


def _factor(exponent: float) -> str:
    """By how much an exponent shifts the odds."""
    factor = exp(min(exponent, 700.0))
    return f"{factor:.3g}" if factor < LARGEST_FACTOR else f"e^{exponent:.3g}"


def _with_unit(what: str, scale: Scale) -> str:
    return f"{what}, {scale.unit}" if scale.unit else what


def _guess(error: float, exact: float, problem: Problem) -> str:
    scale = distance_scale(problem)
    if scale.name == "hamming":
        return f"is wrong in {percent(error)} of cases, and exact in {percent(exact)}"
    if scale.name == "jaccard":
        apart = f"differs from the true set by {amount(error)} on average (0: the same, 1: nothing in common)"
        return f"{apart}, and is exact in {percent(exact)} of cases"
    return f"is off by {scale.amount(amount(error))} on average, and exact in {percent(exact)} of cases"


def _before(report: Report, problem: Problem) -> str:
    scale = distance_scale(problem)
    error = report.distortion_from_prior
    if scale.name == "hamming":
        return f"Without the answer it would be wrong in {percent(error)} of cases."
    off = scale.amount(amount(error))
    return f"Without the answer it would be off by {off}, and exact in {percent(report.exact_from_prior)} of cases."

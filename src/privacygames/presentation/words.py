"""Numbers as people say them: what an attacker gets out of an answer, in sentences, and names for figures' axes."""

from math import exp, isfinite

import numpy as np

from privacygames.analysis import Comparison, Report, amount, percent
from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.problem import Problem
from privacygames.spaces import Sets, Space

LARGEST_FACTOR = 1e4


def in_words(report: Report, problem: Problem) -> str:
    """What a mechanism leaves to an attacker, in sentences.

    How far the best guess is off and how often it is exact, with the answer and without; and how far an answer can
    shift the odds between two secrets. "Best" is the guess with the least expected error in the problem's distance.
    Kilometres and other units are named where the distance is one the space knows by name.
    """
    return " ".join([risk(report, problem), _before(report, problem), odds(report, problem)])


def compared_in_words(compared: Comparison) -> str:
    """A sentence a mechanism: what the first adversary gets out of an answer."""
    first = compared.rows[0].adversary
    rows = [row for row in compared.rows if row.adversary == first]
    return "\n".join(f"{row.name}: {risk(row.report, compared.problem)}" for row in rows)


def risk(report: Report, problem: Problem) -> str:
    """The first sentence of :func:`in_words`: how good the best guess is after an answer."""
    return f"An attacker's best guess {_guess(report.distortion, report.exact, problem)}."


def odds(report: Report, problem: Problem) -> str:
    """The last sentence of :func:`in_words`: what the realised ε means."""
    if not isfinite(report.epsilon):
        return "Nothing limits how far an answer shifts the odds between two secrets."
    name = measure_name(problem.distinguishability, problem.space)
    unit = _unit(name, problem.space)
    if unit:
        pair = "two secrets 1 km apart" if unit == "km" else f"two secrets at distance 1 ({unit})"
    else:
        pair = "any two secrets" if name == "hamming" else "two secrets at distance 1"
    factor = exp(min(report.epsilon, 700.0))
    shown = f"{factor:.3g}" if factor < LARGEST_FACTOR else f"e^{report.epsilon:.3g}"
    return f"No answer shifts the odds between {pair} by more than a factor of {shown}."


def measure_name(matrix: FloatArray, space: Space, rows: Space | None = None) -> str | None:
    """Which of the distances a space knows by name a matrix is, if it is one."""
    for name in space.distance_names:
        try:
            if np.array_equal(matrix, space.distance(name, rows)):
                return name
        except InvalidProblem:  # not defined between these spaces
            continue
    return None


def cost_label(problem: Problem) -> str:
    """What the cost counts, for an axis: ``"cost, km"``."""
    name = measure_name(problem.cost, problem.space, problem.observables)
    if name == "hamming":
        return "share of untrue answers"
    return _with_unit("cost", name, problem.space)


def distortion_label(problem: Problem) -> str:
    """What distortion privacy counts, for an axis: ``"error, km"``."""
    name = measure_name(problem.distance, problem.space)
    if name == "hamming":
        return "share of wrong guesses"
    return _with_unit("error", name, problem.space)


def epsilon_label(problem: Problem) -> str:
    """What ε counts, for an axis: ``"epsilon, distances in km"``."""
    name = measure_name(problem.distinguishability, problem.space)
    unit = _unit(name, problem.space)
    return f"epsilon, distances in {unit}" if unit else "epsilon"


def _unit(name: str | None, space: Space) -> str:
    return "" if name is None else space.unit(name)


def _with_unit(what: str, name: str | None, space: Space) -> str:
    unit = _unit(name, space)
    return f"{what}, {unit}" if unit else what


def _off(error: float, name: str | None, space: Space) -> str:
    return f"{amount(error)} {_unit(name, space)}".rstrip()


def _guess(error: float, exact: float, problem: Problem) -> str:
    name = measure_name(problem.distance, problem.space)
    if name == "hamming":
        return f"is wrong in {percent(error)} of cases, and exact in {percent(exact)}"
    if name == "jaccard" and isinstance(problem.space, Sets):
        apart = f"differs from the true set by {amount(error)} on average (0: the same, 1: nothing in common)"
        return f"{apart}, and is exact in {percent(exact)} of cases"
    return f"is off by {_off(error, name, problem.space)} on average, and exact in {percent(exact)} of cases"


def _before(report: Report, problem: Problem) -> str:
    name = measure_name(problem.distance, problem.space)
    error = report.distortion_from_prior
    if name == "hamming":
        return f"Without the answer it would be wrong in {percent(error)} of cases."
    off = _off(error, name, problem.space)
    return f"Without the answer it would be off by {off}, and exact in {percent(report.exact_from_prior)} of cases."

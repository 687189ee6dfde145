"""Root search: a narrow bracket of the argument at which a condition changes, with few evaluations."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, log1p

from privacygames.errors import SolveFailed

MAX_STEPS = 200
"""Maximum number of trials: bisection alone needs about 60 for floats."""


@dataclass(frozen=True)
class SearchTrial:
    """Result of a trial: ``excess`` is positive where the condition fails, at most 0 where it holds, or None."""

    argument: float
    excess: float | None


def narrow(
    trial: Callable[[float], SearchTrial], failing: SearchTrial, holding: SearchTrial, precision: float
) -> tuple[SearchTrial, SearchTrial]:
    """Narrow the bracket between an argument that fails and one that holds to a relative ``precision``.

    A step tries the zero of the chord, moved slightly away from the nearer end, so that two accurate steps close the
    bracket from both sides. After a step that did not halve the bracket (in logarithms), the next one bisects it, which
    bounds the number of steps for every function.
    """
    width, width_before = log1p(precision), inf
    for _ in range(MAX_STEPS):
        width_now = abs(log(holding.argument / failing.argument))
        if width_now <= width * (1 + 1e-9):
            return failing, holding
        result = trial(
            exp(_chord_root(failing, holding, width) if width_now <= width_before / 2 else _midpoint(failing, holding))
        )
        width_before = width_now
        if result.excess is None:
            return _bracket_undecided(trial, failing, holding, result, precision)
        if result.excess > 0:
            failing = result
        else:
            holding = result
    raise _unresolved_error(failing, holding)


def _bracket_undecided(
    trial: Callable[[float], SearchTrial],
    failing: SearchTrial,
    holding: SearchTrial,
    undecided: SearchTrial,
    precision: float,
) -> tuple[SearchTrial, SearchTrial]:
    """The bracket around an undecided argument, which must be decided half a width to either side of it."""
    width = log1p(precision)
    failing = _search_decided(trial, undecided.argument, failing, width / 2)
    holding = _search_decided(trial, undecided.argument, holding, width / 2)
    if abs(log(holding.argument / failing.argument)) > width * (1 + 1e-9):
        raise _unresolved_error(failing, holding)
    return failing, holding


def _search_decided(trial: Callable[[float], SearchTrial], start: float, end: SearchTrial, step: float) -> SearchTrial:
    """The first trial from ``start`` towards ``end``, in doubling steps, with the same outcome as ``end``."""
    log_distance = log(end.argument / start)
    while step < abs(log_distance):
        result = trial(start * exp(step if log_distance > 0 else -step))
        if result.excess is not None and end.excess is not None and (result.excess > 0) == (end.excess > 0):
            return result
        step *= 2
    return end


def _midpoint(failing: SearchTrial, holding: SearchTrial) -> float:
    return (log(failing.argument) + log(holding.argument)) / 2


def _chord_root(failing: SearchTrial, holding: SearchTrial, width: float) -> float:
    """The zero of the chord, moved by a third of the width towards the farther end, and away from both ends."""
    start, end = log(failing.argument), log(holding.argument)
    if failing.excess is None or holding.excess is None or failing.excess - holding.excess <= 0:
        return (start + end) / 2
    share = failing.excess / (failing.excess - holding.excess)
    nudge = width / 3 / abs(end - start)
    share += nudge if share < 0.5 else -nudge
    share = min(max(share, min(nudge, 0.5)), max(1 - nudge, 0.5))
    return start + share * (end - start)


def _unresolved_error(failing: SearchTrial, holding: SearchTrial) -> SolveFailed:
    low, high = sorted((failing.argument, holding.argument))
    return SolveFailed(
        f"the value lies between {low:.6g} and {high:.6g}, and the solves are not accurate enough to narrow it: "
        "raise precision"
    )

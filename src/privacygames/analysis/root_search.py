"""Root search: brackets the argument at which a condition changes, from both sides, in few evaluations."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, log1p

from privacygames.errors import SolveFailed

MAX_STEPS = 200


@dataclass(frozen=True)
class SearchTrial:
    """Result of a trial: ``excess`` is positive where the condition fails, 0 or less where it holds, else None."""

    at: float
    excess: float | None


def narrow(
    trial: Callable[[float], SearchTrial], refused: SearchTrial, met: SearchTrial, precision: float
) -> tuple[SearchTrial, SearchTrial]:
    """Narrow the bracket between an argument that fails and one that holds to a relative ``precision``.

    A step aims where the chord crosses zero, a little to the far side, so that two good guesses close the bracket from
    both sides. After a step that did not at least halve the bracket (in logarithms) the next one bisects it, which
    bounds the number of steps for every function.
    """
    width, width_before = log1p(precision), inf
    for _ in range(MAX_STEPS):
        width_now = abs(log(met.at / refused.at))
        if width_now <= width * (1 + 1e-9):
            return refused, met
        result = trial(exp(_aim(refused, met, width) if width_now <= width_before / 2 else _middle(refused, met)))
        width_before = width_now
        if result.excess is None:
            return _beside(trial, refused, met, result, precision)
        if result.excess > 0:
            refused = result
        else:
            met = result
    raise _unsettled(refused, met)


def _beside(
    trial: Callable[[float], SearchTrial], refused: SearchTrial, met: SearchTrial, unsure: SearchTrial, precision: float
) -> tuple[SearchTrial, SearchTrial]:
    """The root is so near an argument that its side is undecided: half a width to either side has to be decided."""
    width = log1p(precision)
    refused = _outward(trial, unsure.at, refused, width / 2)
    met = _outward(trial, unsure.at, met, width / 2)
    if abs(log(met.at / refused.at)) > width * (1 + 1e-9):
        raise _unsettled(refused, met)
    return refused, met


def _outward(trial: Callable[[float], SearchTrial], start: float, end: SearchTrial, step: float) -> SearchTrial:
    """The first argument from ``start`` towards ``end``, in doubling steps, with the same outcome as the end."""
    whole = log(end.at / start)
    while step < abs(whole):
        result = trial(start * exp(step if whole > 0 else -step))
        if result.excess is not None and end.excess is not None and (result.excess > 0) == (end.excess > 0):
            return result
        step *= 2
    return end


def _middle(refused: SearchTrial, met: SearchTrial) -> float:
    return (log(refused.at) + log(met.at)) / 2


def _aim(refused: SearchTrial, met: SearchTrial, width: float) -> float:
    """Where the chord crosses zero, a third of the width towards the farther end, and not too near either end."""
    start, end = log(refused.at), log(met.at)
    if refused.excess is None or met.excess is None or refused.excess - met.excess <= 0:
        return (start + end) / 2
    share = refused.excess / (refused.excess - met.excess)
    nudge = width / 3 / abs(end - start)
    share += nudge if share < 0.5 else -nudge
    share = min(max(share, min(nudge, 0.5)), max(1 - nudge, 0.5))
    return start + share * (end - start)


def _unsettled(refused: SearchTrial, met: SearchTrial) -> SolveFailed:
    low, high = sorted((refused.at, met.at))
    return SolveFailed(
        f"the value sought lies between {low:.6g} and {high:.6g}, and solves are not accurate enough to say it closer: "
        "raise precision"
    )

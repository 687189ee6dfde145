"""Checks of the arguments of :class:`privacygames.Releases`."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from privacygames.beliefs import Mobility
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.points import PointProblem
from privacygames.problem import Problem
from privacygames.releases.design_cache import WhenImpossible
from privacygames.releases.inference_targets import InferenceTarget
from privacygames.releases.ledger import WhenChanged
from privacygames.releases.policies import Fixed, Policy
from privacygames.validation import as_list, is_number, require_choice, require_instance

WhenSpent = Literal["refuse", "repeat", "belief"]
"""What happens without budget left: an error, the last output again, or the output that is best under the belief."""

MAX_KEY_LENGTH = 200
"""Characters of a caller's name for a release."""


def check_settings(
    problem: Problem,
    mobility: Mobility,
    *,
    when_spent: WhenSpent,
    when_impossible: WhenImpossible,
    when_changed: WhenChanged,
    reuse: float,
    distortion: float | None,
    clock_tolerance: float | None,
) -> None:
    """Refuse settings of the wrong type or range."""
    if isinstance(problem, PointProblem):
        raise InvalidProblem("secrets that are points have no belief and no mobility here: use PointReleases")
    require_instance(problem, Problem, "the problem")
    if require_instance(mobility, Mobility, "the mobility").space != problem.space:
        raise InvalidProblem("the mobility is over other secrets than the problem's")
    require_choice(when_spent, get_args(WhenSpent), "when_spent")
    require_choice(when_impossible, get_args(WhenImpossible), "when_impossible")
    require_choice(when_changed, get_args(WhenChanged), "when_changed")
    require_clock_tolerance(clock_tolerance)
    if not (is_number(reuse) and 0 <= reuse <= 1):
        raise InvalidProblem(Field("reuse"), f" is {repr(reuse)[:40]}; it must be a number from 0 to 1")
    if distortion is not None and not (is_number(distortion) and 0 <= distortion < np.inf):
        raise InvalidProblem(Field("distortion"), f" is {repr(distortion)[:40]}; it must be a number, 0 or more")


def require_clock_tolerance(clock_tolerance: float | None) -> None:
    """Refuse a tolerance that is no number of seconds."""
    if clock_tolerance is not None and not (is_number(clock_tolerance) and clock_tolerance >= 0):
        raise InvalidProblem(Field("clock_tolerance"), " must be a number of seconds, 0 or more, or None")


def checked_policy(epsilon: float | None, policy: Policy | None, *, fixed_mechanism: bool) -> Policy:
    """The policy that is given directly, or by an epsilon or a mechanism."""
    if policy is not None:
        if not isinstance(policy, Policy):
            raise InvalidProblem("policy must be a Policy: EvenSpread, Predictive, Memoised, FrequentPlaces or Fixed")
        if epsilon is not None:
            raise InvalidProblem("the policy says how much epsilon a release uses: leave epsilon out")
    elif epsilon is None and not fixed_mechanism:
        raise InvalidProblem("specify how much epsilon a release uses: epsilon, a policy, or a mechanism that has one")
    chosen = Fixed(epsilon) if policy is None else policy
    if fixed_mechanism and (chosen.epsilon is not None or chosen.varies_epsilon):
        raise InvalidProblem("a fixed mechanism has its own epsilon: leave epsilon out")
    return chosen


def checked_targets(adversaries: Sequence[InferenceTarget]) -> tuple[InferenceTarget, ...]:
    """The inference targets as a tuple."""
    targets = as_list(adversaries, "adversaries")
    if not all(isinstance(target, InferenceTarget) for target in targets):
        raise InvalidProblem("adversaries must be InferenceTargets, such as InferenceTarget('an hour ago', 0.3, ago=6)")
    return tuple(targets)


def require_key(key: str | None) -> None:
    """Refuse a release key that a ledger cannot hold."""
    if key is None:
        return
    if isinstance(key, str) and 0 < len(key) <= MAX_KEY_LENGTH and not any(map(_is_surrogate, key)):
        return
    raise InvalidProblem(f"key must be a text of 1 to {MAX_KEY_LENGTH} characters that can be written as UTF-8")


def require_guaranteed(policy: Policy, mechanism: Mechanism | None, distortions: list[float | None]) -> None:
    """Refuse distortions that no design would guarantee."""
    if all(distortion is None for distortion in distortions):
        return
    if mechanism is not None:
        raise InvalidProblem("designs guarantee a distortion; for a fixed mechanism it is only reported")
    if not policy.guarantees_distortion:
        raise InvalidProblem(
            f"with {type(policy).__name__} an observer sees more than one designed output: distortion cannot "
            "be guaranteed, only reported; leave distortion out"
        )


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"

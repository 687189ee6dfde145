"""What a sharing is about: its settings checked, and named so that a ledger knows its own."""

from collections.abc import Sequence

from privacygames.arrays import content_hash
from privacygames.beliefs import Mobility
from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_fit
from privacygames.problem import Problem
from privacygames.releases.inference_targets import InferenceTarget
from privacygames.releases.ledger_terms import DIGESTS
from privacygames.releases.policies import Fixed, Policy
from privacygames.spaces import space_digest
from privacygames.validation import as_list

LONGEST_KEY = 200


def about(problem: Problem, mobility: Mobility, policy: Policy) -> dict[str, str]:
    """What may not differ between the processes that use one ledger."""
    start = content_hash(problem.prior.probabilities), mobility.fingerprint, space_digest(problem.space)
    return {
        DIGESTS: "2",
        "counts": policy.counts,
        "observables": space_digest(problem.observables),
        "start": digest_of("start", *start),
    }


def policy_from(problem: Problem, epsilon: float | None, mechanism: Mechanism | None, policy: Policy | None) -> Policy:
    """The policy asked for, by itself, by an epsilon, or by a mechanism that has one."""
    if mechanism is not None:
        require_fit(mechanism, problem)
    if policy is not None:
        if not isinstance(policy, Policy):
            raise InvalidProblem("policy must be a Policy: EvenSpread, Predictive, Memoised or Fixed")
        if epsilon is not None:
            raise InvalidProblem("the policy says how much epsilon a release uses: leave epsilon out")
    elif epsilon is None and mechanism is None:
        raise InvalidProblem("say how much epsilon a release uses: epsilon, a policy, or a mechanism that has one")
    chosen = Fixed(epsilon) if policy is None else policy
    if mechanism is not None and (chosen.asks_for is not None or chosen.shares):
        raise InvalidProblem("a fixed mechanism has its own epsilon: leave epsilon out")
    return chosen


def pursuits_from(adversaries: Sequence[InferenceTarget]) -> tuple[InferenceTarget, ...]:
    """The pursuits given, checked."""
    given = as_list(adversaries, "adversaries")
    if not all(isinstance(each, InferenceTarget) for each in given):
        raise InvalidProblem("adversaries must be InferenceTargets, such as InferenceTarget('an hour ago', 0.3, ago=6)")
    return tuple(given)


def require_key(key: str | None) -> None:
    """Refuse names of releases that a ledger cannot hold."""
    if key is None:
        return
    if isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and not any(map(_is_surrogate, key)):
        return
    raise InvalidProblem(f"key must be a text of 1 to {LONGEST_KEY} characters that can be written as UTF-8")


def require_promises(policy: Policy, mechanism: Mechanism | None, asked: list[float | None]) -> None:
    """Refuse distortions that nothing would promise."""
    if all(each is None for each in asked):
        return
    if mechanism is not None:
        raise InvalidProblem("distortion is promised by designs; of a fixed mechanism, what it gives is reported")
    if not policy.promises:
        raise InvalidProblem(
            f"with {type(policy).__name__} more is seen than the answer of one design: distortion cannot be promised, "
            "what is given is reported; leave distortion out"
        )


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"

"""What ledgers of older releases say they are about: digests of format 1, made of what Python's ``repr`` showed."""

from dataclasses import replace

import numpy as np

from privacygames.arrays import content_hash
from privacygames.beliefs import Mobility
from privacygames.problem import Problem
from privacygames.releases.budgets import Account
from privacygames.releases.policies import Policy
from privacygames.spaces import Space


def first_case(
    problem: Problem, mobility: Mobility, policy: Policy, accounts: tuple[Account, ...]
) -> tuple[dict[str, str], tuple[Account, ...]] | None:
    """Settings and accounts as older releases wrote them; None of sets, whose digests differed between processes."""
    if _has_sets(problem.space) or _has_sets(problem.observables):
        return None
    start = (content_hash(problem.prior.probabilities), mobility.fingerprint, problem.space.labels)
    settings = {
        "counts": policy.counts,
        "observables": _hash(repr(problem.observables.labels)),
        "start": _hash(repr(start)),
    }
    return settings, tuple(_first_account(problem, account) for account in accounts)


def _first_account(problem: Problem, account: Account) -> Account:
    subject = _hash(repr(problem.space.labels) + content_hash(account.apart))
    return replace(account, subject=subject, name=account.name.replace(account.subject[:8], subject[:8]))


def _hash(text: str) -> str:
    return content_hash(np.frombuffer(text.encode(), dtype=np.uint8))


def _has_sets(space: Space) -> bool:
    """Whether labels are sets: their text differed between processes, and so did digests made of it."""
    return any(isinstance(label, frozenset) for label in space.labels)

"""The subject of a ledger: the problem, mobility and budgets that its releases are about, and changes of it.

All processes that use one ledger must have the same subject. Another one is refused, or recorded on purpose as a change
that keeps everything charged so far.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privacygames.arrays import content_hash
from privacygames.beliefs import Mobility
from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem
from privacygames.problem import Problem
from privacygames.releases.budgets import Account
from privacygames.releases.ledger.balances import AccountTerms, Change
from privacygames.spaces import Space, space_digest

WhenChanged = Literal["refuse", "record", "same-unit"]
"""How another subject is treated: refused; recorded; or recorded, where the caller states that another
distinguishability has the same unit as before."""

DIGESTS = "digests"
"""The entry for the format of digests; ledgers of releases up to 0.2, with digests of format 1, lack it."""

COMPARED = {"counts": "what is counted", "observables": "the observables", "start": "the prior or the mobility"}
"""The digests of a subject, and how messages name them."""


@dataclass(frozen=True)
class Subject:
    """What releases are about.

    Attributes:
        about: digests by name.
        terms: the accounts they are charged to.
    """

    about: Mapping[str, str]
    terms: tuple[AccountTerms, ...]


def subject_of(problem: Problem, mobility: Mobility, counts: str, accounts: tuple[Account, ...]) -> Subject:
    """The subject of releases about a problem.

    Args:
        problem: secrets, outputs and the prior before the first release.
        mobility: how the secret changes.
        counts: ``"releases"`` or ``"places"``.
        accounts: what releases are charged to.
    """
    return Subject(subject_digests(problem, mobility, counts), account_terms(accounts))


def subject_digests(problem: Problem, mobility: Mobility, counts: str) -> dict[str, str]:
    """Digests of what must be equal in all processes that use one ledger."""
    start = content_hash(problem.prior.probabilities), mobility.fingerprint, space_digest(problem.space)
    return {
        DIGESTS: "2",
        "counts": counts,
        "observables": space_digest(problem.observables),
        "start": digest_of("start", *start),
    }


def format_1_subject(
    problem: Problem, mobility: Mobility, counts: str, accounts: tuple[Account, ...]
) -> Subject | None:
    """The subject as releases up to 0.2 wrote it, with digests made of ``repr``.

    None for spaces of sets, whose ``repr``, and so their digests, differed between processes.
    """
    if _has_sets(problem.space) or _has_sets(problem.observables):
        return None
    start = (content_hash(problem.prior.probabilities), mobility.fingerprint, problem.space.labels)
    about = {
        "counts": counts,
        "observables": _text_hash(repr(problem.observables.labels)),
        "start": _text_hash(repr(start)),
    }
    return Subject(about, account_terms(tuple(_format_1_account(problem, account) for account in accounts)))


def account_terms(accounts: tuple[Account, ...]) -> tuple[AccountTerms, ...]:
    """The accounts as a ledger holds them."""
    terms = []
    for account in accounts:
        distances = account.distinguishability
        largest = float(distances.max(initial=0.0))
        terms.append(
            AccountTerms(
                name=account.name,
                limit=None if account.limit is None else str(account.limit),
                every=account.every,
                subject=account.subject,
                largest=largest if np.isfinite(largest) else None,
                any_two=bool((distances[~np.eye(len(distances), dtype=bool)] == 1).all()),
                measure=account.scale.name,
                unit=account.scale.unit,
            )
        )
    return tuple(terms)


def changed_terms(
    change: Change, wanted: Subject, format_1: Subject | None, when_changed: WhenChanged, name: str
) -> tuple[AccountTerms, ...] | None:
    """The accounts of a change that must be recorded; None if the ledger has the wanted subject already.

    Budgets never change. An account goes on with another distinguishability only if its unit stays the same: any two
    secrets are 1 apart before and after, or the caller says so. Units that are known to differ are never added.

    Args:
        change: the present subject of the ledger.
        wanted: the caller's.
        format_1: the caller's, with digests as older releases made them; None if these differed between processes.
        when_changed: how a difference is treated.
        name: of the ledger, for messages.
    """
    if change.number == 0:
        return wanted.terms
    compared = wanted if DIGESTS in change.about else format_1
    if compared is None:
        if when_changed != "same-unit":
            raise InvalidProblem(
                f"{name} was written by an older release, which named sets differently in every process: nobody can "
                "tell whether it is about these. If it is, say when_changed='same-unit'"
            )
        compared = Subject({}, wanted.terms)
    _require_same_budgets(change.terms, compared.terms, name)
    differences = [word for key, word in COMPARED.items() if change.about.get(key) != compared.about.get(key)]
    pairs = zip(change.terms, compared.terms, strict=True)
    other_units = [(before, after) for before, after in pairs if before.subject != after.subject]
    if other_units:
        differences.append("the secrets or the distinguishability")
    if not differences:
        return None
    if when_changed == "refuse":
        raise InvalidProblem(
            f"{name} is about another case: {', '.join(differences)} differ. To go on in it and keep what was charged, "
            "say when_changed='record' (--when-changed record); a ledger of its own would forget what was released"
        )
    for before, after in other_units:
        _require_same_unit(before, after, when_changed, name)
    return tuple(replace(new, name=held.name) for new, held in zip(wanted.terms, change.terms, strict=True))


def _require_same_unit(before: AccountTerms, after: AccountTerms, when_changed: WhenChanged, name: str) -> None:
    if before.unit and after.unit and before.unit != after.unit:
        raise InvalidProblem(
            f"{name} counts {before.name!r} {before.scale.per()}, and here it would count {after.scale.per()}: "
            "epsilons of different units do not add up. Keep a ledger for each; what each allows between any two "
            "secrets, which `privacygames ledger show` prints, has no unit and adds up"
        )
    if when_changed != "same-unit" and not (before.any_two and after.any_two):
        raise InvalidProblem(
            f"{name} counts {before.name!r} in another distinguishability, and epsilons of different units do not "
            "add up. If both are measured in the same unit, such as km between places, say "
            "when_changed='same-unit'; a budget in which any two secrets are 1 apart goes on by itself"
        )


def _require_same_budgets(held: tuple[AccountTerms, ...], wanted: tuple[AccountTerms, ...], name: str) -> None:
    if [each.fixed for each in held] == [each.fixed for each in wanted]:
        return
    limits = "; ".join(
        f"{each.name}: {'no limit' if each.limit is None else each.format_epsilon(each.limit)}" for each in held
    )
    raise InvalidProblem(
        f"{name} keeps other budgets: {limits}; give the same ones, by the same names (name= of a Budget), since "
        "budgets may not change"
    )


def _format_1_account(problem: Problem, account: Account) -> Account:
    subject = _text_hash(repr(problem.space.labels) + content_hash(account.distinguishability))
    return replace(account, subject=subject, name=account.name.replace(account.subject[:8], subject[:8]))


def _text_hash(text: str) -> str:
    return content_hash(np.frombuffer(text.encode(), dtype=np.uint8))


def _has_sets(space: Space) -> bool:
    return any(isinstance(label, frozenset) for label in space.labels)

"""What a ledger is about: the same for all who use it, or changed on purpose, with everything charged so far kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.releases.budgets import Account
from privacygames.releases.ledger_state import AccountTerms, Change, describe_limits

WhenChanged = Literal["refuse", "record", "same-unit"]
"""What becomes of another prior, mobility or problem: refused; recorded; or recorded, and the caller states that other
distinguishabilities count in the same unit as before."""

DIGESTS = "digests"
"""The entry that says which format digests have; ledgers of releases up to 0.2, with digests of format 1, lack it."""

COMPARED = {"counts": "what is counted", "observables": "the observables", "start": "the prior or the mobility"}
"""What a ledger is about, and what messages call it."""


def terms_of(accounts: tuple[Account, ...]) -> tuple[AccountTerms, ...]:
    """The accounts as a ledger holds them."""
    found = []
    for each in accounts:
        limit = None if each.limit is None else str(each.limit)
        largest = float(each.apart.max(initial=0.0))
        finite = largest if np.isfinite(largest) else None
        apart = each.apart[~np.eye(len(each.apart), dtype=bool)]
        found.append(
            AccountTerms(
                name=each.name,
                limit=limit,
                every=each.every,
                subject=each.subject,
                largest=finite,
                any_two=bool((apart == 1).all()),
                measure=each.scale.name,
                unit=each.scale.unit,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Wanted:
    """What a caller's releases are about: digests by name, and the accounts they are charged to."""

    about: Mapping[str, str]
    terms: tuple[AccountTerms, ...]


def changed_terms(
    change: Change, wanted: Wanted, older: Wanted | None, when_changed: WhenChanged, name: str
) -> tuple[AccountTerms, ...] | None:
    """The accounts to write down; None where the ledger is about this already.

    Budgets never change. An account goes on with another distinguishability only where its unit stays what it is: any
    two secrets are 1 apart before and after, or the caller says so. Units that are known to differ are never added.

    Args:
        change: what the ledger is about.
        wanted: what the caller's releases are about.
        older: the same with digests as older releases made them; None where these differed between processes.
        when_changed: what becomes of a difference.
        name: of the ledger, for messages.
    """
    if change.number == 0:
        return wanted.terms
    compared = wanted if DIGESTS in change.about else older
    if compared is None:
        if when_changed != "same-unit":
            raise InvalidProblem(
                f"{name} was written by an older release, which named sets differently in every process: nobody can "
                "tell whether it is about these. If it is, say when_changed='same-unit'"
            )
        compared = Wanted({}, wanted.terms)
    _require_same_budgets(change.terms, compared.terms, name)
    words = [word for key, word in COMPARED.items() if change.about.get(key) != compared.about.get(key)]
    pairs = zip(change.terms, compared.terms, strict=True)
    other = [(before, after) for before, after in pairs if before.subject != after.subject]
    if other:
        words.append("the secrets or the distinguishability")
    if not words:
        return None
    if when_changed == "refuse":
        raise InvalidProblem(
            f"{name} is about another case: {', '.join(words)} differ. To go on in it and keep what was charged, say "
            "when_changed='record' (--when-changed record); a ledger of its own would forget what was released"
        )
    for before, after in other:
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
    return tuple(replace(new, name=held.name) for new, held in zip(wanted.terms, change.terms, strict=True))


def _require_same_budgets(held: tuple[AccountTerms, ...], wanted: tuple[AccountTerms, ...], name: str) -> None:
    if [each.lasting for each in held] == [each.lasting for each in wanted]:
        return
    raise InvalidProblem(
        f"{name} keeps other budgets: {describe_limits(held)}; give the same ones, by the same names (name= of a "
        "Budget), since what was promised may not change on the way"
    )

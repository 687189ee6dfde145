"""The scope of a ledger: the problem, mobility model and budgets that its releases are about, and changes of it.

All processes that use one ledger must have the same scope. Another one is refused, or recorded on purpose as a change
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
from privacygames.releases.budgets import Account, FiniteAccount
from privacygames.releases.ledger.balances import AccountTerms, ScopePeriod
from privacygames.spaces import Region, Space, region_digest, space_digest

WhenChanged = Literal["refuse", "record", "same-unit"]
"""How another scope is treated: refused; recorded; or recorded, where the caller states that another
distinguishability has the same unit as before."""

DIGESTS = "digests"
"""The entry for the format of digests; ledgers written by versions of privacygames up to 0.2, with digests of
format 1, lack it."""

COMPARED = {"counts": "what is charged", "observables": "the observables", "start": "the prior or the mobility"}
"""The digests that are compared, and how messages name them."""


@dataclass(frozen=True)
class LedgerScope:
    """The problem, mobility model and accounts of releases, as digests and terms.

    Attributes:
        about: digests by name.
        terms: the accounts they are charged to.
    """

    about: Mapping[str, str]
    terms: tuple[AccountTerms, ...]


def ledger_scope(
    problem: Problem, mobility: Mobility, charging: str, accounts: tuple[FiniteAccount, ...]
) -> LedgerScope:
    """The scope of releases about a problem.

    Args:
        problem: secrets, outputs and the prior before the first release.
        mobility: how the secret changes.
        charging: ``"releases"`` or ``"places"``.
        accounts: what releases are charged to.
    """
    return LedgerScope(scope_digests(problem, mobility, charging), account_terms(accounts))


def point_scope(region: Region, observables: Space, charging: str, accounts: tuple[Account, ...]) -> LedgerScope:
    """The scope of releases of points, which depends on no belief.

    Args:
        region: the region of the secrets.
        observables: the space of outputs.
        charging: ``"releases"`` or ``"places"``.
        accounts: what releases are charged to.
    """
    return _scope_without_belief(digest_of("start", region_digest(region)), observables, charging, accounts)


def fixed_scope(space: Space, observables: Space, charging: str, accounts: tuple[Account, ...]) -> LedgerScope:
    """The scope of releases from fixed mechanisms, which depends on no belief: a prior may change within it.

    Args:
        space: the space of the secrets.
        observables: the space of outputs.
        charging: ``"releases"`` or ``"places"``.
        accounts: what releases are charged to.
    """
    return _scope_without_belief(
        digest_of("start without belief", space_digest(space)), observables, charging, accounts
    )


def _scope_without_belief(start: str, observables: Space, charging: str, accounts: tuple[Account, ...]) -> LedgerScope:
    about = {DIGESTS: "2", "counts": charging, "observables": space_digest(observables), "start": start}
    return LedgerScope(about, account_terms(accounts))


def scope_digests(problem: Problem, mobility: Mobility, charging: str) -> dict[str, str]:
    """Digests of what must be equal in all processes that use one ledger."""
    start = content_hash(problem.prior.probabilities), mobility.fingerprint, space_digest(problem.space)
    return {
        DIGESTS: "2",
        "counts": charging,
        "observables": space_digest(problem.observables),
        "start": digest_of("start", *start),
    }


def format_1_scope(
    problem: Problem, mobility: Mobility, charging: str, accounts: tuple[FiniteAccount, ...]
) -> LedgerScope | None:
    """The scope as versions of privacygames up to 0.2 wrote it, with digests made of ``repr``.

    None for spaces of sets, whose ``repr``, and so their digests, differed between processes.
    """
    if _has_sets(problem.space) or _has_sets(problem.observables):
        return None
    start = (content_hash(problem.prior.probabilities), mobility.fingerprint, problem.space.labels)
    about = {
        "counts": charging,
        "observables": _text_hash(repr(problem.observables.labels)),
        "start": _text_hash(repr(start)),
    }
    return LedgerScope(about, account_terms(tuple(_format_1_account(problem, account) for account in accounts)))


def account_terms(accounts: tuple[Account, ...]) -> tuple[AccountTerms, ...]:
    """The accounts as a ledger holds them."""
    terms = []
    for account in accounts:
        terms.append(
            AccountTerms(
                name=account.name,
                limit=None if account.limit is None else str(account.limit),
                every=account.every,
                distinguishability_digest=account.distinguishability_digest,
                max_distance=account.max_distance if np.isfinite(account.max_distance) else None,
                all_distances_one=account.all_distances_one,
                measure=account.scale.name,
                unit=account.scale.unit,
                approximate=account.approximate,
            )
        )
    return tuple(terms)


def changed_terms(
    period: ScopePeriod, wanted: LedgerScope, format_1: LedgerScope | None, when_changed: WhenChanged, name: str
) -> tuple[AccountTerms, ...] | None:
    """The accounts of a change that must be recorded; None if the ledger has the wanted scope already.

    Budgets never change. An account goes on with another distinguishability only if its unit stays the same: any two
    secrets are 1 apart before and after, or the caller states it. Units that are known to differ are never added.

    Args:
        period: the present scope of the ledger.
        wanted: the caller's.
        format_1: the caller's, with digests as older versions made them; None if these differed between processes.
        when_changed: how a difference is treated.
        name: of the ledger, for messages.
    """
    if period.scope_event == 0:
        return wanted.terms
    compared = wanted if DIGESTS in period.about else format_1
    if compared is None:
        if when_changed != "same-unit":
            raise InvalidProblem(
                f"{name} was written by an older version, which identified sets inconsistently, so this program cannot "
                "check that the ledger matches. If it does, pass when_changed='same-unit'"
            )
        compared = LedgerScope({}, wanted.terms)
    _require_same_budgets(period.terms, compared.terms, name)
    differences = [word for key, word in COMPARED.items() if period.about.get(key) != compared.about.get(key)]
    pairs = zip(period.terms, compared.terms, strict=True)
    other_units = [
        (before, after)
        for before, after in pairs
        if before.distinguishability_digest != after.distinguishability_digest
    ]
    if other_units:
        differences.append("the secrets or the distinguishability")
    if not differences:
        return None
    if when_changed == "refuse":
        raise InvalidProblem(
            f"{name} belongs to a different problem: {', '.join(differences)} differ. To keep using it with what was "
            "charged, pass when_changed='record' (--when-changed record); a new ledger would forget what was released"
        )
    for before, after in other_units:
        _require_same_unit(before, after, when_changed, name)
    pairs = zip(wanted.terms, period.terms, strict=True)
    return tuple(replace(new, name=held.name, limit=held.limit, approximate=held.approximate) for new, held in pairs)


def _require_same_unit(before: AccountTerms, after: AccountTerms, when_changed: WhenChanged, name: str) -> None:
    if before.unit and after.unit and before.unit != after.unit:
        raise InvalidProblem(
            f"{name} counts {before.name!r} {before.scale.per()}, and here it would count {after.scale.per()}: "
            "epsilons of different units do not add up. Keep a ledger for each; what each allows between any two "
            "secrets, which `privacygames ledger show` prints, has no unit and adds up"
        )
    if when_changed != "same-unit" and not (before.all_distances_one and after.all_distances_one):
        raise InvalidProblem(
            f"{name} counts {before.name!r} in another distinguishability, and epsilons of different units do not "
            "add up. If both are measured in the same unit, such as km between places, pass "
            "when_changed='same-unit'; a budget in which any two secrets are 1 apart needs no such statement"
        )


def _require_same_budgets(held: tuple[AccountTerms, ...], wanted: tuple[AccountTerms, ...], name: str) -> None:
    if [each.stated for each in held] == [each.stated for each in wanted]:
        return
    limits = "; ".join(f"{each.name}: {each.limit_text}" for each in held)
    kinds = [[each.approximate is None for each in terms] for terms in (held, wanted)]
    other_kind = (
        "" if kinds[0] == kinds[1] else "; the epsilons that one adds up and the divergences of another do not add up"
    )
    raise InvalidProblem(
        f"{name} was created with different budgets: {limits}; pass the same budgets under the same names (name= of a "
        f"Budget), since budgets may not change{other_kind}"
    )


def _format_1_account(problem: Problem, account: FiniteAccount) -> FiniteAccount:
    digest = _text_hash(repr(problem.space.labels) + content_hash(account.distinguishability))
    name = account.name.replace(account.distinguishability_digest[:8], digest[:8])
    return replace(account, distinguishability_digest=digest, name=name)


def _text_hash(text: str) -> str:
    return content_hash(np.frombuffer(text.encode(), dtype=np.uint8))


def _has_sets(space: Space) -> bool:
    return any(isinstance(label, frozenset) for label in space.labels)

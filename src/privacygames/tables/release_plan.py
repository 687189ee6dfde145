"""The plan of a release: rules, key, row identity, limits and ledger, checked once, for every engine."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privacygames.canonical import digest_of
from privacygames.errors import Field, InvalidProblem
from privacygames.tables.accounting import Charge, CostLimits, ReleaseAccount, charge_of, refuse_epsilon_limit
from privacygames.tables.kernel import Kernel, RowCounts, require_few_far_rows
from privacygames.tables.manifest import Manifest, row_warnings, rule_warnings
from privacygames.tables.release_key import KeyUse, ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger, RuleCharge, amounts_by_rule
from privacygames.tables.row_identity import IDENTITY_ADVICE, RowIdentity, resolve_identity
from privacygames.tables.rules import ColumnRule, Rules, column_rules


@dataclass(frozen=True)
class ReleasePlan:
    """A release that was asked for.

    Attributes:
        rules: the rules, by columns.
        key: the source of random bits.
        identity: how rows are told apart.
        user: the column that says whose row it is.
        repeat: ``"fresh"`` or ``"same"``.
        limits: cost above which nothing is released.
        ledger: the ledger that is charged.
    """

    rules: tuple[ColumnRule, ...]
    key: ReleaseKey
    identity: RowIdentity
    user: str | None
    repeat: str
    limits: CostLimits
    ledger: ReleaseLedger | None = None

    def kernel(self, schema: Any) -> Kernel:
        """The kernel for tables of an Arrow schema."""
        return Kernel(self.rules, self.key, self.identity, self.user, schema)

    def require_identity(self, engine: str) -> None:
        """Refuse an engine that may compute rows again, in another order, if rows have no identity."""
        if self.identity.by_position:
            raise InvalidProblem(
                f"{engine} computes a table each time that its rows are asked for, in any order: without an identity, "
                "rows would be drawn again each time, and every draw is another release. Either ",
                *IDENTITY_ADVICE,
                "; or collect the table first, and release what was collected",
            )

    @property
    def keys_are_unique(self) -> bool:
        """Whether key columns must tell every row from every other."""
        return not self.identity.by_position and not self.identity.per_secret

    @property
    def prescan_columns(self) -> tuple[str, ...]:
        """The columns read before anything is released: the user's, and those of the row identity."""
        return tuple(dict.fromkeys([*([self.user] if self.user else []), *self.identity.columns]))

    @property
    def protects(self) -> str:
        """Whom or what the cost is about, in words."""
        return "a row" if self.user is None else f"a person (column {self.user!r})"

    @cached_property
    def charges(self) -> tuple[Charge, ...]:
        """The cost of each rule for one row."""
        return tuple(charge_of(rule) for rule in self.rules)

    def account(self, totals: tuple[int, int] | None) -> ReleaseAccount:
        """What the release costs; refuses a cost above the limits.

        Args:
            totals: the largest number of rows of a person, and the number of people; None without a user column.
        """
        rows, people = (None, None) if totals is None else totals
        account = ReleaseAccount(self.charges, rows, people, self.repeat)
        account.require(self.limits)
        return account

    def require_room(self, account: ReleaseAccount, release: str) -> None:
        """Refuse what the ledger has no room for, before any work is done."""
        if self.ledger is not None:
            self.ledger.charge(self._rule_charges(account, RowCounts(), release), self.protects, commit=False)

    def commit(
        self, account: ReleaseAccount, counts: RowCounts, *, source: Sequence[str] = (), release: str = ""
    ) -> Manifest:
        """Charge the release to the ledger and record it with its key, durably, before its outputs can be seen.

        Args:
            account: what it costs.
            counts: what was counted, with the hashes of all draws.
            source: names of the files, for the manifest.
            release: a name for the release, if it has no key of the caller's and is resumed after a crash.

        Returns:
            The manifest of the release.
        """
        require_few_far_rows(self.rules, counts)
        uses = [] if self.identity.by_position else self._key_uses(counts)
        self.key.require_new_or_same(uses)
        charge = None
        if self.ledger is not None:
            charge = self.ledger.charge(self._rule_charges(account, counts, release), self.protects)
        self.key.record(uses)
        warnings = rule_warnings(self.rules) + row_warnings(counts)
        return Manifest(account, counts, self.rules, self.identity, warnings, tuple(source), charge)

    def _key_uses(self, counts: RowCounts) -> list[KeyUse]:
        return [
            KeyUse(rule.columns, rule.rule.mechanism.digest, self.identity.columns, f"{counts.draws[rule.name]:032x}")
            for rule in self.rules
        ]

    def _rule_charges(self, account: ReleaseAccount, counts: RowCounts, release: str) -> list[RuleCharge]:
        """The cost of each rule, under a name that the same draws have again, and no others."""
        charges = []
        for rule, amounts in zip(self.rules, amounts_by_rule(account), strict=True):
            draws = release or f"{counts.draws[rule.name]:032x}"
            parts = ("release", draws, *rule.purpose, *self.identity.purpose(), digest_of("amounts", amounts))
            name = digest_of(*parts) if release else self.key.derive(*parts).hex()
            charges.append(RuleCharge(name[:32], rule.name, rule.rule.mechanism.digest, amounts))
        return charges


def plan_release(
    rules: Rules,
    *,
    key: ReleaseKey | None,
    key_columns: str | Sequence[str] | None,
    user: str | None,
    repeat: str,
    any_pair_limit: float | None,
    per_unit_limit: float | Mapping[str, float] | None,
    epsilon_limit: object,
    ledger: "ReleaseLedger | str | os.PathLike[str] | None",
) -> ReleasePlan:
    """Check a caller's arguments, and make a plan of them.

    Args:
        rules: as in :func:`privacygames.tables.apply`, and so are all others.
        key: the source of random bits.
        key_columns: the columns of the row identity.
        user: the column that says whose row it is.
        repeat: ``"fresh"`` or ``"same"``.
        any_pair_limit: limit of the largest log-ratio between any two secrets.
        per_unit_limit: limit of ε in its unit.
        epsilon_limit: refused.
        ledger: the ledger, or its path.
    """
    refuse_epsilon_limit(epsilon_limit)
    limits = CostLimits(any_pair_limit, per_unit_limit)
    if key is not None and not isinstance(key, ReleaseKey):
        raise InvalidProblem("key must be a ReleaseKey: ReleaseKey.create(path), ReleaseKey.load(path) or ReleaseKey()")
    if user is not None and not isinstance(user, str):
        raise InvalidProblem(Field("user"), " must be the name of the column that says whose row it is")
    identity = resolve_identity(key_columns=key_columns, repeat=repeat, user=user)
    checked_rules = column_rules(rules)
    if key is not None and identity.by_position:
        raise InvalidProblem(
            "a release key repeats the outputs of rows that have an identity, whatever they are read with and in "
            "whatever order; their position is none. Either ",
            *IDENTITY_ADVICE,
            "; or leave the key out",
        )
    if not (ledger is None or isinstance(ledger, ReleaseLedger | str | os.PathLike)):
        raise InvalidProblem("ledger must be a ReleaseLedger, or the path of one")
    opened = ledger if ledger is None or isinstance(ledger, ReleaseLedger) else ReleaseLedger(ledger)
    plan = ReleasePlan(checked_rules, key or ReleaseKey(), identity, user, repeat, limits, opened)
    if user is None:
        plan.account(None)  # refuses what is known to be too much without a look at the data
    return plan

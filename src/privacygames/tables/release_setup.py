"""A release as it was asked for, whatever engine it runs on: rules, key, identity, and what is checked first."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem
from privacygames.tables.accounting import CostLimits, PeopleCount, account
from privacygames.tables.kernel import Kernel, RowCounts, require_near
from privacygames.tables.manifest import Manifest, warnings_about, warnings_for
from privacygames.tables.release_key import KeyUse, ReleaseKey
from privacygames.tables.release_ledger import ReleaseLedger, RuleCharge, amounts_of
from privacygames.tables.row_identity import LASTING, Identity, identity_of
from privacygames.tables.rules import ColumnRule, rules_from


@dataclass(frozen=True)
class Setup:
    """A release that was asked for.

    Attributes:
        rules: what becomes of which columns.
        key: where the random bits come from.
        identity: what tells rows apart.
        user: the column that says whose row it is.
        repeat: ``"fresh"`` or ``"same"``.
        limits: above which nothing is released.
        ledger: what the release is charged to.
    """

    rules: tuple[ColumnRule, ...]
    key: ReleaseKey
    identity: Identity
    user: str | None
    repeat: str
    limits: CostLimits
    ledger: ReleaseLedger | None = None

    def kernel(self, schema: Any) -> Kernel:
        """The kernel for tables of a schema."""
        return Kernel(self.rules, self.key, self.identity, self.user, schema)

    def require_identity(self, engine: str) -> None:
        """Refuse an engine that may compute rows again, in another order, where these have no identity."""
        if self.identity.by_position:
            raise InvalidProblem(
                f"{engine} computes a table each time that its rows are asked for, in any order: without an identity, "
                "rows would be drawn again each time, and every draw is another release. Either ",
                *LASTING,
                "; or collect the table first, and release what was collected",
            )

    @property
    def unique_wanted(self) -> bool:
        """Whether key columns are meant to tell every row from every other."""
        return not self.identity.by_position and not self.identity.per_secret

    @property
    def watched(self) -> tuple[str, ...]:
        """The columns that are looked at before anything is released: whose rows they are, and which."""
        return tuple(dict.fromkeys([*([self.user] if self.user else []), *self.identity.columns]))

    def manifest(self, counts: RowCounts, totals: tuple[int, int] | None, source: Sequence[str] = ()) -> Manifest:
        """What is to be said of the release; refuses one above the limit. ``totals``: most rows, and people."""
        found = account(self.rules, totals, self.repeat)
        found.require(self.limits)
        require_near(self.rules, counts)
        warnings = warnings_for(self.rules) + warnings_about(counts)
        return Manifest(found, counts, self.rules, self.identity, warnings, tuple(source))

    def commit(self, manifest: Manifest, release: str = "") -> Manifest:
        """Charge a release to the ledger, and record it with its key, durably, before anybody sees an answer.

        Args:
            manifest: of the release; its counts says what was drawn.
            release: a name for it where there is no key of the caller's, and work goes on after a crash.
        """
        uses = [] if self.identity.by_position else self._uses(manifest.counts)
        self.key.require_new_or_same(uses)
        if self.ledger is not None:
            charge = self.ledger.charge(self._charges(manifest, release), self.protects)
            manifest = replace(manifest, charge=charge)
        self.key.record(uses)
        return manifest

    def require_room(self, manifest: Manifest, release: str) -> None:
        """Refuse what the ledger will have no room for, before the work is done."""
        if self.ledger is not None:
            self.ledger.charge(self._charges(manifest, release), self.protects, commit=False)

    @property
    def protects(self) -> str:
        """What amounts of ε are about."""
        return "a row" if self.user is None else f"a person (column {self.user!r})"

    def _uses(self, counts: RowCounts) -> list[KeyUse]:
        return [
            KeyUse(rule.columns, rule.rule.mechanism.digest, self.identity.columns, f"{counts.draws[rule.name]:032x}")
            for rule in self.rules
        ]

    def _charges(self, manifest: Manifest, release: str) -> list[RuleCharge]:
        """What each rule costs, under a name that the same draws have again, and no others."""
        found = []
        for rule, amounts in zip(self.rules, amounts_of(manifest.account), strict=True):
            drawn = release or f"{manifest.counts.draws[rule.name]:032x}"
            named = ("release", drawn, *rule.purpose, *self.identity.purpose(), digest_of("amounts", amounts))
            name = digest_of(*named) if release else self.key.derive(*named).hex()
            found.append(RuleCharge(name[:32], rule.name, rule.rule.mechanism.digest, amounts))
        return found


def setup_from(
    rules: Any,
    *,
    key: ReleaseKey | None,
    key_columns: str | Sequence[str] | None,
    user: str | None,
    repeat: str,
    limits: CostLimits,
    ledger: "ReleaseLedger | str | os.PathLike[str] | None",
) -> Setup:
    """A release from what the caller gave."""
    if key is not None and not isinstance(key, ReleaseKey):
        raise InvalidProblem("key must be a ReleaseKey: ReleaseKey.create(path), ReleaseKey.load(path) or ReleaseKey()")
    if user is not None and not isinstance(user, str):
        raise InvalidProblem("user must be the name of the column that says whose row it is")
    found = rules_from(rules)
    identity = identity_of(key_columns=key_columns, repeat=repeat, user=user)
    if key is not None and identity.by_position:
        raise InvalidProblem(
            "a release key repeats the answers of rows that have an identity, whatever they are read with and in "
            "whatever order; their position is none. Either ",
            *LASTING,
            "; or leave the key out",
        )
    if not (ledger is None or isinstance(ledger, ReleaseLedger | str | os.PathLike)):
        raise InvalidProblem("ledger must be a ReleaseLedger, or the path of one")
    kept = ledger if ledger is None or isinstance(ledger, ReleaseLedger) else ReleaseLedger(ledger)
    setup = Setup(found, key or ReleaseKey(), identity, user, repeat, limits, kept)
    if user is None:
        account(found, None, repeat).require(limits)  # what is known without a look at the data
    return setup


@dataclass
class Prescan:
    """A look at the data before anything is released: how many rows, odd ones, people, and whether keys are unique.

    Surveys of parts add up. Nothing is drawn.

    Attributes:
        setup: of the release.
        counts: what was counted.
        people: whose rows there are.
        tags: half of each row's identity; of each person's, once in a batch, where people are the identity.
        marks: of each row that stays, for :meth:`Kernel.expect`.
    """

    setup: Setup
    counts: RowCounts = field(default_factory=RowCounts)
    people: PeopleCount | None = None
    tags: list[NDArray[np.uint64]] = field(default_factory=list)
    marks: list[NDArray[np.uint64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.setup.user is not None and self.people is None:
            self.people = PeopleCount()

    def look(self, columns: Mapping[str, Any], count: int, kernel: Kernel, *, odd: bool, at: int | None) -> None:
        """Look at some rows; ``odd`` says whether to count values that are no secrets, ``at`` where they stand."""
        if odd:
            counts, marks = kernel.survey(columns, count, at)
            self.counts.add(counts)
            self.marks.append(marks)
        if self.people is not None and self.setup.user is not None:
            self.people.add(columns[self.setup.user], self.setup.user, at)
            kernel.require_known(columns)
        if not self.setup.identity.by_position:
            tags = np.ascontiguousarray(kernel.tags(columns, count, 0)[:, 0])
            self.tags.append(tags if self.setup.unique_wanted else np.unique(tags))

    def merge(self, other: "Prescan") -> None:
        """Count what another look at other rows found."""
        self.counts.add(other.counts)
        if self.people is not None and other.people is not None:
            self.people.merge(other.people)
        self.tags += other.tags
        self.marks += other.marks

    def require_unique(self) -> None:
        """Refuse key columns that name a row twice: such rows would share their answer, and not by accident."""
        if not self.tags:
            return
        tags = np.concatenate(self.tags)
        distinct = len(np.unique(tags))
        whole = len(tags) if self.setup.unique_wanted or self.people is None else self.people.totals()[1]
        if distinct < whole:
            raise InvalidProblem(self.not_unique(whole - distinct))

    def not_unique(self, twice: int) -> str:
        """What to say of rows or people that cannot be told apart."""
        names = ", ".join(self.setup.identity.columns)
        if self.setup.identity.per_secret:
            return (
                f"{twice} people in {names} are named as others are by some reader of tables (007 as 7 is): they would "
                "share their answers; give them names that differ in more than that"
            )
        return (
            f"the key columns {names} do not tell {twice} rows from others: such rows would share their random bits. "
            "Texts that some reader takes for one number, such as 007 and 7, are the same key. Add a column, or say "
            "repeat='same' if each person's secret is to be drawn once"
        )

    def manifest(self, source: Iterable[str] = (), counts: RowCounts | None = None) -> Manifest:
        """What is to be said of the release; refuses what must not be released."""
        self.require_unique()
        totals = None if self.people is None else self.people.totals()
        return self.setup.manifest(self.counts if counts is None else counts, totals, tuple(source))

    def committed(self, counts: RowCounts | None = None) -> Manifest:
        """The manifest of a release that is charged from now on."""
        return self.setup.commit(self.manifest(counts=counts))

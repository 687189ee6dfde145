"""A release as it was asked for, whatever engine it runs on: rules, key, identity, and what is checked first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.tables.accounting import PeopleCount, account
from privacygames.tables.kernel import Kernel, Tally
from privacygames.tables.manifest import Manifest, warnings_for
from privacygames.tables.release_key import ReleaseKey, Words
from privacygames.tables.row_identity import Identity, identity_of
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
        epsilon_limit: above which nothing is released.
    """

    rules: tuple[ColumnRule, ...]
    key: ReleaseKey
    identity: Identity
    user: str | None
    repeat: str
    epsilon_limit: float | None

    def kernel(self, schema: Any) -> Kernel:
        """The kernel for tables of a schema."""
        return Kernel(self.rules, self.key, self.identity, self.user, schema)

    @property
    def unique_wanted(self) -> bool:
        """Whether key columns are meant to tell every row from every other."""
        return not self.identity.by_position and not self.identity.per_secret

    @property
    def watched(self) -> tuple[str, ...]:
        """The columns that are looked at before anything is released: whose rows they are, and which."""
        return tuple(dict.fromkeys([*([self.user] if self.user else []), *self.identity.columns]))

    def manifest(self, tally: Tally, totals: tuple[int, int] | None, source: Sequence[str] = ()) -> Manifest:
        """What is to be said of the release; refuses one above the limit. ``totals``: most rows, and people."""
        found = account(self.rules, totals, self.repeat)
        found.require(self.epsilon_limit)
        return Manifest(found, tally, self.rules, self.identity, warnings_for(self.rules), tuple(source))


def setup_from(
    rules: Any,
    *,
    key: ReleaseKey | None,
    key_columns: str | Sequence[str] | None,
    user: str | None,
    repeat: str,
    source: str,
    epsilon_limit: float | None,
) -> Setup:
    """A release from what the caller gave."""
    if key is not None and not isinstance(key, ReleaseKey):
        raise InvalidProblem("key must be a ReleaseKey: ReleaseKey.create(path), ReleaseKey.load(path) or ReleaseKey()")
    if user is not None and not isinstance(user, str):
        raise InvalidProblem("user must be the name of the column that says whose row it is")
    found = rules_from(rules)
    identity = identity_of(key_columns=key_columns, repeat=repeat, user=user, source=source)
    setup = Setup(found, key or ReleaseKey(), identity, user, repeat, epsilon_limit)
    if user is None:
        account(found, None, repeat).require(epsilon_limit)  # what is known without a look at the data
    return setup


@dataclass
class Survey:
    """A look at the data before anything is released: how many rows, odd ones, people, and whether keys are unique.

    Surveys of parts add up. Nothing is drawn.
    """

    setup: Setup
    tally: Tally = field(default_factory=Tally)
    people: PeopleCount | None = None
    tags: list[Words] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.setup.user is not None and self.people is None:
            self.people = PeopleCount()

    def look(self, columns: Mapping[str, Any], count: int, kernel: Kernel, *, odd: bool, at: int | None) -> None:
        """Look at some rows; ``odd`` says whether to count values that are no secrets, ``at`` where they stand."""
        if odd:
            self.tally.add(kernel.survey(columns, count, at))
        if self.people is not None and self.setup.user is not None:
            self.people.add(columns[self.setup.user], self.setup.user)
            kernel.require_known(columns)
        if self.setup.unique_wanted:
            self.tags.append(np.ascontiguousarray(kernel.tags(columns, count, 0)[:, 0]))

    def merge(self, other: "Survey") -> None:
        """Count what another look at other rows found."""
        self.tally.add(other.tally)
        if self.people is not None and other.people is not None:
            self.people.merge(other.people)
        self.tags += other.tags

    def require_unique(self) -> None:
        """Refuse key columns that name a row twice: such rows would share their answer, and not by accident."""
        if not self.tags:
            return
        tags = np.sort(np.concatenate(self.tags))
        twice = int((tags[1:] == tags[:-1]).sum())
        if twice:
            raise InvalidProblem(self.not_unique(twice))

    def not_unique(self, twice: int) -> str:
        """What to say of rows that cannot be told apart."""
        names = ", ".join(self.setup.identity.columns)
        return (
            f"the key columns {names} do not tell {twice} rows from others: such rows would share their random bits. "
            "Add a column, or say repeat='same' if each person's secret is to be drawn once"
        )

    def manifest(self, source: Iterable[str] = (), tally: Tally | None = None) -> Manifest:
        """What is to be said of the release; refuses what must not be released."""
        self.require_unique()
        totals = None if self.people is None else self.people.totals()
        return self.setup.manifest(self.tally if tally is None else tally, totals, tuple(source))

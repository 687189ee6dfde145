"""The manifest of a release: what was done to which columns, its privacy cost and warnings; nothing in it is secret."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from privacygames.atomic_io import write_text
from privacygames.tables.accounting import Cost, ReleaseAccount
from privacygames.tables.kernel import RowCounts
from privacygames.tables.release_ledger import LedgerCharge
from privacygames.tables.row_identity import RowIdentity
from privacygames.tables.rules import ColumnRule

FORMAT = 2
LIBRARIES = ("privacygames", "numpy", "pyarrow", "cryptography")
NEAREST_COUNTS = {
    "far": "of them were moved by more than one step beyond the outermost secrets",
    "exchanged": "of them fit only with latitude and longitude exchanged",
}
"""Sentences about rows moved to their nearest secret: how many, and never how far."""

NEAREST_WARNINGS = {
    "far": "rows lay more than one step beyond the outermost secrets, and were moved to these.",
    "exchanged": "rows fit only with latitude and longitude exchanged, and were moved to the border.",
}

RANDOMNESS = (
    "AES-256 of each row's identity and secret, under a release key from the operating system that is in no output: as "
    "good as random for whoever does not have the key and cannot break AES"
)


@dataclass(frozen=True)
class Manifest:
    """What a recipient and an auditor may know of a release.

    Attributes:
        account: the privacy cost of a row, and of the person with most rows.
        counts: rows read, dropped and invalid. For engines that compute later: as counted when the release was set up;
            for a reader: as far as it was read.
        rules: the rules, by columns.
        identity: how rows were told apart.
        warnings: what the user should know before the release is used.
        source: names of the files, if there are any.
        charge: what was charged to a ledger; None without one.

    >>> import pyarrow as pa
    >>> ages = pg.Numbers(range(20, 30), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=0.5)
    >>> _, manifest = pg.tables.apply(pa.table({"who": ["a", "a"], "age": [21, 27]}), {"age": mechanism}, user="who")
    >>> manifest.per_user.epsilons, manifest.to_dict()["rows"]["out"]
    ({'per year': 1.0}, 2)
    """

    account: ReleaseAccount
    counts: RowCounts
    rules: tuple[ColumnRule, ...]
    identity: RowIdentity
    warnings: tuple[str, ...]
    source: tuple[str, ...] = ()
    charge: LedgerCharge | None = None

    @property
    def rows_in(self) -> int:
        """Rows read."""
        return self.counts.rows

    @property
    def rows_dropped(self) -> int:
        """Rows left out."""
        return self.counts.dropped

    @property
    def rows_out(self) -> int:
        """Rows written."""
        return self.counts.rows - self.counts.dropped

    @property
    def per_row(self) -> Cost:
        """The cost of one row, over all columns: ε in each unit, and the log-ratio between any two secrets."""
        return self.account.per_row

    @property
    def per_user(self) -> Cost | None:
        """The cost for the person with most rows; None without a user column."""
        return self.account.per_user

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {name: _version(name) for name in LIBRARIES},
            "source": list(self.source),
            "rows": {
                "in": self.rows_in,
                "out": self.rows_out,
                "dropped": self.rows_dropped,
                "odd": [
                    {"columns": name, "reason": reason, "rows": count, "became": self.treatment(name, reason)}
                    for (name, reason), count in sorted(self.counts.invalid.items())
                ],
            },
            "epsilon": self.account.to_dict(),
            "ledger": None if self.charge is None else self.charge.to_dict(),
            "columns": [describe_rule(rule) for rule in self.rules],
            "rows_told_apart_by": self.identity.describe(),
            "repeat": self.account.repeat,
            "randomness": RANDOMNESS,
            "warnings": list(self.warnings),
        }

    def treatment(self, name: str, reason: str) -> str:
        """What became of the invalid rows of a rule: ``"drop"``, ``"null"`` or ``"nearest"``."""
        rule = self._rule(name).rule
        return rule.for_missing if reason == "missing" else rule.for_unknown

    def _rule(self, name: str) -> ColumnRule:
        return next(rule for rule in self.rules if rule.name == name)

    def describe_invalid_rows(self) -> list[tuple[str, str]]:
        """The columns of each rule, and a sentence on how many rows held no secret and what became of them."""
        sentences = []
        for (name, reason), count in sorted(self.counts.invalid.items()):
            were = "outside" if reason == "unknown" and self._rule(name).reader.secret_count is None else reason
            what = NEAREST_COUNTS.get(reason, f"rows were {were}: {self.treatment(name, reason)}")
            sentences.append((name, f"{count:,} {what}"))
        return sentences

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def __str__(self) -> str:
        total = self.account.per_user
        whom = "a row" if total is None else f"the person with most rows ({self.account.rows})"
        lines = [
            f"{self.rows_in} rows in, {self.rows_out} out, {self.rows_dropped} dropped",
            *(f"{each.columns}, a row: ε = {each}" for each in self.account.charges),
            f"{whom}, over {len(self.rules)} mechanism(s): {total or self.account.per_row}",
        ]
        lines += [f"{name}: {what}" for name, what in self.describe_invalid_rows()]
        return "\n".join([*lines, *(f"warning: {each}" for each in self.warnings)])


def describe_rule(rule: ColumnRule) -> dict[str, Any]:
    """A rule and its mechanism in plain values; nothing of the prior but what the guarantees say."""
    mechanism = rule.rule.mechanism
    bounds = mechanism.bounds
    description: dict[str, Any] = {
        "columns": list(rule.columns),
        "became": list(rule.outputs),
        "answer": rule.rule.form,
        "original": rule.rule.original,
        "mechanism": mechanism.digest,
        "secrets": rule.reader.secret_count,
        "observables": len(mechanism.observables),
        "promises": {
            "epsilon": bounds.epsilon,
            "within": bounds.within,
            "distortion": None if bounds.named_adversaries else bounds.problem_distortion,
        },
    }
    if bounds.named_adversaries:
        description["promises"]["against"] = {each.adversary.name: each.distortion for each in bounds.distortion}
    return description | mechanism.to_manifest()


def rule_warnings(rules: Sequence[ColumnRule]) -> tuple[str, ...]:
    """Warnings about outputs that are useless, or that some secrets never get; no secret is named."""
    warnings = []
    for rule in rules:
        mechanism = rule.rule.mechanism
        if mechanism.constant and rule.reader.secret_count != 1:
            warnings.append(f"{rule.name}: the outputs do not depend on the secret at all: they tell nobody anything.")
            continue
        if (useful := mechanism.usefulness) is not None:
            if useful.limitless:
                warnings.append(f"{rule.name}: the guaranteed epsilon is so large that it limits nothing.")
            if useful.unserved:
                warnings.append(
                    f"{rule.name}: {len(useful.unserved)} secrets that occur never get their best output "
                    f"({useful.unserved_share:.1%} of the prior)."
                )
        if mechanism.bounds.epsilon is None:
            warnings.append(
                f"{rule.name}: no differential privacy is guaranteed, only distortion privacy of a single output."
            )
        if rule.rule.for_unknown == "null" or rule.rule.for_missing == "null":
            warnings.append(
                f"{rule.name}: where an output is null, the released table shows that there was no valid secret."
            )
    return tuple(warnings)


def row_warnings(counts: RowCounts) -> tuple[str, ...]:
    """Warnings about rows that were moved far to their nearest secret."""
    return tuple(
        f"{name}: {count:,} {NEAREST_WARNINGS[reason]}"
        for (name, reason), count in counts.invalid.items()
        if reason in NEAREST_WARNINGS
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"

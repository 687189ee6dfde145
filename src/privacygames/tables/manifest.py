"""The manifest beside a release: what was done to which columns, what it costs in privacy, and nothing secret."""

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
from privacygames.tables.row_identity import Identity
from privacygames.tables.rules import ColumnRule

FORMAT = 2
LIBRARIES = ("privacygames", "numpy", "pyarrow", "cryptography")
MOVED = {
    "far": "of them were moved by more than one step beyond the outermost secrets",
    "exchanged": "of them fit only with latitude and longitude exchanged",
}
"""What is said of rows taken for the nearest secret: how many, in classes that do not depend on the data."""

WARNED = {
    "far": "rows lay more than one step beyond the outermost secrets, and were moved to those.",
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
        account: ε for each row, and composed for people.
        counts: rows read, dropped and odd. For engines that compute later: as counted when the release was set up;
            for a reader: as far as it was read.
        rules: what became of which columns.
        identity: what told rows apart.
        warnings: what somebody should know before the release is used.
        source: the names of files, where there are some.
        charge: what was charged to a ledger; None without one.
    """

    account: ReleaseAccount
    counts: RowCounts
    rules: tuple[ColumnRule, ...]
    identity: Identity
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
        """What one row costs, over all columns: ε in each unit, and between any two secrets."""
        return self.account.per_row

    @property
    def per_user(self) -> Cost | None:
        """What the person with most rows pays; None where it was not said whose rows are whose."""
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
                    {"columns": name, "reason": reason, "rows": count, "became": self.became(name, reason)}
                    for (name, reason), count in sorted(self.counts.invalid.items())
                ],
            },
            "epsilon": self.account.to_dict(),
            "ledger": None if self.charge is None else self.charge.to_dict(),
            "columns": [described(rule) for rule in self.rules],
            "rows_told_apart_by": self.identity.explain(),
            "repeat": self.account.repeat,
            "randomness": RANDOMNESS,
            "warnings": list(self.warnings),
        }

    def became(self, name: str, reason: str) -> str:
        """What became of the odd rows of a rule: ``"drop"``, ``"null"`` or ``"nearest"``."""
        rule = next(each.rule for each in self.rules if each.name == name)
        return rule.for_missing if reason == "missing" else rule.invalid

    def describe_invalid_rows(self) -> list[tuple[str, str]]:
        """How many rows of which columns were no secrets, and what became of them."""
        said = []
        for (name, reason), count in sorted(self.counts.invalid.items()):
            what = MOVED.get(reason, f"rows were {reason}: {self.became(name, reason)}")
            said.append((name, f"{count:,} {what}"))
        return said

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


def described(rule: ColumnRule) -> dict[str, Any]:
    """A rule and its mechanism in plain values; nothing of the prior but what the promises say."""
    mechanism = rule.rule.mechanism
    bounds = mechanism.bounds
    found: dict[str, Any] = {
        "columns": list(rule.columns),
        "became": list(rule.outputs),
        "answer": rule.rule.output_form,
        "original": rule.rule.original,
        "mechanism": mechanism.digest,
        "secrets": len(mechanism.secrets),
        "observables": len(mechanism.observables),
        "promises": {"epsilon": bounds.epsilon, "within": bounds.within, "distortion": bounds.distortion},
    }
    if bounds.against:
        found["promises"]["against"] = {each.adversary.name: each.distortion for each in bounds.against}
    return found | mechanism.to_manifest()


def warnings_for(rules: Sequence[ColumnRule]) -> tuple[str, ...]:
    """What is to be said of answers that tell nothing, or never name some secrets; no secret is named."""
    said = []
    for rule in rules:
        mechanism = rule.rule.mechanism
        if mechanism.constant and len(mechanism.secrets) > 1:
            said.append(f"{rule.name}: the outputs do not depend on the secret at all: they tell nobody anything.")
            continue
        if (useful := mechanism.usefulness) is not None:
            if useful.limitless:
                said.append(f"{rule.name}: the epsilon promised is so large that it limits nothing.")
            if useful.unserved:
                said.append(
                    f"{rule.name}: {len(useful.unserved)} secrets that occur never get their best answer "
                    f"({useful.unserved_share:.1%} of the prior)."
                )
        if mechanism.bounds.epsilon is None:
            said.append(
                f"{rule.name}: no differential privacy is promised, only distortion privacy of a single answer."
            )
        if rule.rule.invalid == "null" or rule.rule.for_missing == "null":
            said.append(f"{rule.name}: where an answer is null, the output shows that there was no valid secret.")
    return tuple(said)


def warnings_about(counts: RowCounts) -> tuple[str, ...]:
    """What is to be said of rows that were moved to a secret which is only the nearest."""
    return tuple(
        f"{name}: {count:,} {WARNED[reason]}" for (name, reason), count in counts.invalid.items() if reason in WARNED
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"

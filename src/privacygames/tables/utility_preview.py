"""Before a release: how well means, quantiles and histograms will survive it. For the analyst: it shows the truth.

Releases are made up, many of them, from the true counts, with randomness of their own; what a recipient would find in
each is compared with the truth.
"""

import secrets
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import FiniteMechanism, require_finite_mechanism
from privacygames.spaces import Numbers, Subsets, count_visits
from privacygames.tables.apply_rules import Rules
from privacygames.tables.estimates import estimate
from privacygames.tables.kernel import RowCounts, require_near, secrets_of
from privacygames.tables.rules import ColumnRule, layout_of, rules_from
from privacygames.tables.table_files import open_table, table_files_in

TRIALS = 40
"""Made-up releases."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class StatisticAccuracy:
    """How one statistic survives.

    Attributes:
        statistic: its name.
        truth: of the data.
        released: taken from the answers as they are, on average over releases; None where answers have no such thing.
        released_error: its root mean square error.
        estimated: by :func:`privacygames.estimate` (the likeliest), on average over releases.
        estimated_error: its root mean square error.
    """

    statistic: str
    truth: float
    released: float | None
    released_error: float | None
    estimated: float
    estimated_error: float


@dataclass(frozen=True)
class UtilityPreview:
    """What a recipient would find.

    Attributes:
        columns: of which secret.
        rows_read: how many rows hold one.
        statistics: statistic by statistic. Of the histogram: the share of rows in a wrong place.
        rows_left_out: how many rows hold none, and are not in the numbers.
    """

    columns: str
    rows_read: int
    statistics: tuple[StatisticAccuracy, ...]
    rows_left_out: int = 0

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        odd = f" ({self.rows_left_out:,} more hold no secret)" if self.rows_left_out else ""
        return f"{self.columns}: {self.rows_read:,} rows{odd}, {TRIALS} made-up releases (± is the error to expect)"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """As a table: statistic, truth, as released, estimated."""
        return [
            (
                each.statistic,
                f"{each.truth:.4g}",
                "-" if each.released is None else f"{each.released:.4g} ± {each.released_error:.2g}",
                f"{each.estimated:.4g} ± {each.estimated_error:.2g}",
            )
            for each in self.statistics
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self.title, f"{'':<16}{'truth':>10}{'as released':>20}{'estimated':>20}"]
        return "\n".join([*lines, *(f"{a:<16}{b:>10}{c:>20}{d:>20}" for a, b, c, d in self.rows())])


def preview(mechanism: FiniteMechanism, values: Any) -> UtilityPreview:
    """How well statistics of some secrets survive a release by a mechanism. Shows the truth: not for the recipient.

    Args:
        mechanism: what would draw the answers.
        values: the secrets one by one (a list, an array, a column), or counts by secret.
    """
    require_finite_mechanism(mechanism, "preview needs a mechanism")
    positions, times = count_visits(mechanism.secrets, values)
    return _previewed(mechanism, np.bincount(positions, times, len(mechanism.secrets)).astype(np.float64), "secrets")


def preview_file(source: str | PathLike[str], rules: Rules, *, separator: str | None = None) -> list[UtilityPreview]:
    """The same for the columns of a CSV or Parquet file, or of a folder of them: a preview for each rule."""
    path = Path(source)
    if not path.exists():
        raise InvalidProblem(f"there is no file or folder {path}")
    files = [path] if path.is_file() else [path / name for name in table_files_in(path)]
    made = []
    for rule in rules_from(rules):
        mechanism = require_finite_mechanism(rule.rule.mechanism, "a preview is of one mechanism: a fleet has many")
        counts, odd = _counts(rule, files, separator)
        if not counts.sum():
            raise InvalidProblem(f"no row of {rule.name} holds a secret of the mechanism")
        made.append(replace(_previewed(mechanism, counts, rule.name), rows_left_out=odd))
    return made


def _counts(rule: ColumnRule, files: list[Path], separator: str | None) -> tuple[FloatArray, int]:
    """How often each secret occurs, and how many rows hold none."""
    counts, odd, tally = np.zeros(len(rule.rule.mechanism.secrets)), 0, RowCounts()
    for path in files:
        table = open_table(path, (rule,), separator)
        layout_of(table.schema.names, (rule,), ())  # refuses columns that are not there
        for batch in table.batches(rule.columns):
            columns = {name: batch.column(name) for name in rule.columns}
            found = secrets_of(rule, columns, tally)
            tally.rows += batch.num_rows
            counts += np.bincount(found[found >= 0], minlength=len(counts))
            odd += int((found < 0).sum())
    require_near((rule,), tally)
    return counts, odd


def _previewed(mechanism: FiniteMechanism, counts: FloatArray, columns: str) -> UtilityPreview:
    generator = np.random.default_rng(secrets.randbits(128))
    whole = counts.astype(np.int64)
    drawn = np.zeros((TRIALS, len(mechanism.observables)))
    for count, row in zip(whole, _rows(mechanism), strict=True):
        drawn += generator.multinomial(count, row, TRIALS) if count else 0
    released, truth = drawn / whole.sum(), whole / whole.sum()
    found = [estimate(mechanism, _by_label(mechanism, each)).frequencies for each in drawn]
    statistics = _survivals(mechanism, truth, released, np.array(found))
    return UtilityPreview(columns, int(whole.sum()), tuple(statistics))


def _by_label(mechanism: FiniteMechanism, counts: FloatArray) -> dict[Any, float]:
    return dict(zip(mechanism.observables.labels, counts.tolist(), strict=True))


def _rows(mechanism: FiniteMechanism) -> FloatArray:
    """The probabilities as floats that sum to one, as made-up releases need them."""
    table = mechanism.probabilities
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _survivals(
    mechanism: FiniteMechanism, truth: FloatArray, released: FloatArray, estimated: FloatArray
) -> list[StatisticAccuracy]:
    found = []
    space, middles = mechanism.secrets, _middles(mechanism)
    if isinstance(space, Numbers):
        for name, share in [("mean", None), *((f"{share:.0%} quantile", share) for share in QUANTILES)]:
            right = _statistic(space.values, truth, share)
            as_seen = None if middles is None else np.array([_statistic(middles, each, share) for each in released])
            worked_out = np.array([_statistic(space.values, each, share) for each in estimated])
            found.append(_survival(name, right, as_seen, worked_out))
    alike = mechanism.observables == space
    wrong = None if not alike else np.abs(released - truth).sum(axis=1) / 2
    found.append(_survival("histogram", 0.0, wrong, np.abs(estimated - truth).sum(axis=1) / 2))
    return found


def _survival(name: str, truth: float, released: FloatArray | None, estimated: FloatArray) -> StatisticAccuracy:
    def error(found: FloatArray) -> float:
        return float(np.sqrt(((found - truth) ** 2).mean()))

    middle, off = (None, None) if released is None else (float(released.mean()), error(released))
    return StatisticAccuracy(name, truth, middle, off, float(estimated.mean()), error(estimated))


def _middles(mechanism: FiniteMechanism) -> FloatArray | None:
    """The number that each answer stands for, where it stands for one."""
    answers = mechanism.observables
    if isinstance(answers, Numbers):
        return answers.values
    if isinstance(answers, Subsets) and isinstance(answers.underlying, Numbers):
        return np.array([answers.underlying.values[group].mean() for group in answers.members])
    return None


def _statistic(values: FloatArray, shares: FloatArray, share: float | None) -> float:
    """The quantile at a share; the mean where there is none."""
    if share is None:
        return float(values @ shares)
    order = np.argsort(values)
    reached = np.cumsum(shares[order]) >= share - 1e-12
    return float(values[order][int(np.argmax(reached)) if reached.any() else -1])

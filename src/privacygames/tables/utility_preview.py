"""A preview of a release's utility: the error of means, quantiles and histograms. It shows the true values.

Many releases are simulated from the true counts, with randomness of their own; the statistics that a recipient would
compute from each are compared with the true ones.
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
from privacygames.tables.estimates import estimate
from privacygames.tables.kernel import RowCounts, require_few_far_rows, secrets_of
from privacygames.tables.rules import ColumnRule, Rules, column_rules, output_layout
from privacygames.tables.table_files import open_table, table_files_in

TRIALS = 40
"""Number of simulated releases: the relative error of an estimated root-mean-square error is about 11 %."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class StatisticAccuracy:
    """The error of one statistic of a released table.

    Attributes:
        statistic: its name.
        truth: its value in the data.
        released: computed from the outputs as they are, on average over releases; None if outputs have no such
            statistic.
        released_error: the root-mean-square error of that.
        estimated: computed from frequencies of :func:`privacygames.estimate` (maximum likelihood), on average.
        estimated_error: the root-mean-square error of that.

    >>> pg.tables.StatisticAccuracy("mean", 34.0, 33.1, 1.2, 34.1, 0.4).estimated_error
    0.4
    """

    statistic: str
    truth: float
    released: float | None
    released_error: float | None
    estimated: float
    estimated_error: float


@dataclass(frozen=True)
class UtilityPreview:
    """The errors of the statistics that a recipient would compute.

    Attributes:
        columns: the columns of the secret.
        rows_read: the number of rows that hold a secret.
        statistics: the statistics. The error of the histogram is the share of rows counted in a wrong bin.
        rows_left_out: the number of rows that hold no secret, which the statistics leave out.

    >>> ages = pg.Numbers(range(20, 24), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=1.0)
    >>> [each.statistic for each in pg.tables.preview(mechanism, [20, 22, 23]).statistics][:2]
    ['mean', '10% quantile']
    """

    columns: str
    rows_read: int
    statistics: tuple[StatisticAccuracy, ...]
    rows_left_out: int = 0

    @property
    def title(self) -> str:
        """The columns and rows, in a line."""
        invalid = f" ({self.rows_left_out:,} more hold no secret)" if self.rows_left_out else ""
        return (
            f"{self.columns}: {self.rows_read:,} rows{invalid}, {TRIALS} simulated releases (± is the error to expect)"
        )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Rows of texts for a table: statistic, truth, as released, estimated."""
        return [
            (
                row.statistic,
                f"{row.truth:.4g}",
                "-" if row.released is None else f"{row.released:.4g} ± {row.released_error:.2g}",
                f"{row.estimated:.4g} ± {row.estimated_error:.2g}",
            )
            for row in self.statistics
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self.title, f"{'':<16}{'truth':>10}{'as released':>20}{'estimated':>20}"]
        return "\n".join([*lines, *(f"{a:<16}{b:>10}{c:>20}{d:>20}" for a, b, c, d in self.rows())])


def preview(mechanism: FiniteMechanism, values: Any) -> UtilityPreview:
    """Simulate releases of some secrets, and report the error of statistics. It shows the truth: not for recipients.

    Args:
        mechanism: the mechanism that would draw the outputs.
        values: the secrets one by one (a list, an array, a column), or counts by secret.

    >>> ages = pg.Numbers(range(20, 24), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=1.0)
    >>> pg.tables.preview(mechanism, {20: 30, 22: 10}).rows_read
    40
    """
    require_finite_mechanism(mechanism, "preview needs a mechanism")
    positions, weights = count_visits(mechanism.secrets, values)
    return _simulate(mechanism, np.bincount(positions, weights, len(mechanism.secrets)).astype(np.float64), "secrets")


def preview_file(source: str | PathLike[str], rules: Rules, *, separator: str | None = None) -> list[UtilityPreview]:
    r"""Simulate releases of a CSV or Parquet file, or of a folder of them: one preview for each rule.

    Args:
        source: a file or folder.
        rules: as in :func:`apply`.
        separator: between the fields of CSV files; by default detected from the first line.

    >>> with open("ages.csv", "w") as file:
    ...     _ = file.write("age\n21\n23\n")
    >>> ages = pg.Numbers(range(20, 24), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=1.0)
    >>> pg.tables.preview_file("ages.csv", {"age": mechanism})[0].rows_read
    2
    """
    path = Path(source)
    if not path.exists():
        raise InvalidProblem(f"there is no file or folder {path}")
    files = [path] if path.is_file() else [path / name for name in table_files_in(path)]
    previews = []
    for rule in column_rules(rules):
        mechanism = require_finite_mechanism(rule.rule.mechanism, "a preview is of one mechanism: a fleet has many")
        counts, rows_left_out = _count_secrets(rule, len(mechanism.secrets), files, separator)
        if not counts.sum():
            raise InvalidProblem(f"no row of {rule.name} holds a secret of the mechanism")
        previews.append(replace(_simulate(mechanism, counts, rule.name), rows_left_out=rows_left_out))
    return previews


def _count_secrets(rule: ColumnRule, secrets: int, files: list[Path], separator: str | None) -> tuple[FloatArray, int]:
    """The number of rows with each secret, and of rows without any."""
    by_secret, rows_left_out, counts = np.zeros(secrets), 0, RowCounts()
    for path in files:
        table = open_table(path, (rule,), separator)
        output_layout(table.schema.names, (rule,), ())  # refuses columns that are not there
        for batch in table.batches(rule.columns):
            columns = {name: batch.column(name) for name in rule.columns}
            positions = secrets_of(rule, columns, counts)
            counts.rows += batch.num_rows
            by_secret += np.bincount(positions[positions >= 0], minlength=len(by_secret))
            rows_left_out += int((positions < 0).sum())
    require_few_far_rows((rule,), counts)
    return by_secret, rows_left_out


def _simulate(mechanism: FiniteMechanism, by_secret: FloatArray, columns: str) -> UtilityPreview:
    """Simulate releases of rows with these secrets."""
    generator = np.random.default_rng(secrets.randbits(128))
    counts = by_secret.astype(np.int64)
    drawn = np.zeros((TRIALS, len(mechanism.observables)))
    probabilities = mechanism.probabilities / mechanism.probabilities.sum(axis=1, keepdims=True)
    for count, row in zip(counts, probabilities, strict=True):
        drawn += generator.multinomial(count, row, TRIALS) if count else 0
    labels = mechanism.observables.labels
    estimates = [estimate(mechanism, dict(zip(labels, trial.tolist(), strict=True))).frequencies for trial in drawn]
    statistics = _accuracies(mechanism, counts / counts.sum(), drawn / counts.sum(), np.array(estimates))
    return UtilityPreview(columns, int(counts.sum()), tuple(statistics))


def _accuracies(
    mechanism: FiniteMechanism, true_shares: FloatArray, released: FloatArray, estimated: FloatArray
) -> list[StatisticAccuracy]:
    """The accuracy of each statistic, from shares: of the secrets, of the outputs of each trial, and estimated."""
    accuracies = []
    space, values = mechanism.secrets, _output_values(mechanism)
    if isinstance(space, Numbers):
        for name, quantile in [("mean", None), *((f"{share:.0%} quantile", share) for share in QUANTILES)]:
            truth = _statistic(space.values, true_shares, quantile)
            as_released = None if values is None else np.array([_statistic(values, row, quantile) for row in released])
            as_estimated = np.array([_statistic(space.values, row, quantile) for row in estimated])
            accuracies.append(_accuracy(name, truth, as_released, as_estimated))
    same_space = mechanism.observables == space
    misplaced = np.abs(released - true_shares).sum(axis=1) / 2 if same_space else None
    accuracies.append(_accuracy("histogram", 0.0, misplaced, np.abs(estimated - true_shares).sum(axis=1) / 2))
    return accuracies


def _accuracy(name: str, truth: float, released: FloatArray | None, estimated: FloatArray) -> StatisticAccuracy:
    def rms_error(values: FloatArray) -> float:
        return float(np.sqrt(((values - truth) ** 2).mean()))

    mean, error = (None, None) if released is None else (float(released.mean()), rms_error(released))
    return StatisticAccuracy(name, truth, mean, error, float(estimated.mean()), rms_error(estimated))


def _output_values(mechanism: FiniteMechanism) -> FloatArray | None:
    """The number that each output stands for; None if outputs are not numbers or sets of them."""
    outputs = mechanism.observables
    if isinstance(outputs, Numbers):
        return outputs.values
    if isinstance(outputs, Subsets) and isinstance(outputs.underlying, Numbers):
        return np.array([outputs.underlying.values[group].mean() for group in outputs.members])
    return None


def _statistic(values: FloatArray, shares: FloatArray, quantile: float | None) -> float:
    """The quantile at a share, or the mean for None."""
    if quantile is None:
        return float(values @ shares)
    order = np.argsort(values)
    reached = np.cumsum(shares[order]) >= quantile - 1e-12
    return float(values[order][int(np.argmax(reached)) if reached.any() else -1])

"""A preview of a release's utility: the error of means, quantiles and histograms. It shows the true values.

Many releases are simulated from the true counts, with randomness of their own; the statistics that a recipient would
compute from each are compared with the true ones.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import (
    FiniteMechanism,
    RandomWords,
    RegionMechanism,
    is_region_mechanism,
    require_finite_mechanism,
)
from privacygames.spaces import Numbers, Subsets, count_visits
from privacygames.tables.estimates import estimate
from privacygames.tables.kernel import RowCounts, require_few_far_rows, secrets_of
from privacygames.tables.point_columns import PointReader
from privacygames.tables.rules import ColumnRule, Rules, column_rules, output_layout
from privacygames.tables.table_files import open_table, table_files_in

TRIALS = 40
"""Number of simulated releases: the relative error of an estimated root-mean-square error is about 11 %."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
DISTANCE_QUANTILES = (0.5, 0.9)


@dataclass(frozen=True)
class StatisticAccuracy:
    """The error of one statistic of a released table.

    Attributes:
        statistic: its name.
        truth: its value in the data.
        released: computed from the outputs as they are, on average over releases; None if outputs have no such
            statistic.
        released_error: the root-mean-square error of that; None for distances, which are errors themselves.
        estimated: computed from frequencies of :func:`privacygames.estimate` (maximum likelihood), on average; None
            where secrets are points, which have no frequencies.
        estimated_error: the root-mean-square error of that.

    >>> pg.tables.StatisticAccuracy("mean", 34.0, 33.1, 1.2, 34.1, 0.4).estimated_error
    0.4
    """

    statistic: str
    truth: float
    released: float | None
    released_error: float | None
    estimated: float | None
    estimated_error: float | None


@dataclass(frozen=True)
class UtilityPreview:
    """The errors of the statistics that a recipient would compute.

    Attributes:
        columns: the columns of the secret.
        rows_read: the number of rows that hold a secret.
        statistics: the statistics. The error of the histogram is the share of rows counted in a wrong bin;
            distances are those of outputs from secrets.
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
                _with_error(row.released, row.released_error),
                _with_error(row.estimated, row.estimated_error),
            )
            for row in self.statistics
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self.title, f"{'':<28}{'truth':>10}{'as released':>20}{'estimated':>20}"]
        return "\n".join([*lines, *(f"{a:<28}{b:>10}{c:>20}{d:>20}" for a, b, c, d in self.rows())])


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if error is None else f"{value:.4g} ± {error:.2g}"


def preview(mechanism: FiniteMechanism | RegionMechanism, values: Any) -> UtilityPreview:
    """Simulate releases of some secrets, and report the error of statistics. It shows the truth: not for recipients.

    Args:
        mechanism: the mechanism that would draw the outputs.
        values: the secrets one by one (a list, an array, a column), or counts by secret; of a mechanism for points, the
            points.

    >>> ages = pg.Numbers(range(20, 24), unit="years")
    >>> mechanism = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(ages)), epsilon=1.0)
    >>> pg.tables.preview(mechanism, {20: 30, 22: 10}).rows_read
    40
    """
    if is_region_mechanism(mechanism):
        return _simulate_points(mechanism, mechanism.secrets.project(values), "secrets")
    finite = require_finite_mechanism(mechanism, "preview needs a mechanism")
    positions, weights = count_visits(finite.secrets, values)
    return _simulate(finite, np.bincount(positions, weights, len(finite.secrets)).astype(np.float64), "secrets")


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
    return [_preview_rule(rule, files, separator) for rule in column_rules(rules)]


def _preview_rule(rule: ColumnRule, files: list[Path], separator: str | None) -> UtilityPreview:
    mechanism, reader, rows_left_out = rule.rule.mechanism, rule.reader, 0
    points: list[FloatArray] = []
    by_secret = np.zeros(0 if reader.secret_count is None else reader.secret_count)
    for columns, positions in _secrets_in(rule, files, separator):
        rows_left_out += int((positions < 0).sum())
        if isinstance(reader, PointReader):
            points.append(reader.region.project(reader.points(columns)[positions >= 0]))
        else:
            by_secret += np.bincount(positions[positions >= 0], minlength=len(by_secret))
    if not (by_secret.any() or any(map(len, points))):
        raise InvalidProblem(f"no row of {rule.name} holds a secret of the mechanism")
    if isinstance(reader, PointReader):
        made = _simulate_points(reader.mechanism, np.concatenate(points), rule.name)
    else:
        finite = require_finite_mechanism(mechanism, "a preview is of one mechanism: a fleet has many")
        made = _simulate(finite, by_secret, rule.name)
    return replace(made, rows_left_out=rows_left_out)


def _secrets_in(
    rule: ColumnRule, files: list[Path], separator: str | None
) -> Iterator[tuple[dict[str, Any], IntArray]]:
    """The columns of each batch of rows, and their secrets as numbers."""
    counts = RowCounts()
    for path in files:
        table = open_table(path, (rule,), separator)
        output_layout(table.schema.names, (rule,), ())  # refuses columns that are not there
        for batch in table.batches(rule.columns):
            columns = {name: batch.column(name) for name in rule.columns}
            yield columns, secrets_of(rule, columns, counts)
            counts.rows += batch.num_rows
    require_few_far_rows((rule,), counts)


def _simulate_points(mechanism: RegionMechanism, points: FloatArray, columns: str) -> UtilityPreview:
    """Simulate releases of rows with these points, (rows, axes) in the unit of distances."""
    if not len(points):
        raise InvalidProblem("a preview needs at least one point")
    region, outputs = mechanism.secrets, mechanism.outputs
    places, sampler = region.project(outputs), mechanism.row_sampler()
    codes = mechanism.encode(region.coordinates(points))
    off, released = [], []
    for _ in range(TRIALS):
        drawn = sampler.draw(codes, _system_words(len(codes)))
        off.append(_mean_and_quantiles(np.linalg.norm(points - places[drawn], axis=1), DISTANCE_QUANTILES))
        if region.dimension == 1:
            released.append(_mean_and_quantiles(outputs[drawn, 0], QUANTILES))
    statistics = []
    if region.dimension == 1:
        names, truth = _names(QUANTILES), _mean_and_quantiles(region.coordinates(points)[:, 0], QUANTILES)
        for name, true_value, values in zip(names, truth, np.array(released).T, strict=True):
            statistics.append(_accuracy(name, float(true_value), values, None))
    for name, value in zip(_names(DISTANCE_QUANTILES), np.mean(off, axis=0), strict=True):
        unit = f" in {region.unit}" if region.unit else ""
        statistics.append(StatisticAccuracy(f"distance{unit}, {name}", 0.0, float(value), None, None, None))
    return UtilityPreview(columns, len(points), tuple(statistics))


def _mean_and_quantiles(values: FloatArray, shares: Sequence[float]) -> FloatArray:
    """The mean, and the smallest of the values that at least these shares of them do not exceed."""
    return np.append(values.mean(), np.quantile(values, shares, method="inverted_cdf"))


def _names(shares: Sequence[float]) -> list[str]:
    return ["mean", *map(_quantile_name, shares)]


def _quantile_name(share: float) -> str:
    return f"{share:.0%} quantile"


def _system_words(count: int) -> RandomWords:
    """Random bits for each row, from the operating system."""
    return lambda number: np.frombuffer(os.urandom(8 * count), dtype=np.uint64)  # noqa: ARG005


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
        for name, quantile in [("mean", None), *((_quantile_name(share), share) for share in QUANTILES)]:
            truth = _statistic(space.values, true_shares, quantile)
            as_released = None if values is None else np.array([_statistic(values, row, quantile) for row in released])
            as_estimated = np.array([_statistic(space.values, row, quantile) for row in estimated])
            accuracies.append(_accuracy(name, truth, as_released, as_estimated))
    same_space = mechanism.observables == space
    misplaced = np.abs(released - true_shares).sum(axis=1) / 2 if same_space else None
    accuracies.append(_accuracy("histogram", 0.0, misplaced, np.abs(estimated - true_shares).sum(axis=1) / 2))
    return accuracies


def _accuracy(name: str, truth: float, released: FloatArray | None, estimated: FloatArray | None) -> StatisticAccuracy:
    def mean_and_error(values: FloatArray | None) -> tuple[float | None, float | None]:
        if values is None:
            return None, None
        return float(values.mean()), float(np.sqrt(((values - truth) ** 2).mean()))

    return StatisticAccuracy(name, truth, *mean_and_error(released), *mean_and_error(estimated))


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

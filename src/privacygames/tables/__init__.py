"""Mechanisms applied to tables of pandas, Polars, PyArrow, DuckDB, Dask and Spark, and to CSV and Parquet files."""

from privacygames.problem import ANY_PAIR
from privacygames.tables.apply import apply
from privacygames.tables.estimates import FrequencyEstimate, IntervalEstimate, estimate
from privacygames.tables.file_release import apply_files
from privacygames.tables.manifest import Manifest
from privacygames.tables.release_key import ReleaseKey
from privacygames.tables.release_ledger import LedgerCharge, LedgerState, ReleaseLedger, is_release_ledger
from privacygames.tables.rules import Rule
from privacygames.tables.utility_preview import StatisticAccuracy, UtilityPreview, preview, preview_file

__all__ = [
    "ANY_PAIR",
    "FrequencyEstimate",
    "IntervalEstimate",
    "LedgerCharge",
    "LedgerState",
    "Manifest",
    "ReleaseKey",
    "ReleaseLedger",
    "Rule",
    "StatisticAccuracy",
    "UtilityPreview",
    "apply",
    "apply_files",
    "estimate",
    "is_release_ledger",
    "preview",
    "preview_file",
]


def __dir__() -> list[str]:
    return __all__

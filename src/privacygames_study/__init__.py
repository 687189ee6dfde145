"""The evaluation of the paper on any people's visits: scenarios, approximations, claims, figures, report; and replays.

It is a package beside the library because it is a client of it: nothing in ``privacygames`` imports it, except the
commands ``study`` and ``replay`` when they run. It stays in the same distribution, so that a study always runs with the
version of the library that its manifest names.
"""

from privacygames.jobs import (
    DaskExecutor,
    Executor,
    ProcessExecutor,
    SerialExecutor,
    Store,
    Table,
    executor_for,
    read_table,
    write_table,
)
from privacygames_study import replays
from privacygames_study.claims import check_claims
from privacygames_study.manifest import StudyManifest, read_manifest
from privacygames_study.parts import approximation, effect_of_the_prior, robust, scenario_1, scenario_2, scenario_3
from privacygames_study.people import Person, coarsen, informed_prior, select_people
from privacygames_study.provenance import DataDigest, data_digest
from privacygames_study.publish import publish, read_study
from privacygames_study.runner import Study, compute, run
from privacygames_study.settings import PARTS, QUICK, Settings

__all__ = [
    "PARTS",
    "QUICK",
    "DaskExecutor",
    "DataDigest",
    "Executor",
    "Person",
    "ProcessExecutor",
    "SerialExecutor",
    "Settings",
    "Store",
    "Study",
    "StudyManifest",
    "Table",
    "approximation",
    "check_claims",
    "coarsen",
    "compute",
    "data_digest",
    "effect_of_the_prior",
    "executor_for",
    "informed_prior",
    "publish",
    "read_manifest",
    "read_study",
    "read_table",
    "replays",
    "robust",
    "run",
    "scenario_1",
    "scenario_2",
    "scenario_3",
    "select_people",
    "write_table",
]

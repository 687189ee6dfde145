"""The paper's evaluation, on any people: scenarios, the effect of the prior, approximations, and the claims checked."""

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
from privacygames.study import demo_city
from privacygames.study.claims import check_claims
from privacygames.study.metadata import About, read_about
from privacygames.study.parts import approximation, effect_of_the_prior, robust, scenario_1, scenario_2, scenario_3
from privacygames.study.people import Person, coarser, informed, people_of
from privacygames.study.provenance import DataDigest, digest_of
from privacygames.study.publish import publish, read_study
from privacygames.study.runner import Study, compute, run
from privacygames.study.settings import PARTS, QUICK, Settings

__all__ = [
    "PARTS",
    "QUICK",
    "About",
    "DaskExecutor",
    "DataDigest",
    "Executor",
    "Person",
    "ProcessExecutor",
    "SerialExecutor",
    "Settings",
    "Store",
    "Study",
    "Table",
    "approximation",
    "check_claims",
    "coarser",
    "compute",
    "demo_city",
    "digest_of",
    "effect_of_the_prior",
    "executor_for",
    "informed",
    "people_of",
    "publish",
    "read_about",
    "read_study",
    "read_table",
    "robust",
    "run",
    "scenario_1",
    "scenario_2",
    "scenario_3",
    "write_table",
]

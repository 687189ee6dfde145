"""The paper's evaluation, on any people: scenarios, the effect of the prior, approximations, and the claims checked."""

from privacygames.jobs import Cluster, Here, Processes, Store, Table, Workers, read_table, workers_for, write_table
from privacygames.study import demo_city
from privacygames.study.about import About, read_about
from privacygames.study.claims import check_claims
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
    "Cluster",
    "DataDigest",
    "Here",
    "Person",
    "Processes",
    "Settings",
    "Store",
    "Study",
    "Table",
    "Workers",
    "approximation",
    "check_claims",
    "coarser",
    "compute",
    "demo_city",
    "digest_of",
    "effect_of_the_prior",
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
    "workers_for",
    "write_table",
]

"""What a process calls everything, and what it draws with given keys: run by test_canonical.py under some hash seeds.

    python process_report.py FOLDER forward|backward

Prints one JSON object that must be the same whoever runs this: sets are built from their elements forward or backward,
and the ledger, the fleet and the tables in FOLDER are used by every process after the first one made them.
"""

import enum
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import privacygames as pg
from privacygames.fleet import Fleet
from privacygames.fleet import design as design_fleet
from privacygames.releases import Budget, Memoised, Releases
from privacygames.releases.ledger.scope import scope_digests
from privacygames.spaces import space_digest
from privacygames.tables import ReleaseKey, Rule, apply
from privacygames_study.replays import PersonDays
from privacygames_study.replays.strategies import DailyBudget
from privacygames_study.replays.task import ReplayTask
from privacygames_study.tasks import Task

FILMS = [["Alien", "Brazil", "Casablanca"], ["Alien", "Dune"], ["Brazil", "Élan", "Zorro", "80 Blocks"], [], ["Dune"]]
WEIGHTS = (
    np.array([[4, 1, 1, 1, 1], [1, 4, 1, 1, 1], [1, 1, 4, 1, 1], [1, 1, 1, 4, 1], [1, 1, 1, 1, 4]], np.int64) << 59
)
KEY = bytes(range(32))


class Colour(enum.StrEnum):
    RED = "red"
    GREEN = "green"


def report(folder: Path, *, backward: bool) -> dict[str, Any]:
    def built(texts: list[str]) -> frozenset[str]:
        made: set[str] = set()
        for text in reversed(texts) if backward else texts:
            made.add(text)
        return frozenset(made)

    films = [built(each) for each in FILMS]
    space = pg.Sets(films)
    uniform = pg.Prior.uniform(space)
    problem = pg.Problem(uniform)
    mechanism = pg.Mechanism.from_weights(problem, WEIGHTS)
    attributes = [(film, built(["long", "old"] if "Alien" in film else ["short", "new", "funny"])) for film in films]
    adversary = pg.Adversary.from_table("genre", space, attributes)
    texts: list[Any] = ["red", "green"]
    numbers: list[Any] = [1, 2, 3]
    return {
        "spaces": [
            space_digest(each)
            for each in (
                space,
                pg.Categories(films),
                pg.Categories([Colour.RED, np.str_("green")] if backward else texts),
                pg.Numbers(np.array([1.0, 2.0, 3.0]) if backward else numbers),
                pg.Graph([(films[0], films[1]), (films[1], "a")]),
                pg.Space.from_distances(films[:2], [[0.0, 1.0], [2.0, 0.0]]),
                pg.Subsets.all(space, at_most=2),
                pg.Product([space, pg.Numbers([0.5, -0.0 if backward else 0.0])]),
                pg.Grid(3, 2),
            )
        ],
        "labels": [*pg.Subsets.all(space, at_most=2).labels, *pg.Product([space, pg.Numbers([1])]).labels],
        "distances": space.distance("jaccard").tolist(),
        "mechanism": mechanism.digest,
        "public": pg.PublicMechanism.of(mechanism).digest,
        "adversary": [adversary.digest, repr(adversary)],
        "against": pg.design(problem, epsilon=1.0, distortion={adversary: 0.1}).bounds.content,
        "ledger": scope_digests(problem, pg.Mobility.still(space), Memoised(KEY).charging),
        "mobility": pg.Mobility.from_visits(space, [films[0], films[1], films[0]]).fingerprint,
        "study": Task(uniform, epsilon=1.0, strengths=(2.0,)).key,
        "memoised": memoised(folder / "ledger.db", problem, mechanism, films),
        "replays": replays(problem),
        "fleet": fleet(folder / "fleet", space),
        "table": table(mechanism),
    }


def memoised(path: Path, problem: pg.Problem, mechanism: pg.Mechanism, films: list[frozenset[str]]) -> list[Any]:
    """Answers of a memoised policy: each place charged in the first process alone, and the same in all others."""
    budget = [Budget(20.0), Budget(50.0, distinguishability="hamming")]
    still = pg.Mobility.still(problem.space)
    sharing = Releases(problem, still, policy=Memoised(KEY), mechanism=mechanism, budget=budget, ledger=path)
    for film in films:
        sharing.release(film)
    again = [sharing.release(film) for film in films]
    return [[problem.space.index(each.observable), each.spent, each.source] for each in again]


def replays(problem: pg.Problem) -> list[Any]:
    """A replay's draws follow from its key; which of two equally frequent answers is believed, from when it came."""
    hours = np.array([23, 23, 0, 1])
    days = PersonDays(
        label="user 1",
        problem=problem,
        mobility=pg.Mobility.still(problem.space),
        cells=np.array([0, 1, 2, 3]),
        times=np.arange(4) * 3600,
        days=np.zeros(4, dtype=np.int64),
        hours=hours,
        home=0,
        requests=4,
        places=4,
    )
    jobs = [ReplayTask(days, "memoised", DailyBudget(20.0, 4, 4), seed) for seed in range(6)]
    return [[job.key, job.run()] for job in jobs]


def fleet(folder: Path, space: pg.Space) -> list[Any]:
    people = {"Ada": pg.Prior.from_counts(space, [5, 1, 1, 1, 1]), "Alan": pg.Prior.uniform(space)}
    if not folder.exists():
        design_fleet(people, out=folder, epsilon=1.0, jobs=1)
    opened = Fleet(folder)
    rows = pa.table({"who": ["Ada", "Alan"] * 20, "films": [FILMS[row % 5] for row in range(40)], "row": range(40)})
    rules = {"films": Rule(mechanism=opened, output_form="set")}
    released, _ = apply(rows, rules, key=ReleaseKey(KEY), key_columns="row", user="who")
    return [opened.digest, opened.records_digest, opened.verify(), released["films"].to_pylist()]


def table(mechanism: pg.Mechanism) -> list[Any]:
    rows = pa.table({"films": [FILMS[row % 5] for row in range(60)], "row": range(60)})
    rules = {"films": Rule(mechanism=mechanism, output_form="set")}
    released, manifest = apply(rows, rules, key=ReleaseKey(KEY), key_columns="row")
    return [released["films"].to_pylist(), manifest.to_dict()["columns"]]


if __name__ == "__main__":
    print(json.dumps(report(Path(sys.argv[1]), backward=sys.argv[2] == "backward")))

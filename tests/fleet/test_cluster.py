"""Fleets on a cluster: workers live longer than whoever asks them, and know nothing of folders."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import privacygames as pg
from fleets import payloads_in, people
from privacygames.fleet import Fleet, remove
from privacygames.fleet import design as design_fleet
from privacygames.tables import apply
from support import two_workers

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_workers() as made:
        yield made


DRIVER = """
import sys
from fleets import people
from privacygames.fleet import design

epsilon, out, scheduler = sys.argv[1:]
fleet = design(people(3), out=out, epsilon=float(epsilon), scheduler=scheduler)
assert fleet.verify(scheduler=scheduler) == 3
for name in people(3):
    print(float(fleet[name].certificate.verification.largest_ratio) <= 1, fleet[name].bounds.epsilon)
"""


def test_workers_do_not_take_a_path_for_the_fleet_that_was_there(cluster: Any, tmp_path: Path) -> None:
    """Each design by a process of its own; the workers are the same."""
    for epsilon in ("2.0", "0.5"):
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, epsilon, str(tmp_path / "f"), cluster.scheduler_address],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"True {epsilon}\n" * 3
        here = design_fleet(people(3), out=tmp_path / f"here-{epsilon}", epsilon=float(epsilon), jobs=1)
        assert payloads_in(tmp_path / "f") == payloads_in(here.folder)
        shutil.rmtree(tmp_path / "f")


def test_a_worker_killed_in_its_work_loses_nobody_and_doubles_nobody(cluster: Any, tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    killed: list[int] = []
    done: list[int] = []
    with distributed.Client(cluster, set_as_default=False) as client:

        def kill_one(now: pg.Progress) -> None:
            done.append(now.done)
            if not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        fleet = design_fleet(people(80), out=tmp_path / "f", epsilon=0.5, scheduler=client, progress=kill_one)
    assert done == list(range(1, 81))
    assert fleet.verify(scheduler=cluster) == 80
    here = design_fleet(people(80), out=tmp_path / "here", epsilon=0.5, jobs=1)
    assert payloads_in(fleet.folder) == payloads_in(here.folder)


def test_workers_verify_the_bytes_that_are_there(cluster: Any, tmp_path: Path) -> None:
    fleet = design_fleet(people(3), out=tmp_path / "f", epsilon=0.5, jobs=1)
    assert fleet.verify(scheduler=cluster.scheduler_address) == 3
    content = bytearray((fleet.folder / "people.dat").read_bytes())
    content[-1] ^= 1
    (fleet.folder / "people.dat").write_bytes(content)
    with pytest.raises(pg.GuaranteeViolated, match="1 of 3 mechanisms"):
        fleet.verify(scheduler=cluster.scheduler_address)


def test_a_release_on_a_cluster_is_of_the_fleet_it_was_set_up_with(cluster: Any, tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    fleet = design_fleet(people(3), out=tmp_path / "f", epsilon=0.5, jobs=1)
    data = pd.DataFrame({"who": ["user-0", "user-1"] * 20, "cell": ["cell-1", "cell-2"] * 20, "row": range(40)})
    with distributed.Client(cluster.scheduler_address):
        later, _ = apply(dd.from_pandas(data, npartitions=2), {"cell": fleet}, user="who", key_columns="row")
        assert len(later.compute()) == 40
        remove(fleet, ["user-1"], jobs=1)
        with pytest.raises(pg.StaleFleet, match="Open it again"):
            later.compute()
    assert sorted(Fleet(fleet.folder)) == ["user-0", "user-2"]


def test_nobody_is_given_the_result_that_another_asked_for(cluster: Any, tmp_path: Path) -> None:
    """Dask keeps the result of a key while anybody holds it, and gives it to whoever asks for that key."""
    fleet = design_fleet(people(3), out=tmp_path / "f", epsilon=0.5, jobs=1)
    content = bytearray((fleet.folder / "people.dat").read_bytes())
    verdicts = []

    def alter_and_verify_again(now: pg.Progress) -> None:
        if now.done == 3:  # the first call still holds its results
            content[-1] ^= 1
            (fleet.folder / "people.dat").write_bytes(content)
            with pytest.raises(pg.GuaranteeViolated, match="1 of 3 mechanisms"):
                fleet.verify(scheduler=cluster.scheduler_address)
            verdicts.append("broken")

    assert fleet.verify(scheduler=cluster.scheduler_address, progress=alter_and_verify_again) == 3
    assert verdicts == ["broken"]

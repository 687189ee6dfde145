"""Load on the service over loopback: releases a second, latencies, memory and descriptors, for 1 to 100,000 people.

    python benchmarks/service.py [--store URL] [--people 1 1000] [--seconds 10] [--workers 4] [--clients 32]

Everything runs on this machine, the clients too, in a process of their own. Each request is a release with an
Idempotency-Key, charged and committed before it is answered. With ``--store`` a PostgreSQL database that may be filled;
otherwise an SQLite file in a temporary folder. The people of the largest fleets have one of a few priors, so that the
fleet is made quickly; each has a record, a ledger and a session of their own.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import psutil

import privacygames as pg

PRIORS = 16
"""Different priors of the people."""


def fleet_of(people: int, folder: Path) -> str:
    """A fleet over twelve cells."""
    grid, rng = pg.Grid(4, 3, 4.0, 3.0), np.random.default_rng(0)
    priors = [pg.Prior.from_counts(grid, rng.integers(1, 9, 12)) for _ in range(PRIORS)]
    named = {f"user-{number}": priors[number % PRIORS] for number in range(people)}
    pg.fleet.design(named, out=folder, epsilon=1.0, jobs=1)
    return str(folder)


class Client:
    """Connections that each send one request after another."""

    def __init__(self, port: int, people: int, seconds: float) -> None:
        self.port, self.people = port, people
        self.begin = monotonic() + 1.0
        self.end = self.begin + seconds
        self.latencies: list[float] = []
        self.statuses: dict[int, int] = {}
        self.all = 0
        self.chance, self.keys = random.Random(os.getpid()), count()

    async def connection(self) -> None:
        """Send requests until the time is over."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while (started := monotonic()) < self.end:
            body = json.dumps({"secret": f"cell-{self.chance.randrange(12)}"})
            person = f"user-{self.chance.randrange(self.people)}"
            lines = [
                f"POST /v1/people/{person}/releases HTTP/1.1",
                "Host: 127.0.0.1",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                f"Idempotency-Key: {os.getpid()}-{next(self.keys)}",
            ]
            writer.write("\r\n".join([*lines, "", body]).encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await reader.readexactly(int(re.findall(r"content-length: (\d+)", head, re.IGNORECASE)[0]))
            self.all += 1
            if started >= self.begin:
                status = int(head.split(" ", 2)[1])
                self.statuses[status] = self.statuses.get(status, 0) + 1
                self.latencies.append(monotonic() - started)
        writer.close()

    async def run(self, connections: int) -> None:
        """Send requests over several connections at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(self.connection())


def load(port: int, people: int, seconds: float, clients: int) -> None:
    """The clients' process: prints what it measured as JSON."""
    client = Client(port, people, seconds)
    asyncio.run(client.run(clients))
    cuts = statistics.quantiles(client.latencies, n=1000)
    values = {"rate": len(client.latencies) / seconds, "p50": 1000 * cuts[499], "p99": 1000 * cuts[989]}
    print(json.dumps(values | {"statuses": client.statuses, "all": client.all}))


def workers_of(pid: int) -> list[psutil.Process]:
    """The worker processes."""
    return [each for each in psutil.Process(pid).children() if "spawn_main" in " ".join(each.cmdline())]


def resources(pid: int) -> dict[str, float]:
    """Memory that the workers hold alone, their descriptors, and the processor time they have used."""
    workers = workers_of(pid)
    return {
        "MiB": sum(each.memory_full_info().uss for each in workers) / 2**20,
        "descriptors": sum(each.num_fds() for each in workers),
        "cpu": sum(sum(each.cpu_times()[:2]) for each in workers),
    }


def wait_until_ready(port: int) -> None:
    """Wait until a worker answers."""
    from urllib.error import URLError
    from urllib.request import urlopen

    while True:
        try:
            urlopen(f"http://127.0.0.1:{port}/readyz").close()
        except URLError:
            continue
        return


def measure(fleet: str, store: str, people: int, options: argparse.Namespace) -> dict[str, object]:
    """Start the service, put it under load twice, and stop it."""
    arguments = ["--fleet", fleet, "--store", store, "--port", "0", "--workers", str(options.workers)]
    budget = ["--budget", "1000000/24h"]
    process = subprocess.Popen(
        [sys.executable, "-m", "privacygames", "serve", *arguments, *budget], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        port = int(re.findall(r":(\d+)/", process.stdout.readline())[0])
        command = [sys.executable, __file__, "--load", str(port), "--clients", str(options.clients)]
        results: list[dict[str, object]] = []
        wait_until_ready(port)
        sleep(options.settle)  # the other workers start, too
        for _ in range(2):  # the first is a warm-up; memory is compared between the two
            arguments = ["--people", str(people), "--seconds", str(options.seconds)]
            before = resources(process.pid)
            done = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, text=True, check=True)
            after, measured = resources(process.pid), json.loads(done.stdout)
            released = measured["all"]
            measured["CPU ms"] = 1000 * (after["cpu"] - before["cpu"]) / released
            results.append(measured | after)
        return results[1] | {"MiB before": results[0]["MiB"], "descriptors before": results[0]["descriptors"]}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def main() -> None:
    """Measure each number of people, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store")
    parser.add_argument("--people", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--settle", type=float, default=8.0, help="seconds that the workers have to start")
    parser.add_argument("--load", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        load(options.load, options.people[0], options.seconds, options.clients)
        return
    busy = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} cores, load average {busy:.1f} before; {options.workers} workers, {options.clients} clients"
    )
    for people in options.people:
        with tempfile.TemporaryDirectory() as folder:
            fleet = fleet_of(people, Path(folder) / "fleet")
            result = measure(fleet, options.store or f"{folder}/store.db", people, options)
        print(people, json.dumps({name: round(v, 1) if isinstance(v, float) else v for name, v in result.items()}))


if __name__ == "__main__":
    main()

"""Everything a running server keeps in memory, and the operations that several routes share."""

import asyncio
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from privacygames import traces
from privacygames.errors import Cancelled, InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.mechanism import Mechanism
from privacygames.mechanism_files import finite_mechanism, load_bytes
from privacygames.points import PointMechanism
from privacygames.spaces import Box, is_region
from privacygames.studio.expiring_store import ExpiringStore
from privacygames.studio.http_errors import JobFailed, Refused, with_pointer
from privacygames.studio.job_queue import POLL_SECONDS, JobQueue, Ticket
from privacygames.studio.limits import Limits
from privacygames.studio.point_source import PointProblemSource, point_tables_from_visits
from privacygames.studio.problem_source import (
    ProblemSource,
    Tables,
    synthetic_visits,
    tables_from_toml,
    tables_from_visits,
)
from privacygames.studio.requests import InventedBody, JobBody, ProblemBody, TracesBody
from privacygames.studio.stored_mechanism import StoredMechanism, StoredPointMechanism
from privacygames.studio.surroundings import Surroundings
from privacygames.studio.table_uploads import StoredTable

BYTES_OF_NAME = 150
"""Memory of a user's name, rounded up: a Python string and its entry in a tuple."""

MOST_TRACES = 3
"""Maximum number of stored trace files: they are the largest objects, and a page works on one at a time."""


MOST_COLUMNS, MOST_ROWS = 20, 15
"""Cells that a comparison of policies uses: its adversary has a matrix of transitions between any two of them."""


@dataclass
class RunningJob:
    """A job with its problem, and the names under which its results are stored.

    Attributes:
        ticket: the job in the queue.
        tables: the problem document it was started with, bounds included.
        source: the problem.
        problem: the name under which the problem is stored.
        lock: held while results are stored.
        mechanism: the name under which the result is stored, once there is one.
        parts: the points of a frontier so far, each with the name of its mechanism.
    """

    ticket: Ticket
    tables: Tables
    source: ProblemSource | PointProblemSource
    problem: str
    lock: Lock = field(default_factory=Lock)
    mechanism: str | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Approximate bytes of its problem, and of the mechanisms that were not fetched yet."""
        results = [self.ticket.result or {}, *self.ticket.parts]
        return self.source.size + sum(len(result.get("mechanism", b"")) for result in results)


@dataclass(frozen=True)
class Protection:
    """A file that is being protected, or was.

    Attributes:
        ticket: the job in the queue, and its result.
    """

    ticket: Ticket

    @property
    def size(self) -> int:
        """Approximate bytes of the protected file."""
        return len((self.ticket.result or {}).get("content", b""))


class AppState:
    """The stores and job queues of one server.

    Args:
        limits: the limits on stored items and jobs.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.surroundings = Surroundings()
        self.tile_template: str | None = None
        self.tile_origin = ""
        self.queue = JobQueue(limits)
        self.reading_queue = JobQueue(replace(limits, workers=1))  # reading a file need not wait for designs
        shared: dict[str, Any] = {
            "most": limits.kept,
            "seconds": limits.idle_seconds,
            "size": lambda item: item.size,
            "most_bytes": limits.kept_bytes,
        }
        self.problems: ExpiringStore[ProblemSource | PointProblemSource] = ExpiringStore("problem", **shared)
        self.traces: ExpiringStore[traces.Visits] = ExpiringStore(
            "file of traces", **shared | {"most": MOST_TRACES, "size": _bytes_of_visits}
        )
        self.tables: ExpiringStore[StoredTable] = ExpiringStore("table", **shared | {"most": MOST_TRACES})
        self.protections: ExpiringStore[Protection] = ExpiringStore(
            "protected file",
            **shared | {"most": MOST_TRACES},
            on_drop=lambda protection: self.queue.cancel(protection.ticket),
        )
        self.mechanisms: ExpiringStore[StoredMechanism | StoredPointMechanism] = ExpiringStore("mechanism", **shared)
        of_jobs: dict[str, Any] = shared | {"most": limits.kept + limits.queue + limits.workers}
        self.jobs: ExpiringStore[RunningJob] = ExpiringStore(
            "job", **of_jobs, on_drop=lambda job: self.queue.cancel(job.ticket)
        )

    def close(self) -> None:
        """End every job and forget everything."""
        self.queue.close()
        self.reading_queue.close()
        for store in self._stores:
            store.clear()

    async def expire_periodically(self) -> None:
        """Forget what has not been used for the idle time, also while no requests come."""
        while True:
            await asyncio.sleep(max(0.05, min(60.0, self.limits.idle_seconds / 4)))
            for store in self._stores:
                store.expire()

    def forget(self, names: list[str]) -> int:
        """Forget the items with these names and everything made from them; returns how many names there were."""
        count = sum(store.forget(name) for name in names for store in self._stores)
        forgotten = set(names)
        forgotten.update(self.problems.forget_where(lambda source: source.traces in forgotten))
        self.jobs.forget_where(lambda job: job.problem in forgotten)
        self.mechanisms.forget_where(lambda stored: stored.problem in forgotten)
        return count

    @property
    def _stores(self) -> tuple[ExpiringStore[Any], ...]:
        return self.problems, self.traces, self.tables, self.protections, self.mechanisms, self.jobs

    def mechanism(self, name: str) -> StoredMechanism:
        """A stored mechanism whose secrets are cells or labels."""
        stored = self.mechanisms.get(name)
        if isinstance(stored, StoredPointMechanism):
            raise InvalidProblem(
                "the secrets of this mechanism are points: there are no cells or labels to tell about; ask about points"
            )
        return stored

    async def read_traces(self, content: bytes, form: str) -> tuple[str, traces.Visits]:
        """Read traces in a worker process, since a small compressed file may be large; returns name and visits."""
        visits = traces.Visits(**await self.run_reading({"kind": "read", "content": content, "form": form}))
        return self.traces.put(visits), visits

    async def run_reading(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The result of a job that reads a file, in the worker process for it."""
        limits = self.limits
        of_server = {"rows": limits.rows, "bytes": limits.kept_bytes, "time_limit": limits.job_seconds}
        ticket = self.reading_queue.submit(spec | of_server)
        try:
            while not ticket.over:
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self.reading_queue.cancel(ticket)
        if ticket.result is None:
            stopped = Cancelled("the file was not read: the server is stopping")
            raise JobFailed(ticket.error or stopped.to_dict())
        return ticket.result

    def problem_source(self, body: ProblemBody) -> ProblemSource | PointProblemSource:
        """The problem of a request."""
        sources = [name for name in ("document", "toml", "invented", "traces") if getattr(body, name) is not None]
        if len(sources) != 1:
            raise InvalidProblem("give exactly one of: document, toml, invented, traces")
        most = self.limits.secrets
        if body.invented is not None:
            person = body.invented
            _require_small_grid(person.columns, person.rows, most)
            visits, user = synthetic_visits(person.seed, person.person)
            return _source_of_visits(person, visits, user, most=most, box=traces.SYNTHETIC_WINDOW)
        if body.traces is not None:
            wanted = body.traces
            _require_small_grid(wanted.columns, wanted.rows, most)
            visits = self.traces.get(wanted.id)
            if wanted.user is None:
                visits = visits.together()
            user = visits.users[0] if wanted.user is None else wanted.user
            if user not in visits.users:
                raise InvalidProblem("the traces have no such user; the response to sending them lists the users")
            return _source_of_visits(wanted, visits, user, most=most, name=wanted.id)
        tables = tables_from_toml(body.toml) if body.toml is not None else dict(body.document or {})
        if is_region(tables.get("space")):
            return PointProblemSource.validated(tables, most=most)
        return ProblemSource.validated(tables, most=most)

    def start_job(self, body: JobBody) -> str:
        """Queue a job; returns its name."""
        source = self.problems.get(body.problem)
        bounds = body.bounds.given()
        tables = source.document(bounds, body.adversaries)
        seconds = min(body.time_limit or self.limits.job_seconds, self.limits.job_seconds)
        if body.kind == "policies":
            job = _policies_spec(source, body) | {"time_limit": seconds}
            return self.jobs.put(RunningJob(self.queue.submit(job), tables, source, body.problem))
        if body.budget is not None:
            raise InvalidProblem("a budget is for policies: leave it out, or ask for kind policies", field="budget")
        if isinstance(source, PointProblemSource) and body.kind != "design":
            raise InvalidProblem(
                "frontiers and comparisons are not made for points here: use the command line", field="kind"
            )
        spec: dict[str, Any] = {"kind": body.kind, "tables": tables, "time_limit": seconds}
        if body.kind == "compare":
            spec |= {"at": _matching_bounds(bounds, body), "names": body.names}
        elif body.names is not None:
            raise InvalidProblem("names says which mechanisms to compare: leave it out, or ask for kind compare")
        return self.jobs.put(RunningJob(self.queue.submit(spec), tables, source, body.problem))

    def job_view(self, name: str) -> dict[str, Any]:
        """The state of a job, as plain values; its results are stored and named."""
        running = self.jobs.get(name)
        ticket = running.ticket
        state = ticket.state  # read once: what follows is complete for it
        with running.lock:
            self._store_results(running)
        result = {key: value for key, value in (ticket.result or {}).items() if key != "mechanism"}
        view = {
            "id": name,
            "kind": ticket.spec["kind"],
            "state": state,
            "ahead": self.queue.ahead_of(ticket),
            "seconds": ticket.seconds,
            "progress": ticket.progress,
            "parts": running.parts,
            "result": result | {"mechanism": running.mechanism} if state == "done" else None,
            "error": None if ticket.error is None else with_pointer(ticket.error),
        }
        return dict(to_json_value(view))  # type: ignore[call-overload,no-any-return]

    def _store_results(self, running: RunningJob) -> None:
        ticket = running.ticket
        while len(running.parts) < len(ticket.parts):
            part = ticket.parts[len(running.parts)]
            bounds = part.get("bounds")
            stored = StoredMechanism(
                finite_mechanism(load_bytes(part.pop("mechanism"))),
                None if bounds is None else {**running.tables, "bounds": bounds},
                running.source if isinstance(running.source, ProblemSource) else None,
                running.problem,
                label=part["name"],
                bounds_by_user=bounds is None,
            )
            running.parts.append(part | {"mechanism": self.mechanisms.put(stored)})
        if ticket.result is not None and running.mechanism is None and "mechanism" in ticket.result:
            running.mechanism = self.mechanisms.put(_stored_result(running, load_bytes(ticket.result.pop("mechanism"))))


def _stored_result(
    running: RunningJob, mechanism: Mechanism | PointMechanism
) -> StoredMechanism | StoredPointMechanism:
    """The mechanism that a design ended with, with its problem."""
    seconds = running.ticket.seconds
    if isinstance(mechanism, PointMechanism):
        return StoredPointMechanism(mechanism, running.tables, running.problem, label="optimal", seconds=seconds)
    source = running.source if isinstance(running.source, ProblemSource) else None
    return StoredMechanism(mechanism, running.tables, source, running.problem, label="optimal", seconds=seconds)


def _source_of_visits(
    body: InventedBody | TracesBody,
    visits: traces.Visits,
    user: str,
    *,
    most: int,
    box: Box | None = None,
    name: str = "",
) -> ProblemSource | PointProblemSource:
    """The problem of one user of some visits, about the cells of a grid or about points."""
    if body.secrets == "points":
        tables = point_tables_from_visits(visits, user, body.columns, body.rows, box=box)
        return PointProblemSource.validated(tables, most=most, visits=visits, user=user, traces=name)
    tables = tables_from_visits(visits, user, body.columns, body.rows, body.cost, box=box)
    return ProblemSource.validated(tables, most=most, visits=visits, user=user, traces=name)


def _bytes_of_visits(visits: traces.Visits) -> int:
    """Approximate bytes of visits; the names of users were measured when they were read."""
    arrays = (visits.user, visits.time, visits.latitude, visits.longitude)
    return sum(array.nbytes for array in arrays) + BYTES_OF_NAME * len(visits.users)


def _policies_spec(source: ProblemSource | PointProblemSource, body: JobBody) -> dict[str, Any]:
    """The job that compares policies on the visits of one user, in a grid that is coarse enough for a Markov chain."""
    if body.budget is None:
        raise InvalidProblem("policies are compared at a budget, in ε per km a day", field="budget")
    if body.bounds.given() or body.adversaries or body.names is not None:
        raise InvalidProblem("policies take a budget only: leave bounds, adversaries and names out", field="kind")
    visits = source.visits
    lattice = source.tables["observables"] if isinstance(source, PointProblemSource) else source.tables["space"]
    box = source.area.box if isinstance(source, PointProblemSource) else getattr(source.problem.space, "box", None)
    if visits is None or box is None or not visits.has_times:
        raise InvalidProblem("policies are compared on visits with times: load traces, or a synthetic person")
    of_user = visits.user == visits.users.index(source.user)
    return {
        "kind": "policies",
        "times": visits.time[of_user],
        "points": (visits.latitude[of_user], visits.longitude[of_user]),
        "slot": visits.slot,
        "grid": (box, min(lattice["columns"], MOST_COLUMNS), min(lattice["rows"], MOST_ROWS)),
        "budget": body.budget,
    }


def _matching_bounds(bounds: dict[str, Any], body: JobBody) -> dict[str, float]:
    """The bounds that known mechanisms are matched by; any other bound is refused, not ignored."""
    other = sorted(set(bounds) - {"epsilon", "distortion", "within"})
    other += ["adversaries"] if body.adversaries else []
    if other:
        raise InvalidProblem(
            f"a comparison is at an epsilon, a distortion, a within; it takes no {', '.join(other)}", field=other[0]
        )
    return bounds


def _require_small_grid(columns: int, rows: int, most: int) -> None:
    """Refuse a grid that is too large before anything is read or counted for it."""
    if columns * rows > most:
        raise Refused(413, "TOO_LARGE", f"the grid has {columns * rows} cells; at most {most} are designed for here")

"""Everything a running server holds in memory, and the work that several routes share."""

import asyncio
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from privacygames import traces
from privacygames.errors import Cancelled, InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.mechanism import load_bytes
from privacygames.studio.descriptions import Described, described, from_toml, invented, positions
from privacygames.studio.expiring_store import ExpiringStore
from privacygames.studio.http_errors import JobFailed, Refused
from privacygames.studio.job_queue import POLL, JobQueue, Ticket
from privacygames.studio.limits import Limits
from privacygames.studio.requests import JobBody, ProblemBody
from privacygames.studio.views import Shelved

BYTES_OF_NAME = 150


@dataclass
class RunningJob:
    """A job, the problem it is about (and its name), and the names under which what it made is kept."""

    ticket: Ticket
    tables: dict[str, Any]
    described: Described
    problem: str
    lock: Lock = field(default_factory=Lock)
    mechanism: str | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """About how many bytes it takes: its problem, and the mechanisms that nobody has asked for yet."""
        made = [self.ticket.result or {}, *self.ticket.parts]
        return self.described.size + sum(len(each.get("mechanism", b"")) for each in made)


class AppState:
    """The shelves and the queue of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.queue = JobQueue(limits)
        self.reading = JobQueue(replace(limits, workers=1))  # of files, which need not wait for designs
        kept: dict[str, Any] = {
            "most": limits.kept,
            "seconds": limits.idle_seconds,
            "size": lambda each: each.size,
            "most_bytes": limits.kept_bytes,
        }
        self.problems: ExpiringStore[Described] = ExpiringStore("problem", **kept)
        self.traces: ExpiringStore[traces.Visits] = ExpiringStore(
            "file of traces", **kept | {"most": 3, "size": _bytes_of_visits}
        )
        self.mechanisms: ExpiringStore[Shelved] = ExpiringStore("mechanism", **kept)
        jobs: dict[str, Any] = kept | {"most": limits.kept + limits.queue + limits.workers}
        self.jobs: ExpiringStore[RunningJob] = ExpiringStore(
            "job", **jobs, drop=lambda each: self.queue.cancel(each.ticket)
        )

    def close(self) -> None:
        """End every job and forget everything."""
        self.queue.close()
        self.reading.close()
        for shelf in self._shelves:
            shelf.clear()

    async def tidied(self) -> None:
        """Forget what nobody asked for, again and again: also while nobody asks for anything."""
        while True:
            await asyncio.sleep(max(0.05, min(60.0, self.limits.idle_seconds / 4)))
            for shelf in self._shelves:
                shelf.tidy()

    def forget(self, names: list[str]) -> int:
        """Forget what has these names, and whatever was made from it; says how many names there were."""
        count = sum(shelf.forget(name) for name in names for shelf in self._shelves)
        gone = set(names)
        gone.update(self.problems.forget_where(lambda each: each.source in gone))
        self.jobs.forget_where(lambda each: each.problem in gone)
        self.mechanisms.forget_where(lambda each: each.problem in gone)
        return count

    @property
    def _shelves(self) -> tuple[ExpiringStore[Any], ...]:
        return self.problems, self.traces, self.mechanisms, self.jobs

    async def read(self, content: bytes, form: str) -> tuple[str, traces.Visits]:
        """Read traces, in a process: what is packed small may be large."""
        limits = self.limits
        spec = {"kind": "read", "content": content, "form": form, "rows": limits.rows, "bytes": limits.kept_bytes}
        spec["time_limit"] = limits.job_seconds
        ticket = self.reading.submit(spec)
        try:
            while not ticket.over:
                await asyncio.sleep(POLL)
        finally:
            self.reading.cancel(ticket)
        if ticket.result is None:
            raise JobFailed(ticket.error or Cancelled("the file was not read: the server is being stopped").to_dict())
        visits = traces.Visits(**ticket.result)
        return self.traces.put(visits), visits

    def describe(self, body: ProblemBody) -> Described:
        """The problem of a request."""
        given = [name for name in ("document", "toml", "invented", "traces") if getattr(body, name) is not None]
        if len(given) != 1:
            raise InvalidProblem("give exactly one of: document, toml, invented, traces")
        most = self.limits.secrets
        if body.invented is not None:
            asked = body.invented
            _small(asked.columns, asked.rows, most)
            tables, visits, user = invented(asked.seed, asked.person, asked.columns, asked.rows, asked.cost)
            return described(tables, most=most, visits=visits, user=user)
        if body.traces is not None:
            wanted = body.traces
            _small(wanted.columns, wanted.rows, most)
            visits = self.traces.get(wanted.id)
            if wanted.user not in visits.users:
                raise InvalidProblem("the traces have no such user; the answer to sending them lists the users")
            tables = positions(visits, wanted.user, wanted.columns, wanted.rows, wanted.cost)
            return described(tables, most=most, visits=visits, user=wanted.user, source=wanted.id)
        tables = from_toml(body.toml) if body.toml is not None else dict(body.document or {})
        return described(tables, most=most)

    def start(self, body: JobBody) -> str:
        """Queue a job; returns its name."""
        about = self.problems.get(body.problem)
        bounds = body.bounds.given()
        tables = about.with_wishes(bounds, body.adversaries)
        seconds = min(body.time_limit or self.limits.job_seconds, self.limits.job_seconds)
        spec: dict[str, Any] = {"kind": body.kind, "tables": tables, "time_limit": seconds}
        if body.kind == "compare":
            spec |= {"at": _matched(bounds, body), "names": body.names}
        elif body.names is not None:
            raise InvalidProblem("names says which mechanisms to compare: leave it out, or ask for kind compare")
        return self.jobs.put(RunningJob(self.queue.submit(spec), tables, about, body.problem))

    def job_view(self, name: str) -> dict[str, Any]:
        """Where a job stands; what it has made is put on the shelf and named."""
        running = self.jobs.get(name)
        ticket = running.ticket
        state = ticket.state  # read once: what follows is complete for it
        with running.lock:
            self._adopt(running)
        result = {key: value for key, value in (ticket.result or {}).items() if key != "mechanism"}
        found = {
            "id": name,
            "kind": ticket.spec["kind"],
            "state": state,
            "ahead": self.queue.ahead_of(ticket),
            "seconds": ticket.seconds,
            "progress": ticket.progress,
            "parts": running.parts,
            "result": result | {"mechanism": running.mechanism} if state == "done" else None,
            "error": ticket.error,
        }
        return dict(to_json_value(found))  # type: ignore[call-overload,no-any-return]

    def _adopt(self, running: RunningJob) -> None:
        ticket = running.ticket
        while len(running.parts) < len(ticket.parts):
            part = ticket.parts[len(running.parts)]
            bounds = part.get("bounds")
            tables = None if bounds is None else {**running.tables, "bounds": bounds}
            made = load_bytes(part.pop("mechanism"))
            kept = Shelved(
                made, tables, running.described, running.problem, label=part["name"], own_bounds=bounds is None
            )
            running.parts.append(part | {"mechanism": self.mechanisms.put(kept)})
        if ticket.result is not None and running.mechanism is None and "mechanism" in ticket.result:
            made = load_bytes(ticket.result.pop("mechanism"))
            about = (running.tables, running.described, running.problem)
            kept = Shelved(made, *about, label="optimal", seconds=ticket.seconds)
            running.mechanism = self.mechanisms.put(kept)


def _bytes_of_visits(visits: traces.Visits) -> int:
    """About how many bytes visits take; the names of users were measured when they were read."""
    arrays = (visits.user, visits.time, visits.latitude, visits.longitude)
    return sum(each.nbytes for each in arrays) + BYTES_OF_NAME * len(visits.users)


def _matched(bounds: dict[str, Any], body: JobBody) -> dict[str, float]:
    """What known mechanisms are matched by; what they cannot be matched by is refused, not dropped."""
    other = sorted(set(bounds) - {"epsilon", "distortion", "within"})
    other += ["adversaries"] if body.adversaries else []
    if other:
        raise InvalidProblem(f"a comparison is at an epsilon, a distortion, a within; it takes no {', '.join(other)}")
    return bounds


def _small(columns: int, rows: int, most: int) -> None:
    """Refuse a grid that is too large before anything is read or counted for it."""
    if columns * rows > most:
        raise Refused(413, "TOO_LARGE", f"the grid has {columns * rows} cells; at most {most} are designed for here")

"""The queue of jobs: threads run them in worker processes, and survive whatever happens to those."""

import multiprocessing
from collections import deque
from multiprocessing.connection import Connection
from threading import Condition, Thread
from time import monotonic
from typing import Any, Literal

from privacygames.errors import SolveFailed, Status
from privacygames.studio.http_errors import Refused
from privacygames.studio.limits import Limits
from privacygames.studio.worker import Spec, work

State = Literal["queued", "running", "done", "failed", "cancelled"]
GRACE_SECONDS = 10.0
"""Seconds over its time limit after which a job that does not stop itself is ended."""

POLL_SECONDS = 0.05
"""Seconds between looks at a worker process or a job: short beside any design, long beside a look."""

JOBS_PER_PROCESS = 50
"""Jobs after which a process is replaced, so that memory it has not given back is freed."""


class Ticket:
    """One job: its state, progress and result. Written by the queue's threads, read by any thread."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.state: State = "queued"
        self.progress: dict[str, Any] = {}
        self.parts: list[dict[str, Any]] = []
        self.result: dict[str, Any] | None = None
        self.error: dict[str, object] | None = None
        self.cancelled = False
        self.began: float | None = None
        self.ended: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds it has run so far, or ran."""
        if self.began is None:
            return 0.0
        return (self.ended or monotonic()) - self.began

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")


class _Process:
    """A worker process and the pipe to it."""

    def __init__(self, memory: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, memory), daemon=True)
        self.process.start()
        other.close()
        self.jobs = 0

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class JobQueue:
    """Jobs in order of arrival, a few at a time, each in a process that can be ended at any moment."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: deque[Ticket] = deque()
        self._changed = Condition()
        self._closed = False
        self._threads: list[Thread] = []

    def submit(self, spec: Spec) -> Ticket:
        """Put a job into the queue; refused where the queue is full."""
        ticket = Ticket(spec)
        with self._changed:
            if self._closed:
                raise Refused(503, "CLOSING", "the server is being stopped")
            if len(self._waiting) >= self.limits.queue:
                raise Refused(429, "BUSY", f"{len(self._waiting)} jobs are waiting already: try again in a while")
            self._waiting.append(ticket)
            if len(self._threads) < self.limits.workers:
                thread = Thread(target=self._run_jobs, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Stop a job: a waiting one at once, a running one by ending its process."""
        with self._changed:
            ticket.cancelled = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                _end(ticket, "cancelled")

    def ahead_of(self, ticket: Ticket) -> int:
        """The number of jobs that wait before this one."""
        with self._changed:
            return self._waiting.index(ticket) if ticket in self._waiting else 0

    def close(self) -> None:
        """End everything."""
        with self._changed:
            self._closed = True
            for ticket in self._waiting:
                _end(ticket, "cancelled")
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run_jobs(self) -> None:
        process: _Process | None = None
        while (ticket := self._next_ticket()) is not None:
            if process is None or process.jobs >= JOBS_PER_PROCESS or not process.process.is_alive():
                if process is not None:
                    process.end()
                process = self._start_process(ticket)
            if process is None:
                continue
            process.jobs += 1
            if not self._run(ticket, process):
                process.end()
                process = None
        if process is not None:
            process.end()

    def _start_process(self, ticket: Ticket) -> _Process | None:
        """A new process; None where the system has no memory for one, and the job has failed."""
        try:
            return _Process(self.limits.memory)
        except OSError:
            no_process = SolveFailed(
                "no process could be started; the job can be tried again", status=Status.WORKERS_DIED
            )
            _end(ticket, "failed", no_process.to_dict())
            return None

    def _next_ticket(self) -> Ticket | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            ticket = self._waiting.popleft()
            ticket.state, ticket.began = "running", monotonic()
            return ticket

    def _run(self, ticket: Ticket, process: _Process) -> bool:
        """Run one job; returns whether the process can be used again."""
        try:
            process.pipe.send(ticket.spec)
            while not ticket.over:
                if not self._receive(ticket, process.pipe):
                    return False
        except (EOFError, OSError):
            died = SolveFailed("the worker process died; the job can be tried again", status=Status.WORKERS_DIED)
            _end(ticket, "failed", died.to_dict())
            return False
        return True

    def _receive(self, ticket: Ticket, pipe: Connection) -> bool:
        """Receive one message from the process; False once the process has to be ended."""
        if ticket.cancelled or self._closed:
            _end(ticket, "cancelled")
            return False
        if ticket.seconds > ticket.spec["time_limit"] + GRACE_SECONDS:
            late = SolveFailed(f"stopped after {ticket.seconds:.0f} seconds", status=Status.TIME_LIMIT)
            _end(ticket, "failed", late.to_dict())
            return False
        if not pipe.poll(POLL_SECONDS):
            return True
        kind, content = pipe.recv()
        if kind == "progress":
            ticket.progress = content
        elif kind == "part":
            ticket.parts.append(content)
        elif kind == "done":
            ticket.result = content
            _end(ticket, "done")
        else:
            _end(ticket, "failed", content)
        return True


def _end(ticket: Ticket, state: State, error: dict[str, object] | None = None) -> None:
    ticket.ended = monotonic()
    ticket.error = error
    ticket.state = state
    ticket.spec = {"kind": ticket.spec["kind"], "time_limit": ticket.spec["time_limit"]}  # the prior is dropped

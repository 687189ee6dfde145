"""What one server does at most: everything a stranger could make grow has a limit here."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server; each refusal names the one it is about.

    Attributes:
        body: bytes of a request.
        document: bytes of a request in JSON; files of traces and mechanisms may be larger.
        values: lists, tables and entries of a request in JSON, which take far more memory than bytes.
        body_seconds: how long a request may take to arrive, headers and body each.
        secrets: secrets, and observables, of a problem.
        workers: designs at a time, each in a process of its own.
        queue: jobs that wait.
        job_seconds: of one job; a design stops in time with the best mechanism so far.
        memory: bytes of data of a process at work.
        kept: problems, traces, jobs and mechanisms kept of each, the ones used last.
        kept_bytes: of all problems kept, of all traces, of all jobs and of all mechanisms, each.
        idle_seconds: after which what nobody asked for is forgotten.
        samples: answers drawn by one request.
        rows: rows read of one file of traces.
        connections: open at a time.
    """

    body: int = 32 * MIB
    document: int = 16 * MIB
    values: int = 1_000_000
    body_seconds: float = 20.0
    secrets: int = 400
    workers: int = 1
    queue: int = 16
    job_seconds: float = 120.0
    memory: int = 4096 * MIB
    kept: int = 60
    kept_bytes: int = 256 * MIB
    idle_seconds: float = 3600.0
    samples: int = 10_000
    rows: int = 5_000_000
    connections: int = 200

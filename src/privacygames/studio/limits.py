"""Limits of a server, one for everything that a request could make grow; and how memory is measured against them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server; each refusal names the one it is about.

    Attributes:
        body: bytes of a request.
        document: bytes of a request in JSON; files of traces and mechanisms may be larger.
        values: lists, tables and entries of a request in JSON, which take far more memory than bytes.
        body_seconds: seconds a request may take to arrive, headers and body each.
        secrets: secrets, and outputs, of a problem.
        workers: designs at a time, each in a process of its own.
        queue: waiting jobs.
        job_seconds: seconds of one job; a design stops in time with the best mechanism so far.
        memory: bytes of data of a worker process.
        kept: items of each kind (problems, traces, jobs, mechanisms); the most recently used ones are kept.
        kept_bytes: bytes of all items of one kind.
        idle_seconds: seconds without use after which an item is forgotten.
        samples: outputs drawn by one request.
        rows: rows read of one file of traces.
        connections: open connections.

    >>> Limits(workers=2).secrets
    400
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


def bytes_of(values: Any) -> int:
    """Approximate bytes of nested tables and lists and of the values in them, computed without recursion.

    >>> bytes_of([]) < bytes_of([["a", {"b": 1}]])
    True
    """
    total, left = 0, [values]
    while left:
        value = left.pop()
        total += sys.getsizeof(value)
        if isinstance(value, Mapping):
            left.extend(value.keys())
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
    return total

"""What all people of a fleet have in common, in one file: spaces, costs, distances and promises."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, content_hash, freeze
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.errors import InvalidFile
from privacygames.fleet.regular_files import RegularFile
from privacygames.mechanism import container_content, parse_container, well_formed
from privacygames.problem import Bounds, Problem
from privacygames.spaces import decode_space, encode_space, space_digest

SHARED = "shared.pgm"
MOST_PARSED = 4
"""Shared parts that a process keeps in memory."""

PROMISES = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
"""What a fleet may promise."""

DEFAULT = ""
"""The name under which the mechanism for unknown people is kept; nobody else can be called so."""


@dataclass(frozen=True)
class Shared:
    """The problem of everybody but for the prior, and what every mechanism promises."""

    problem: Problem
    bounds: Bounds

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it, prior excluded."""
        problem = self.problem
        hashes = [content_hash(matrix) for matrix in (problem.cost, problem.distance, problem.distinguishability)]
        spaces = space_digest(problem.space), space_digest(problem.observables)
        return digest_of("fleet", *hashes, *spaces, self.bounds.content)

    def content(self) -> bytes:
        """The file's content."""
        problem = self.problem
        arrays: dict[str, Any] = {"cost": problem.cost, "distance": problem.distance}
        if not np.array_equal(problem.distance, problem.distinguishability):
            arrays["distinguishability"] = problem.distinguishability

        def store(matrix: FloatArray) -> str:
            name = f"distances_{len(arrays)}"
            arrays[name] = matrix
            return name

        alike = problem.observables == problem.space
        header = {
            "fleet": 1,
            "promises": {name: getattr(self.bounds, name) for name in PROMISES},
            "secrets": encode_space(problem.space, store=store),
            "observables": None if alike else encode_space(problem.observables, secrets=problem.space, store=store),
        }
        return b"".join(container_content(header, arrays))


def read_content(folder: Path) -> bytes:
    """The bytes of a folder's shared part."""
    return RegularFile(folder / SHARED).read()


def hash_of(content: bytes) -> str:
    """SHA-256 of a shared part's bytes: how generations of a fleet, and work on it, name the one they are about."""
    return sha256(content).hexdigest()


def parse_shared(content: bytes) -> Shared:
    """A shared part from its bytes, or :class:`InvalidFile`: nothing else escapes."""
    header, arrays = parse_container(content)
    if header.get("fleet") != 1:
        raise InvalidFile("this is not the shared part of a fleet that this release reads")
    with well_formed("the shared part of the fleet"):
        return _parse(header, arrays)


def _parse(header: dict[str, Any], arrays: dict[str, Any]) -> Shared:
    m, n = arrays["cost"].shape  # what is described must be of this size: nothing else is built
    secrets = decode_space(header["secrets"], matrices=arrays, size=n)
    observables = None
    if header["observables"] is not None:
        observables = decode_space(header["observables"], secrets=secrets, matrices=arrays, size=m)
    problem = Problem(
        Prior.uniform(secrets),
        cost=freeze(arrays["cost"]),
        distance=freeze(arrays["distance"]),
        distinguishability=freeze(arrays.get("distinguishability", arrays["distance"])),
        observables=observables,
    )
    return Shared(problem, Bounds(**{name: header["promises"][name] for name in PROMISES}))


_parsed: dict[str, Shared] = {}
"""Shared parts by the SHA-256 of their bytes, which alone says what is in them; a path does not."""


def shared_with(digest: str, folder: Path) -> Shared:
    """The shared part with this SHA-256; its folder is only read where this process has not parsed it yet.

    Raises:
        InvalidFile: the folder, as this machine sees it, holds another one.
    """
    known = _parsed.get(digest)
    if known is None:
        content = read_content(folder)
        if hash_of(content) != digest:
            raise InvalidFile(f"{folder / SHARED} is not the one that the fleet was designed with: it was replaced")
        known = parse_shared(content)
        while len(_parsed) >= MOST_PARSED:
            _parsed.pop(next(iter(_parsed)), None)
        _parsed[digest] = known
    return known

"""The part of a fleet that all its people share, stored once: spaces, costs, distances and guarantees."""

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

SHARED_FILE = "shared.pgm"

GUARANTEES = "promises"
"""The key of the guarantees in the header of a shared file."""

MAX_CACHED = 4
"""Maximum number of shared problems in a process's cache: it rarely works on more fleets at once."""

ALWAYS_STORED = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
"""Bounds that have a key in every shared file; others have one only if they are set."""

DEFAULT_NAME = ""
"""The name under which the mechanism for unknown people is stored; no person can have it."""


@dataclass(frozen=True)
class SharedProblem:
    """The problem of all people of a fleet, apart from the prior, and the guarantees of every mechanism."""

    problem: Problem
    bounds: Bounds

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but the prior."""
        problem = self.problem
        hashes = [content_hash(matrix) for matrix in (problem.cost, problem.distance, problem.distinguishability)]
        spaces = space_digest(problem.space), space_digest(problem.observables)
        return digest_of("fleet", *hashes, *spaces, self.bounds.content)

    def encode(self) -> bytes:
        """The bytes of the shared file."""
        problem = self.problem
        arrays: dict[str, Any] = {"cost": problem.cost, "distance": problem.distance}
        if not np.array_equal(problem.distance, problem.distinguishability):
            arrays["distinguishability"] = problem.distinguishability

        def store(matrix: FloatArray) -> str:
            name = f"distances_{len(arrays)}"
            arrays[name] = matrix
            return name

        same_space = problem.observables == problem.space
        values = self.bounds.plain_values()
        guarantees = {name: values.pop(name) for name in ALWAYS_STORED}
        guarantees |= {name: value for name, value in values.items() if value is not None and value is not False}
        header = {
            "fleet": 1,
            GUARANTEES: guarantees,
            "secrets": encode_space(problem.space, store=store),
            "observables": None
            if same_space
            else encode_space(problem.observables, secrets=problem.space, store=store),
        }
        return b"".join(container_content(header, arrays))


def read_shared(folder: Path) -> bytes:
    """The bytes of the shared file of a folder."""
    return RegularFile(folder / SHARED_FILE).read()


def hash_shared(content: bytes) -> str:
    """SHA-256 of the bytes of a shared file, which identifies it in a fleet's index and in work for other processes."""
    return sha256(content).hexdigest()


def decode_shared(content: bytes) -> SharedProblem:
    """The shared problem in the bytes of a file.

    Raises:
        InvalidFile: the bytes are not a valid shared file; no other error is raised, whatever they contain.
    """
    header, arrays = parse_container(content)
    if header.get("fleet") != 1:
        raise InvalidFile("this is not the shared part of a fleet that this release reads")
    with well_formed("the shared part of the fleet"):
        return _decode_shared(header, arrays)


def _decode_shared(header: dict[str, Any], arrays: dict[str, Any]) -> SharedProblem:
    m, n = arrays["cost"].shape  # spaces must have these sizes, so that a small file cannot describe a huge one
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
    return SharedProblem(problem, Bounds(**header[GUARANTEES]))


_decoded: dict[str, SharedProblem] = {}
"""Shared problems by the SHA-256 of their files, not by path, since the file at a path can change."""


def load_shared(digest: str, folder: Path) -> SharedProblem:
    """The shared problem whose file has this SHA-256, read from a folder unless this process has decoded it before.

    Raises:
        InvalidFile: the folder, as this machine sees it, holds another file.
    """
    shared = _decoded.get(digest)
    if shared is None:
        content = read_shared(folder)
        if hash_shared(content) != digest:
            raise InvalidFile(
                f"{folder / SHARED_FILE} is not the one that the fleet was designed with: it was replaced"
            )
        shared = decode_shared(content)
        while len(_decoded) >= MAX_CACHED:
            _decoded.pop(next(iter(_decoded)), None)
        _decoded[digest] = shared
    return shared

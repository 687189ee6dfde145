"""The part of a fleet that all its people share, stored once: spaces, costs, distances and guarantees.

Its header says of what kind the fleet is: ``"fleet": 1`` where secrets are cells or labels, 2 where they are points.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, content_hash, freeze
from privacygames.beliefs import PointPrior, Prior
from privacygames.canonical import digest_of
from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.fleet.regular_files import RegularFile
from privacygames.mechanism import container_content, parse_container, well_formed
from privacygames.points import Mesh, PointProblem, decode_mesh, encode_mesh
from privacygames.problem import Bounds, Problem
from privacygames.spaces import (
    LabelBudget,
    Region,
    decode_region,
    decode_space,
    encode_region,
    encode_space,
    region_digest,
    space_digest,
)

SHARED_FILE = "shared.pgm"

GUARANTEES = "promises"
"""The key of the guarantees in the header of a shared file."""

MAX_CACHED = 4
"""Maximum number of shared problems in a process's cache: it rarely works on more fleets at once."""

ALWAYS_STORED = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
"""Bounds that have a key in every shared file; others have one only if they are set."""

DEFAULT_NAME = ""
"""The name under which the mechanism for unknown people is stored; no person can have it."""


CELLS, POINTS = 1, 2
"""The kinds of fleets, as the header of a shared file has them."""


class AnyShared(ABC):
    """The problem of all people of a fleet, apart from the prior, and the guarantees of every mechanism."""

    bounds: Bounds

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything but the prior."""

    @abstractmethod
    def encode(self) -> bytes:
        """The bytes of the shared file."""

    @property
    def _guarantees(self) -> dict[str, Any]:
        """The guarantees as plain values for the header."""
        values = self.bounds.plain_values()
        guarantees = {name: values.pop(name) for name in ALWAYS_STORED}
        return guarantees | {name: value for name, value in values.items() if value is not None and value is not False}


@dataclass(frozen=True)
class SharedProblem(AnyShared):
    """What people share whose secrets are cells or labels."""

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
        header = {
            "fleet": CELLS,
            GUARANTEES: self._guarantees,
            "secrets": encode_space(problem.space, store=store),
            "observables": None
            if same_space
            else encode_space(problem.observables, secrets=problem.space, store=store),
        }
        return b"".join(container_content(header, arrays))


@dataclass(frozen=True)
class SharedPoints(AnyShared):
    """What people share whose secrets are points. Everybody has their own mesh, unless the problem has one."""

    problem: PointProblem
    bounds: Bounds

    @classmethod
    def of(cls, problem: PointProblem, bounds: Bounds) -> "SharedPoints":
        """What people share whose problems are like this one, with other priors."""
        if not problem.cost.is_convex:
            raise InvalidProblem(
                "people of a fleet whose secrets are points share a named cost: a function cannot be stored"
            )
        return cls(problem.with_prior(_nothing_known(problem.region)), bounds)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but the prior."""
        problem = self.problem
        arrays: dict[str, Any] = {}
        mesh: object = problem.mesh
        if isinstance(mesh, Mesh):
            table = encode_mesh(mesh, arrays)
            mesh = table["degree"], {name: content_hash(array) for name, array in arrays.items()}
        about = region_digest(problem.region), space_digest(problem.observables), problem.cost.name, problem.distance
        return digest_of("fleet of points", *about, mesh, self.bounds.content)

    def encode(self) -> bytes:
        """The bytes of the shared file."""
        problem = self.problem
        arrays: dict[str, Any] = {}
        header = {
            "fleet": POINTS,
            GUARANTEES: self._guarantees,
            "secrets": encode_region(problem.region),
            "observables": encode_space(problem.observables),
            "cost": problem.cost.name,
            "distance": problem.distance,
            "mesh": encode_mesh(problem.mesh, arrays) if isinstance(problem.mesh, Mesh) else problem.mesh,
        }
        return b"".join(container_content(header, arrays))


def _nothing_known(region: Region) -> PointPrior:
    """A prior that stands for people's own ones: a single point."""
    return PointPrior.uniform(region, points=1)


def read_shared(folder: Path) -> bytes:
    """The bytes of the shared file of a folder."""
    return RegularFile(folder / SHARED_FILE).read()


def hash_shared(content: bytes) -> str:
    """SHA-256 of the bytes of a shared file, which identifies it in a fleet's index and in work for other processes."""
    return sha256(content).hexdigest()


def decode_shared(content: bytes) -> AnyShared:
    """The shared problem in the bytes of a file.

    Raises:
        InvalidFile: the bytes are not a valid shared file; no other error is raised, whatever they contain.
    """
    header, arrays = parse_container(content)
    kind = header.get("fleet")
    if kind not in (CELLS, POINTS) or isinstance(kind, bool | float):
        raise InvalidFile("this is not the shared part of a fleet that this release reads")
    with well_formed("the shared part of the fleet"):
        return _decode_cells(header, arrays) if kind == CELLS else _decode_points(header, arrays)


def _decode_points(header: dict[str, Any], arrays: dict[str, Any]) -> SharedPoints:
    region = decode_region(header["secrets"])
    observables = decode_space(header["observables"], allowance=LabelBudget())
    mesh = decode_mesh(header["mesh"], arrays) if isinstance(header["mesh"], dict) else header["mesh"]
    names = header["cost"], header["distance"]
    problem = PointProblem(_nothing_known(region), observables, cost=names[0], distance=names[1], mesh=mesh)
    if (problem.cost.name, problem.distance) != names:
        raise InvalidFile("the shared part of the fleet names its cost or distance in another way")
    return SharedPoints(problem, Bounds(**header[GUARANTEES]))


def _decode_cells(header: dict[str, Any], arrays: dict[str, Any]) -> SharedProblem:
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


_decoded: dict[str, AnyShared] = {}
"""Shared problems by the SHA-256 of their files, not by path, since the file at a path can change."""


def load_shared(digest: str, folder: Path) -> AnyShared:
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

"""What all people of a fleet have in common, in one file: spaces, costs, distances and promises."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, content_hash, sealed
from privacygames.beliefs import Prior
from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.mechanism import read_container, write_container
from privacygames.problem import Bounds, Problem
from privacygames.spaces import describe, space_from

SHARED, RECORDS, INDEX = "shared.pgm", "people.dat", "people.idx"
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
        labels = problem.space.labels, problem.observables.labels
        return sha256(repr(("fleet", hashes, labels, self.bounds)).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Keep it in a folder; a fleet of something else that is there already is not touched."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SHARED
        if path.exists():
            if read_shared(path).digest != self.digest:
                raise InvalidProblem(
                    f"{folder} holds a fleet with other spaces, costs, distances or promises: choose another folder"
                )
            return
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
            "secrets": describe(problem.space, store=store),
            "observables": None if alike else describe(problem.observables, secrets=problem.space, store=store),
        }
        write_container(path, header, arrays)


def read_shared(path: Path) -> Shared:
    """Read it back, or raise :class:`InvalidFile`."""
    header, arrays = read_container(path)
    if header.get("fleet") != 1:
        raise InvalidFile(f"{path} is not the shared part of a fleet that this release reads")
    try:
        secrets = space_from(header["secrets"], matrices=arrays)
        observables = None
        if header["observables"] is not None:
            observables = space_from(header["observables"], secrets=secrets, matrices=arrays)
        separation = arrays.get("distinguishability", arrays["distance"])
        problem = Problem(
            Prior.uniform(secrets),
            cost=sealed(arrays["cost"]),
            distance=sealed(arrays["distance"]),
            distinguishability=sealed(separation),
            observables=observables,
        )
        return Shared(problem, Bounds(**{name: header["promises"][name] for name in PROMISES}))
    except (InvalidProblem, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidFile(f"the shared part of the fleet does not fit together ({type(error).__name__})") from None


@lru_cache(maxsize=4)
def shared_in(folder: str) -> Shared:
    """The shared part of a fleet, read once in each process."""
    return read_shared(Path(folder) / SHARED)

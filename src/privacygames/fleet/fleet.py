"""Fleets whose secrets are cells or labels: a mechanism for each of many people over one space."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import ROUNDING, check
from privacygames.fleet.person_record import certified_mechanism, statement_of
from privacygames.fleet.records import require_cells
from privacygames.fleet.shared_problem import SharedProblem
from privacygames.fleet.stored_fleet import StoredFleet, Unknown
from privacygames.mechanism import EpsilonGuarantee, Mechanism, PublicMechanism, RandomWords, Sampler
from privacygames.problem import measure_scale
from privacygames.spaces import Label, Space


class Fleet(StoredFleet["_IndexSampler"]):
    """Certified mechanisms of many people over one space, in a folder. ``fleet["user-7"]`` is a :class:`Mechanism`.

    Space, costs and distances are stored once; each person's weights are read from the disk when they are needed, so
    that a person takes up 64 bytes of memory. A person's mechanism is verified on the bytes read, before it is first
    used: every guarantee of the fleet, as :func:`privacygames.load` does for a file.

    A ``Fleet`` refers to its folder as it was when it was opened. Once people were added, updated or removed, or files
    were replaced, it raises :class:`privacygames.StaleFleet`: open the folder again, or call :meth:`reopen`.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> _ = pg.fleet.design({"ann": pg.Prior.uniform(ages)}, out="fleet", epsilon=0.1, jobs=1)
    >>> fleet = pg.fleet.Fleet("fleet")
    >>> fleet, fleet.verify(), fleet["ann"].bounds.epsilon
    (Fleet(1 people, 3 secrets, 3 observables), 1, 0.1)
    >>> fleet.sample("ann", 20) in ages.labels
    True

    Args:
        folder: a folder that :func:`design` wrote.
        unknown: what to do about people who are not in the fleet: ``"refuse"`` raises an error, ``"default"`` uses the
            mechanism that was designed with ``default="pooled"``.
    """

    def _prepare(self, folder: Path, unknown: Unknown, digest: str | None) -> None:
        super()._prepare(folder, unknown, digest)
        self._verified: set[int] = set()

    @property
    def _shared(self) -> SharedProblem:
        return require_cells(self._current.shared)

    @property
    def secrets(self) -> Space:
        """The space of secrets."""
        return self._shared.problem.space

    @property
    def observables(self) -> Space:
        """The space of outputs."""
        return self._shared.problem.observables

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances per unit of which epsilon counts."""
        return self._shared.problem.distinguishability

    def __getitem__(self, name: str) -> Mechanism:
        snapshot = self._current
        return certified_mechanism(snapshot.record(self._find(snapshot, name)), require_cells(snapshot.shared))

    def sample(self, name: str, secret: Label) -> Label:
        """One output for a person's secret, with randomness from the operating system."""
        snapshot = self._current
        sampler = self._samplers(self._find(snapshot, name)).sampler
        problem = require_cells(snapshot.shared).problem
        return problem.observables.labels[int(sampler.draw(problem.space.indices([secret]))[0])]

    def export(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write a person's mechanism without prior and cost, for :func:`privacygames.load_public` to read."""
        PublicMechanism.of(self[name]).save(path)

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """What one output of any mechanism of the fleet guarantees of differential privacy, with its unit."""
        problem, bounds = self._shared.problem, self.bounds
        scale = measure_scale(problem.distinguishability, problem.space)
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        np.fill_diagonal(exponents, 0.0)
        any_pair = float(exponents.max()) * (1 + ROUNDING)
        return EpsilonGuarantee(bounds.epsilon, scale.per(bounds.within), scale.unit, any_pair)

    def _sampler(self, number: int) -> "_IndexSampler":
        snapshot = self._current
        statement = statement_of(snapshot.record(number), require_cells(snapshot.shared))
        if number not in self._verified:
            check(statement)
            self._verified.add(number)
        return _IndexSampler(Sampler(statement.weights, statement.bits))

    def _tweak(self, secrets: IntArray, tags: IntArray) -> IntArray:
        return secrets | (tags << 20)  # the secret's index is below 2^20

    def __repr__(self) -> str:
        return f"Fleet({len(self)} people, {len(self.secrets)} secrets, {len(self.observables)} observables)"


@dataclass(frozen=True)
class _IndexSampler:
    """Draws the outputs of one person's rows, whose secrets are indices."""

    sampler: Sampler

    def tweak(self, secrets: IntArray) -> IntArray:
        """The index: all rows have the same mechanism."""
        return secrets

    def draw(self, secrets: IntArray, random_words: RandomWords) -> IntArray:
        """The index of an output for each row."""
        return self.sampler.draw_with(secrets, random_words(0))

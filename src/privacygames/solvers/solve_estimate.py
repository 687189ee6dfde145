"""What a design by the block method is going to take, before it is tried."""

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Literal

import numpy as np

from privacygames.errors import TooLarge
from privacygames.solvers.linalg import CouplingRows, SymmetricBlocks, host_algebra, loops_kept, loops_loaded
from privacygames.solvers.memory import DEVICE_SHARE, SHARE, available_gigabytes, device_free
from privacygames.threads import available_processors

ITERATIONS = 27
"""What most designs take: regular grids 15 to 25, scattered places 25 to 40."""

SIDE_WORK = 25e-9
"""Seconds for each entry of a block besides its factorisation: solves, ratios, steps (measured at 15×15)."""

SAMPLE = 400
"""Larger blocks are not timed, but reckoned from one of this size: the work grows with the cube."""

BYTES, BYTES_EACH = 40, 70
"""Memory for each entry of all blocks, where the average cost counts and where each secret's does (measured at 17×17
and 14×14 with the Euclidean cost: factors, working sets, scans and the proof)."""

DEVICE_BYTES = 4
"""The same on a GPU: less than 3 was measured at 40×40. Factors, 8 an entry, are computed anew where room is short."""

LEAST_GIGABYTES = 0.2

ENTRIES_A_THREAD, ALONE = 1_400_000, 800_000
"""Where loops are not compiled: with less work for each, more threads only wait for the interpreter's lock; with less
in all, two do (5×5: 0.04 s with one thread, 0.10 s with two)."""

COMPILED_ENTRIES_A_THREAD = 100_000
"""Where they are, a thread pays much sooner."""

SMALL = 300_000
"""Blocks with fewer entries than this, together, are factorised as fast as longer steps are found: those are plain."""

WORTH_LOADING, WORTH_COMPILING = 6_000_000, 20_000_000
"""From so many entries on, compiled loops are worth the second that it takes to load them, and the half minute that it
takes to compile them, once on a machine; once they are loaded, they are for all but small problems."""

ALTERNATIVES = (
    "fewer answers (approximations.fewer_outputs, or Problem(…, observables=…): the optimum is exact for those), "
    "or fewer secrets"
)


Loops = Literal["none", "compiled", "to compile"]
"""How a design's loops are to run: by NumPy; compiled, as they are there; or compiled, once they are."""


@dataclass(frozen=True)
class SolveEstimate:
    """An estimate of what a design takes on this machine, by the block method.

    Attributes:
        secrets: how many unknowns a block has: the secrets that can be told apart.
        observables: how many blocks there are: the answers that no other one dominates.
        guesses: how many guesses all adversaries have.
        each: whether each secret's cost counts, rather than the average.
        threads: how many are to work on it; None for as many as are worth it.
        device: where: "host", or one of PyTorch's devices.
    """

    secrets: int
    observables: int
    guesses: int = 0
    each: bool = False
    threads: int | None = None
    device: str = "host"

    @property
    def on_host(self) -> bool:
        """Whether this machine's own memory and processors are used."""
        return not self.device.startswith("cuda")

    @property
    def entries(self) -> int:
        """How many entries all blocks have."""
        return self.observables * self.secrets**2

    @property
    def gigabytes(self) -> float:
        """Memory."""
        if not self.on_host:
            return LEAST_GIGABYTES + (self.entries + self.observables * self.guesses) * DEVICE_BYTES / 2**30
        numbers = self.entries * (BYTES_EACH if self.each else BYTES) + self.observables * self.guesses * BYTES
        return LEAST_GIGABYTES + numbers / 2**30

    @cached_property
    def seconds(self) -> float:
        """Time, within a factor of three or so: how many iterations it takes is not known before. Times a block."""
        size = min(self.secrets, SAMPLE)
        cube = _seconds_a_block(size) * (self.secrets / size) ** 3
        grams = cube * self.guesses / self.secrets
        at_once = min(self.workers, self.observables)
        return ITERATIONS * self.observables * (cube + grams + SIDE_WORK * self.secrets**2) / at_once

    @property
    def loops(self) -> Loops:
        """What loops to work with."""
        if loops_loaded():
            return "compiled" if self.entries >= SMALL else "none"
        if self.entries < WORTH_LOADING:
            return "none"
        kept = loops_kept()
        return "compiled" if kept else "to compile" if self.entries >= WORTH_COMPILING else "none"

    @property
    def workers(self) -> int:
        """How many threads are worth it: those asked for, or one a processor where there is enough to do."""
        if self.threads is not None:  # and no loops are looked for
            return self.threads
        least, each = (1 if self.entries < ALONE else 2), ENTRIES_A_THREAD
        if self.loops != "none":
            least, each = 1, COMPILED_ENTRIES_A_THREAD
        return min(available_processors(), max(least, self.entries // each))

    @property
    def fits(self) -> bool:
        """Whether the memory is there."""
        return self.gigabytes <= (SHARE if self.on_host else DEVICE_SHARE) * self._available

    @property
    def _available(self) -> float:
        if self.on_host:
            return available_gigabytes()
        import torch

        return device_free(torch.device(self.device))[0] / 2**30

    def require(self) -> None:
        """Raise, with the estimate and what would do, if it is not."""
        if not self.fits:
            there = "this machine has" if self.on_host else f"free on {self.device} are"
            other = ', or a GPU (Interior(device="cuda"))' if self.on_host else ""
            raise TooLarge(
                f"the block engine would need {self}; {there} {self._available:.0f} GiB. "
                f"What needs less: {ALTERNATIVES}{other}"
            )

    def __str__(self) -> str:
        size = f"{self.secrets} secrets and {self.observables} observables"
        if not self.on_host:
            return f"about {self.gigabytes:.1f} GiB of memory on {self.device} for {size}"
        return f"about {self.gigabytes:.1f} GiB of memory and {_duration(self.seconds)} for {size}"


def _seconds_a_block(size: int) -> float:
    """How long one block of this size takes to factorise and invert, by one thread."""
    blocks, links = SymmetricBlocks(np.ones((1, size))), CouplingRows(size)
    with host_algebra(1) as algebra:
        started, times = perf_counter(), 0
        while times < 2 or (perf_counter() - started < 0.01 and times < 100):
            algebra.factorise(blocks, links)
            times += 1
        return (perf_counter() - started) / times


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "a second" if seconds < 1.5 else f"{seconds:.0f} seconds"

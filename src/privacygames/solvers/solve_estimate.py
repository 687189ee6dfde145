"""``SolveEstimate``: the memory and time that a design by the block method takes, before it is tried."""

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from privacygames.errors import TooLarge
from privacygames.solvers.linalg import (
    CouplingRows,
    SymmetricBlocks,
    compiled_extension,
    host_algebra,
)
from privacygames.solvers.memory import DEVICE_SHARE, SHARE, available_gigabytes, device_free
from privacygames.threads import available_processors

ITERATIONS = 27
"""Iterations of most designs: regular grids take 15 to 25, scattered places 25 to 40."""

SECONDS_PER_ENTRY = 25e-9
"""Seconds per entry of a block and iteration besides factorisation: solutions, ratios, steps (measured at 15×15)."""

TIMED_SIZE = 400
"""Largest block that is timed; the time of larger ones is extrapolated with the cube of their size."""

BYTES, BYTES_EVERY_COST = 40, 50
"""Bytes per entry of all blocks, where the average cost counts and where every secret's does (measured at 15×15 and
17×17 with the Euclidean cost: factors, working sets, checks of all ratios and the bound)."""

DEVICE_BYTES = 1.8
"""The same on a GPU, without factors: 1.9 was measured at 50×50, half of it for a batch's temporary arrays, which take
less where memory is short. Factors, 4.4 bytes an entry, are computed anew where there is no room for them."""

FIXED_GIGABYTES = 0.07
"""Memory of the process itself."""

ENTRIES_PER_THREAD, TWO_THREADS_ENTRIES = 1_400_000, 800_000
"""Entries per thread, and entries from which two threads are used, without compiled loops: with fewer, threads wait for
the interpreter's lock (5×5: 0.04 s with one thread, 0.10 s with two)."""

COMPILED_ENTRIES_PER_THREAD = 100_000
"""Entries per thread with compiled loops, which hold no lock."""

ALTERNATIVES = (
    "fewer outputs (approximations.fewer_outputs, or Problem(…, observables=…): the optimum is exact for those), "
    "or fewer secrets"
)


@dataclass(frozen=True)
class SolveEstimate:
    """An estimate of the memory and time that a design takes on this machine, by the block method.

    Attributes:
        secrets: number of unknowns of a block: the secrets without those merged or left out.
        observables: number of blocks: the observables that no other one dominates.
        guesses: number of guesses of all adversaries.
        every_cost_counts: whether each secret's cost counts, rather than the average.
        threads: number of threads; None for as many as are worth it.
        device: "host", or one of PyTorch's devices.

    >>> estimate = pg.SolveEstimate(secrets=300, observables=44)
    >>> round(estimate.gigabytes, 1), estimate.fits
    (0.2, True)
    """

    secrets: int
    observables: int
    guesses: int = 0
    every_cost_counts: bool = False
    threads: int | None = None
    device: str = "host"

    @property
    def on_host(self) -> bool:
        """Whether this machine's own memory and processors are used."""
        return not self.device.startswith("cuda")

    @property
    def entries(self) -> int:
        """Number of entries of all blocks."""
        return self.observables * self.secrets**2

    @property
    def gigabytes(self) -> float:
        """Memory, in GiB."""
        if not self.on_host:
            return FIXED_GIGABYTES + (self.entries + self.observables * self.guesses) * DEVICE_BYTES / 2**30
        each = BYTES_EVERY_COST if self.every_cost_counts else BYTES
        return FIXED_GIGABYTES + (self.entries * each + self.observables * self.guesses * BYTES) / 2**30

    @cached_property
    def seconds(self) -> float:
        """Time in seconds, within a factor of three or so: the number of iterations is not known. Times a block."""
        size = min(self.secrets, TIMED_SIZE)
        factorisation = _seconds_per_block(size) * (self.secrets / size) ** 3
        grams = factorisation * self.guesses / self.secrets
        at_once = min(self.workers, self.observables)
        block = factorisation + grams + SECONDS_PER_ENTRY * self.secrets**2
        return ITERATIONS * self.observables * block / at_once

    @property
    def workers(self) -> int:
        """The number of threads that are worth it: those asked for, or up to one per processor."""
        if self.threads is not None:
            return self.threads
        least, entries_per_thread = 1, COMPILED_ENTRIES_PER_THREAD
        if compiled_extension() is None:
            least, entries_per_thread = (1 if self.entries < TWO_THREADS_ENTRIES else 2), ENTRIES_PER_THREAD
        return min(available_processors(), max(least, self.entries // entries_per_thread))

    @property
    def fits(self) -> bool:
        """Whether there is enough memory."""
        return self.gigabytes <= (SHARE if self.on_host else DEVICE_SHARE) * self._available

    @property
    def _available(self) -> float:
        if self.on_host:
            return available_gigabytes()
        import torch

        return device_free(torch.device(self.device))[0] / 2**30

    def require(self) -> None:
        """Raise :class:`TooLarge`, with the estimate and with alternatives, where there is not enough memory."""
        if not self.fits:
            where = "this machine has" if self.on_host else f"free on {self.device} are"
            gpu = ', or a GPU (Interior(device="cuda"))' if self.on_host else ""
            raise TooLarge(
                f"the block method would need {self}; {where} {self._available:.0f} GiB. "
                f"What needs less: {ALTERNATIVES}{gpu}"
            )

    def __str__(self) -> str:
        size = f"{self.secrets} secrets and {self.observables} observables"
        if not self.on_host:
            return f"about {self.gigabytes:.1f} GiB of memory on {self.device} for {size}"
        return f"about {self.gigabytes:.1f} GiB of memory and {_duration(self.seconds)} for {size}"


def _seconds_per_block(size: int) -> float:
    """The time that one block of this size takes to factorise and invert, by one thread."""
    blocks, rows = SymmetricBlocks(np.ones((1, size))), CouplingRows(size)
    with host_algebra(1) as algebra:
        started, times = perf_counter(), 0
        while times < 2 or (perf_counter() - started < 0.01 and times < 100):
            algebra.factorise(blocks, rows)
            times += 1
        return (perf_counter() - started) / times


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "a second" if seconds < 1.5 else f"{seconds:.0f} seconds"

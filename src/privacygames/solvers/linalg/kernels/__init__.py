"""Loops compiled by Numba, each divided among Numba's threads and run without the global interpreter lock.

``host.compiled_loops`` imports them where Numba is installed; without them LAPACK and NumPy do the same work. Only
loops that save at least a tenth of a design are compiled (docs/theory/solver-log.md has the measurements).

Not all of Numba's threading layers can be called from two threads at the same time, so calls take turns. None survives
a fork, so a forked process does without compiled loops (:func:`usable`).
"""

import os
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

from numba import config, get_num_threads, set_num_threads

if config.DISABLE_JIT:
    raise ImportError("Numba is told not to compile anything")

from privacygames.solvers.linalg.kernels import block_loops, ratio_loops

ROUTINES = block_loops.ROUTINES
_process, _turn = os.getpid(), Lock()

WAITING = {"GOMP_SPINCOUNT": "300", "KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": None}
"""How OpenMP's threads wait for work, unless the environment says otherwise. By default they spin for milliseconds; on
a busy machine every loop then takes as long as the scheduler's time slice."""


def launch(environment: MutableMapping[str, str]) -> None:
    """Start Numba's threads, if they do not run yet: OpenMP reads its environment at that moment only."""
    if not WAITING.keys() & environment.keys():
        environment.update({name: value for name, value in WAITING.items() if value is not None})
        try:
            get_num_threads()
        finally:
            for name in WAITING:
                environment.pop(name, None)


launch(os.environ)


def usable() -> bool:
    """Whether this is the process that imported the loops, not a fork of it."""
    return os.getpid() == _process


def loaded() -> bool:
    """Whether loops have been compiled or loaded in this process."""
    return len(block_loops.factorise.signatures) > 0


def cached() -> bool:
    """Whether compiled loops are in Numba's cache on disk."""
    return any(Path(block_loops.factorise.stats.cache_path).glob("block_loops.factorise-*.nbc"))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use this many threads, or as many as Numba has, for the loops called in this block."""
    before = get_num_threads()
    set_num_threads(min(count, config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        set_num_threads(before)


def _in_turn(loop: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(loop)
    def locked(*arguments: Any) -> Any:
        with _turn:
            return loop(*arguments)

    return locked


def _in_parts(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a loop whose last argument is the number of threads, each of which needs memory of its own."""
    in_turn = _in_turn(loop)
    return wraps(loop)(lambda *arguments: in_turn(*arguments, get_num_threads()))


factorise, solve = _in_parts(block_loops.factorise), _in_turn(block_loops.solve)
check_ratios = _in_turn(ratio_loops.check_ratios)
ratio_adjoint = _in_turn(ratio_loops.ratio_adjoint)
ratio_hessian = _in_turn(ratio_loops.ratio_hessian)
ratio_slacks = _in_turn(ratio_loops.ratio_slacks)

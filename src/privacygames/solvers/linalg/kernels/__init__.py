"""Loops compiled by Numba: they run without the interpreter's lock, each divided among threads of its own.

Everything here is done by NumPy elsewhere, in many more and much shorter steps, between which threads wait for each
other. Only where Numba is installed: ``host.compiled_loops`` asks.

Not every kind of threads that Numba may be using can be called from two threads at the same time, so the loops take
turns; nor survives a fork, so a process that was forked does without (:func:`usable`).
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

from privacygames.solvers.linalg.kernels import block_loops, direction_loops, pair_loops, step_loops

ROUTINES = block_loops.ROUTINES
_process, _turn = os.getpid(), Lock()

WAITING = {"GOMP_SPINCOUNT": "300", "KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": None}
"""How OpenMP's threads wait for work, unless the environment says so: by default they keep a processor busy for
milliseconds, and where others need it, too, every loop then takes as long as the system's turns do."""


def launch(environment: MutableMapping[str, str]) -> None:
    """Start Numba's threads, if they are not there yet: OpenMP looks at its environment then, and only then."""
    if not WAITING.keys() & environment.keys():
        environment.update({name: value for name, value in WAITING.items() if value is not None})
        try:
            get_num_threads()
        finally:
            for name in WAITING:
                environment.pop(name, None)


launch(os.environ)


def usable() -> bool:
    """Whether this is the process that loaded the loops."""
    return os.getpid() == _process


def loaded() -> bool:
    """Whether loops have been compiled, or loaded, in this process."""
    return len(block_loops.factorise.signatures) > 0


def cached() -> bool:
    """Whether loops that were compiled before are kept on disk."""
    return any(Path(block_loops.factorise.stats.cache_path).glob("block_loops.factorise-*.nbc"))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Divide loops that are called here among so many threads, or as many as Numba has."""
    before = get_num_threads()
    set_num_threads(min(count, config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        set_num_threads(before)


def _in_turn(loop: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(loop)
    def called(*arguments: Any) -> Any:
        with _turn:
            return loop(*arguments)

    return called


def _in_parts(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The same, of a loop that is told how many threads there are, for each of them needs memory of its own."""
    in_turn = _in_turn(loop)
    return wraps(loop)(lambda *arguments: in_turn(*arguments, get_num_threads()))


factorise, solve = _in_parts(block_loops.factorise), _in_turn(block_loops.solve)

begun = _in_turn(direction_loops.begun)
finished = _in_turn(direction_loops.finished)
finished_others = _in_turn(direction_loops.finished_others)
refined = _in_turn(direction_loops.refined)

bounds_between = _in_turn(pair_loops.bounds_between)
less_opposites = _in_parts(pair_loops.less_opposites)
near_pairs = _in_turn(pair_loops.near_pairs)
pair_slacks = _in_turn(pair_loops.pair_slacks)
pair_squares = _in_turn(pair_loops.pair_squares)
pair_totals = _in_turn(pair_loops.pair_totals)
taken_over = _in_turn(pair_loops.taken_over)

flatnonzero_above = _in_parts(step_loops.flatnonzero_above)
answered = _in_turn(step_loops.answered)
central = _in_turn(step_loops.central)
dual_change = _in_turn(step_loops.dual_change)
least_growth = _in_turn(step_loops.least_growth)
moved = _in_turn(step_loops.moved)
outlying = _in_turn(step_loops.outlying)
product_total = _in_turn(step_loops.product_total)
ratio = _in_turn(step_loops.ratio)
speeds = _in_turn(step_loops.speeds)
matmul = _in_parts(step_loops.matmul)
undone = _in_turn(step_loops.undone)
used_up = _in_turn(step_loops.used_up)

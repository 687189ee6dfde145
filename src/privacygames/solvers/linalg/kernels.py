"""Compiled loops over many blocks, and what they need of NumPy: the C code in ``csrc``, called with arrays.

The package's build compiles the extension ``_compiled`` where there is a C compiler (wheels contain it); without it,
LAPACK and NumPy do the same work more slowly. Each loop runs without the interpreter's lock, divided among threads of
its own, which end with it: kernels may be called from several threads, and in forked processes.
"""

from dataclasses import dataclass, field
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.blas_routines import routine_address

ROUTINES = np.array([routine_address(name) for name in ("dlauum", "dsyrk", "dtrmm")])
"""The addresses of the routines that kernels call, in their order."""

Pairs = tuple[IntArray, NDArray[np.int32], NDArray[np.int32], FloatArray]
"""The pairs of a batch of blocks: where each block's start, their secrets i and j, and √γ."""

Pair = tuple[FloatArray, FloatArray]
"""Slacks and dual values, or their changes."""


def load_extension() -> Any:
    """The extension module; None where it was not built."""
    try:
        return import_module("privacygames.solvers.linalg._compiled")
    except ImportError:
        return None


@dataclass(frozen=True)
class Kernels:
    """The compiled loops, each divided among a number of threads where there is enough work.

    Attributes:
        extension: the extension module.
        threads: the largest number of threads.
    """

    extension: Any
    threads: int = 1
    _marks: list[NDArray[np.uint8]] = field(default_factory=list, repr=False, compare=False)

    def factorise(
        self,
        *,
        scales: FloatArray,
        entries: tuple[IntArray, NDArray[np.int32], NDArray[np.int32], FloatArray],
        gram: tuple[FloatArray, IntArray, int, FloatArray],
        coupling: tuple[int, int, IntArray, FloatArray],
        regularisations: FloatArray,
        packed: FloatArray,
    ) -> FloatArray | None:
        """Write the packed inverse factors of blocks; return the Schur complement, or None where a block has none.

        Args:
            scales: the scalings D to a unit diagonal, (blocks, width).
            entries: off-diagonal entries: where each block's start, their rows, columns and values.
            gram: a term Rᵀ diag(w) R: R, the columns it is on, how many of them are the first ones, and √w.
            coupling: the number of coupling rows, how many of them are of the identity, and the unknowns and weights
                of the others.
            regularisations: of the unit diagonal, ascending.
            packed: output: triangles M row by row, with MᵀM the inverse of a block.
        """
        total = np.zeros((coupling[0], coupling[0]))
        width = scales.shape[1]
        failed = self.extension.factorise(
            ROUTINES, scales, *entries, *gram, *coupling[1:], regularisations, packed, total, width, self.threads
        )
        return None if failed else total

    def solve(self, packed: FloatArray, blocks: IntArray, right: FloatArray, solution: FloatArray) -> FloatArray:
        """Add MᵀM r to a solution for right-hand sides r, each with the triangle M of its block."""
        self.extension.solve(packed, blocks, right, solution, right.shape[1], self.threads)
        return solution

    def ratio_slacks(self, u: FloatArray, pairs: Pairs, slacks: FloatArray) -> None:
        """√γ v(j) − v(i)/√γ of every pair, into ``slacks``."""
        self.extension.ratio_slacks(u, *pairs, slacks, u.shape[1], self.threads)

    def ratio_adjoint(self, values: FloatArray, pairs: Pairs, total: FloatArray) -> None:
        """Add values to v(j) times √γ, and to v(i) times −1/√γ, in place."""
        self.extension.ratio_adjoint(values, *pairs, total, total.shape[1], self.threads)

    def ratio_hessian(self, weights: FloatArray, pairs: Pairs, diagonal: FloatArray) -> FloatArray:
        """Add the diagonals of Aᵀ diag(weights) A in place; returns its entries at the pairs."""
        entries = np.empty(len(weights))
        self.extension.ratio_hessian(weights, *pairs, diagonal, entries, diagonal.shape[1], self.threads)
        return entries

    def check_ratios(
        self,
        columns: tuple[FloatArray, FloatArray],
        thresholds: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]],
        bounds: tuple[FloatArray, FloatArray],
        pairs: Pairs,
        *,
        keep_all: bool,
        tolerance: float,
    ) -> tuple[float, IntArray, Pairs]:
        """The fraction of a step that all ratio bounds allow, and keys and pairs of the working set at its end.

        The fraction is ∞ for the whole step.

        Args:
            columns: before and after the step, (blocks, n), positive.
            thresholds: log-ratios from which a pair joins, below which it leaves, and pairs that are always in the set.
            bounds: the bounds on log-ratios, and √γ, of all pairs.
            pairs: the set before the step.
            keep_all: whether none of it leaves.
            tolerance: the excess of a log-ratio from which its bound counts as violated.
        """
        before, after = map(np.ascontiguousarray, columns)
        blocks, size = after.shape
        marks = self._acquire_marks(blocks * size * (-(-size // 8) * 8))
        logs, starts = np.log(after), np.zeros(blocks + 1, dtype=np.int64)
        if self.extension.mark_ratios(logs, *thresholds, *pairs[:3], keep_all, marks, starts[1:], size, self.threads):
            raise MemoryError("there is no memory for the ratios of a block")
        np.cumsum(starts, out=starts)
        count = int(starts[-1])
        keys, i, j = np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
        root, allowed = np.empty(count), np.empty(blocks)
        self.extension.list_ratios(
            before, after, logs, *bounds, marks, starts, keys, i, j, root, allowed, size, self.threads, tolerance
        )
        self._marks.append(marks)
        return float(allowed.min(initial=inf)), keys, (starts, i, j, root)

    def _acquire_marks(self, count: int) -> NDArray[np.uint8]:
        """A buffer of this size, of an earlier call where there is one: fresh memory takes as long as the work."""
        try:
            marks = self._marks.pop()
        except IndexError:  # none, or another thread is using it
            return np.empty(count, np.uint8)
        return marks[:count] if len(marks) >= count else np.empty(count, np.uint8)

    def inherit_duals(
        self,
        before: tuple[IntArray, IntArray, FloatArray],
        now: tuple[IntArray, IntArray, FloatArray],
        target: float,
    ) -> FloatArray:
        """The dual values of a working set: those of the set before, and target/slack for pairs that joined.

        Args:
            before: where each block's pairs start, their keys, and their dual values.
            now: where each block's pairs start, their keys, and their slacks.
            target: the product of pairs that joined.
        """
        duals = np.empty(len(now[1]))
        self.extension.inherit_duals(*before, *now, target, duals, self.threads)
        return duals

    def cancel_opposites(self, values: FloatArray, pairs: Pairs, size: int) -> FloatArray:
        """Dual values less what a pair and its opposite have in common."""
        result = np.empty(len(values))
        if self.extension.cancel_opposites(values, *pairs, result, size):
            raise MemoryError("there is no memory for the ratios of a block")
        return result

    def extension_bounds(self, columns: FloatArray, to: FloatArray, back: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the least and most entries that further secrets may have in columns, (others, blocks).

        Args:
            columns: the columns, (blocks, secrets).
            to: exponents from these secrets to the others, (others, secrets).
            back: exponents from the others.
        """
        least, most = (np.empty((len(to), len(columns))) for _ in range(2))
        size, logs = columns.shape[1], np.log(np.ascontiguousarray(columns))
        self.extension.extension_bounds(logs, to, back, least, most, size, self.threads)
        return least, most

    def triangle_inequality_holds(self, exponents: FloatArray, limits: FloatArray, secrets: IntArray) -> bool:
        """Whether the exponents over some secrets are at least the limits of every pair."""
        return bool(self.extension.triangle_inequality_holds(exponents, limits, secrets, len(exponents)))

    def divide(self, numerators: FloatArray, denominators: FloatArray) -> FloatArray:
        """Quotients."""
        result = np.empty_like(numerators)
        self.extension.divide(numerators, denominators, result, self.threads)
        return result

    def axpy(self, a: float, x: FloatArray, y: FloatArray) -> FloatArray:
        """``a*x + y``."""
        result = np.empty_like(x)
        self.extension.axpy(a, x, y, result, self.threads)
        return result

    def least_growth(self, slack_dual: Pair, change: Pair) -> FloatArray:
        """The least ds/s and dz/z, or −1 if none is less; not a number if some is none."""
        growth = np.empty(2)
        self.extension.least_growth(*slack_dual, *change, growth, self.threads)
        return growth

    def direction_change(
        self, product_change: FloatArray, slack_dual: Pair, ds: FloatArray, base: Pair | None
    ) -> tuple[FloatArray, FloatArray]:
        """Dz = (product_change − z ds)/s and the least growth; both, and ds in place, with a base's added."""
        dz, growth = np.empty_like(ds), np.empty(2)
        base_ds, base_dz = (_NONE, _NONE) if base is None else base
        self.extension.direction_change(product_change, *slack_dual, ds, base_ds, base_dz, dz, growth, self.threads)
        return dz, growth

    def shifted_change(self, base: Pair, slack_dual: Pair, ds: FloatArray) -> FloatArray:
        """The base's dz less z ds/s; the base's ds is added to ds in place."""
        dz = np.empty_like(ds)
        self.extension.shifted_change(*base, *slack_dual, ds, dz, self.threads)
        return dz

    def mehrotra_change(self, slack_dual: Pair, affine: Pair, target: float, limit: float) -> FloatArray:
        """Mehrotra's corrector; see ``interior.elementwise``."""
        change = np.empty_like(slack_dual[0])
        self.extension.mehrotra_change(*slack_dual, *affine, target, limit, change, self.threads)
        return change

    def gondzio_change(
        self, slack_dual: Pair, change: Pair, steps: tuple[float, float], centre: tuple[float, float]
    ) -> FloatArray:
        """Gondzio's corrector; see ``interior.elementwise``."""
        result = np.empty_like(slack_dual[0])
        self.extension.gondzio_change(*slack_dual, *change, *steps, *centre, result, self.threads)
        return result

    def complementarity_after(self, slack_dual: Pair, change: Pair, steps: tuple[float, float]) -> float:
        """Σ s z after a primal and a dual step of these lengths."""
        return float(self.extension.complementarity_after(*slack_dual, *change, *steps, self.threads))

    def blocking_ratios(self, slack_dual: Pair, change: Pair, threshold: float) -> tuple[FloatArray, IntArray]:
        """The larger of −ds/s and −dz/z where it is above a threshold, and the indices of those inequalities."""
        (s, z), (ds, dz) = slack_dual, change
        ratios, indices = np.empty(len(s)), np.empty(len(s), np.int64)
        count = int(self.extension.blocking_ratios(s, ds, z, dz, threshold, ratios, indices, self.threads))
        return ratios[:count], indices[:count]

    def step_ratios(self, values: FloatArray, changes: FloatArray, threshold: float) -> FloatArray:
        """The ratios −change/value above a threshold."""
        ratios = np.empty(len(values))
        return ratios[: int(self.extension.step_ratios(values, changes, threshold, ratios, self.threads))]


_NONE: FloatArray = np.zeros(0)

"""LAPACK and BLAS routines for square blocks, called without Python's global interpreter lock.

SciPy's Python wrappers hold the lock while they compute. The routines behind them, which SciPy exports for Cython, do
not need it, and ctypes releases it. A symmetric block is a C-ordered array; LAPACK reads it by columns, so what it
calls the lower triangle is the upper one here.
"""

import ctypes
from collections.abc import Iterable

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.blas_routines import routine

_LOWER, _PLAIN, _TRANSPOSED, _GENERAL, _LEFT, _RIGHT = b"L", b"N", b"T", b"N", b"L", b"R"


_potrf = routine("dpotrf", 5)
_trtri = routine("dtrtri", 6)
_lauum = routine("dlauum", 5)
_syrk = routine("dsyrk", 10)
_trmm = routine("dtrmm", 11)
_trsv = routine("dtrsv", 8)

LEAF = 64
"""Size up to which LAPACK inverts a triangle; a larger one is split into halves and products, which are much faster."""


class BlockRoutines:
    """The routines for C-ordered blocks of one size; each thread needs an instance of its own."""

    def __init__(self, size: int) -> None:
        self._numbers = {value: ctypes.c_int(value) for value in (1, size)}
        self._info, self._plus, self._minus = ctypes.c_int(0), ctypes.c_double(1.0), ctypes.c_double(-1.0)
        self._size = size
        self._at = [ctypes.addressof(number) for number in (self._numbers[size], self._numbers[1], self._info)]
        self._signs = [ctypes.addressof(sign) for sign in (self._plus, self._minus)]

    def factor(self, block: FloatArray) -> bool:
        """Replace the block's upper triangle by its Cholesky factor; returns whether the block is positive definite."""
        size, _, info = self._at
        _potrf(_LOWER, size, _start(block), size, info)
        return self._info.value == 0

    def add_gram(self, block: FloatArray, rows: FloatArray, first: int) -> None:
        """Add RᵀR for the first ``first`` columns of R to the block's leading upper triangle."""
        count, columns = rows.shape
        size, plus = self._at[0], self._signs[0]
        numbers = self._number(first), self._number(count), plus, _start(rows), self._number(columns)
        _syrk(_LOWER, _PLAIN, *numbers, plus, _start(block), size)

    def invert_factor(self, factor: FloatArray) -> None:
        """Invert a triangular factor in place."""
        self._invert(_start(factor), self._size)

    def multiply_by_transpose(self, factor: FloatArray) -> None:
        """Replace a triangle F by the upper triangle of F Fᵀ: H⁻¹ where F is the inverse of H's factor."""
        size, _, info = self._at
        _lauum(_LOWER, size, _start(factor), size, info)

    def solve(self, factors: FloatArray, blocks: Iterable[int], right: FloatArray) -> None:
        """Solve in place for right-hand sides, each with one of the factors, (…, size, size)."""
        size, one, _ = self._at
        block, vector = _start(factors), _start(right)
        square, row = 8 * self._size * self._size, 8 * self._size
        for position, index in enumerate(blocks):  # by address: to slice an array takes longer than the solution
            at, to = block + index * square, vector + position * row
            _trsv(_LOWER, _PLAIN, _GENERAL, size, at, size, to, one)
            _trsv(_LOWER, _TRANSPOSED, _GENERAL, size, at, size, to, one)

    def _invert(self, at: int, count: int) -> None:
        """Invert the triangle of ``count`` rows at an address: its two halves, then the rectangle between them."""
        leading, _, info = self._at
        if count <= LEAF:
            _trtri(_LOWER, _GENERAL, self._number(count), at, leading, info)
            return
        first = count // 2
        second = count - first
        between, below = at + 8 * first, at + 8 * (first + first * self._size)
        self._invert(at, first)
        self._invert(below, second)
        plus, minus = self._signs
        rows, columns = self._number(second), self._number(first)
        _trmm(_LEFT, _LOWER, _PLAIN, _GENERAL, rows, columns, minus, below, leading, between, leading)
        _trmm(_RIGHT, _LOWER, _PLAIN, _GENERAL, rows, columns, plus, at, leading, between, leading)

    def _number(self, value: int) -> int:
        return ctypes.addressof(self._numbers.setdefault(value, ctypes.c_int(value)))


def _start(array: FloatArray) -> int:
    if not array.flags.c_contiguous or array.dtype != np.float64:
        raise ValueError("blocks must be C-ordered doubles")
    return array.ctypes.data

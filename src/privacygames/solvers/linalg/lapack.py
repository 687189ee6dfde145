"""LAPACK and BLAS on square blocks without the interpreter's lock, so that two threads really are two.

SciPy's Python wrappers hold the lock while they compute; the routines behind them, which SciPy exports for Cython,
do not need it, and ctypes lets go of it. A symmetric block is one C-ordered array; LAPACK reads it by columns, so
what it calls the lower triangle is the upper one here.
"""

import ctypes
from collections.abc import Callable
from types import ModuleType

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from privacygames.arrays import FloatArray

_LOWER, _PLAIN, _TRANSPOSED, _GENERAL = b"L", b"N", b"T", b"N"


def _routine(module: ModuleType, name: str, arguments: int) -> Callable[..., None]:
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    if b" int *" not in signature:
        raise ImportError(f"SciPy's {name} counts with integers of another size than was expected")
    address = api.PyCapsule_GetPointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


_potrf = _routine(cython_lapack, "dpotrf", 5)
_potri = _routine(cython_lapack, "dpotri", 5)
_trsv = _routine(cython_blas, "dtrsv", 8)


class Square:
    """Routines for C-ordered blocks of one size; each thread has its own."""

    def __init__(self, size: int) -> None:
        self._size, self._one, self._info = ctypes.c_int(size), ctypes.c_int(1), ctypes.c_int(0)
        self._at = [ctypes.addressof(each) for each in (self._size, self._one, self._info)]

    def factor(self, block: FloatArray) -> bool:
        """Cholesky's factor in place of the block, above the diagonal here; whether it exists."""
        size, _, info = self._at
        _potrf(_LOWER, size, _start(block), size, info)
        return self._info.value == 0

    def invert(self, factor: FloatArray) -> None:
        """The inverse, on and above the diagonal, in place of its factor."""
        size, _, info = self._at
        _potri(_LOWER, size, _start(factor), size, info)

    def solve(self, factor: FloatArray, right: FloatArray) -> None:
        """The solution in place of the right-hand side."""
        size, one, _ = self._at
        block, vector = _start(factor), _start(right)
        _trsv(_LOWER, _PLAIN, _GENERAL, size, block, size, vector, one)
        _trsv(_LOWER, _TRANSPOSED, _GENERAL, size, block, size, vector, one)


def _start(array: FloatArray) -> int:
    if not array.flags.c_contiguous or array.dtype != np.float64:
        raise ValueError("blocks must be C-ordered doubles")
    return array.ctypes.data

"""Addresses of the BLAS and LAPACK routines that SciPy exports for Cython, without importing the rest of scipy.linalg.

``scipy.linalg`` takes 80 ms to import, a third of a first design; its modules ``cython_blas`` and ``cython_lapack``
take 3 ms and need nothing else of it.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType

PACKAGE = "scipy.linalg"
"""The package of the modules that are loaded."""


def routine_address(name: str) -> int:
    """The memory address of a BLAS or LAPACK routine, such as ``"dpotrf"``, which takes 32-bit integers.

    >>> from privacygames.blas_routines import routine_address
    >>> routine_address("dpotrf") != routine_address("dtrsv")
    True
    """
    capsule = exported_routines()[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    if b" int *" not in signature:
        raise ImportError(f"SciPy's {name} counts with integers of another size than was expected")
    address: int = api.PyCapsule_GetPointer(capsule, signature)
    return address


def routine(name: str, arguments: int) -> Callable[..., None]:
    """A BLAS or LAPACK routine, to be called with the addresses of its arguments and without the interpreter's lock.

    >>> from privacygames.blas_routines import routine
    >>> numbers, vector, factor = np.array([2, 1], dtype=np.intc), np.array([1.0, 2.0]), np.array([3.0])
    >>> count, step = numbers.ctypes.data, numbers[1:].ctypes.data
    >>> routine("dscal", 4)(count, factor.ctypes.data, vector.ctypes.data, step)
    >>> vector
    array([3., 6.])
    """
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(routine_address(name))


@cache
def exported_routines() -> dict[str, object]:
    """The routines by name, each a capsule with its address; loads the BLAS library that SciPy uses.

    >>> from privacygames.blas_routines import exported_routines
    >>> {"dsyrk", "dpotrf"} <= exported_routines().keys()
    True
    """
    exported: dict[str, object] = {}
    for name in ("cython_lapack", "cython_blas"):
        exported |= _load(name).__pyx_capi__
    return exported


def _load(name: str) -> ModuleType:
    """A module of the package, without the package itself where that is possible."""
    full_name = f"{PACKAGE}.{name}"
    package = find_spec(PACKAGE)
    spec = None if package is None else PathFinder.find_spec(full_name, package.submodule_search_locations)
    if PACKAGE in sys.modules or spec is None or spec.loader is None:
        return import_module(full_name)
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (ImportError, RuntimeError):  # it needs the package after all, or another thread is importing it
        return import_module(full_name)
    if PACKAGE not in sys.modules:
        sys.modules.pop(full_name, None)  # so that a later import makes it an attribute of the package
    return module

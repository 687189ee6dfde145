"""BLAS and LAPACK routines by address: the same ones that scipy.linalg exports, whichever is imported first."""

import subprocess
import sys

import pytest

ROUTINES = "dpotrf", "dtrsv", "sgesv"


@pytest.mark.parametrize("first", ["", "import scipy.linalg", "import scipy.linalg.cython_lapack"])
def test_addresses_are_those_of_scipy(first: str) -> None:
    """In a new process, because what is imported cannot be taken back."""
    code = f"""
{first}
import ctypes
from privacygames.blas_routines import routine_address
addresses = {{name: routine_address(name) for name in {ROUTINES}}}
import scipy.linalg.cython_blas, scipy.linalg.cython_lapack
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
exported = {{**scipy.linalg.cython_blas.__pyx_capi__, **scipy.linalg.cython_lapack.__pyx_capi__}}
print(all(pointer(exported[name], name_of(exported[name])) == address for name, address in addresses.items()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"

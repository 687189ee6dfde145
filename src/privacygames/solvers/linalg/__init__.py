"""Linear algebra on batches of symmetric blocks, on this machine or on a GPU, behind one protocol."""

from privacygames.solvers.linalg.backend import HOST, Backend, FactorisationFailed
from privacygames.solvers.linalg.block_algebra import (
    BlockAlgebra,
    BlockFactors,
    CouplingRows,
    Gram,
    OffDiagonal,
    SymmetricBlocks,
    factorise_in_batches,
)
from privacygames.solvers.linalg.cholesky import CompiledFactors
from privacygames.solvers.linalg.device import device_algebra, require_torch
from privacygames.solvers.linalg.host import compiled_extension, host_algebra
from privacygames.solvers.linalg.kernels import Kernels, Pairs
from privacygames.solvers.linalg.schur import Schur

__all__ = [
    "HOST",
    "Backend",
    "BlockAlgebra",
    "BlockFactors",
    "CompiledFactors",
    "CouplingRows",
    "FactorisationFailed",
    "Gram",
    "Kernels",
    "OffDiagonal",
    "Pairs",
    "Schur",
    "SymmetricBlocks",
    "compiled_extension",
    "device_algebra",
    "factorise_in_batches",
    "host_algebra",
    "require_torch",
]

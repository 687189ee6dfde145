"""Linear algebra on batches of symmetric blocks, behind one protocol."""

from privacygames.solvers.linalg.backend import HOST, Backend
from privacygames.solvers.linalg.blocks import (
    BlockAlgebra,
    BlockFactors,
    CouplingRows,
    Gram,
    OffDiagonal,
    SymmetricBlocks,
    factorise_in_batches,
)
from privacygames.solvers.linalg.compiled_factors import CompiledFactors
from privacygames.solvers.linalg.device import device_algebra, torch_with
from privacygames.solvers.linalg.failure import FactorisationFailed
from privacygames.solvers.linalg.host import host_algebra, loops_kept, loops_loaded
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
    "OffDiagonal",
    "Schur",
    "SymmetricBlocks",
    "device_algebra",
    "factorise_in_batches",
    "host_algebra",
    "loops_kept",
    "loops_loaded",
    "torch_with",
]

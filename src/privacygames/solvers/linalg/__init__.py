"""Linear algebra on batches of symmetric blocks, behind one protocol."""

from privacygames.solvers.linalg.blocks import (
    BlockAlgebra,
    BlockFactors,
    FactorisationFailed,
    Gram,
    Links,
    OffDiagonal,
    SymmetricBlocks,
    factorise_in_batches,
)
from privacygames.solvers.linalg.host import host_algebra
from privacygames.solvers.linalg.schur import Schur

__all__ = [
    "BlockAlgebra",
    "BlockFactors",
    "FactorisationFailed",
    "Gram",
    "Links",
    "OffDiagonal",
    "Schur",
    "SymmetricBlocks",
    "factorise_in_batches",
    "host_algebra",
]

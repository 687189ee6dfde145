"""Problems of scattered places, and what the block method makes of them."""

import numpy as np

import privacygames as pg
from privacygames.arrays import FloatArray
from privacygames.problem import Bounds
from privacygames.solvers.interior.presolve import Presolve
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.start import initial_secrets
from privacygames.solvers.linalg import BlockAlgebra

SETTINGS = InteriorSettings()


def scattered(n: int, seed: int, *, absent: int = 0) -> pg.Problem:
    """Random places in a square, the first few of which nobody has."""
    random = np.random.default_rng(seed)
    points = random.random((n, 2)) * np.sqrt(n)
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    belief = random.dirichlet(np.ones(n))
    belief[:absent] = 0
    space = pg.Space.from_distances([f"p{i}" for i in range(n)], apart)
    return pg.Problem(pg.Prior(space, belief / belief.sum()), cost=apart, distance=apart)


def restricted_program_of(
    problem: pg.Problem,
    bounds: Bounds,
    algebra: BlockAlgebra,
    *,
    defer_zero_prior: bool = False,
    start: FloatArray | None = None,
) -> RestrictedProgram:
    """What the method starts with."""
    reduced = Presolve(
        problem,
        bounds,
        merge_dominated=True,
        drop_implied=True,
        defer_zero_prior=defer_zero_prior,
        merge_exponent=1e-7,
        start=start,
        settings=SETTINGS,
    )
    program = reduced.program
    blocks, size = program.objective.shape
    batches = algebra.batch_slices(blocks, width=size + program.adversary_count)
    return RestrictedProgram.of(program, initial_secrets(program, SETTINGS), batches, algebra.backend, SETTINGS)

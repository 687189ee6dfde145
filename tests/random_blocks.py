"""Random blocks and links, each with the same written out, for tests of every block algebra."""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import CouplingRows, Gram, OffDiagonal, SymmetricBlocks


def random_blocks(seed: int, count: int, width: int) -> tuple[SymmetricBlocks, FloatArray]:
    """Blocks with every kind of term, and the same written out."""
    generator = np.random.default_rng(seed)
    diagonal = generator.uniform(width, 2.0 * width, (count, width))
    dense = np.stack([np.diag(each) for each in diagonal])
    starts, rows, columns, values = [0], [], [], []
    for block in range(count):
        for i, j in zip(
            *np.nonzero(~np.eye(width, dtype=bool) & (generator.random((width, width)) < 0.3)), strict=True
        ):
            rows.append(i)
            columns.append(j)
            values.append(generator.uniform(-0.4, 0.4))
            dense[block, i, j] += values[-1]
            dense[block, j, i] += values[-1]
        starts.append(len(rows))
    beside = OffDiagonal(np.array(starts), np.array(rows, int), np.array(columns, int), np.array(values, float))
    grams = []
    for chosen in (np.arange(width), np.flatnonzero(generator.random(width) < 0.5)):
        gram = Gram(generator.normal(size=(3, len(chosen))), chosen, generator.uniform(0.0, 2.0, (count, 3)))
        grams.append(gram)
        for block in range(count):
            dense[block][np.ix_(chosen, chosen)] += gram.rows.T @ np.diag(gram.weights[block]) @ gram.rows
    return SymmetricBlocks(diagonal, beside, tuple(grams)), dense


def links_of(kind: str, seed: int, count: int, width: int) -> tuple[CouplingRows, FloatArray]:
    """Links of each kind, and J_o written out, (count, rows, width)."""
    n = max(1, width - 1)
    weights = np.random.default_rng(seed + 7).uniform(0.0, 3.0, (count, n))
    identity = np.tile(np.eye(width)[None], (count, 1, 1))
    if kind == "none":
        return CouplingRows(width), identity
    if kind == "average":
        row = np.zeros((count, 1, width))
        row[:, 0, :n] = -weights
        return CouplingRows(width, weights), np.concatenate([identity, row], axis=1)
    which = np.random.default_rng(seed + 8).integers(0, n, n + 2)  # several rows may be of one unknown
    weights = np.random.default_rng(seed + 7).uniform(0.0, 3.0, (count, len(which)))
    more = np.zeros((count, len(which), width))
    more[:, np.arange(len(which)), which] = -weights
    return CouplingRows(width, weights, which), np.concatenate([identity, more], axis=1)

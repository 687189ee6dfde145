"""A linear program written out: families of rows over the variables p(o|s), x(o) and y."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray

Matrix = Any
"""A SciPy sparse array (SciPy ships no types)."""


@dataclass(frozen=True)
class Rows:
    """One family of constraints ``lower ≤ Σ coefficients·variables ≤ upper``, named for its dual values.

    ``coefficients`` maps a block of variables ("p", "x", "y", "q") to a sparse matrix; other blocks are zero.
    """

    name: str
    coefficients: dict[str, Matrix]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class LinearProgram:
    """Minimise ``objective·v`` subject to rows; every block of variables has one lower bound."""

    blocks: dict[str, FloatArray]
    """The objective coefficients of each block of variables, in the order they are laid out."""
    lower: dict[str, float]
    """The lower bound of each block's variables (0, or −∞ for free ones)."""
    families: tuple[Rows, ...]
    upper: dict[str, FloatArray] = field(default_factory=dict)
    """The upper bounds of blocks' variables; ∞ where a block is not named."""

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Where each block of variables lies."""
        ends = list(accumulate(len(costs) for costs in self.blocks.values()))
        return {
            name: slice(end - len(costs), end) for (name, costs), end in zip(self.blocks.items(), ends, strict=True)
        }

    @cached_property
    def rows(self) -> dict[str, slice]:
        """Where each family of rows lies."""
        ends = list(accumulate(len(family.lower) for family in self.families))
        return {
            family.name: slice(end - len(family.lower), end) for family, end in zip(self.families, ends, strict=True)
        }

    @cached_property
    def objective(self) -> FloatArray:
        """All objective coefficients."""
        return np.concatenate(list(self.blocks.values()))

    @cached_property
    def variable_lower(self) -> FloatArray:
        """All variables' lower bounds."""
        return np.concatenate([np.full(len(costs), self.lower[name]) for name, costs in self.blocks.items()])

    @cached_property
    def variable_upper(self) -> FloatArray:
        """All variables' upper bounds."""
        return np.concatenate(
            [self.upper.get(name, np.full(len(costs), np.inf)) for name, costs in self.blocks.items()]
        )

    @cached_property
    def row_lower(self) -> FloatArray:
        """All rows' lower bounds."""
        return np.concatenate([family.lower for family in self.families])

    @cached_property
    def row_upper(self) -> FloatArray:
        """All rows' upper bounds."""
        return np.concatenate([family.upper for family in self.families])

    @cached_property
    def matrix(self) -> Matrix:
        """The whole coefficient matrix, row by row."""
        from scipy.sparse import block_array

        def block(family: Rows, name: str) -> Matrix:
            found = family.coefficients.get(name)
            return found if found is not None else _empty(len(family.lower), len(self.blocks[name]))

        return block_array([[block(family, name) for name in self.blocks] for family in self.families]).tocsr()


def _empty(rows: int, columns: int) -> Matrix:
    from scipy.sparse import csr_array

    return csr_array((rows, columns))


def assemble(
    objective: dict[str, FloatArray],
    *families: Rows | None,
    free: tuple[str, ...] = (),
    upper: dict[str, FloatArray] | None = None,
) -> LinearProgram:
    """Put an objective and families of rows together; ``free`` names the blocks that may be negative."""
    lower = {name: -np.inf if name in free else 0.0 for name in objective}
    return LinearProgram(objective, lower, tuple(family for family in families if family is not None), upper or {})


def thinned(program: LinearProgram, kept: dict[str, NDArray[np.bool_]]) -> LinearProgram:
    """A relaxation: the families named in ``kept`` have only those rows."""
    families = []
    for family in program.families:
        rows = kept.get(family.name, np.ones(len(family.lower), dtype=bool))
        coefficients = {name: matrix.tocsr()[rows] for name, matrix in family.coefficients.items()}
        families.append(Rows(family.name, coefficients, family.lower[rows], family.upper[rows]))
    return replace(program, families=tuple(families))

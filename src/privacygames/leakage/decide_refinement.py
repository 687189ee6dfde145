"""Whether one mechanism refines another: a linear program finds the proof, either way; fractions decide."""

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from operator import itemgetter

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import BITS, to_weights
from privacygames.errors import InvalidProblem, SolveFailed, Status, TooLarge
from privacygames.leakage.channel import Channel, Disclosing
from privacygames.leakage.composition import cascade
from privacygames.leakage.exact_solve import solve_exactly
from privacygames.leakage.gains import MatrixGain
from privacygames.leakage.refinement_proof import Refinement, gain_advantage, row_variation
from privacygames.programs import post_processing_program
from privacygames.solvers import Highs
from privacygames.validation import is_number

MOST_ENTRIES = 1_000_000
"""Largest number of non-zeros of the program: a hundred secrets and outputs, minutes; sixty take seconds."""

DENOMINATORS = (64, 4096, 2**20)
"""Largest denominators of the fractions that a post-processing is read as, in turn, for a proof without rounding."""

MOST_UNKNOWNS = 64
"""Largest number of positive entries of a post-processing that are solved for exactly: a second, with fractions."""

POSITIVE = 1e-7
"""Smallest entry of a post-processing that is not taken for zero: solvers leave less."""

GAIN_BITS = (2, 20, 50)
"""Bits to which a counterexample is rounded, in turn: few, so that it can be read; more, where few prove nothing."""


def refinement(
    mechanism: Disclosing, refined: Disclosing, *, tolerance: float = 1e-9, time_limit: float | None = None
) -> Refinement:
    """Whether ``refined`` is at least as safe as ``mechanism`` against every adversary: for every prior and gain.

    That is so exactly if it is a post-processing of ``mechanism`` (docs/theory/leakage.md). The answer has the
    post-processing, or a gain function by which an adversary gains more, and ``verify()`` checks it in fractions.

    Args:
        mechanism: A.
        refined: B, with the same secrets; its outputs may be others.
        tolerance: A R = B may be violated by this much, in total variation of a row: weights are rounded.
        time_limit: seconds that the linear program may take.

    Raises:
        SolveFailed: neither was proved, or not in time.
        TooLarge: the program would have more than a million entries.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> coin = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    >>> twice = pg.leakage.cascade(coin, coin)
    >>> pg.leakage.refinement(coin, twice)
    Refinement(holds, excess 0)
    >>> pg.leakage.refinement(twice, coin)
    Refinement(does not hold, advantage 0.125)
    """
    first, second = Channel.of(mechanism), Channel.of(refined)
    if first.secrets != second.secrets:
        raise InvalidProblem(f"the mechanisms have different secrets: {first.secrets!r} and {second.secrets!r}")
    if not (is_number(tolerance) and 0 <= tolerance < inf):
        raise InvalidProblem("tolerance must be a number, 0 or more")
    secrets, outputs, columns = len(first.secrets), len(first.outputs), len(second.outputs)
    proof, excess = _post_processing(first, second, _least_squares(first, second))
    if not excess or (excess <= tolerance and outputs * columns > MOST_UNKNOWNS):
        return Refinement(first, second, True, proof, excess, None, None)
    if secrets * outputs * columns > MOST_ENTRIES:
        raise TooLarge(
            f"the program for {secrets} secrets, {outputs} and {columns} outputs has {secrets * outputs * columns} "
            f"entries; at most {MOST_ENTRIES} are allowed"
        )
    program = post_processing_program(first.probabilities, second.probabilities)
    solution = Highs("simplex").solve_program(program, time_limit=time_limit)
    by_program = _post_processing(first, second, solution.block("r").reshape(outputs, columns))
    proof, excess = min((proof, excess), by_program, key=itemgetter(1))
    if excess <= tolerance:
        return Refinement(first, second, True, proof, excess, None, None)
    duals = solution.family("cover")
    gains = np.zeros((columns, secrets)) if duals is None else duals.reshape(secrets, columns).T
    for bits in GAIN_BITS:
        gain = _rounded_gain(gains, bits)
        advantage = gain_advantage(first, second, gain)
        if advantage > 0:
            return Refinement(first, second, False, None, None, gain, advantage)
    raise SolveFailed(
        f"neither was proved: the best post-processing misses by {float(excess):.3g}, more than the tolerance, and no "
        "gain function tells the difference",
        status=Status.NUMERICAL,
    )


def _least_squares(first: Channel, second: Channel) -> FloatArray:
    """The solution of A R = B by least squares: the only one, and the answer, if A's columns are independent."""
    rows = np.linalg.lstsq(first.probabilities, second.probabilities)[0]
    clean = np.maximum(rows, 0.0)
    return np.where(clean.any(axis=1, keepdims=True), clean, 1.0)


def _post_processing(first: Channel, second: Channel, rows: FloatArray) -> tuple[Channel, Fraction]:
    """The post-processing nearest to the solver's, of those with exact rows that are tried, and how far off it is."""
    clean = np.maximum(rows, 0.0)
    clean /= clean.sum(axis=1, keepdims=True)
    best, least = None, Fraction(2)
    for candidate in _candidates(first, second, clean):
        excess = row_variation(cascade(first, candidate), second)
        if best is None or excess < least:
            best, least = candidate, excess
        if not least:
            break
    assert best is not None  # noqa: S101 - weights that are rounded are always a candidate
    return best, least


def _candidates(first: Channel, second: Channel, rows: FloatArray) -> Iterator[Channel]:
    """Exact channels near to floating-point rows: rounded to weights, to simple fractions, and solved for."""
    yield Channel.from_integers(first.outputs, second.outputs, to_weights(rows, BITS), 2**BITS)
    for denominator in DENOMINATORS:
        simple = [[Fraction(value).limit_denominator(denominator) for value in row] for row in rows.tolist()]
        if all(sum(row) == 1 for row in simple):
            yield Channel(first.outputs, second.outputs, simple)
    solved = _solve(first, second, rows)
    if solved is not None:
        yield Channel(first.outputs, second.outputs, solved)


def _solve(first: Channel, second: Channel, rows: FloatArray) -> list[list[Fraction]] | None:
    """The solution of A R = B with the same positive entries as the rows; None if there is none, or more than one."""
    places = [(int(y), int(z)) for y, z in np.argwhere(rows > POSITIVE)]
    if len(places) > MOST_UNKNOWNS:
        return None
    position = {place: column for column, place in enumerate(places)}
    equations = []
    for table_row, target_row in zip(first.fractions, second.fractions, strict=True):
        for z, target in enumerate(target_row):
            coefficients = {position[y, z]: value for y, value in enumerate(table_row) if value and (y, z) in position}
            equations.append((coefficients, target))
    for y in range(rows.shape[0]):
        equations.append(({column: Fraction(1) for (row, _), column in position.items() if row == y}, Fraction(1)))
    values = solve_exactly(equations, len(places))
    if values is None or min(values) < 0:
        return None
    solution = [[Fraction(0)] * rows.shape[1] for _ in range(rows.shape[0])]
    for (y, z), value in zip(places, values, strict=True):
        solution[y][z] = value
    return solution


def _rounded_gain(gains: FloatArray, bits: int) -> MatrixGain:
    scaled = np.round(np.clip(gains, 0.0, 1.0) * 2.0**bits).astype(np.int64)
    return MatrixGain([[Fraction(int(value), 2**bits) for value in row] for row in scaled])

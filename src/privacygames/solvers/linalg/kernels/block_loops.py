"""Assembly, factorisation, inversion and solution of a whole batch of blocks in one call.

LAPACK and BLAS are called by their addresses, which are arguments, so that compiled code can be cached on disk. Blocks
are C-ordered; LAPACK reads them by columns, so what it calls the upper triangle is the lower one here.
"""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

from privacygames.solvers.linalg.kernels.parallel import compiled, in_threads, parts
from privacygames.solvers.linalg.lapack import ADDRESSES, LEAF

_POTRF, _TRTRI, _LAUUM, _SYRK, _TRMM = range(5)
ROUTINES = np.array([ADDRESSES[name] for name in ("dpotrf", "dtrtri", "dlauum", "dsyrk", "dtrmm")])


@intrinsic
def _call(_, address, arguments):
    """Call a routine at an address, all arguments of which are addresses."""

    def generate(context, builder, signature, values):
        count = signature.args[1].count
        function_type = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * count)
        routine = builder.inttoptr(values[0], function_type.as_pointer())
        builder.call(routine, [builder.extract_value(values[1], index) for index in range(count)])
        return context.get_dummy_value()

    return types.void(address, arguments), generate


@compiled
def _constants(width):
    """LAPACK's arguments in memory: the letters U, N, R, L; the width, 1 and three free integers; 1.0 and −1.0."""
    letters = np.array([85, 78, 82, 76], dtype=np.uint8)
    return letters, np.array([width, 1, 0, 0, 0], dtype=np.int32), np.array([1.0, -1.0])


@compiled
def _invert(routines, address, width, letters, numbers, signs):
    """Invert the triangle at an address: small diagonal triangles, then the rectangles between ever larger ones."""
    letter, number, sign = letters.ctypes.data, numbers.ctypes.data, signs.ctypes.data
    upper, not_transposed, right, left = letter, letter + 1, letter + 2, letter + 3
    rows, columns, info = number + 8, number + 12, number + 16
    for start in range(0, width, LEAF):
        numbers[2] = min(LEAF, width - start)
        _call(routines[_TRTRI], (upper, not_transposed, rows, address + 8 * start * (width + 1), number, info))
    size = LEAF
    while size < width:
        for start in range(0, width - size, 2 * size):
            numbers[2], numbers[3] = size, min(size, width - start - size)
            first = address + 8 * start * (width + 1)
            rectangle, second = first + 8 * size * width, first + 8 * size * (width + 1)
            operands = (rows, columns, sign + 8, first, number, rectangle, number)
            _call(routines[_TRMM], (left, upper, not_transposed, not_transposed, *operands))
            operands = (rows, columns, sign, second, number, rectangle, number)
            _call(routines[_TRMM], (right, upper, not_transposed, not_transposed, *operands))
        size *= 2


@compiled
def _assemble(routines, pairs, values, gram, roots, scale, block, scaled, numbers, letters, signs):
    """Write the lower triangle of D H D of one block; its diagonal is left to the caller."""
    (i, j), (rows, columns, leading) = pairs, gram
    for row in range(len(block)):
        block[row, :row] = 0.0
    for entry in range(len(values)):
        row, column = max(i[entry], j[entry]), min(i[entry], j[entry])
        block[row, column] += values[entry] * scale[row] * scale[column]
    if not len(rows):
        return
    for gram_row in range(len(rows)):
        for index in range(len(columns)):
            scaled[gram_row, index] = rows[gram_row, index] * scale[columns[index]] * roots[gram_row]
    letter, number, one = letters.ctypes.data, numbers.ctypes.data, signs.ctypes.data
    numbers[2], numbers[3], numbers[4] = leading, len(rows), len(columns)
    if leading:
        size = (number + 8, number + 12, one, scaled.ctypes.data, number + 16)
        _call(routines[_SYRK], (letter, letter + 1, *size, one, block.ctypes.data, number))
    for last in range(leading, len(columns)):
        block_row = block[columns[last]]
        for gram_row in range(len(rows)):
            for index in range(last + 1):
                block_row[columns[index]] += scaled[gram_row, last] * scaled[gram_row, index]


@compiled
def _add_projected(total, shared, which, weights, inverse):
    """Add the weighted rows of J M Jᵀ below the diagonal, given the lower triangle of a symmetric M."""
    width = len(inverse)
    for row in range(width):
        for column in range(row):
            inverse[column, row] = inverse[row, column]
    if len(which) == 0:  # one row: minus the weighted sum of the first unknowns
        for row in range(width):
            product = 0.0
            for column in range(len(weights)):
                product += inverse[row, column] * weights[column]
            if row < shared:
                total[-1, row] -= product
            if row < len(weights):
                total[-1, -1] += weights[row] * product
        return
    for index in range(len(which)):
        total_row, inverse_row = total[shared + index], inverse[which[index]]
        for column in range(shared):
            total_row[column] -= weights[index] * inverse_row[column]
        for other in range(index + 1):
            total_row[shared + other] += weights[index] * weights[other] * inverse_row[which[other]]


@compiled
def _factorise(routines, scales, starts, i, j, values, gram, roots, links, regularisations, packed, sums):
    """Factorise blocks one by one and add up their Schur complement's lower triangle; returns how many succeeded."""
    count, width = scales.shape
    shared, which, weights = links
    letters, numbers, signs = _constants(width)
    letter, number, info = letters.ctypes.data, numbers.ctypes.data, numbers.ctypes.data + 16
    block, scaled = np.zeros((width, width)), np.empty(gram[0].shape)
    for index in range(count):
        entries, scale = slice(starts[index], starts[index + 1]), scales[index]
        positive_definite = False
        for regularisation in regularisations:
            pairs = (i[entries], j[entries])
            _assemble(
                routines, pairs, values[entries], gram, roots[index], scale, block, scaled, numbers, letters, signs
            )
            for row in range(width):
                block[row, row] = 1.0 + regularisation
            numbers[4] = 0
            _call(routines[_POTRF], (letter, number, block.ctypes.data, number, info))
            positive_definite = numbers[4] == 0
            if positive_definite:
                break
        if not positive_definite:
            return index
        _invert(routines, block.ctypes.data, width, letters, numbers, signs)
        triangle, offset = packed[index], 0
        for row in range(width):
            for column in range(row + 1):
                block[row, column] *= scale[column]
                triangle[offset + column] = block[row, column]
            offset += row + 1
        _call(routines[_LAUUM], (letter, number, block.ctypes.data, number, info))
        for row in range(shared):
            for column in range(row + 1):
                sums[row, column] += block[row, column]
        if weights.size:
            _add_projected(sums, shared, which, weights[index], block)
    return count


@in_threads
def factorise(
    routines,
    scales,
    starts,
    i,
    j,
    values,
    rows,
    columns,
    leading,
    roots,
    linked,
    shared,
    which,
    weights,
    added,
    packed,
    threads,
):
    """The packed inverse factors of blocks, and the Schur complement of their coupling rows.

    Args:
        routines: the addresses of LAPACK's and BLAS's routines.
        scales: the diagonal scalings D to a unit diagonal, (blocks, width).
        starts: the index of each block's first off-diagonal entry.
        i: the rows of these entries.
        j: their columns.
        values: their values, at (i, j) and (j, i).
        rows: the matrix R of the Gram term Rᵀ diag(w) R.
        columns: the block's columns that R stands for, ascending.
        leading: how many of those are the block's first columns.
        roots: √w, (blocks, rows of R).
        linked: the number of coupling rows.
        shared: how many unknowns have an identity row.
        which: the unknowns of the weighted rows.
        weights: their weights.
        added: regularisations of the unit diagonal, ascending.
        packed: output: the triangles M row by row, with MᵀM the inverse of a block.
        threads: the number of ranges of blocks to work on at the same time.

    Returns:
        The Schur complement, and the number of blocks in each range that were not factorised.
    """
    edges = parts(len(scales), threads)
    failed, sums = np.zeros(len(edges) - 1, np.int64), np.zeros((len(edges) - 1, linked, linked))
    for part in prange(len(edges) - 1):
        first, last = edges[part], edges[part + 1]
        factorised = _factorise(
            routines,
            scales[first:last],
            starts[first : last + 1],
            i,
            j,
            values,
            (rows, columns, leading),
            roots[first:last],
            (shared, which, weights[first:last]),
            added,
            packed[first:last],
            sums[part],
        )
        failed[part] = last - first - factorised
    total = np.zeros((linked, linked))
    for row in prange(linked):
        for part in range(len(edges) - 1):
            for column in range(row + 1):
                total[column, row] += sums[part, row, column]
    for row in prange(linked):
        for column in range(row):
            total[row, column] = total[column, row]
    return total, failed


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _add_solution(triangle, right, solution):
    """Add MᵀM r for the triangle M of one block, reading M once."""
    offset = 0
    for row in range(len(right)):
        triangle_row, product = triangle[offset : offset + row + 1], 0.0
        for column in range(row + 1):
            product += triangle_row[column] * right[column]
        for column in range(row + 1):
            solution[column] += product * triangle_row[column]
        offset += row + 1


@in_threads
def solve(packed, blocks, right):
    """MᵀM r for right-hand sides r, each with the triangle M of its block."""
    solution = np.zeros(right.shape)
    for row in prange(len(right)):
        _add_solution(packed[blocks[row]], right[row], solution[row])
    return solution

r"""Bernstein polynomials of degree d on a cell: values, slopes, and coefficients on halves of the cell.

On a cell a function is :math:`f(x) = \sum_i B_i(t)\, c_i` with :math:`B_i(t) = \binom{d}{i} t^i (1-t)^{d-i}` and the
cell's own coordinate t in [0, 1]. In the plane the products :math:`B_i(t_x) B_j(t_y)` take their place; tables over
them have the index i of the first axis running fastest.
"""

from functools import cache
from math import comb

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze, freeze_floats

RESOLUTION_BITS = 24
"""A coordinate inside a cell is rounded to a multiple of 2^-24 of the cell's side: under a millimetre."""


def basis(inside: list[IntArray], degree: int) -> FloatArray:
    """The basis functions at points inside cells, (points, (degree + 1) ** axes).

    Args:
        inside: for each axis, where each point is, in units of 2^-RESOLUTION_BITS of the cell's side.
        degree: the degree along each axis.
    """
    order = np.arange(degree + 1)
    binomial = np.array([comb(degree, i) for i in order], dtype=np.float64)
    values = np.ones((len(inside[0]), 1))
    for numerators in inside[::-1]:
        t = np.ldexp(numerators.astype(np.float64), -RESOLUTION_BITS)[:, None]
        along = binomial * t**order * (1 - t) ** (degree - order)
        values = (values[:, :, None] * along[:, None, :]).reshape(len(t), values.shape[1] * len(order))
    return values


@cache
def slopes(degree: int, axes: int) -> tuple[IntArray, ...]:
    """For each axis the slopes at the control values of a cell of side 1, as integer combinations of its values.

    The derivative of a Bernstein polynomial, raised to the degree of the polynomial, has the coefficients
    ``-i·c[i-1] + (2i-d)·c[i] + (d-i)·c[i+1]``. Each matrix is (control values, control values).
    """
    i = np.arange(degree + 1)
    single = np.diag(2 * i - degree) + np.diag(-i[1:], -1) + np.diag(degree - i[:-1], 1)
    unit = np.eye(degree + 1, dtype=np.int64)
    tables = []
    for axis in range(axes):
        table = np.ones((1, 1), dtype=np.int64)
        for each in reversed(range(axes)):
            table = np.kron(table, single if each == axis else unit)
        tables.append(freeze(table.astype(np.int64)))
    return tuple(tables)


@cache
def halves(degree: int) -> tuple[FloatArray, FloatArray]:
    """De Casteljau at one half: the coefficients on the lower and on the upper half, (new, old); rows sum to one."""
    lower = np.array([[comb(i, j) / 2**i if j <= i else 0.0 for j in range(degree + 1)] for i in range(degree + 1)])
    return freeze_floats(lower), freeze_floats(lower[::-1, ::-1].copy())


@cache
def products(first: int, second: int, axes: int) -> FloatArray:
    """The coefficients of a product of polynomials: (pairs of coefficients, coefficients of the product).

    Columns sum to one: each coefficient of the product is a mean of products of coefficients.
    """
    table = np.zeros((first + 1, second + 1, first + second + 1))
    for i in range(first + 1):
        for j in range(second + 1):
            table[i, j, i + j] = comb(first, i) * comb(second, j) / comb(first + second, i + j)
    if axes == 1:
        return freeze_floats(table.reshape(-1, first + second + 1))
    product = np.einsum("ijk,abc->iajbkc", table, table)
    return freeze_floats(np.asarray(product.reshape(((first + 1) * (second + 1)) ** 2, -1)))

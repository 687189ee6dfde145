"""Piecewise Bernstein polynomials: values, continuity and gradients against independent formulas."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privacygames as pg
from privacygames import Area
from privacygames.points import Axis, Mesh


@settings(max_examples=40, deadline=None)
@given(
    cells=st.lists(st.floats(0.1, 3.0), min_size=1, max_size=4),
    degree=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_basis_functions_are_a_partition_of_unity_and_reproduce_lines(
    cells: list[float], degree: int, seed: int
) -> None:
    lines = np.concatenate([[0.0], np.cumsum(cells)])
    axis = Axis(lines, degree)
    x = np.random.default_rng(seed).uniform(0, lines[-1], 50)
    first, values = axis.basis(axis.encode(x))
    assert (values >= 0).all()
    assert np.allclose(values.sum(axis=1), 1)
    # Control values on a straight line give that line: c = x at the Greville points.
    greville = np.concatenate([[0.0], *(np.linspace(a, b, degree + 1)[1:] for a, b in pairwise(lines))])
    interpolated = (values * greville[first[:, None] + np.arange(degree + 1)]).sum(axis=1)
    assert np.allclose(interpolated, x, atol=1e-6 * lines[-1])


def test_functions_are_continuous_across_cells() -> None:
    axis = Axis(np.array([0.0, 1.0, 2.5]), 3)
    control = np.random.default_rng(1).uniform(size=axis.controls)
    first, values = axis.basis(axis.encode(np.array([1.0 - 1e-7, 1.0])))
    left, right = (values * control[first[:, None] + np.arange(4)]).sum(axis=1)
    assert left == pytest.approx(right, abs=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_gradient_coefficients_reproduce_finite_differences(degree: int) -> None:
    """Σ B_i B_j g_ij is the gradient of Σ B_i B_j c_ij, at random points inside cells."""
    mesh = Mesh.from_lines(Area(3.0, 2.0), [0.7], [1.1], degree=degree)
    rng = np.random.default_rng(degree)
    control = rng.uniform(size=mesh.controls)
    _, along_x, along_y = mesh.gradients
    coefficients = np.stack([along_x @ control, along_y @ control], axis=1)
    step = 1e-4
    points = rng.uniform((0.01, 0.01), (2.99, 1.99), (40, 2))
    points = points[(np.abs(points[:, 0] - 0.7) > 0.01) & (np.abs(points[:, 1] - 1.1) > 0.01)]

    def value(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(mesh.basis_at(xy) @ control)

    for axis, move in enumerate(np.eye(2) * step):
        difference = (value(points + move) - value(points - move)) / (2 * step)
        (column, _), (row, _) = (each.locate(points[:, at]) for at, each in enumerate(mesh.axes))
        along = [np.asarray(each.basis(each.encode(points[:, at]))[1]) for at, each in enumerate(mesh.axes)]
        order = np.arange(degree + 1)
        place = (row[:, None] * (degree + 1) + order)[:, :, None] * (mesh.axes[0].cells * (degree + 1))
        place = place + (column[:, None] * (degree + 1) + order)[:, None, :]
        gradient = (along[1][:, :, None] * along[0][:, None, :] * coefficients[place, axis]).sum(axis=(1, 2))
        assert np.allclose(gradient, difference, atol=2e-3 * np.abs(coefficients).max())


def test_meshes_say_what_is_wrong() -> None:
    area = Area(3.0, 2.0)
    for wrong in ((0, 1), (1, 1.5), ("2", 1)):
        with pytest.raises(pg.InvalidProblem, match="whole numbers of columns and rows"):
            Mesh(area, *wrong)
    with pytest.raises(pg.InvalidProblem, match="degree of a mesh must be a whole number from 1 to 8"):
        Mesh(area, 1, 1, degree=9)
    with pytest.raises(pg.InvalidProblem, match="12544 control points, more than 4000"):
        Mesh(area, 37, 37)
    with pytest.raises(pg.InvalidProblem, match="numbers inside the region"):
        Mesh.from_lines(area, [4.0], [])
    with pytest.raises(pg.InvalidProblem, match="lines for 2 axes; got 1"):
        Mesh.from_lines(area, [1.0])


def test_the_default_mesh_has_cells_of_one_and_a_half_over_epsilon() -> None:
    assert Mesh.for_epsilon(Area(15.0, 8.0), 0.6) == Mesh(Area(15.0, 8.0), 6, 4)


def test_areas_clamp_and_refuse_what_is_no_point() -> None:
    area = Area.over((116.2, 39.9, 116.4, 40.0))
    inside, outside = area.clamp([(116.3, 39.95), (110.0, 50.0)])
    assert inside == pytest.approx([area.width / 2, area.height / 2])
    assert outside.tolist() == [0.0, area.height]
    with pytest.raises(pg.InvalidProblem, match="1 of the points are not on the Earth"):
        area.clamp([(39.95, 116.3)])
    with pytest.raises(pg.InvalidProblem, match="1 of the points are not finite numbers"):
        area.clamp([(116.3, 39.95), (float("nan"), 39.95)])
    with pytest.raises(pg.InvalidProblem, match=r"must be pairs, an array of shape \(many, 2\)"):
        area.clamp([1.0, 2.0])
    with pytest.raises(pg.InvalidProblem, match="positive width and height"):
        Area(0.0, 1.0)
    with pytest.raises(pg.InvalidProblem):
        Area.over((179.0, 0.0, -179.0, 1.0))


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=2, max_size=2))
def test_clamping_shortens_distances(pairs: list[tuple[float, float]]) -> None:
    first, second = Area(15.0, 8.0).clamp(pairs)
    assert np.hypot(*(first - second)) <= np.hypot(*(np.array(pairs[0]) - pairs[1])) + 1e-9

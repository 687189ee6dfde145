"""Piecewise Bernstein polynomials: values, continuity and gradients against independent formulas."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privacygames as pg
from privacygames import Area
from privacygames.points import Mesh


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Meshes with some cells halved, and again, on intervals and areas."""
    region = draw(st.sampled_from([Area(3.0, 2.0), pg.Interval(-1.0, 4.0)]))
    given = [sorted(draw(st.lists(st.floats(0.1, length - 0.1), max_size=2))) for length in region.lengths]
    lines = [[x for x, before in zip(axis, [-1.0, *axis], strict=False) if x - before > 0.05] for axis in given]
    mesh = Mesh.from_lines(region, *lines, degree=draw(st.integers(1, 4)))
    for _ in range(draw(st.integers(0, 3))):
        mesh = mesh.refined(draw(st.lists(st.integers(0, mesh.cells - 1), max_size=3)))
    return mesh


def random_points(mesh: Mesh, seed: int, count: int = 200) -> NDArray[np.float64]:
    """Random points of the region, one in three on a line between cells."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, mesh.region.lengths, (count, mesh.axes))
    axis = rng.integers(mesh.axes)
    xy[: count // 3, axis] = rng.choice(mesh.bounds[int(rng.integers(2))][:, axis], count // 3)
    return xy


@settings(max_examples=60, deadline=None)
@given(mesh=meshes(), seed=st.integers(0, 2**32 - 1))
def test_basis_functions_are_a_partition_of_unity_and_continuous(mesh: Mesh, seed: int) -> None:
    xy = random_points(mesh, seed)
    basis = mesh.basis_at(xy)
    assert basis.shape == (len(xy), mesh.controls)
    assert (basis.data >= 0).all()
    assert np.allclose(basis.sum(axis=1), 1)
    values = np.random.default_rng(seed).uniform(size=mesh.controls)
    largest = max(float(np.abs(slopes @ values).max()) for slopes in mesh.gradients[1:])
    step = 1e-9 * np.random.default_rng(seed + 1).normal(size=xy.shape)
    beside = np.clip(xy + step, 0, mesh.region.lengths)
    moved = np.hypot.reduce(beside - xy, axis=1) + 2 * mesh.resolution
    assert (np.abs(mesh.basis_at(beside) @ values - basis @ values) <= 2 * largest * moved + 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(mesh=meshes(), seed=st.integers(0, 2**32 - 1))
def test_codes_are_near_their_points_and_inside_their_cells(mesh: Mesh, seed: int) -> None:
    xy = random_points(mesh, seed)
    codes = mesh.encode(xy)
    assert (codes >= 0).all()
    assert (np.hypot.reduce(mesh.decode(codes) - xy, axis=1) <= mesh.resolution * (1 + 1e-6)).all()
    cell, inside = mesh.split(codes)
    low, high = mesh.bounds
    assert ((low[cell] <= xy + 1e-12) & (xy <= high[cell] + 1e-12)).all()
    assert all(((each >= 0) & (each <= 2**24)).all() for each in inside)
    assert float(np.prod(high - low, axis=1).sum()) == pytest.approx(float(np.prod(mesh.region.lengths)))


@settings(max_examples=40, deadline=None)
@given(mesh=meshes(), seed=st.integers(0, 2**32 - 1))
def test_a_finer_mesh_has_every_function_of_a_coarser_one(mesh: Mesh, seed: int) -> None:
    """So refinement never makes the optimum worse. The coarse function is interpolated on the finer mesh."""
    rng = np.random.default_rng(seed)
    finer = mesh.refined([int(rng.integers(mesh.cells))]) if mesh.tree.depth < 4 else mesh
    values, xy = rng.uniform(size=mesh.controls), rng.uniform(0, mesh.region.lengths, (40 * finer.controls, mesh.axes))
    wanted = mesh.basis_at(xy) @ values
    fitted = np.linalg.lstsq(finer.basis_at(xy).toarray(), wanted, rcond=None)[0]
    assert np.allclose(finer.basis_at(xy) @ fitted, wanted, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(mesh=meshes(), seed=st.integers(0, 2**32 - 1))
def test_gradient_coefficients_reproduce_finite_differences(mesh: Mesh, seed: int) -> None:
    """Σ B_i B_j g_ij is the gradient of Σ B_i B_j c_ij, at random points inside cells."""
    rng = np.random.default_rng(seed)
    values, degree = rng.uniform(size=mesh.controls), mesh.degree
    low, high = mesh.bounds
    cell = rng.integers(mesh.cells, size=40)
    xy = low[cell] + rng.uniform(0.1, 0.9, (40, mesh.axes)) * (high - low)[cell]
    coefficients = [(slopes @ values).reshape(mesh.cells, -1) for slopes in mesh.gradients[1:]]
    shares = (xy - low[cell]) / (high - low)[cell]
    along = [np.stack([comb(degree, i) * t**i * (1 - t) ** (degree - i) for i in range(degree + 1)]) for t in shares.T]
    basis = along[0].T if mesh.axes == 1 else np.einsum("jp,ip->pji", along[1], along[0]).reshape(40, -1)
    for axis in range(mesh.axes):
        move = np.zeros(mesh.axes)
        move[axis] = step = 1e-3 * float(mesh.sides[cell, axis].min())
        difference = (mesh.basis_at(xy + move) @ values - mesh.basis_at(xy - move) @ values) / (2 * step)
        gradient = (basis * coefficients[axis][cell]).sum(axis=1)
        assert np.allclose(gradient, difference, atol=3e-3 * np.abs(coefficients[axis]).max())


def test_cells_next_to_each_other_differ_by_one_level() -> None:
    mesh = Mesh(Area(4.0, 4.0), 4, 4)
    for _ in range(3):  # the cell at the corner of the others, again and again
        low, high = mesh.bounds
        mesh = mesh.refined(np.flatnonzero((low <= 1.99).all(axis=1) & (high > 1.99).all(axis=1)))
    assert mesh.tree.depth == 3
    for cell, (level, *_) in enumerate(mesh.tree.cells.tolist()):
        for axis in (0, 1):
            for step in (-1, 1):
                beside = mesh.tree.neighbour(cell, axis, step)
                assert beside < 0 or abs(level - mesh.tree.cells[beside, 0]) <= 1
    with pytest.raises(pg.InvalidProblem, match="halved at most 5 times"):
        Mesh(Area(1.0, 1.0), 1, 1, degree=1).refined([0]).refined([0]).refined([0]).refined([0]).refined([0]).refined(
            [0]
        )
    with pytest.raises(pg.InvalidProblem, match="degree 8 are halved at most 3 times"):
        Mesh(Area(1.0, 1.0), 1, 1, degree=8).refined([0]).refined([0]).refined([0]).refined([0])


@pytest.mark.parametrize(
    "cells",
    [
        [[0, 0, 0]],  # half of the region
        [[0, 0, 0], [0, 0, 0]],  # one half twice
        [[0, 0, 0], [0, 1, 0], [1, 0, 0]],  # a part twice
        [[0, 0, 0], [0, 2, 0]],  # outside
        [[0, 0, 0], [-1, 0, 0]],
        [[0, 0, 0], [6, 0, 0]],
        [[0, 0], [0, 1]],
    ],
)
def test_cells_of_files_cover_the_region_once(cells: list[list[int]]) -> None:
    with pytest.raises(pg.InvalidProblem, match="cover its region once"):
        Mesh.from_lines(Area(2.0, 1.0), [1.0], [], cells=np.array(cells))


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
    assert Mesh.for_epsilon(Area(15.0, 8.0), 0.6) == Mesh(Area(15.0, 8.0), 4, 2)


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

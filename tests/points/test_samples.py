"""Samples for points have exactly the certified distribution, also on meshes with cells of several sizes."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from points.examples import MAKERS, example
from points.pairs import UNIT, Evaluator
from privacygames import PointMechanism
from privacygames.points import Mesh
from privacygames.points.weight_table import PointTable

Codes = NDArray[np.int64]
DRAWS = 60_000
SURE = 1e-7
"""Probability that one chi-square test rejects a right sampler."""


def at_edges_of_larger_cells(mesh: Mesh, rng: np.random.Generator, count: int) -> Codes:
    """Points on edges and next to edges beyond which the cells are larger, where control values are combinations."""
    edges = [(cell, axis, step) for cell in range(mesh.cells) for _, axis, step in mesh.tree.larger_neighbours(cell)]
    codes = np.zeros(count, dtype=np.int64)
    low, high = mesh.bounds
    for number in range(count if edges else 0):
        cell, axis, step = edges[rng.integers(len(edges))]
        xy = rng.uniform(low[cell], high[cell])
        xy[axis] = (high if step > 0 else low)[cell, axis] + rng.integers(-1, 2) * mesh.sides[cell, axis] / UNIT
        codes[number] = mesh.encode(np.clip(xy, 0.0, mesh.region.lengths)[None])[0]
    return codes if edges else codes[:0]


def points_of(mechanism: PointMechanism, seed: int) -> Codes:
    """Random encoded points: anywhere, at the region's corners, and at edges of larger cells."""
    mesh, rng = mechanism.mesh, np.random.default_rng(seed)
    anywhere = rng.uniform(0, mesh.region.lengths, (3, mesh.axes))
    corners = np.array([np.zeros(mesh.axes), mesh.region.lengths])
    return np.concatenate([mesh.encode(np.concatenate([anywhere, corners])), at_edges_of_larger_cells(mesh, rng, 5)])


def assert_distributed(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> None:
    """Pearson's test; outputs expected fewer than eight times count as one with the next."""
    assert not counts[probabilities == 0].any()
    order = np.argsort(probabilities)
    expected, counts = probabilities[order] * counts.sum(), counts[order]
    rare = min(int(np.searchsorted(np.cumsum(expected), 8.0)), len(expected) - 2)
    expected = np.append(expected[: rare + 1].sum(), expected[rare + 1 :])
    counts = np.append(counts[: rare + 1].sum(), counts[rare + 1 :])
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < chi2.ppf(1 - SURE, len(expected) - 1)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("source", ["seeded", "system", "words"])
def test_samples_at_random_points(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By each source of randomness; what the operating system gives is replaced, so that the test is repeatable."""
    mechanism = example(name)
    table = PointTable(mechanism.mesh, mechanism.observables, mechanism.weights, mechanism.bits)
    rng = np.random.default_rng([len(name), len(source)])
    monkeypatch.setattr(os, "urandom", rng.bytes)
    codes = points_of(mechanism, seed=4)
    for code, probabilities in zip(codes, Evaluator(mechanism).probabilities(codes), strict=True):
        same = np.full(DRAWS, code)
        if source == "words":
            words = rng.integers(0, 2**64, size=(8, DRAWS), dtype=np.uint64)
            drawn = table.draw_with(same, words.__getitem__)
        else:
            drawn = table.draw(same, rng if source == "seeded" else None)
        assert_distributed(np.bincount(drawn, minlength=len(probabilities)), probabilities)


@pytest.mark.parametrize("name", [name for name in MAKERS if "refined" in name])
def test_edges_of_larger_cells_are_tested(name: str) -> None:
    """Several control values are combinations of others, and some of the points tested have them."""
    mesh = example(name).mesh
    codes = points_of(example(name), seed=4)
    assert mesh.axes == 1 or (mesh.shared.most_terms > 1 and len(codes) == 10)


@pytest.mark.parametrize("name", MAKERS)
def test_the_simulated_cost_is_the_certified_one(name: str) -> None:
    """The cost of samples at the visited places, within five standard errors of the certificate's."""
    mechanism = example(name)
    prior, rng = mechanism.problem.prior, np.random.default_rng(11)
    visited = rng.choice(len(prior), 400_000, p=prior.probabilities)
    drawn = mechanism.draw(prior.points[visited], rng)
    costs = mechanism.problem.costs[visited, drawn]
    error = float(costs.std()) / np.sqrt(len(costs))
    assert abs(float(costs.mean()) - mechanism.certificate.cost) < 5 * error
    assert error < 0.005 * mechanism.certificate.cost


@pytest.mark.parametrize("name", ["line, refined", "square, refined, joint"])
def test_the_simulated_error_of_the_best_attack_is_the_certified_one(name: str) -> None:
    """The adversary's error, whose guess for each output may be any point, is at least what is certified."""
    mechanism = example(name)
    prior, rng = mechanism.problem.prior, np.random.default_rng(12)
    visited = rng.choice(len(prior), 400_000, p=prior.probabilities)
    drawn = mechanism.draw(prior.points[visited], rng)
    errors = np.zeros(len(visited))
    for output in np.unique(drawn).tolist():
        given = prior.xy[visited[drawn == output]]
        counts = np.bincount(visited[drawn == output], minlength=len(prior))
        guess = best_guess(prior.xy, counts / counts.sum())
        errors[drawn == output] = np.linalg.norm(given - guess, axis=1)
    certified = mechanism.certificate.verification.distortion
    assert float(errors.mean()) == pytest.approx(certified, rel=0.01)


def best_guess(xy: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted geometric median by a search over places and Weiszfeld's iteration."""
    guess = shares @ xy
    for _ in range(300):
        pull = shares / np.maximum(np.linalg.norm(xy - guess, axis=1), 1e-9)
        guess = pull @ xy / pull.sum()
    candidates = np.concatenate([guess[None], xy])
    errors = np.linalg.norm(candidates[:, None] - xy, axis=2) @ shares
    return np.asarray(candidates[int(np.argmin(errors))])

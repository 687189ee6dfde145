"""Each baseline against an independent computation: numeric integration, closed forms, sums term by term, qif."""

from dataclasses import replace
from itertools import pairwise
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import dblquad
from scipy.stats import chisquare, kstest

import privacygames as pg
from exact import holds_exactly
from privacygames import baselines, metrics
from privacygames.certificates import to_weights
from privacygames.mechanism import binary_container
from privacygames.mechanism.mechanism_content import MechanismContent, encode_content
from privacygames.mechanism_files import load_finite
from support import problem_of, problems, two_secrets

Array = NDArray[np.float64]


def grid_problem(columns: int, rows: int, width: float, height: float) -> pg.Problem:
    return pg.Problem(pg.Prior.uniform(pg.Grid(columns, rows, width, height)), cost="euclidean")


def numbers_problem(*values: float) -> pg.Problem:
    return pg.Problem(pg.Prior.uniform(pg.Numbers(values)), cost="absolute")


def laplace_mass(epsilon: float, x: tuple[float, float], y: tuple[float, float]) -> float:
    """The planar Laplace mass of a rectangle by SciPy's adaptive rule, split at the axes (the density has a kink)."""

    def cuts(low: float, high: float) -> list[tuple[float, float]]:
        edges = [low, *([0.0] if low < 0 < high else []), high]
        return list(pairwise(edges))

    def density(v: float, u: float) -> float:
        return epsilon**2 / (2 * np.pi) * exp(-epsilon * float(np.hypot(u, v)))

    return sum(float(dblquad(density, *a, *b, epsabs=1e-13, epsrel=1e-11)[0]) for a in cuts(*x) for b in cuts(*y))


@pytest.mark.parametrize(
    ("true", "answer"), [((2, 1), (2, 1)), ((1, 1), (3, 2)), ((0, 0), (0, 0)), ((3, 2), (0, 1)), ((1, 2), (4, 0))]
)
def test_planar_laplace_is_the_integral_over_cells_and_what_lies_beyond_them(
    true: tuple[int, int], answer: tuple[int, int]
) -> None:
    columns, rows, width, height, epsilon, far = 5, 4, 4.0, 2.0, 1.3, 30.0
    mechanism = baselines.planar_laplace(grid_problem(columns, rows, width, height), epsilon)
    sides = []
    for place, centre, count, step in zip(answer, true, (columns, rows), (width / columns, height / rows), strict=True):
        low, high = (place - centre - 0.5) * step, (place - centre + 0.5) * step
        sides.append((-far if place == 0 else low, far if place == count - 1 else high))
    found = mechanism.probabilities[true[1] * columns + true[0], answer[1] * columns + answer[0]]
    assert found == pytest.approx(laplace_mass(epsilon, sides[0], sides[1]), rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.4, 2.0, 50.0])
def test_planar_laplace_keeps_its_epsilon_through_discretisation(epsilon: float) -> None:
    """Also where the tails are far below what 62 bits can hold (ε = 50 over 9 km)."""
    problem = grid_problem(4, 3, 9.0, 5.0)
    mechanism = baselines.planar_laplace(problem, epsilon)
    promised = mechanism.certificate.bounds.epsilon
    assert promised is not None
    assert promised <= epsilon
    assert metrics.epsilon(mechanism, problem) == pytest.approx(promised, rel=1e-9)
    assert holds_exactly(mechanism.statement)
    assert f"ε = {epsilon:g} per km" in mechanism.certificate.provenance.solver


def test_planar_laplace_tails_keep_their_relative_accuracy() -> None:
    """Far from the centre one cell answers e^−ε·(distance) of its neighbour: no absolute error may show there."""
    table = baselines.planar_laplace(grid_problem(12, 1, 12.0, 1.0), 2.0).probabilities[0, 5:11]
    by_hand = [laplace_mass(2.0, (k - 0.5, k + 0.5), (-30.0, 30.0)) for k in range(5, 11)]
    assert table == pytest.approx(np.array(by_hand), rel=1e-7)


def test_planar_laplace_in_another_distance_states_the_epsilon_realised_there() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(3, 3)), distance="euclidean", distinguishability="hamming")
    mechanism = baselines.planar_laplace(problem, 1.0)
    p = mechanism.probabilities
    largest = max(np.log(p[s] / p[t]).max() for s in range(9) for t in range(9))
    assert mechanism.certificate.bounds.epsilon == pytest.approx(largest, rel=1e-9)
    assert largest > 2.0  # opposite corners are 2.83 km apart


def test_noise_in_the_plane_falls_into_cells_as_the_exact_probabilities_say() -> None:
    grid = pg.Grid(4, 3, 4.0, 3.0)
    epsilon, count, true = 1.1, 40_000, 6
    noise = baselines.planar_laplace_noise(epsilon, count, np.random.default_rng(3))
    points = np.clip(grid.centres[true] + noise, 0.0, (grid.width, grid.height))
    seen = np.bincount(grid.locate(points), minlength=12)
    expected = baselines.planar_laplace(pg.Problem(pg.Prior.uniform(grid)), epsilon).probabilities[true]
    assert chisquare(seen, expected * count).pvalue > 1e-3


def test_the_radius_has_its_closed_form_and_the_angle_is_uniform() -> None:
    noise = baselines.planar_laplace_noise(3.0, 20_000, np.random.default_rng(8))
    radius, angle = np.hypot(*noise.T), np.arctan2(noise[:, 1], noise[:, 0])
    assert kstest(radius, lambda r: 1 - (1 + 3.0 * r) * np.exp(-3.0 * r)).pvalue > 1e-3
    assert kstest(angle, "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3
    assert not np.array_equal(baselines.planar_laplace_noise(3.0, 5), baselines.planar_laplace_noise(3.0, 5))


def clamped_by_hand(noise: dict[int, float], size: int) -> Array:
    """Noise added step by step and cut off at both ends."""
    table = np.zeros((size, size))
    for true in range(size):
        for step, share in noise.items():
            table[true, min(max(true + step, 0), size - 1)] += share
    return table


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_geometric_is_clamped_two_sided_geometric_noise(epsilon: float) -> None:
    problem = numbers_problem(10, 15, 20, 25, 30)
    alpha = exp(-5 * epsilon)
    noise = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-400, 401)}
    mechanism = baselines.geometric(problem, epsilon)
    assert mechanism.probabilities == pytest.approx(clamped_by_hand(noise, 5), rel=1e-9, abs=1e-14)
    promised = mechanism.certificate.bounds.epsilon
    assert promised is not None
    assert promised == pytest.approx(epsilon, rel=1e-9)
    assert promised <= epsilon
    assert holds_exactly(mechanism.statement)


@given(
    st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(lambda counts: sum(counts) > 0),
    st.sampled_from([0.2, 0.7, 2.0]),
    st.sampled_from([0.5, 1.0, 2.0]),
)
@settings(max_examples=30)
def test_geometric_remapped_is_optimal_whatever_the_prior(counts: list[int], epsilon: float, power: float) -> None:
    """Universal optimality (Ghosh, Roughgarden and Sundararajan 2009), for costs that grow with the error."""
    prior = pg.Prior.from_counts(pg.Numbers(range(6)), counts)
    problem = pg.Problem(prior, cost=lambda answer, secret: abs(answer - secret) ** power, distance="absolute")
    best = pg.design(problem, epsilon=epsilon).certificate.cost
    remapped = baselines.remap(baselines.geometric(problem, epsilon), problem)
    assert remapped.certificate.cost == pytest.approx(best, rel=2e-6, abs=1e-9)


def test_geometric_does_not_mind_the_order_of_the_numbers() -> None:
    given, order = [3, 1, 2, 0], [0, 1, 2, 3]
    shuffled = baselines.geometric(numbers_problem(*given), 0.7).probabilities
    sorted_ = baselines.geometric(numbers_problem(*order), 0.7).probabilities
    assert shuffled == pytest.approx(sorted_[np.ix_(given, given)])
    assert baselines.geometric(numbers_problem(4), 1.0).weights.tolist() == [[2**62]]


@pytest.mark.parametrize(("length", "width"), [(1, 1), (3, 1), (3, 2), (4, 4)])
def test_staircase_is_the_published_noise_clamped(length: int, width: int) -> None:
    """Geng and Viswanath 2014, discrete form: a(r) = (1−b) / (2r + 2b(Δ−r) − (1−b)), b = e^−ε."""
    epsilon, size = 0.8, 9
    b = exp(-epsilon)
    a = (1 - b) / (2 * width + 2 * b * (length - width) - (1 - b))
    noise = {k: a * b ** (abs(k) // length) * (1 if abs(k) % length < width else b) for k in range(-300, 301)}
    assert sum(noise.values()) == pytest.approx(1.0)
    problem = numbers_problem(*(2.0 * k for k in range(size)))
    mechanism = baselines.staircase(problem, epsilon, sensitivity=2.0 * length, steps=width)
    assert mechanism.probabilities == pytest.approx(clamped_by_hand(noise, size), rel=1e-9)
    bounds = mechanism.certificate.bounds
    assert bounds.within == pytest.approx(2.0 * length)
    assert bounds.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert holds_exactly(mechanism.statement)
    assert metrics.epsilon(mechanism, problem, within=bounds.within) <= epsilon * (1 + 1e-12)


def test_the_default_stair_has_the_least_noise() -> None:
    problem = numbers_problem(*range(60))

    def spread(steps: int | None) -> float:
        return float(
            baselines.staircase(problem, 2.0, sensitivity=6, steps=steps).probabilities[30] @ abs(np.arange(60) - 30)
        )

    assert spread(None) == pytest.approx(min(spread(steps) for steps in range(1, 7)))
    assert spread(None) < spread(6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 60.0])
def test_randomised_response_in_closed_form(epsilon: float) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcd")))
    mechanism = baselines.randomised_response(problem, epsilon)
    truth, other = exp(epsilon) / (exp(epsilon) + 3), 1 / (exp(epsilon) + 3)
    assert mechanism.probabilities == pytest.approx(np.where(np.eye(4) > 0, truth, other), abs=1e-12)
    assert mechanism.certificate.bounds.epsilon is not None
    assert mechanism.certificate.bounds.epsilon <= epsilon
    assert holds_exactly(mechanism.statement)
    if epsilon <= 1:  # with the Hamming cost and a uniform prior nothing is better
        assert mechanism.certificate.cost == pytest.approx(pg.design(problem, epsilon=epsilon).certificate.cost)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_exponential_in_closed_form(epsilon: float) -> None:
    problem = grid_problem(3, 2, 3.0, 2.0)
    by_hand = np.exp(-epsilon / 2 * problem.distance)
    mechanism = baselines.exponential(problem, epsilon)
    assert mechanism.probabilities == pytest.approx(by_hand / by_hand.sum(axis=1, keepdims=True), rel=1e-9)
    promised = mechanism.certificate.bounds.epsilon
    assert promised is not None
    assert epsilon / 2 <= promised <= epsilon


def test_identity_answers_the_truth() -> None:
    space = pg.Categories("ab")
    problem = pg.Problem(pg.Prior.uniform(space), observables=pg.Categories("cba"))
    mechanism = baselines.identity(problem)
    assert mechanism.sample("a") == "a"
    assert mechanism.certificate.bounds.epsilon is None
    assert mechanism.certificate.cost == 0
    alone = pg.Subsets(space, [["a"], ["a", "b"], ["b"]])
    assert baselines.identity(pg.Problem(pg.Prior.uniform(space), observables=alone)).sample("b") == "{b}"
    with pytest.raises(pg.InvalidProblem, match="every secret to be among"):
        baselines.identity(two_secrets())


def best_remap_by_hand(mechanism: pg.Mechanism, problem: pg.Problem) -> float:
    """The least expected cost over every function from answers to answers, one answer at a time."""
    prior = problem.prior.probabilities
    total = 0.0
    for column in mechanism.probabilities.T:
        total += min(sum(prior[s] * column[s] * row[s] for s in range(len(prior))) for row in problem.cost)
    return total


@given(problems(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_remapping_never_hurts(problem: pg.Problem, seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(problem.shape[1]), problem.shape[0])
    mechanism = pg.Mechanism.from_probabilities(problem, table)
    remapped = baselines.remap(mechanism, problem)
    before, after = mechanism.certificate, remapped.certificate
    assert after.cost == pytest.approx(best_remap_by_hand(mechanism, problem), abs=1e-12)
    assert after.cost <= before.cost + 1e-12
    assert after.verification.distortion >= before.verification.distortion - 1e-12
    assert metrics.epsilon(remapped, problem) <= metrics.epsilon(mechanism, problem)
    assert holds_exactly(remapped.statement)


def test_remapping_may_cost_the_worst_secret_more() -> None:
    """What it never raises is the average cost: a rare secret loses the answer that was its own."""
    problem = problem_of([0.98, 0.02], 1 - np.eye(2), 1 - np.eye(2))
    mechanism = pg.Mechanism.from_probabilities(problem, [[0.8, 0.2], [0.5, 0.5]])
    before, after = mechanism.certificate.verification, baselines.remap(mechanism, problem).certificate.verification
    assert (before.worst_cost, after.worst_cost) == pytest.approx((0.5, 1.0))
    assert after.expected_cost == pytest.approx(0.02)
    assert before.expected_cost == pytest.approx(0.98 * 0.2 + 0.02 * 0.5)


def test_remapping_to_other_answers() -> None:
    grid = pg.Grid(4, 2)
    fine = pg.Problem(pg.Prior.from_counts(grid, [9, 1, 1, 1, 1, 1, 1, 1]), cost="euclidean")
    coarse = pg.Problem(fine.prior, cost="euclidean", observables=grid.blocks(2, 2))
    mechanism = baselines.remap(baselines.planar_laplace(fine, 1.0), coarse)
    assert mechanism.observables.labels == ("block-0", "block-1")
    assert "remapped: planar Laplace" in mechanism.certificate.provenance.solver
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        baselines.remap(mechanism, two_secrets())


def rivals(problem: pg.Problem, epsilon: float) -> list[pg.Mechanism]:
    """Every baseline the problem's space allows."""
    found = [baselines.exponential(problem, epsilon), baselines.randomised_response(problem, epsilon)]
    if isinstance(problem.space, pg.Grid):
        found.append(baselines.planar_laplace(problem, epsilon))
    if isinstance(problem.space, pg.Numbers):
        found += [baselines.geometric(problem, epsilon), baselines.staircase(problem, epsilon, sensitivity=2.0)]
    return found + [baselines.remap(each, problem) for each in found]


@given(
    st.sampled_from([pg.Grid(3, 2), pg.Grid(2, 2, 3.0, 1.0), pg.Numbers([1, 2, 3, 4, 5])]),
    st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(lambda counts: sum(counts[:4]) > 0),
    st.sampled_from(["hamming", None]),
    st.sampled_from([0.2, 1.0, 2.5]),
)
@settings(max_examples=25)
def test_no_baseline_beats_the_design_at_its_own_epsilon(
    space: pg.Space, counts: list[int], cost: str | None, epsilon: float
) -> None:
    prior = pg.Prior.from_counts(space, counts[: len(space)])
    problem = pg.Problem(prior, cost=cost or space.default_distance)
    for rival in rivals(problem, epsilon):
        bounds = rival.certificate.bounds
        assert bounds.epsilon is not None
        best = baselines.constant(problem)
        if bounds.epsilon > 1e-9:  # below, it is constant, and the cheapest constant is the design
            best = pg.design(problem, epsilon=bounds.epsilon, within=bounds.within)
        assert best.certificate.cost <= rival.certificate.cost * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: baselines.planar_laplace(numbers_problem(1, 2), 1.0), "cells of a Grid"),
        (lambda: baselines.geometric(numbers_problem(1, 2, 4), 1.0), "equally spaced"),
        (lambda: baselines.geometric(grid_problem(2, 2, 1.0, 1.0), 1.0), "needs secrets that are Numbers"),
        (lambda: baselines.staircase(numbers_problem(1, 2, 3), 1.0, sensitivity=1.5), "multiple of the spacing"),
        (lambda: baselines.staircase(numbers_problem(1, 2, 3), 1.0, sensitivity=2, steps=3), "1 to 2 spacings"),
        (
            lambda: baselines.planar_laplace(
                pg.Problem(pg.Prior.uniform(pg.Grid(2, 2)), cost="euclidean", observables=pg.Grid(2, 2, 9.0, 9.0)), 1.0
            ),
            "cells of different grids",
        ),
        (lambda: baselines.randomised_response(two_secrets(), 1.0), "observables to be the secrets"),
        (lambda: baselines.randomised_response(numbers_problem(1, 2), 0.0), "positive number"),
        (lambda: baselines.planar_laplace_noise(-1.0, 3), "positive number"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        wrong()  # type: ignore[operator]


def test_secrets_that_must_not_be_told_apart_leave_nothing_to_promise() -> None:
    problem = problem_of([0.5, 0.5], np.eye(2), 1 - np.eye(2), np.zeros((2, 2)))
    same = pg.Problem(pg.Prior.uniform(pg.Categories("ab")), distinguishability=problem.distinguishability)
    assert baselines.randomised_response(same, 1.0).certificate.bounds.epsilon is None


def test_qif_has_the_same_mechanisms() -> None:
    qif = pytest.importorskip("qif", reason="qif is a benchmark-only extra")
    numbers = numbers_problem(*range(6))
    d = numbers.distance.tolist()
    geometric = qif.mechanism.d_privacy.geometric(6, 0.7)
    assert baselines.geometric(numbers, 0.7).probabilities == pytest.approx(np.asarray(geometric), abs=1e-9)
    response = qif.mechanism.d_privacy.randomized_response(6, 0.7)
    assert baselines.randomised_response(numbers, 0.7).probabilities == pytest.approx(np.asarray(response), abs=1e-9)
    exponential = qif.mechanism.d_privacy.exponential(6, lambda a, b: 0.7 * d[a][b])
    assert baselines.exponential(numbers, 0.7).probabilities == pytest.approx(np.asarray(exponential), abs=1e-9)
    laplace = qif.mechanism.geo_ind.planar_laplace_grid(4, 4, 1.0, 0.8)  # good to some 10^-4, on squares
    assert baselines.planar_laplace(grid_problem(4, 4, 4.0, 4.0), 0.8).probabilities == pytest.approx(
        np.asarray(laplace), abs=3e-4
    )


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3])
def test_planar_laplace_of_almost_no_epsilon(epsilon: float) -> None:
    """Noise far wider than the town: nearly all of it ends in the corners, a quarter each."""
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)))
    table = baselines.planar_laplace(problem, epsilon).probabilities
    corners = [0, 3, 8, 11]
    assert table.sum(axis=1) == pytest.approx(np.ones(12))
    assert table[:, corners] == pytest.approx(np.full((12, 4), 0.25), abs=5 * epsilon)
    sides = table[:, [1, 2, 9, 10]]  # a strip of width 1 beyond the window holds ε/4·(2/π)·π/2 of the mass
    rounding = 2.0**-52 / epsilon * 0.25  # what a corner's last digit costs the repair, which treats columns apart
    assert sides == pytest.approx(np.full((12, 4), sides.mean()), rel=3 * epsilon + 1e-9, abs=rounding)


def test_remapping_a_file_of_fewer_bits(tmp_path: Path) -> None:
    """Valid files may have rows that sum to 2^53, say."""
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 1), [5, 1, 3]), cost="euclidean")
    fine = baselines.exponential(problem, 1.0)
    contents = MechanismContent(
        replace(fine.statement, weights=to_weights(fine.probabilities, 53), bits=53, bounds=pg.Bounds(distortion=0.0)),
        fine.secrets,
        fine.observables,
        fine.certificate.provenance,
    )
    binary_container.write(tmp_path / "m.pgm", *encode_content(contents))
    loaded = load_finite(tmp_path / "m.pgm")
    assert loaded.bits == 53
    remapped = baselines.remap(loaded, problem)
    assert remapped.bits == 62
    assert remapped.probabilities == pytest.approx(baselines.remap(fine, problem).probabilities, abs=1e-12)

"""Attacks on weeks of published positions: each on a mechanism that it breaks, and on one that it does not."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames import place_attacks
from privacygames.tracking import Observations, averaging_attack
from support import Array

HOUR, DAY = 3600, 86_400
HOME, WORK = np.array([1.23, 2.34]), np.array([4.0, 3.0])
EPSILON = 5.0
"""ε per km of noise: a mean displacement of 400 m."""
AT_HOME = [1.0] * 8 + [0.02] * 9 + [1.0] * 7


def two_weeks() -> tuple[Array, Array]:
    """Positions every half hour for two weeks: work from 8 to 17, home otherwise."""
    times = np.arange(0, 14 * DAY, HOUR / 2)
    hour = times % DAY / HOUR
    return times, np.where(((hour >= 8) & (hour < 17))[:, None], WORK, HOME)


def noise(count: int, seed: int) -> Array:
    return pg.baselines.planar_laplace_noise(EPSILON, count, np.random.default_rng(seed))


def fresh(points: Array, seed: int) -> Array:
    """Independent noise for every release."""
    return points + noise(len(points), seed)


def memoised(points: Array, seed: int) -> Array:
    """The same noise for the same place."""
    _, place = np.unique(points, axis=0, return_inverse=True)
    return points + noise(place.max() + 1, seed)[place]


def lattice(step: float = 0.05) -> Array:
    axis = np.arange(0.0, 5.0, step)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def log_likelihoods(outputs: Array, candidates: Array) -> Array:
    return np.asarray(-EPSILON * np.linalg.norm(outputs[:, None] - candidates, axis=2))


def miss(guess: Array | None, place: Array = HOME) -> float:
    assert guess is not None
    return float(np.linalg.norm(guess - place))


def test_averaging_finds_a_place_behind_independent_noise_only() -> None:
    nights = np.tile(HOME, (200, 1))
    candidates = lattice()
    for seed in range(5):
        outputs = fresh(nights, seed)
        inference = place_attacks.posterior_attack(log_likelihoods(outputs, candidates), candidates)
        assert miss(inference.guess) < 0.1
        assert miss(place_attacks.mean_attack(outputs)) < 0.15
    misses = [miss(place_attacks.mean_attack(memoised(nights, seed))) for seed in range(30)]
    assert np.mean(misses) > 0.25, "200 equal outputs are one output"


def test_the_posterior_is_nearer_than_the_mean() -> None:
    """The mean of planar Laplace noise is not sufficient: 30 draws, 40 places."""
    candidates = lattice()
    squares = np.array(
        [
            [miss(place_attacks.mean_attack(outputs)) ** 2, miss(inference.candidates.T @ inference.probabilities) ** 2]
            for outputs in (fresh(np.tile(HOME, (30, 1)), seed) for seed in range(40))
            for inference in [place_attacks.posterior_attack(log_likelihoods(outputs, candidates), candidates)]
        ]
    ).mean(axis=0)
    assert squares[1] < 0.9 * squares[0]


def test_on_a_grid_it_is_the_averaging_attack() -> None:
    city = pg.Grid(3, 2, 3.0, 2.0)
    problem = pg.Problem(pg.Prior(city, [0.3, 0.1, 0.1, 0.2, 0.2, 0.1]), cost="euclidean")
    mechanism = pg.baselines.exponential(problem, 1.0)
    observations = Observations.of(mechanism, ["cell-0", "cell-4", "cell-0"])
    inference = place_attacks.posterior_attack(
        observations.log_likelihoods, city.centres, prior=problem.prior.probabilities
    )
    assert inference.probabilities == pytest.approx(averaging_attack(problem, observations).beliefs[-1])


@given(
    table=st.lists(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3), min_size=1, max_size=4),
    presence=st.floats(0.0, 1.0),
)
def test_habits_are_bayes_rule_written_out(table: list[list[float]], presence: float) -> None:
    """Every subset of releases may be at home; elsewhere the point is any, by the prior."""
    likelihoods, prior = np.array(table), np.array([0.5, 0.3, 0.2])
    joint = prior.copy()
    for candidate in range(3):
        joint[candidate] *= sum(
            np.prod(
                [
                    presence * row[candidate] if there else (1 - presence) * (row @ prior)
                    for there, row in zip(at_home, likelihoods, strict=True)
                ]
            )
            for at_home in product([True, False], repeat=len(likelihoods))
        )
    inference = place_attacks.posterior_attack(np.log(likelihoods), np.eye(3), prior=prior, presence=presence)
    assert inference.probabilities == pytest.approx(joint / joint.sum())


def test_memoised_outputs_are_bayes_rule_written_out() -> None:
    """Three outputs of two places, of which one is home."""
    likelihoods, prior = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([0.5, 0.3, 0.2])
    drawn, presence = np.array([0, 1, 0]), np.array([0.9, 0.2, 0.6])
    own = [0.9 * 0.8 * 0.6, 0.1 * 0.2 * 0.4]
    joint = sum(
        own[home] * prior * likelihoods[home] * (likelihoods[other] @ prior) for home, other in ((0, 1), (1, 0))
    )
    inference = place_attacks.memoised_posterior_attack(
        np.log(likelihoods[drawn]), np.eye(3), drawn, prior=prior, presence=presence
    )
    assert inference.probabilities == pytest.approx(joint / joint.sum())


def test_habits_by_hour_find_home_among_two_places() -> None:
    times, points = two_weeks()
    outputs, candidates = fresh(points, seed=1)[::4], lattice(0.1)
    presence = np.clip(place_attacks.presence_at(times[::4], AT_HOME), 0.02, 0.98)
    logs = log_likelihoods(outputs, candidates) + np.log(EPSILON**2 / (2 * np.pi) * 0.1**2)
    assert miss(place_attacks.posterior_attack(logs, candidates, presence=presence).guess) < 0.15
    sticky = memoised(points, seed=1)[::4]
    _, which = np.unique(sticky, axis=0, return_inverse=True)
    inference = place_attacks.memoised_posterior_attack(
        log_likelihoods(sticky, candidates), candidates, which, presence=presence
    )
    assert miss(inference.guess) == pytest.approx(miss(sticky[0]), abs=0.1), "only the one output is known"
    assert inference.error == pytest.approx(2 / EPSILON, rel=0.1)


def test_stay_points_find_a_home_behind_independent_noise_only() -> None:
    times, points = two_weeks()
    for seed in range(3):
        assert miss(place_attacks.stay_point_attack(times, fresh(points, seed), radius=0.15)) < 0.15
    snapped = (np.floor(points / 2.0) + 0.5) * 2.0
    assert miss(place_attacks.stay_point_attack(times, snapped, radius=0.15)) > 0.5
    away = points[points[:, 0] == WORK[0]]
    office = place_attacks.stay_point_attack(np.arange(len(away)) * 60.0 + 12 * HOUR, away, radius=0.15)
    assert office is None, "no night was seen"


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=25), st.integers(1, 5))
def test_stay_points_are_density_based_clusters(cells: list[tuple[int, int]], least: int) -> None:
    """By definition: cores are connected within the radius; others belong to a cluster with a core that near."""
    points = np.array(cells, dtype=float)
    near = np.linalg.norm(points[:, None] - points, axis=2) <= 1.0
    core = near.sum(axis=1) >= least
    reach = np.linalg.matrix_power((near & core & core[:, None]).astype(float) + np.eye(len(points)), 30) > 0
    labels = place_attacks.stay_points(points, radius=1.0, least=least).labels
    for one, other in product(range(len(points)), repeat=2):
        if core[one] and core[other]:
            assert (labels[one] == labels[other]) == reach[one, other]
    for one in range(len(points)):
        allowed = set(labels[core & near[one]])
        assert labels[one] in allowed if allowed else labels[one] == -1


def test_the_most_frequent_output_is_that_of_home() -> None:
    """It breaks rounding to a fine grid, and marks the one output of a memoised home, which is as far as ever."""
    times, points = two_weeks()
    rounded = place_attacks.most_frequent_output(times, np.round(points, 1))
    assert rounded is not None
    assert miss(rounded[0]) < 0.1
    assert rounded[1] == 1.0
    sticky = memoised(points, seed=3)
    one = place_attacks.most_frequent_output(times, sticky)
    assert one is not None
    assert one[0].tolist() == sticky[0].tolist()
    independent = place_attacks.most_frequent_output(times, fresh(points, seed=3))
    assert independent is not None
    assert independent[1] < 0.01, "no output occurs twice"


def journeys(seed: int, zone: float, jitter: float = 0.008, scatter: float = 0.0) -> tuple[Array, Array]:
    """Two weeks of ways from home to places around and back at 20 km an hour, without positions in a zone."""
    rng = np.random.default_rng(seed)
    times, points = [], []
    for day in range(14):
        angle = rng.uniform(0, 2 * np.pi)
        way = np.array([np.cos(angle), np.sin(angle)])
        for start, sign in ((8, 1), (17, -1)):
            seconds = np.arange(rng.uniform(0, 120), 900, 120)
            along = seconds / HOUR * 20.0 if sign > 0 else (900 - seconds) / HOUR * 20.0
            times.append(day * DAY + start * HOUR + seconds)
            points.append(HOME + along[:, None] * way)
    when, where = np.concatenate(times), np.concatenate(points)
    where = where + rng.normal(0, jitter, where.shape)
    outside = np.linalg.norm(where - HOME, axis=1) > zone
    return when[outside], where[outside] + scatter * noise(int(outside.sum()), seed)


def test_the_ways_around_a_home_zone_lead_to_its_centre() -> None:
    misses, scattered = [], []
    for seed in range(10):
        times, points = journeys(seed, zone=0.6)
        assert np.linalg.norm(points - HOME, axis=1).min() > 0.55
        misses.append(miss(place_attacks.hole_attack(times, points, radius=0.6)))
        times, points = journeys(seed, zone=0.6, scatter=3.0)
        scattered.append(miss(place_attacks.hole_attack(times, points, radius=0.6)))
    assert max(misses) < 0.1
    assert np.median(scattered) > 0.3, "noise on the ways hides the centre"
    times, points = two_weeks()
    assert place_attacks.hole_attack(times, points, radius=0.6) is None, "there is no hole"


def test_speed_shows_independent_noise_only() -> None:
    times, points = two_weeks()
    still = points[:16]
    assert len(place_attacks.impossible_moves(times[:16], memoised(still, 0), speed=1e-6)) == 0
    assert len(place_attacks.impossible_moves(times[:16], fresh(still, 0), speed=0.2)) > 8
    assert place_attacks.impossible_moves([0, 0], [[0.0], [1.0]], speed=1000).tolist() == [1]


def test_no_attack_exceeds_the_disk_bound_and_noise_attains_it() -> None:
    """The optimal attack on one output of planar Laplace noise, all points of a large square equally likely."""
    rng = np.random.default_rng(0)
    radius = 0.2
    found = np.linalg.norm(pg.baselines.planar_laplace_noise(EPSILON, 100_000, rng), axis=1) <= radius
    bound = place_attacks.disk_bound(EPSILON, radius)
    assert found.mean() == pytest.approx(bound, abs=3 * np.sqrt(bound / 100_000))
    candidates = lattice()
    inference = place_attacks.posterior_attack(log_likelihoods(np.array([[2.5, 2.5]]), candidates), candidates)
    guess, probability = inference.best_disk(radius + 1e-9)
    assert guess == pytest.approx([2.5, 2.5])
    assert probability == pytest.approx(bound, rel=0.12), "candidates are 50 m apart"


@pytest.mark.parametrize("name", ["planar Laplace, moved onto the map", "exponential"])
@pytest.mark.parametrize("epsilon", [5.0, 12.0])
def test_no_attack_that_knows_the_map_exceeds_the_disk_bound_of_a_map(name: str, epsilon: float) -> None:
    """The optimal attack on one output, for points and outputs on lattices; in the plane the bound is lower."""
    sides, radius, step = (2.0, 1.5), 0.1, 0.05
    axes = [np.arange(step / 2, side, step) for side in sides]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    problem = pg.PointProblem(pg.PointPrior(pg.Area(*sides), points), points[::3])
    make = pg.points.exponential if name == "exponential" else pg.points.planar_laplace
    rows = make(problem, epsilon).probabilities(points)
    near = np.linalg.norm(points[:, None] - points, axis=2) <= radius + 1e-9
    found = float((near.astype(np.float64) @ rows).max(axis=0).sum() / len(points))
    assert found <= place_attacks.disk_bound(epsilon, radius, sides=sides) < 1


def test_one_output_at_an_edge_may_say_more_than_the_bound_of_the_plane() -> None:
    """Theorem 2 fails for a single output if the adversary knows an edge; with the factor 2 of one edge it holds."""
    points = lattice(0.025) + 0.0125  # 5 × 5 km; the edge is x = 0
    inference = place_attacks.posterior_attack(log_likelihoods(np.array([[0.0, 2.5]]), points), points)
    probability = inference.best_disk(0.2)[1]
    bound, around = place_attacks.disk_bound(EPSILON, 0.2), place_attacks.disk_bound(EPSILON, 2.4)
    assert 1.3 * bound < probability <= 2 * bound / around


def test_the_bound_on_a_large_map_is_that_of_the_plane() -> None:
    plane = place_attacks.disk_bound(EPSILON, 0.2)
    bounds = [place_attacks.disk_bound(EPSILON, 0.2, sides=(side, side)) for side in (1e4, 100.0, 16.0, 4.0, 0.2)]
    assert bounds[0] == pytest.approx(plane, rel=1e-2)
    assert bounds == sorted(bounds)
    assert bounds[-1] == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: place_attacks.disk_bound(1.0, 1.0, sides=(np.inf, 1.0)),
        lambda: place_attacks.posterior_attack([[0.0, np.inf]], [[0.0], [1.0]]),
        lambda: place_attacks.posterior_attack([[0.0]], [[0.0], [1.0]]),
        lambda: place_attacks.posterior_attack([[-np.inf, -np.inf]], [[0.0], [1.0]]),
        lambda: place_attacks.posterior_attack([[0.0, 0.0]], [[0.0], [1.0]], presence=1.5),
        lambda: place_attacks.posterior_attack([[0.0, 0.0]], [[0.0], [1.0]], prior=[0.0, 0.0]),
        lambda: place_attacks.memoised_posterior_attack([[0.0, 0.0]], [[0.0], [1.0]], [0, 1]),
        lambda: place_attacks.memoised_posterior_attack([[0.0, 0.0]], [[0.0], [1.0]], [0], presence=0.0),
        lambda: place_attacks.presence_at([0.0], [0.5] * 23),
        lambda: place_attacks.stay_points([[np.nan]], radius=1.0, least=1),
        lambda: place_attacks.stay_points([[0.0]], radius=0.0, least=1),
        lambda: place_attacks.stay_points([[0.0]], radius=1.0, least=0),
        lambda: place_attacks.stay_point_attack([0.0, 1.0], [[0.0]], radius=1.0),
        lambda: place_attacks.hole_attack([1.0, 0.0], [[0.0, 0.0], [1.0, 0.0]], radius=1.0),
        lambda: place_attacks.impossible_moves([1.0, 0.0], [[0.0], [1.0]], speed=1.0),
        lambda: place_attacks.disk_bound(0.0, 1.0),
        lambda: place_attacks.mean_attack([]),
    ],
)
def test_wrong_arguments_are_refused(call: object) -> None:
    with pytest.raises(pg.InvalidProblem):
        call()  # type: ignore[operator]

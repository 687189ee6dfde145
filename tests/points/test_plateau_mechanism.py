"""The certified mechanism with a plateau: released over time, charged, memoised, and never evaluated."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames.baselines import PlateauNoise
from privacygames.composition import dominating_pair
from privacygames.points import PlateauMechanism
from privacygames.releases.decimal_epsilon import float_rounded_down
from privacygames.releases.sampling import MemoisedFrequentPlaces

KEY = b"0123456789abcdef"
CITY = pg.Grid(columns=320, rows=160, width=16.0, height=8.0)
HOME, WORK = (3.0512345, 3.0198765), (12.4012345, 6.8098765)
NOISE = PlateauNoise.against_disks(10.0, radius=0.2, probability=0.25, sides=(16.0, 8.0))
MECHANISM = PlateauMechanism(CITY, NOISE)


def test_outputs_are_the_noise_moved_to_the_nearest_cell() -> None:
    points = np.tile([8.0123, 4.0456], (3000, 1))
    drawn = MECHANISM.sample(points, np.random.default_rng(1))
    distances = np.linalg.norm(drawn - points, axis=1)
    assert distances.mean() == pytest.approx(NOISE.expected_distance, abs=0.02)
    assert (distances <= 0.2).mean() == pytest.approx(NOISE.probability_within(0.2), abs=0.035)
    assert np.abs((drawn / 0.05) % 1 - 0.5).max() < 1e-6  # centres of cells


def test_over_degrees_outputs_are_near_the_point_and_outside_points_at_the_edge() -> None:
    lausanne = pg.Grid.over((6.5, 46.45, 6.8, 46.6), columns=400, rows=300)
    sharp = PlateauMechanism(lausanne, PlateauNoise(5000.0, 0.0))
    assert sharp.secrets == pg.Area.over((6.5, 46.45, 6.8, 46.6))
    assert np.abs(np.subtract(sharp.sample((6.6291, 46.5168)), (6.6291, 46.5168))).max() < 0.002
    assert np.abs(np.subtract(sharp.sample((9.0, 40.0)), (6.8, 46.45))).max() < 0.002
    assert sharp.sample_at(latitude=46.5168, longitude=6.6291).latitude == pytest.approx(46.5168, abs=0.002)


@given(st.floats(0.0, 16.0), st.floats(0.0, 8.0))
def test_points_are_rounded_by_less_than_the_resolution(x: float, y: float) -> None:
    code = int(MECHANISM.encode_places(np.array([[x, y]]))[0])
    steps = np.array([code >> 31, code & (2**31 - 1)])
    assert np.linalg.norm(steps * float(MECHANISM.noise.step) - (x, y)) <= MECHANISM.resolution < 1e-6
    assert 0 <= code < 2**62


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 7.7, 10.0])
def test_it_keeps_its_epsilon_in_decimals_and_no_smaller_one(epsilon: float) -> None:
    mechanism = PlateauMechanism(CITY, PlateauNoise(epsilon, 0.0))
    assert mechanism.keeps_epsilon(epsilon)
    assert mechanism.keeps_epsilon(float_rounded_down(Decimal(str(epsilon))))
    assert not mechanism.keeps_epsilon(epsilon * (1 - 1e-8))
    assert pg.PointReleases(mechanism).preview().charges == (Decimal(str(epsilon)),)


def test_frequent_places_have_one_exact_draw_each(tmp_path: Path) -> None:
    places = pg.policies.FrequentPlaces(KEY, [HOME, WORK], radius=0.2)
    day, ledger = pg.Budget(20.0, every=86_400), tmp_path / "me.db"
    releases = pg.PointReleases(MECHANISM, policy=places, budget=day, ledger=ledger)
    fixes = [HOME, (3.06, 3.02), (8.0, 5.0), WORK, HOME]
    week = [releases.release(point, at=1.7e9 + 600 * number) for number, point in enumerate(fixes)]
    assert [each.epsilon for each in week] == [10.0, 0.0, 0.0, 10.0, 0.0]
    assert [each.source for each in week] == ["memoised", "memoised", "away", "memoised", "memoised"]
    assert week[0].observable == week[1].observable == week[2].observable == week[4].observable
    assert releases.place_guarantee().epsilon == 10.0
    again = pg.PointReleases(PlateauMechanism(CITY, NOISE), policy=places, budget=day, ledger=ledger)
    assert again.release(HOME, at=1.7e9 + 6000).observable == week[0].observable  # another session, the same function
    assert releases.ledger.verify()
    for digits in (b"0512345", b"4012345"):
        assert digits not in ledger.read_bytes()


def test_outputs_of_keys_have_the_distribution_of_the_noise() -> None:
    place, drawn = np.array([[8.0123, 4.0456]]), []
    for number in range(300):
        function = MemoisedFrequentPlaces(MECHANISM, number.to_bytes(16, "big"), place, 0.2)
        cell = function.cell(place + 0.1)
        assert cell is not None
        drawn.append(function.output(cell))
    distances = np.linalg.norm(MECHANISM.outputs[drawn] - place, axis=1)
    assert distances.mean() == pytest.approx(NOISE.expected_distance, abs=0.05)


def test_rows_of_a_batch_are_drawn_as_each_alone() -> None:
    words = np.random.default_rng(2).integers(2**64, size=(400, 3), dtype=np.uint64)
    codes, sampler = MECHANISM.encode([HOME, WORK, HOME]), MECHANISM.row_sampler()
    together = sampler.draw(codes, lambda number: words[number])
    for row in range(3):
        (alone,) = sampler.draw(codes[[row]], lambda number, row=row: words[number, [row]])  # type: ignore[misc]
        assert alone == together[row]


def test_a_budget_with_a_delta_is_charged() -> None:
    pair = dominating_pair(MECHANISM, within=0.1)
    assert 1.0 <= pair.largest_loss <= 1.001
    releases = pg.PointReleases(MECHANISM, budget=pg.Budget(4.0, delta=1e-6, within=0.1))
    assert [releases.release(HOME).number for _ in range(3)] == [1, 2, 3]
    assert releases.ledger.verify()


def test_what_needs_a_table_is_refused() -> None:
    for use in (lambda: MECHANISM.probabilities([HOME]), lambda: MECHANISM.weights, lambda: MECHANISM.mesh):
        with pytest.raises(pg.InvalidProblem, match="no table of probabilities"):
            use()
    assert not hasattr(MECHANISM, "nothing_of_this_name")


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlateauMechanism(CITY, PlateauNoise(1e-30, 0.0)),
        lambda: PlateauMechanism(CITY, 1.0),  # type: ignore[arg-type]
        lambda: PlateauMechanism(pg.Numbers([1, 2]), NOISE),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(make: object) -> None:
    with pytest.raises(pg.InvalidProblem):
        make()  # type: ignore[operator]

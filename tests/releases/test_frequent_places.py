"""Frequent places: one draw for each, whatever the number of releases; checked by summing over all that can happen."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import privacygames as pg
from privacygames import place_attacks
from privacygames.policies import FrequentPlaces, Memoised
from privacygames.releases import Budget, Ledger, PlaceGuarantee, PointReleases, Releases
from privacygames.releases.place_guarantee import patterns
from privacygames.releases.sampling import MemoisedFrequentPlaces, MemoisedFunction
from sharing import LINE, ON_LINE, PROBLEM, STREET

KEY = b"0123456789abcdef"
EPSILON = 0.7
"""ε of ON_LINE, between any two points."""

CELLS = pg.Numbers([0.5, 1.5, 2.5, 3.5])
LATTICE = pg.Problem(pg.Prior(CELLS, [0.4, 0.3, 0.2, 0.1]), cost="absolute", distance="absolute")
EXACT = pg.design(LATTICE, epsilon=EPSILON)


def session(places: Any, **options: Any) -> PointReleases:
    policy = FrequentPlaces(KEY, places, **{"radius": 0.2, **options})
    return PointReleases(ON_LINE, policy=policy)


def all_patterns(length: int, places: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of visits to at most so many places, in the order of their first visits."""
    for visits in product(range(places), repeat=length):
        firsts = list(dict.fromkeys(visits))
        if firsts == sorted(firsts) == list(range(len(firsts))):
            yield visits


def sequences(pattern: tuple[int, ...], places: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """P(outputs) of a history exactly, over every memoised function of the places."""
    rows = EXACT.weights
    found: dict[tuple[int, ...], Fraction] = {}
    for outputs in product(range(rows.shape[1]), repeat=len(places)):
        chance = Fraction(1)
        for place, output in zip(places, outputs, strict=True):
            chance *= Fraction(int(rows[place, output]), 2**EXACT.bits)
        seen = tuple(outputs[visit] for visit in pattern)
        found[seen] = found.get(seen, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("pattern", list(all_patterns(4, 3)))
def test_no_sequence_reveals_more_of_a_place_than_one_draw(pattern: tuple[int, ...]) -> None:
    """All histories over four cells with the same pattern, in integers: the theorem, and that it is tight."""
    count = max(pattern) + 1
    tightest = 0.0
    for one, other in product(product(range(4), repeat=count), repeat=2):
        if len(set(one)) < count or len(set(other)) < count:
            continue
        allowed = EPSILON * sum(abs(CELLS.values[a] - CELLS.values[b]) for a, b in zip(one, other, strict=True))
        before, after = sequences(pattern, one), sequences(pattern, other)
        assert sum(before.values()) == 1
        assert before.keys() == after.keys()
        for outputs, chance in before.items():
            if chance:
                assert after[outputs] > 0
                shift = log(chance / after[outputs])
                assert shift <= allowed + 1e-12
                tightest = max(tightest, shift - allowed if allowed else -1.0)
    assert tightest > -1e-6, "some sequence shifts the odds by as much as is allowed"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_correlated_places_add_the_ratio_of_the_pattern_and_at_most_a_diameter(seed: int, depends: bool) -> None:
    """Home, and a second place that is drawn given the pattern, or given the pattern and home; three releases."""
    rng = np.random.default_rng(seed)
    rows, patterns_of_two = EXACT.probabilities, list(all_patterns(3, 2))
    pattern_given_home = rng.dirichlet(np.ones(len(patterns_of_two)), size=4)
    other_given = rng.dirichlet(np.full(4, 0.3), size=(len(patterns_of_two), 4 if depends else 1))
    diameter = 3.0 if depends else 0.0
    for one, other in product(range(4), repeat=2):
        for number in range(len(patterns_of_two)):
            logs = []
            for home in (one, other):
                second = other_given[number, home if depends else 0] @ rows
                with np.errstate(divide="ignore"):
                    logs.append(np.log(pattern_given_home[home, number] * np.outer(rows[home], second)))
            with np.errstate(invalid="ignore"):
                shift = np.nanmax(logs[0] - logs[1])
            pattern = np.log(pattern_given_home[one, number] / pattern_given_home[other, number])
            assert shift <= EPSILON * (abs(CELLS.values[one] - CELLS.values[other]) + diameter) + pattern + 1e-9


def test_independent_draws_reveal_more_with_every_release() -> None:
    """The control: the same four releases of one place, each drawn anew, exceed what one draw allows."""
    released = EXACT.probabilities[:, EXACT.probabilities.max(axis=0) > 0]
    four_draws = 4 * float(np.log(released[0] / released[3]).max())
    assert four_draws > 2 * EPSILON * 3.0


def test_sessions_draw_as_the_theorem_says() -> None:
    """Three thousand keys: the outputs of six releases are a function of the place, drawn from the product."""
    places, pattern = [0.6, 2.9], [0, 0, 1, 0, 1, 1]
    counts = np.zeros((3, 3))
    for number in range(3000):
        key = number.to_bytes(16, "big")
        function = MemoisedFrequentPlaces(ON_LINE, key, np.array(places), 0.2)
        cells = [function.cell(np.array([places[visit] + 0.01 * step])) for step, visit in enumerate(pattern)]
        assert None not in cells
        outputs = [function.output(cell) for cell in cells if cell is not None]
        assert outputs == [outputs[0], outputs[0], outputs[2], outputs[0], outputs[2], outputs[2]]
        counts[outputs[0], outputs[2]] += 1
    rows = ON_LINE.probabilities(places)
    expected = np.outer(rows[0], rows[1]).ravel() * 3000
    assert chisquare(counts.ravel(), expected).pvalue > 1e-3


@settings(max_examples=50, deadline=None)
@given(st.floats(0.0, 4.0), st.floats(0.0, 4.0), st.floats(-0.2, 0.2), st.floats(-0.2, 0.2))
def test_fixes_near_places_keep_epsilon_over_their_distance_and_two_radii(
    one: float, other: float, before: float, after: float
) -> None:
    rows = np.log(ON_LINE.probabilities([one, other]))
    fixes = LINE.clamp([one + before, other + after])[:, 0]
    allowed = EPSILON * (abs(fixes[0] - fixes[1]) + 2 * 0.2 + 2 * ON_LINE.mesh.resolution)
    assert (rows[0] - rows[1]).max() <= allowed + 1e-12


def test_a_place_keeps_its_output_over_weeks_and_is_charged_once() -> None:
    releases = session([1.0, 3.0])
    rng = np.random.default_rng(0)
    fixes = [place + rng.uniform(-0.19, 0.19) for _ in range(14) for place in (1.0, 1.0, 3.0, 1.0)]
    found = [releases.release(fix) for fix in fixes]
    assert len({each.observable for each in found[::4]}) == len({each.observable for each in found[2::4]}) == 1
    assert [each.epsilon for each in found[:3]] == [0.7, 0.0, 0.7]
    assert found[-1].spent == 1.4
    assert {each.source for each in found} == {"memoised"}
    guarantee = releases.place_guarantee()
    assert (guarantee.epsilon, guarantee.places, guarantee.releases) == (0.7, 2, 56)
    assert guarantee.moves == 28
    assert guarantee.log_ratio(2.0) == pytest.approx(1.4)
    assert guarantee.radius == 0.2
    assert releases.guarantees().added_distance == 0.4
    assert "0.4 more" in str(guarantee)
    assert guarantee.to_dict()["pattern_bits"] == guarantee.pattern_bits
    secrets = [repr(each) for each in (releases, releases.policy, found[0], guarantee)]
    assert not any("3.0," in text or "01234" in text for text in secrets[:2])


def test_weeks_of_sessions_under_the_optimal_attack() -> None:
    """Home from 300 outputs of a certified mechanism: found if each is drawn anew, as after one output otherwise."""
    candidates = np.linspace(0.0, 4.0, 81)
    likelihoods = np.log(ON_LINE.probabilities(candidates))
    home = 1.6

    def inference(releases: PointReleases) -> place_attacks.PlaceInference:
        found = [releases.release(home + 0.05 * (-1) ** number).observable for number in range(300)]
        outputs = np.array([int(np.flatnonzero(ON_LINE.outputs[:, 0] == each)[0]) for each in found])
        logs = likelihoods[:, outputs].T
        if isinstance(releases.policy, FrequentPlaces):
            return place_attacks.memoised_posterior_attack(logs, candidates[:, None], outputs)
        return place_attacks.posterior_attack(logs, candidates[:, None])

    fresh = inference(PointReleases(ON_LINE, generator=np.random.default_rng(5)))
    assert abs(float(fresh.guess[0]) - home) < 0.3
    assert fresh.error < 0.3
    kept = inference(session([home]))
    once = [place_attacks.posterior_attack(likelihoods[:, [each]].T, candidates[:, None]).error for each in range(3)]
    assert min(abs(kept.error - error) for error in once) < 1e-12
    assert min(once) > 2 * fresh.error


def test_a_place_divided_by_a_border_is_one_place() -> None:
    """Where cells would draw, and charge, twice for one home."""
    fixes = [0.99, 1.01] * 5
    cells = PointReleases(ON_LINE, policy=Memoised(KEY, place=0.5))
    assert [cells.release(fix).spent for fix in fixes][-1] == 1.4
    assert [each.spent for each in map(session([1.0]).release, fixes)][-1] == 0.7


def test_outputs_do_not_change_when_a_place_is_added(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        first = PointReleases(ON_LINE, policy=FrequentPlaces(KEY, [1.0], radius=0.2), ledger=ledger)
        home = first.release(1.05)
        more = PointReleases(ON_LINE, policy=FrequentPlaces(KEY, [3.0, 1.0], radius=0.2), ledger=ledger)
        again = more.release(0.9)
        assert (again.observable, again.epsilon, again.remarks) == (home.observable, 0.0, ())
        assert more.release(3.0).epsilon == 0.7
        assert more.place_guarantee().epsilon == 0.7
        other = PointReleases(ON_LINE, policy=FrequentPlaces(b"another key of 16+", [1.0], radius=0.2), ledger=ledger)
        assert other.release(1.0).epsilon == 0.7
        assert other.place_guarantee().epsilon == 1.4, "another key is another draw for the same place"
        assert ledger.verify().releases == 4


def test_away_from_all_places_the_last_output_is_repeated() -> None:
    releases = session([1.0, 3.0])
    home, away = releases.release(1.0), releases.release(2.0)
    assert (away.observable, away.source, away.epsilon, away.mechanism) == (home.observable, "away", 0.0, None)
    assert dict(away.rows())["source"].startswith("the last output again: the user is at none")
    assert releases.place_guarantee().moves == 0
    with pytest.raises(pg.InvalidProblem, match="no output to repeat"):
        session([1.0]).release(2.0)


def test_away_from_all_places_an_independent_output_can_be_drawn() -> None:
    policy = FrequentPlaces(KEY, [1.0], radius=0.2, elsewhere="draw")
    releases = PointReleases(ON_LINE, policy=policy, budget=[Budget(2.2)])
    found = [releases.release(point) for point in (1.0, 2.0, 1.1, 2.5)]
    assert [each.source for each in found] == ["memoised", "drawn", "memoised", "drawn"]
    assert [each.epsilon for each in found] == [0.7, 0.7, 0.0, 0.7]
    guarantee = releases.place_guarantee()
    assert (guarantee.epsilon, guarantee.independent_epsilon, guarantee.moves) == (0.7, 1.4, 3)
    assert "independent draws, epsilon 1.4" in str(guarantee)
    with pytest.raises(pg.BudgetExceeded):
        releases.release(2.0)
    assert releases.release(1.0).epsilon == 0.0, "what was charged is still released"


def test_cells_of_one_size_have_a_guarantee_too() -> None:
    releases = PointReleases(ON_LINE, policy=Memoised(KEY, place=0.5))
    releases.release(1.1)
    assert releases.place_guarantee().radius == releases.guarantees().added_distance / 2 == 0.25
    with pytest.raises(pg.InvalidProblem, match="independent draws"):
        PointReleases(ON_LINE).place_guarantee()


def test_before_the_first_release_nothing_is_revealed() -> None:
    guarantee = session([1.0]).place_guarantee()
    assert (guarantee.epsilon, guarantee.places, guarantee.pattern_bits) == (0.0, 0, 0.0)
    assert isinstance(guarantee, PlaceGuarantee)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_patterns_are_counted(length: int) -> None:
    """Against listing them all."""
    listed: dict[tuple[int, int], int] = {}
    for visits in all_patterns(length, length):
        kind = len(set(visits)), sum(one != other for one, other in pairwise(visits))
        listed[kind] = listed.get(kind, 0) + 1
    assert {kind: patterns(length, *kind) for kind in listed} == listed
    assert patterns(length, length + 1, 0) == 0


def test_memoised_cells_have_the_same_sequences() -> None:
    """The theorem's histories of cells are those of the policy Memoised: every output is a function of the cell."""
    releases = Releases(LATTICE, pg.Mobility.still(CELLS), mechanism=EXACT, policy=Memoised(KEY))
    found = [releases.release(value).observable for value in (0.5, 1.5, 0.5, 3.5, 1.5)]
    function = MemoisedFunction(EXACT, KEY)
    assert found == [CELLS.labels[function.output(cell)] for cell in (0, 1, 0, 3, 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FrequentPlaces(b"short", [1.0], radius=0.1), "16 random bytes"),
        (lambda: FrequentPlaces(KEY, [1.0], radius=0.0), "radius"),
        (lambda: FrequentPlaces(KEY, [], radius=0.1), "at least one place"),
        (lambda: FrequentPlaces(KEY, [[[1.0]]], radius=0.1), "at least one place"),
        (lambda: FrequentPlaces(KEY, [1.0], radius=0.1, elsewhere="hide"), "elsewhere"),  # type: ignore[arg-type]
        (lambda: session([[1.0, 2.0]]), "each place as a point"),
        (lambda: session([np.nan]), "finite|number"),
        (lambda: session([1.0], radius=5.0), "larger than the region"),
        (lambda: session([1.0], epsilon=0.7), "its own epsilon"),
        (
            lambda: Releases(PROBLEM, pg.Mobility.still(STREET), policy=FrequentPlaces(KEY, [1.0], radius=0.1)).release(
                "cell-0"
            ),
            "use PointReleases",
        ),
    ],
)
def test_wrong_settings_are_refused(make: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        make()

"""Filter, smoother and most likely path against the sum over all paths, written out."""

from itertools import pairwise, product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames import tracking
from privacygames.tracking import Observations
from sharing import chains
from support import Array, matrices, priors

NUMBER = st.integers(0, 9).map(lambda value: value / 9)


@st.composite
def situations(draw: st.DrawFn) -> tuple[pg.Problem, pg.Mobility, Array, list[int]]:
    """A small chain, likelihoods that leave some path possible, and slots with gaps and repeats."""
    size, length = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    space = pg.Categories([f"s{i}" for i in range(size)])
    problem = pg.Problem(pg.Prior(space, draw(priors(size))), distance=draw(matrices(size, size, zero_diagonal=True)))
    chain = draw(chains(size))
    likelihoods = np.array(draw(st.lists(NUMBER, min_size=size * length, max_size=size * length)))
    gaps = draw(st.lists(st.integers(0, 2), min_size=length - 1, max_size=length - 1))
    slots = [int(slot) for slot in np.cumsum([5, *gaps])]
    return problem, pg.Mobility(space, chain), likelihoods.reshape(length, size), slots


def all_paths(
    problem: pg.Problem, mobility: pg.Mobility, likelihoods: Array, slots: list[int]
) -> dict[tuple[int, ...], float]:
    """P(path, answers) of every path over every slot, by definition; keyed by where it is at the answers."""
    size, chain = len(problem.space), np.asarray(mobility.matrices[0])
    if not isinstance(mobility.matrices[0], np.ndarray):
        chain = mobility.matrices[0].toarray()
    first = slots[0]
    found: dict[tuple[int, ...], float] = {}
    for path in product(range(size), repeat=slots[-1] - first + 1):
        weight = float(problem.prior.probabilities[path[0]])
        for before, after in pairwise(path):
            weight *= chain[before, after]
        at_answers = tuple(path[slot - first] for slot in slots)
        for likelihood, place in zip(likelihoods, at_answers, strict=True):
            weight *= likelihood[place]
        found[at_answers] = found.get(at_answers, 0.0) + weight
    return found


def observations(likelihoods: Array, slots: list[int]) -> Observations:
    with np.errstate(divide="ignore"):
        return Observations(np.log(likelihoods), np.array(slots))


def least_error(problem: pg.Problem, belief: Array) -> float:
    size = len(problem.space)
    return float(min(sum(belief[s] * problem.distance[g, s] for s in range(size)) for g in range(size)))


@settings(max_examples=150)
@given(situations())
def test_every_attack_against_all_paths(
    situation: tuple[pg.Problem, pg.Mobility, Array, list[int]],
) -> None:
    problem, mobility, likelihoods, slots = situation
    paths = all_paths(*situation)
    given_answers = observations(likelihoods, slots)
    total, size = sum(paths.values()), len(problem.space)
    if total == 0:
        with pytest.raises(pg.InvalidProblem, match="impossible"):
            tracking.smoothing_attack(problem, mobility, given_answers)
        return
    smooth = tracking.smoothing_attack(problem, mobility, given_answers)
    viterbi = tracking.viterbi_attack(problem, mobility, given_answers)
    forward = tracking.filtering_attack(problem, mobility, given_answers)
    assert smooth.log_likelihood == pytest.approx(log(total))
    for at in range(len(slots)):
        marginal = np.array([sum(w for path, w in paths.items() if path[at] == s) for s in range(size)]) / total
        assert smooth.beliefs[at] == pytest.approx(marginal, abs=1e-12)
        assert smooth.errors[at] == pytest.approx(least_error(problem, marginal), abs=1e-12)
        assert viterbi.errors[at] == pytest.approx(problem.distance[viterbi.guesses[at]] @ marginal, abs=1e-12)
        so_far = all_paths(problem, mobility, likelihoods[: at + 1], slots[: at + 1])
        now = np.array([sum(w for path, w in so_far.items() if path[at] == s) for s in range(size)])
        assert forward.beliefs[at] == pytest.approx(now / now.sum(), abs=1e-12)
        assert forward.errors[at] == pytest.approx(least_error(problem, now / now.sum()), abs=1e-12)
    assert exp(viterbi.log_likelihood) == pytest.approx(max(paths.values()))
    assert paths[tuple(int(place) for place in viterbi.guesses)] == pytest.approx(max(paths.values()))


@settings(max_examples=100)
@given(situations())
def test_the_shift_of_the_odds_at_one_moment(situation: tuple[pg.Problem, pg.Mobility, Array, list[int]]) -> None:
    problem, mobility, likelihoods, slots = situation
    likelihoods = likelihoods + 0.1
    size = len(problem.space)
    shifts = tracking.smoothing_attack(problem, mobility, observations(likelihoods, slots)).odds_shift(
        problem.distinguishability
    )
    paths = all_paths(problem, mobility, likelihoods, slots)
    unseen = all_paths(problem, mobility, np.ones_like(likelihoods), slots)
    for at in range(len(slots)):
        joint = [sum(w for path, w in paths.items() if path[at] == s) for s in range(size)]
        alone = [sum(w for path, w in unseen.items() if path[at] == s) for s in range(size)]
        largest = 0.0
        for a, b in product(range(size), repeat=2):
            if alone[a] > 0 and alone[b] > 0:
                ratio, apart = log(joint[a] / alone[a]) - log(joint[b] / alone[b]), problem.distinguishability[a, b]
                nothing = inf if ratio > 1e-8 else 0.0  # between secrets that nothing separates
                largest = max(largest, ratio / apart if apart > 0 else nothing)
        assert shifts[at] == pytest.approx(largest, abs=1e-9)


def test_the_shift_between_secrets_that_nothing_separates_is_infinite() -> None:
    """Two rooms of a house lead to different streets: what is answered in the street tells the rooms apart."""
    rooms = pg.Categories(["east room", "west room", "east street", "west street"])
    apart = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0.0]])
    problem = pg.Problem(pg.Prior(rooms, [0.5, 0.5, 0, 0]), distinguishability=apart)
    leads = pg.Mobility(rooms, [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]])
    told = np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.7, 0.3]])
    shifts = tracking.smoothing_attack(problem, leads, observations(told, [0, 1])).odds_shift(apart)
    assert shifts == pytest.approx([np.inf, log(0.7 / 0.3)])
    same = pg.Mobility(rooms, [[0, 0, 0.3, 0.7], [0, 0, 0.3, 0.7], [0, 0, 1, 0], [0, 0, 0, 1]])
    many = np.tile([0.5, 0.5, 0.7, 0.3], (300, 1))
    shifts = tracking.smoothing_attack(problem, same, observations(many, list(range(300)))).odds_shift(apart)
    assert np.isfinite(shifts).all()  # rounding is no shift
    releases = pg.Releases(problem, leads, epsilon=1.0)
    releases.release("east room")
    releases.release("east street")
    assert releases.guarantees().moment_epsilon_under_chain == np.inf


def test_by_the_hour_the_right_matrix_is_used_forward_and_back() -> None:
    space = pg.Categories("ab")
    swap, stay = np.eye(2)[::-1], np.eye(2)
    mobility = pg.Mobility(space, [swap if hour == 0 else stay for hour in range(24)], step=3600)
    problem = pg.Problem(pg.Prior.uniform(space))
    seen = observations(np.array([[0.9, 0.1], [0.5, 0.5]]), [0, 1])
    for track in (tracking.smoothing_attack, tracking.filtering_attack, tracking.viterbi_attack):
        assert track(problem, mobility, seen).estimates == ["a", "b"]
    later = observations(np.array([[0.5, 0.5], [0.9, 0.1]]), [0, 3])
    assert tracking.smoothing_attack(problem, mobility, later).estimates == ["b", "a"]


@settings(max_examples=30)
@given(st.lists(chains(2), min_size=3, max_size=3), st.lists(st.integers(0, 9), min_size=1, max_size=3))
def test_steps_by_the_hour_against_one_step_at_a_time(parts: list[Array], gaps: list[int]) -> None:
    """Answers that say nothing at every slot between: the same path at the real answers, and the same beliefs."""
    space = pg.Categories("ab")
    mobility = pg.Mobility(space, [parts[hour % 3] for hour in range(24)], step=1200, timezone="Asia/Kolkata")
    problem = pg.Problem(pg.Prior(space, [0.6, 0.4]))
    slots = [int(slot) for slot in np.cumsum([1000, *gaps])]
    likelihoods = np.array([[0.7, 0.2], [0.3, 0.6], [0.5, 0.4], [0.1, 0.9]])[: len(slots)]
    every, rows, at = [], [], []
    for number, slot in enumerate(slots):
        between = range(slots[number - 1] + 1, slot) if number else range(0)
        every += [*between, slot]
        rows += [*([[1.0, 1.0]] * len(between)), likelihoods[number]]
        at.append(len(rows) - 1)
    short, long = observations(likelihoods, slots), observations(np.array(rows), every)
    for track in (tracking.filtering_attack, tracking.smoothing_attack):
        expected = track(problem, mobility, long).beliefs[at]
        assert track(problem, mobility, short).beliefs == pytest.approx(expected, abs=1e-12)
    best = 0.0
    for places in product(range(2), repeat=len(slots)):
        weight = problem.prior.probabilities[places[0]] * likelihoods[0, places[0]]
        for number in range(1, len(slots)):
            moved = np.eye(2)
            for slot in range(slots[number - 1], slots[number]):
                moved = moved @ parts[mobility.hour(slot) % 3]
            weight *= moved[places[number - 1], places[number]] * likelihoods[number, places[number]]
        best = max(best, float(weight))
    assert exp(tracking.viterbi_attack(problem, mobility, short).log_likelihood) == pytest.approx(best)


def test_a_place_as_good_as_ruled_out_comes_back() -> None:
    """A thousand answers for one place, then more for the other: with plain floats it would have been lost."""
    space = pg.Categories("ab")
    problem = pg.Problem(pg.Prior.uniform(space))
    for mobility in (pg.Mobility.still(space), pg.Mobility(space, [[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]])):
        one, other = np.array([[0.9, 0.1]]), np.array([[0.1, 0.9]])
        seen = observations(np.concatenate([np.repeat(one, 1000, 0), np.repeat(other, 1010, 0)]), list(range(2010)))
        track = tracking.filtering_attack(problem, mobility, seen)
        assert track.estimates[999] == "a"
        assert track.estimates[-1] == "b"
    assert tracking.averaging_attack(problem, seen).guesses[-1] == 1
    assert tracking.averaging_attack(problem, seen).name == "averaging"


def test_a_chain_of_places_that_underflows_is_computed_in_logarithms() -> None:
    """Only from c, which is as good as impossible, can d be reached."""
    space = pg.Categories("abcd")
    chain = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    problem = pg.Problem(pg.Prior(space, [0.5, 0.25, 0.25, 0]))
    tiny = np.array([0.0, -1.0, -2000.0, -3.0])
    seen = Observations(np.array([tiny, [0.0, 0.0, 0.0, 0.0], [-5000.0, -5000.0, 0.0, 0.0]]), np.arange(3))
    track = tracking.filtering_attack(problem, pg.Mobility(space, chain), seen)
    assert track.beliefs[1, 3] == 0.0
    assert track.estimates[-1] == "d"
    assert tracking.smoothing_attack(problem, pg.Mobility(space, chain), seen).estimates == ["c", "d", "d"]


def test_observations_of_mechanisms() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(3, 1, 3.0, 1.0)))
    mechanism = pg.design(problem, epsilon=1.0)
    seen = Observations.of(mechanism, ["cell-0", "cell-2"])
    assert np.exp(seen.log_likelihoods) == pytest.approx(mechanism.probabilities[:, [0, 2]].T)
    assert len(seen) == 2
    track = tracking.filtering_attack(problem, pg.Mobility.still(problem.space), seen)
    by_rule = mechanism.posterior("cell-2", mechanism.posterior("cell-0"))
    assert track.beliefs[-1] == pytest.approx(by_rule.probabilities)


def test_wrong_input_is_refused() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    still = pg.Mobility.still(problem.space)
    with pytest.raises(pg.InvalidProblem, match="never decrease"):
        Observations(np.zeros((2, 2)), np.array([3, 1]))
    with pytest.raises(pg.InvalidProblem, match="not empty"):
        Observations(np.zeros((0, 2)), np.array([], dtype=int))
    with pytest.raises(pg.InvalidProblem, match="numbers or"):
        Observations(np.full((1, 2), np.nan), np.array([0]))
    with pytest.raises(pg.InvalidProblem, match="another number"):
        tracking.filtering_attack(problem, still, Observations(np.zeros((1, 3)), np.array([0])))
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        tracking.filtering_attack(
            problem, pg.Mobility.still(pg.Categories("xy")), Observations(np.zeros((1, 2)), np.array([0]))
        )

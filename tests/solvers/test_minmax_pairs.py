"""The min-max attack over pairs: the block method against the program written out, and the proofs on their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import privacygames as pg
from privacygames.programs.attack_programs import minmax_pairs_attack_program
from privacygames.solvers import memory
from privacygames.solvers.minmax_pairs import attack as pairs
from privacygames.solvers.minmax_pairs.attack import minmax_pairs_attack
from privacygames.solvers.minmax_pairs.bounds import largest_error, least_error_bound
from privacygames.solvers.proved_attack import ProvedAttack
from support import Array, matrices


@st.composite
def mechanisms(draw: st.DrawFn, secrets: int, observables: int) -> Array:
    """Rows of counts, many of them zero, so that observables go unseen or are seen from few secrets."""
    count = st.one_of(st.just(0), st.integers(0, 9))
    rows = st.lists(count, min_size=observables, max_size=observables).filter(any)
    counts = np.array(draw(st.lists(rows, min_size=secrets, max_size=secrets)), dtype=float)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Array, Array]:
    """A mechanism and a distance, neither square with the other nor symmetric, zeros included."""
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    return draw(mechanisms(n, m)), draw(matrices(n, n, zero_diagonal=draw(st.booleans())))


def optimum_by_hand(mechanism: Array, distance: Array) -> float:
    """eq:lp:adversary:diff:minmax2 row by row, solved by SciPy: q(ŝ|o) at o·k + ŝ for k guesses, then y."""
    (n, m), k = mechanism.shape, len(distance)
    rows = []
    for s in range(n):
        for guess in range(k):
            row = np.zeros(k * m + 1)
            row[-1] = -1.0
            for o in range(m):
                row[o * k + guess] = mechanism[s, o] * distance[guess, s]
            rows.append(row)
    sums = np.zeros((m, k * m + 1))
    for o in range(m):
        sums[o, o * k : (o + 1) * k] = 1.0
    found = linprog(np.eye(k * m + 1)[-1], np.array(rows), np.zeros(n * k), sums, np.ones(m), method="highs-ds")
    return float(found.fun)


def by_blocks(mechanism: Array, distance: Array) -> ProvedAttack:
    """The block method alone, however small the program: without HiGHS to help, it gets there or raises."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "MAX_HIGHS_FIRST_SIZE", 0)
        patch.setattr(pairs, "MAX_HIGHS_SIZE", 0)
        return minmax_pairs_attack(mechanism, distance)


def exponential(space: pg.Space, epsilon: float) -> tuple[Array, Array]:
    problem = pg.Problem(pg.Prior.uniform(space))
    return pg.baselines.exponential(problem, epsilon).probabilities, problem.distance


@given(programs())
@settings(max_examples=120)
def test_same_optimum_as_the_program_written_out(program: tuple[Array, Array]) -> None:
    mechanism, distance = program
    best = optimum_by_hand(mechanism, distance)
    for found in (by_blocks(mechanism, distance), minmax_pairs_attack(mechanism, distance)):
        assert found.error == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert found.bound == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert found.error >= found.bound * (1 - 1e-12)
        assert (found.attack >= 0).all()
        assert found.attack.sum(axis=1) == pytest.approx(np.ones(mechanism.shape[1]), abs=1e-15)
        errors = [
            distance[guess, s] * sum(mechanism[s, o] * found.attack[o, guess] for o in range(mechanism.shape[1]))
            for s in range(len(distance))
            for guess in range(len(distance))
        ]
        assert found.error == pytest.approx(max(errors), rel=1e-12)


@given(programs(), st.integers(0, 2**32 - 1))
def test_any_weights_bound_any_attack(program: tuple[Array, Array], seed: int) -> None:
    mechanism, distance = program
    n, m = mechanism.shape
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(n * n, 0.2)).reshape(n, n)
    attack = generator.dirichlet(np.full(n, 0.2), m)
    assert least_error_bound(mechanism, distance, weights) <= largest_error(mechanism, distance, attack) * (1 + 1e-12)


def test_two_secrets_by_hand() -> None:
    """Guess 2 after answer 1 with chance u, after answer 2 with chance v: errors .8u + .2v and .3(1−u) + .7(1−v).

    Raising v takes .7 off the one for .2 on the other, u only .3 for .8: so v = 1, and .8u + .2 = .3(1−u) at u = 1/11.
    """
    mechanism = np.array([[0.8, 0.2], [0.3, 0.7]])
    for found in (by_blocks(mechanism, 1 - np.eye(2)), minmax_pairs_attack(mechanism, 1 - np.eye(2))):
        assert found.error == pytest.approx(3 / 11, rel=1e-6)
        assert found.attack == pytest.approx(np.array([[10 / 11, 1 / 11], [0, 1]]), abs=1e-5)


def test_an_answer_that_gives_the_secret_away_is_settled() -> None:
    """Answer 2 comes from secret 2 only. After answer 1, guess 2 with chance t: errors t and 3(1−t)/2, equal at 3/5."""
    mechanism, distance = np.array([[1, 0], [0.5, 0.5]]), np.array([[0.0, 3.0], [1.0, 0.0]])
    found = by_blocks(mechanism, distance)
    assert found.error == pytest.approx(3 / 5, rel=1e-6)
    assert found.attack[1].tolist() == [0.0, 1.0]


def test_a_mechanism_that_reveals_everything_has_no_error() -> None:
    found = minmax_pairs_attack(np.eye(4, 6), 1 - np.eye(4))
    assert (found.error, found.bound) == (0.0, 0.0)
    assert (found.attack[:4] == np.eye(4)).all()


def test_a_mechanism_that_reveals_nothing_in_closed_form() -> None:
    """One distribution q for all answers: q(ŝ)·max_s d(ŝ,s) ≤ y and Σ q = 1 give y = 1 / Σ_ŝ 1/max_s d(ŝ,s).

    Every estimate is used, also those that another beats on every secret: none can be left out.
    """
    distance = pg.Grid(20, 15).distance("euclidean")
    row = np.random.default_rng(2).dirichlet(np.ones(300))
    found = minmax_pairs_attack(np.tile(row, (300, 1)), distance)
    assert found.error == pytest.approx(1 / (1 / distance.max(axis=1)).sum(), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_same_optimum_as_highs_on_a_grid(epsilon: float) -> None:
    mechanism, distance = exponential(pg.Grid(6, 5), epsilon)
    written_out = pg.Highs().solve_program(minmax_pairs_attack_program(mechanism, distance))
    assert by_blocks(mechanism, distance).error == pytest.approx(float(written_out.block("y")[0]), rel=1e-6)


def test_a_known_optimum() -> None:
    """10×10 cells, ε = 1 a cell: HiGHS took 40 seconds to this optimum of the program written out."""
    assert minmax_pairs_attack(*exponential(pg.Grid(10, 10), 1.0)).error == pytest.approx(0.04885822, rel=1e-6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_labels_and_units_do_not_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    mechanism = generator.dirichlet(np.full(14, 0.3), 9)
    distance = generator.random((9, 9))
    first = by_blocks(mechanism, distance).error
    secrets, observables = generator.permutation(9), generator.permutation(14)
    moved = by_blocks(mechanism[np.ix_(secrets, observables)], 1000 * distance[np.ix_(secrets, secrets)]).error
    assert moved == pytest.approx(1000 * first, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_extreme_numbers(seed: int) -> None:
    """Probabilities over hundreds of orders of magnitude, distances over eight, almost deterministic mechanisms."""
    generator = np.random.default_rng(seed)
    n, m = int(generator.integers(10, 30)), int(generator.integers(2, 30))
    mechanism = [
        np.exp(-generator.exponential(30, (n, m))),
        np.eye(m)[generator.integers(0, m, n)] + 1e-9,
        generator.dirichlet(np.full(m, 0.02), n) + 1e-14,
    ][seed % 3]
    mechanism /= mechanism.sum(axis=1, keepdims=True)
    distance = np.exp(generator.uniform(-9, 9, (n, n))) if seed % 2 else 1 - np.eye(n)
    found = by_blocks(mechanism, distance)
    assert found.error - found.bound <= 1e-6 * found.error


def useless(mechanism: Array, distance: Array, *, tolerance: float) -> tuple[Array, Array]:
    """An engine that gives up at once."""
    n, m = mechanism.shape
    return np.full((m, n), 1 / n), np.ones((n, n))


def test_highs_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, distance = exponential(pg.Grid(3, 3), 1.0)
    expected = by_blocks(mechanism, distance).error
    monkeypatch.setattr(pairs, "solve_by_blocks", useless)
    monkeypatch.setattr(pairs, "MAX_HIGHS_FIRST_SIZE", 0)
    assert minmax_pairs_attack(mechanism, distance).error == pytest.approx(expected, rel=1e-6)


def test_what_is_not_proved_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "solve_by_blocks", useless)
    with pytest.raises(pg.SolveFailed, match="min-max attack over secrets"):
        by_blocks(*exponential(pg.Grid(3, 3), 1.0))


def test_what_does_not_fit_is_refused_with_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SHARE", 1e-9)
    with pytest.raises(pg.InvalidProblem, match="min-max attack over pairs would need about"):
        by_blocks(*exponential(pg.Grid(3, 3), 1.0))


@pytest.mark.parametrize("hopeless", [1e8, 7.4e12, 1e15])
@pytest.mark.parametrize("seed", range(4))
def test_a_hopeless_guess_is_left_out_and_leaves_the_gap_as_it_is(hopeless: float, seed: int) -> None:
    """It errs by 10¹⁵ on all secrets but one, and every output may come from any: no attack can afford it."""
    rng = np.random.default_rng(seed)
    mechanism, distance = rng.dirichlet(np.full(6, 0.3), 6) + 1e-9, rng.random((6, 6)) + 0.1
    mechanism /= mechanism.sum(axis=1, keepdims=True)
    np.fill_diagonal(distance, 0.0)
    place = int(rng.integers(6))
    distance[place] = hopeless
    distance[place, place] = 0.0
    found = minmax_pairs_attack(mechanism, distance)
    assert found.error - found.bound <= 1e-6 * found.error
    assert found.error == pytest.approx(optimum_by_hand(mechanism, np.delete(distance, place, axis=0)), rel=1e-5)

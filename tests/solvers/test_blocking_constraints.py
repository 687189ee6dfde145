"""The few inequalities that limit a step: their small system, and the directions under solve on them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privacygames as pg
from formulations import restricted_program_of, scattered
from privacygames.problem import Bounds
from privacygames.solvers.interior.blocking_constraints import lengthened_direction
from privacygames.solvers.interior.newton import Newton
from privacygames.solvers.interior.sensitivities import SelectedInequalities
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.smoothed_complementarity import solve
from privacygames.solvers.interior.start import initial_state
from privacygames.solvers.interior.state import SlackDualChange
from privacygames.solvers.linalg import BlockAlgebra, compiled_extension, device_algebra, host_algebra
from privacygames.solvers.linalg.device import require_torch
from support import block_iterations

SETTINGS = InteriorSettings()
ACCURATE = SETTINGS.smoothing_accuracy


def positive_definite(random: np.random.Generator, count: int) -> NDArray[np.float64]:
    root = random.normal(size=(count, count + 1))
    return np.asarray(root @ root.T)


@given(seed=st.integers(0, 10**6), count=st.integers(1, 12), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_small_systems_are_solved(seed: int, count: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    slack, dual = scale * random.exponential(size=count), random.exponential(size=count) / scale
    target = 1.0
    weight = dual / slack
    # R as it comes about: the inverse of a matrix that has these inequalities in it, and others.
    response = np.asarray(np.linalg.inv(np.diag(weight) + positive_definite(random, count) / scale**2), dtype=float)
    change = random.normal(size=count) * 5 * slack, random.normal(size=count) * 5 * dual
    found = solve((slack, dual), change, response, target, np.zeros(count))
    assert found is not None
    s = slack + change[0] + response @ found
    z = dual + change[1] + found - weight * (response @ found)
    assert (s > 0).all()
    assert (z > 0).all()
    assert np.abs(s * z - target).max() <= 4 * ACCURATE


def test_one_inequality_by_hand() -> None:
    # s = p + R f and z = q + f − w R f with p = −1, q = 2, w = 1, R = 1/2: s = f/2 − 1, z = 2 + f/2, s z = 1.
    one = np.ones(1)
    found = solve((one, one), (-2 * one, one), np.full((1, 1), 0.5), 1.0, np.zeros(1))
    assert found is not None
    half = (-1 + np.sqrt(13)) / 2  # of h² + h − 3 = 0, h = f/2
    assert found[0] == pytest.approx(2 * half, rel=ACCURATE)


def newton_of(problem: pg.Problem, bounds: Bounds, algebra: BlockAlgebra) -> Newton:
    form = restricted_program_of(problem, bounds, algebra)
    return Newton(form, initial_state(form, 1e-6, SETTINGS), algebra)


def values(few: SelectedInequalities, insides: Sequence[SlackDualChange], algebra: BlockAlgebra) -> NDArray[np.float64]:
    """The slacks and dual values of some inequalities, which are in the order of batches."""
    parts = [
        np.array([algebra.backend.to_numpy(array)[few.index[few.batch == batch]] for array in inside.both])
        for batch, inside in enumerate(insides)
    ]
    return np.concatenate(parts, axis=1)


ASKED = [
    Bounds(epsilon=1.0),
    Bounds(epsilon=1.0, distortion=0.3),
    Bounds(distortion=0.3),
    Bounds(epsilon=1.0, worst_case=True),
]


@pytest.mark.parametrize("bounds", ASKED, ids=["epsilon", "joint", "distortion", "worst case"])
@pytest.mark.parametrize("where", ["host", "compiled", "cpu"])
def test_forces_do_what_their_answers_say(bounds: Bounds, where: str) -> None:
    if where == "cpu":
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'privacygames[gpu]'")
        require_torch("cpu")
    if where == "compiled" and compiled_extension() is None:
        pytest.skip("built without a C compiler")
    somewhere = device_algebra("cpu", threads=1) if where == "cpu" else host_algebra(2, compiled=where == "compiled")
    with somewhere as algebra:
        newton = newton_of(scattered(9, 3), bounds, algebra)
        state = newton.state
        coupled = -state.coupling_slack * state.inequality_dual
        base = newton.direction(lambda at: -state.slack_duals[at].slacks * state.slack_duals[at].duals, coupled)
        few = newton.blocking_inequalities(base, base, 0.5, 7)
        assert 1 <= len(few.index) <= 7
        answers = newton.sensitivities(few)
        slack, dual, *before = few.values
        force = np.random.default_rng(1).normal(size=len(few.index)) * dual
        step = newton.shift_duals(base, few, answers, force)
        # The slacks of the few change as the response says, and so do their dual values.
        after = values(few, step.changes, algebra)
        assert values(few, base.changes, algebra).tolist() == np.array(before).tolist()
        moved = answers.response_to(answers) @ force
        assert np.abs(after[0] - before[0] - moved).max() <= 1e-8 * np.abs(moved).max()
        wanted = force - dual / slack * moved
        assert np.abs(after[1] - before[1] - wanted).max() <= 1e-8 * np.abs(wanted).max()
        # Rows still sum to one at the end of a whole step.
        n = newton.secret_count
        ends = state.u + np.concatenate([algebra.backend.to_numpy(each) for each in step.u])
        assert np.abs(ends[:, :n].sum(axis=0) - 1).max() <= 1e-9
        # All products but those of the few change to first order as they did without solve.
        for at, (now, one, other) in enumerate(zip(state.slack_duals, base.changes, step.changes, strict=True)):
            here = [algebra.backend.to_numpy(each) for each in now.both]
            changes = [
                here[0] * algebra.backend.to_numpy(each.duals) + here[1] * algebra.backend.to_numpy(each.slacks)
                for each in (one, other)
            ]
            spared = np.ones(len(here[0]), dtype=bool)
            spared[few.index[few.batch == at]] = False
            assert np.abs(changes[0] - changes[1])[spared].max(initial=0.0) <= 1e-8 * np.abs(changes[0]).max()


@pytest.mark.parametrize("bounds", ASKED, ids=["epsilon", "joint", "distortion", "worst case"])
def test_compiled_directions_are_the_same(bounds: Bounds) -> None:
    if compiled_extension() is None:
        pytest.skip("built without a C compiler")
    found = []
    for compiled in (False, True):
        with host_algebra(1, compiled=compiled) as algebra:
            newton = newton_of(scattered(9, 3), bounds, algebra)
            state, target = newton.state, newton.state.mean_product / 2
            coupled = -state.coupling_slack * state.inequality_dual
            aimed = [target - each.slacks * each.duals for each in state.slack_duals]
            first = newton.direction(aimed.__getitem__, coupled, refinements=2)
            second = newton.correct(first, lambda at, aimed=aimed: 0.1 * aimed[at])  # type: ignore[misc]
            found.append((newton.direction(None, coupled, refinements=1), first, second))
    for plain, fused in zip(*found, strict=True):
        assert (fused.primal_step, fused.dual_step) == pytest.approx((plain.primal_step, plain.dual_step), rel=1e-8)
        for one, other in zip(plain.parts, fused.parts, strict=True):
            for a, b in ((one.u, other.u), *zip(one.change.both, other.change.both, strict=True)):
                assert np.abs(a - b).max() <= 1e-9 * np.abs(a).max()


@given(seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_a_lengthened_direction_is_worth_more(seed: int) -> None:
    with host_algebra(1) as algebra:
        newton = newton_of(scattered(12, seed), Bounds(epsilon=1.0), algebra)
        state = newton.state
        base = newton.direction(lambda at: -state.slack_duals[at].slacks * state.slack_duals[at].duals, np.zeros(0))
        assume(min(base.primal_step, base.dual_step) < 0.5)
        step = lengthened_direction(newton, base, state.mean_product, SETTINGS)
    assert min(step.primal_step, step.dual_step) + 0.1 * (step.primal_step + step.dual_step) >= min(
        base.primal_step, base.dual_step
    )
    assert 0 < step.primal_step <= 1
    assert 0 < step.dual_step <= 1


def test_inequalities_are_told_apart() -> None:
    one = SelectedInequalities(np.array([0, 1]), np.array([5, 5]), np.array([7, 8]), np.ones((4, 2)))
    other = SelectedInequalities(np.array([1, 1, 0]), np.array([5, 4, 6]), np.array([8, 9, 7]), np.zeros((4, 3)))
    new = one.difference(other)
    assert list(zip(new.batch, new.index, new.keys, strict=True)) == [(1, 4, 9), (0, 6, 7)]
    assert len(one.concatenate(new).index) == 4


def test_it_takes_far_fewer_iterations() -> None:
    problem = scattered(70, 0)
    few = block_iterations(problem, epsilon=1.0)
    linearised = pg.InteriorSettings(max_blocking_rounds=0)
    assert few <= 0.8 * block_iterations(problem, linearised, epsilon=1.0)


def test_forces_found_before_are_where_the_next_ones_start() -> None:
    random = np.random.default_rng(3)
    slack, dual = random.exponential(size=20), random.exponential(size=20)
    response = np.asarray(np.linalg.inv(np.diag(dual / slack) + positive_definite(random, 20)), dtype=float)
    change = random.normal(size=20) * 5 * slack, random.normal(size=20) * 5 * dual
    fewer = solve((slack[:15], dual[:15]), (change[0][:15], change[1][:15]), response[:15, :15], 1.0, np.zeros(15))
    assert fewer is not None
    anew = solve((slack, dual), change, response, 1.0, np.zeros(20))
    onwards = solve((slack, dual), change, response, 1.0, np.pad(fewer, (0, 5)))
    assert anew is not None
    assert onwards == pytest.approx(anew, rel=4 * ACCURATE, abs=4 * ACCURATE)
    assert solve((slack, dual), change, response, 1.0, anew) is anew  # nothing is left to do


def test_the_price_of_the_worst_case_starts_on_many() -> None:
    with host_algebra(1) as algebra:
        state = newton_of(scattered(40, 2), Bounds(epsilon=1.0, worst_case=True), algebra).state
    assert state.inequality_dual.sum() == pytest.approx(1.0, rel=1e-5)
    assert state.inequality_dual.max() < 0.2

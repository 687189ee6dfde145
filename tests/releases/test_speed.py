"""Somebody who cannot move faster than one cell per step: what the belief accounts for, and what it does not.

Exact: every first output, its probability, and the errors after it, on a road of six cells.
"""

from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames import place_attacks
from privacygames.releases import InferenceTarget, Preview, Releases
from privacygames.tracking import Observations, filtering_attack, smoothing_attack
from sharing import first_draw, scripted

ROAD = pg.Grid(6, 1, 6.0, 1.0)
STEPS = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 1
WALK = pg.Mobility(ROAD, STEPS / STEPS.sum(axis=1, keepdims=True))
PROBLEM = pg.Problem(pg.Prior.uniform(ROAD), cost="euclidean", distance="euclidean")
DISTORTION = 1.0
FIXED = pg.design(PROBLEM, epsilon=2.0, distortion=DISTORTION)
"""Designed against the prior, and used again without regard to the output before."""


def after_one_output(**options: Any) -> list[tuple[float, pg.Mechanism, int, Releases]]:
    """The probability of each first output, the mechanism and the index of the output, and the session after it."""
    mechanism = Releases(PROBLEM, WALK, **options).preview().choice
    assert mechanism is not None
    first, prior = mechanism.mechanism, PROBLEM.prior.probabilities
    found = []
    for output in np.flatnonzero(first.weights.any(axis=0)).tolist():
        secret = int(first.weights[:, output].argmax())
        draw = first_draw(first, secret, output)[1]
        releases = Releases(PROBLEM, WALK, generator=scripted(draw), **options)
        assert releases.release(ROAD.labels[secret]).observable == ROAD.labels[output]
        found.append((float(prior @ first.probabilities[:, output]), first, output, releases))
    assert sum(each[0] for each in found) == pytest.approx(1.0)
    return found


def second(releases: Releases) -> tuple[Preview, pg.Mechanism]:
    preview = releases.preview()
    assert preview.choice is not None
    return preview, preview.choice.mechanism


def past_error(first: pg.Mechanism, output: int, releases: Releases) -> float:
    """The expected error on the first moment of somebody who knows both outputs and the speed."""
    preview, mechanism = second(releases)
    chances = preview.belief.probabilities @ mechanism.probabilities
    error = 0.0
    for later in np.flatnonzero(mechanism.weights.any(axis=0) & (chances > 0)).tolist():
        outputs = ROAD.labels[output], ROAD.labels[later]
        seen = Observations.of([first, mechanism], outputs)
        error += chances[later] * float(smoothing_attack(PROBLEM, WALK, seen).errors[0])
    return error


def test_a_belief_excludes_what_nobody_could_have_reached() -> None:
    """The filter under a chain with a largest speed is the optimal attack of somebody who knows that speed."""
    exact = pg.baselines.identity(PROBLEM)
    near = pg.baselines.exponential(PROBLEM, 2.0)
    seen = Observations.of([exact, near], [ROAD.labels[0], ROAD.labels[5]])
    belief = filtering_attack(PROBLEM, WALK, seen).beliefs[-1]
    assert (belief[2:] == 0).all(), "five cells in one step: the second output says where it is not"
    assert belief[1] > belief[0] > 0
    centres = ROAD.centres
    assert place_attacks.impossible_moves([0, 3600], centres[[0, 5]], speed=1.0).tolist() == [1]


def test_designs_against_the_belief_hold_against_somebody_who_knows_the_speed() -> None:
    """A fixed mechanism loses much of its distortion after one output; a design for the belief keeps what it can."""
    careless = sum(
        p * (releases.preview().expected_error or 0) for p, _, _, releases in after_one_output(mechanism=FIXED)
    )
    assert careless < 0.8 * DISTORTION
    for _, _, _, releases in after_one_output(epsilon=2.0, distortion=DISTORTION):
        preview, _ = second(releases)
        possible = pg.max_distortion(preview.problem)
        assert preview.expected_error is not None
        assert preview.expected_error >= min(DISTORTION, possible) - 1e-9


def test_the_past_needs_an_inference_target_of_its_own() -> None:
    """What is missing: the present is guaranteed, but the next output tells about the one before."""
    before = InferenceTarget("one release ago", DISTORTION, ago=1)
    alone = after_one_output(epsilon=2.0, distortion=DISTORTION)
    both = after_one_output(epsilon=2.0, distortion=DISTORTION, adversaries=[before])
    lost = []
    for (_, first, output, plain), (_, _, _, with_target) in zip(alone, both, strict=True):
        preview, _ = second(with_target)
        possible = pg.max_distortion(preview.problem, preview.targets[0].adversary)
        kept = past_error(first, output, with_target)
        assert kept >= min(DISTORTION, possible) - 1e-9
        assert kept == pytest.approx(preview.target_errors[0])
        lost.append(min(DISTORTION, possible) - past_error(first, output, plain))
    assert max(lost) > 0.1, "without the target, some second output leaves too little error on the first moment"

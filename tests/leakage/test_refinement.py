"""Refinement: both kinds of proof, checked by a verifier, against qif and on what is refined by construction."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from leakage_channels import channel_of, channels, priors
from privacygames import leakage
from privacygames.leakage import Gain, decide_refinement


@given(st.data())
def test_what_is_post_processed_refines_and_leaks_less_for_every_gain(data: st.DataObject) -> None:
    channel = data.draw(channels(secrets=3, outputs=3))
    processed = leakage.cascade(channel, data.draw(channels(secrets=3, outputs=2, space=channel.outputs)))
    answer = leakage.refinement(channel, processed)
    assert answer.holds
    assert answer.excess == 0
    answer.verify()
    prior = data.draw(priors(3))
    gain = data.draw(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    assert leakage.additive_leakage.exact(processed, prior, gain) <= leakage.additive_leakage.exact(
        channel, prior, gain
    )


@given(st.data())
def test_every_answer_is_proved(data: st.DataObject) -> None:
    """Of two channels at random: no gain contradicts a refinement, and the counterexample of none is one."""
    channel, other = data.draw(channels(secrets=3, outputs=2)), data.draw(channels(secrets=3, outputs=3))
    answer = leakage.refinement(channel, other)
    answer.verify()
    if answer.holds:
        gain = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4))
        prior = data.draw(priors(3))
        less, more = (leakage.posterior_vulnerability.exact(each, prior, gain) for each in (other, channel))
        assert less <= more
    else:
        assert answer.counterexample is not None
        uniform = pg.Prior.uniform(channel.secrets)
        less, more = (
            leakage.posterior_vulnerability.exact(each, uniform, answer.counterexample) for each in (channel, other)
        )
        assert more - less == answer.advantage
        assert more > less


def test_a_remapped_mechanism_refines_exactly() -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2), [5, 1, 0, 2, 9, 1]))
    mechanism = pg.baselines.exponential(problem, 0.5)
    remapped = pg.baselines.remap(mechanism, problem)
    answer = leakage.refinement(mechanism, remapped)
    assert answer.holds
    assert answer.excess == 0
    answer.verify()
    back = leakage.refinement(remapped, mechanism)
    assert not back.holds
    back.verify()


def test_rounding_of_weights_is_tolerated_and_stated() -> None:
    """A cascade that was rounded to weights refines up to the rounding."""
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    channel = channel_of([[2, 1], [1, 2], [1, 1]], problem.space)
    noise = channel_of([[3, 2, 2], [1, 3, 3]], channel.outputs)
    rounded = pg.Mechanism.from_probabilities(problem, leakage.cascade(channel, noise).probabilities)
    answer = leakage.refinement(channel, rounded)
    assert answer.excess is not None
    assert 0 < answer.excess < Fraction(1, 10**15)
    answer.verify()


def test_the_verifier_refuses_what_is_no_proof() -> None:
    channel = channel_of([[3, 1], [1, 3]])
    same = leakage.cascade(channel, channel_of([[3, 1], [1, 3]], channel.outputs))
    holds, fails = leakage.refinement(channel, same), leakage.refinement(same, channel)
    assert (holds.holds, fails.holds) == (True, False)
    identity = channel_of([[1, 0], [0, 1]], channel.outputs)
    flat = leakage.refinement(channel, channel_of([[1, 0], [0, 1]])).counterexample
    wrong = [
        replace(holds, post_processing=identity),
        replace(holds, post_processing=None),
        replace(holds, excess=Fraction(1, 10**6)),
        replace(holds, refined=channel),
        replace(fails, advantage=Fraction(1, 2)),
        replace(fails, advantage=Fraction(0)),
        replace(fails, counterexample=None),
        replace(fails, channel=channel, advantage=Fraction(0)),
        replace(fails, holds=True),
        replace(holds, holds=False),
    ]
    assert flat is not None
    for answer in wrong:
        with pytest.raises(pg.GuaranteeViolated):
            answer.verify()


def test_channels_of_other_secrets_are_refused() -> None:
    with pytest.raises(pg.InvalidProblem, match="different secrets"):
        leakage.refinement(channel_of([[1], [1]]), channel_of([[1], [1]], pg.Categories("ab")))
    channel = channel_of([[1], [1]])
    with pytest.raises(pg.InvalidProblem, match="tolerance"):
        leakage.refinement(channel, channel, tolerance=-1.0)


def test_what_takes_too_long_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_refinement, "MOST_ENTRIES", 10)
    flat, identity = channel_of([[1]] * 4), channel_of(np.eye(4, dtype=int).tolist())
    with pytest.raises(pg.TooLarge, match="has 16 entries"):
        leakage.refinement(flat, identity)
    assert leakage.refinement(identity, flat).holds


def test_qif_agrees() -> None:
    qif = pytest.importorskip("qif", reason="qif is a benchmark-only extra")
    generator = np.random.default_rng(3)
    for number in range(30):
        first = channel_of(generator.integers(1, 9, (3, 3)).tolist())
        other = channel_of(generator.integers(1, 9, (3, 4)).tolist(), None if number % 2 else first.outputs)
        second = other if number % 2 else leakage.cascade(first, other)
        expected = bool(qif.refinement.refined_by(first.probabilities, second.probabilities))
        answer = leakage.refinement(first, second)
        assert answer.holds == expected
        gain = Gain.from_matrix([[1, 0, 0], [0, 1, 1]])
        ours = leakage.posterior_vulnerability(second, pg.Prior.uniform(second.secrets), gain)
        theirs = qif.measure.g_vuln.posterior(
            np.array([[1.0, 0, 0], [0, 1, 1]]), np.full(3, 1 / 3), second.probabilities
        )
        assert ours == pytest.approx(float(theirs), abs=1e-12)

"""The sampler draws each observable with probability weight / 2^bits, exactly."""

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import privacygames as pg
from privacygames.arrays import IntArray
from privacygames.mechanism.sampling import Sampler


class Walk:
    """Stands in for a generator: returns every number below 2^bits once."""

    def integers(self, low: int, high: int, size: int, dtype: object) -> IntArray:
        assert (low, size) == (0, high)
        return np.arange(high, dtype=np.int64)


@pytest.mark.parametrize("bits", [1, 4, 10, 13])
@pytest.mark.parametrize("seed", range(5))
def test_walking_through_all_random_numbers_gives_exactly_the_weights(bits: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    cuts = np.sort(generator.integers(0, 2**bits + 1, (3, 6)), axis=1)
    weights = np.diff(cuts, axis=1, prepend=0, append=2**bits)
    sampler = Sampler(weights, bits, Walk())  # type: ignore[arg-type]
    for row in range(3):
        drawn = sampler.draw(np.full(2**bits, row))
        assert np.bincount(drawn, minlength=7).tolist() == weights[row].tolist()


@pytest.mark.parametrize("bits", [4, 10])
def test_the_operating_system_path_walks_through_all_numbers_too(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the top bits of each word count, each value equally often: no modulo, nothing rejected."""
    words = (np.arange(2**bits) << (16 - bits) | 12345 % 2 ** (16 - bits)).astype(np.uint16)
    monkeypatch.setattr(os, "urandom", lambda size: words.tobytes()[:size])
    weights = np.array([[1, 0, 2, 2**bits - 3]])
    sampler = Sampler(weights, bits)
    sampler.draw_with(np.zeros(100, dtype=np.int64), np.zeros(100, dtype=np.uint64))  # so that there are tables
    drawn = sampler.draw(np.zeros(2**bits, dtype=np.int64))
    assert np.bincount(drawn, minlength=4).tolist() == weights[0].tolist()


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 17, 20, 40, 62]), st.integers(1, 40))
def test_bits_that_are_read_later_complete_the_same_uniform_number(seed: int, bits: int, observables: int) -> None:
    """The output is that of one number made of the leading bits and, where these decide nothing, of the others."""
    generator, reads = np.random.default_rng(seed), list[bytes]()

    def system_bytes(size: int) -> bytes:
        reads.append(generator.bytes(size))
        return reads[-1]

    leads = np.sort(generator.integers(0, 2**16 + 1, (3, observables - 1)), axis=1)  # many draws begin like a border
    cuts = np.sort(np.minimum((leads << (bits - 16)) + generator.integers(0, 2 ** (bits - 16), leads.shape), 2**bits))
    weights = np.diff(cuts, axis=1, prepend=0, append=2**bits)
    secrets = generator.integers(0, 3, 200)
    near = np.concatenate([leads.ravel() % 2**16, generator.integers(0, 2**16, 200)])[:200].astype(np.uint16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda size: near.tobytes() if size == 400 else system_bytes(size))
        drawn = Sampler(weights, bits).draw(secrets)
    uniform, others = near.astype(np.int64) << (bits - 16), 2 ** (bits - 16) - 1
    ends = np.cumsum(weights, axis=1)[secrets]
    undecided = (ends <= uniform[:, None]).sum(axis=1) != (ends <= (uniform + others)[:, None]).sum(axis=1)
    assert undecided.any() == bool(reads)
    if reads:
        size = 2 if bits <= 32 else 8
        words = [int.from_bytes(reads[0][at : at + size], "little") for at in range(0, len(reads[0]), size)]
        uniform[undecided] += [word >> (8 * size - (bits - 16)) for word in words]
    assert drawn.tolist() == (ends <= uniform[:, None]).sum(axis=1).tolist()


def mechanisms() -> list[pg.Mechanism]:
    grid = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)), cost="euclidean")
    ages = pg.Problem(pg.Prior.uniform(pg.Numbers(range(8))), cost="absolute")
    generator = np.random.default_rng(8)
    return [
        pg.design(grid, epsilon=0.7),
        pg.design(ages, distortion=1.5),
        pg.Mechanism.from_probabilities(grid, generator.dirichlet(np.full(12, 0.2), 12)),
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_million_draws_fit_the_weights(number: int) -> None:
    """Chi-square over 1.2 million draws with a fixed seed; fails by chance for one seed in a million."""
    mechanism = mechanisms()[number]
    secrets, observables = mechanism.weights.shape
    draws = 1_200_000 // secrets
    sampler = mechanism.sampler(np.random.default_rng(2026))
    statistic, freedom = 0.0, 0
    for secret in range(secrets):
        counts = np.bincount(sampler.draw(np.full(draws, secret)), minlength=observables)
        expected = mechanism.probabilities[secret] * draws
        assert (counts[mechanism.weights[secret] == 0] == 0).all()
        large = expected >= 5
        statistic += float(((counts[large] - expected[large]) ** 2 / expected[large]).sum())
        if not large.all():
            rest, rest_expected = counts[~large].sum(), expected[~large].sum()
            statistic += float((rest - rest_expected) ** 2 / max(rest_expected, 1e-9)) if rest_expected > 0 else 0.0
        freedom += int(large.sum()) - 1 + int((expected[~large] > 0).any())
    assert statistic < chi2.ppf(1 - 1e-6, freedom)
    assert statistic > chi2.ppf(1e-6, freedom)


def test_draws_from_the_operating_system_fit_roughly() -> None:
    mechanism = mechanisms()[0]
    drawn = mechanism.sampler().draw(np.zeros(100_000, dtype=np.int64))
    shares = np.bincount(drawn, minlength=12) / 100_000
    assert np.abs(shares - mechanism.probabilities[0]).max() < 0.02


def test_the_sampler_says_where_its_randomness_comes_from() -> None:
    mechanism = mechanisms()[0]
    assert mechanism.sampler().randomness == "the operating system"
    seeded = mechanism.sampler(np.random.default_rng(1))
    assert "not private" in seeded.randomness


def test_sample_takes_one_or_many() -> None:
    mechanism = mechanisms()[1]
    assert mechanism.sample(3) in range(8)
    assert mechanism.sample(np.int64(3)) in range(8)  # type: ignore[call-overload]
    first = mechanism.sample([1, 2, 3] * 50, np.random.default_rng(5))
    assert first == mechanism.sample(np.array([1, 2, 3] * 50), np.random.default_rng(5))
    assert len(mechanism.sample([])) == 0
    with pytest.raises(pg.UnknownLabel, match="position 1") as caught:
        mechanism.sample([1, 77])
    assert "77" not in str(caught.value)
    with pytest.raises(pg.UnknownLabel):
        mechanism.sample("3")


def test_positions_of_any_integer_type_and_none_outside() -> None:
    chosen = np.random.default_rng(0).integers(0, 7, 100)
    weights = np.zeros((100, 7), dtype=np.int64)
    weights[np.arange(100), chosen] = 2**62
    for kind in (np.int8, np.uint8, np.int16, np.int64):
        assert (Sampler(weights, 62).draw(np.arange(100, dtype=kind)) == chosen).all()
    for bad in (np.array([-1]), np.array([100]), np.array([0.5])):
        with pytest.raises(pg.UnknownLabel, match="positions of secrets"):
            Sampler(weights, 62).draw(bad)


def test_a_draw_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privacygames.mechanism.sampling.BLOCK", 7)
    weights = np.array([[2**61, 2**61], [0, 2**62]])
    drawn = Sampler(weights, 62).draw(np.ones(20, dtype=np.int64))
    assert drawn.tolist() == [1] * 20


def test_a_generator_does_not_build_the_tables_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Numbers(range(200)))))
    generator = np.random.default_rng(1)
    first = mechanism.sampler(generator)
    second = mechanism.sampler(generator)
    assert first.randomness == second.randomness != mechanism.sampler().randomness
    one = [mechanism.sample(7, np.random.default_rng(5)) for _ in range(3)]
    assert len(set(one)) == 1
    tables: list[tuple[int, ...]] = []
    cumsum = np.cumsum

    def counted(values: IntArray, **options: Any) -> IntArray:
        if np.ndim(values) > 1:
            tables.append(np.shape(values))
        return cumsum(values, **options)

    monkeypatch.setattr(np, "cumsum", counted)
    fresh = pg.baselines.uniform(mechanism.problem)
    for _ in range(300):
        fresh.sample(7, generator)
    assert len(tables) == 1


@pytest.mark.parametrize("positions", [np.array(3), np.array([[1, 2]]), np.array([1.5]), np.array([999]), [-1]])
def test_positions_that_are_none(positions: Any) -> None:
    sampler = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Numbers(range(5))))).sampler()
    with pytest.raises(pg.UnknownLabel, match="whole numbers from 0 to 4"):
        sampler.draw(positions)

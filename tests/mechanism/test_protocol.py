"""The protocol of what can be sampled, implemented from outside the library, through public names only."""

import os
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import privacygames as pg

COINS = pg.Categories(["heads", "tails"])


class Flip:
    """Tells the truth unless two random bits, from two words, are both 1: with probability 3/4."""

    secrets = observables = COINS
    bounds = pg.Bounds(epsilon=log(3.0))
    epsilon_guarantee = pg.EpsilonGuarantee(log(3.0), "per untrue output", "", log(3.0))
    digest = "5" * 64
    per_user = False
    constant = False
    usefulness = None

    @property
    def probabilities(self) -> NDArray[np.float64]:
        return np.array([[0.75, 0.25], [0.25, 0.75]])

    def sample(self, secret: pg.Label) -> pg.Label:
        drawn = self.row_sampler().draw(COINS.indices([secret]), system_words(1))
        return COINS.labels[int(drawn[0])]

    def row_sampler(self, users: Any = None) -> pg.RowSampler:
        assert users is None
        return FlipRows()

    def to_manifest(self) -> dict[str, Any]:
        return {"source": "a test"}


class FlipRows:
    def tweak(self, secrets: NDArray[Any]) -> NDArray[np.int64]:
        return secrets

    def draw(self, secrets: NDArray[Any], random_words: Callable[[int], NDArray[np.uint64]]) -> NDArray[Any]:
        first, second = (random_words(number) >> np.uint64(63) for number in (0, 1))
        return np.asarray(secrets ^ (first & second).astype(np.int64))


class PerUser(Flip):
    """The same for each of two users, and for nobody else."""

    digest = "6" * 64
    per_user = True

    def row_sampler(self, users: Any = None) -> pg.RowSampler:
        if set(users.to_pylist()) - {"ann", "bob"}:
            raise pg.UnknownLabel("somebody is neither of the two users")
        return FlipRows()


class WithDefaults(pg.Sampleable):
    """Inherits whatever has a default."""

    secrets = observables = COINS
    bounds = Flip.bounds
    epsilon_guarantee = Flip.epsilon_guarantee
    digest = "7" * 64

    def row_sampler(self, users: Any = None) -> pg.RowSampler:
        return FlipRows()


def system_words(count: int) -> Callable[[int], NDArray[np.uint64]]:
    return lambda number: np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def frame(count: int = 8000) -> pd.DataFrame:
    coins = np.where(np.arange(count) % 4, "heads", "tails")
    return pd.DataFrame({"coin": coins, "who": np.where(np.arange(count) % 2, "ann", "bob"), "id": np.arange(count)})


def test_its_outputs_are_drawn_by_row_and_by_label() -> None:
    drawn = Flip().row_sampler().draw(np.zeros(20_000, dtype=np.int64), system_words(20_000))
    assert drawn.mean() == pytest.approx(0.25, abs=0.02)
    assert {Flip().sample("heads") for _ in range(100)} == {"heads", "tails"}


def test_a_table_is_released_and_estimated_from() -> None:
    data = frame()
    released, manifest = pg.tables.apply(data, {"coin": Flip()}, user="who")
    assert (released["coin"] == data["coin"]).mean() == pytest.approx(0.75, abs=0.03)
    assert manifest.per_row.epsilons == {"per untrue output": log(3.0)}
    assert manifest.to_dict()["columns"][0]["source"] == "a test"
    assert manifest.to_dict()["columns"][0]["mechanism"] == "5" * 64
    estimated = pg.estimate(Flip(), released["coin"], confidence=1 - 1e-9)["tails"]
    assert estimated.low <= 0.25 <= estimated.high
    assert pg.tables.preview(Flip(), data["coin"]).rows_read == len(data)


def test_the_same_key_draws_the_same_outputs() -> None:
    data, key = frame(200), pg.tables.ReleaseKey()
    once, again = (pg.tables.apply(data, {"coin": Flip()}, key=key, key_columns="id")[0] for _ in range(2))
    assert once.equals(again)


def test_a_mechanism_for_each_user_is_given_the_users() -> None:
    data = frame()
    with pytest.raises(pg.InvalidProblem, match="mechanism for each person"):
        pg.tables.apply(data, {"coin": PerUser()})
    released, _ = pg.tables.apply(data, {"coin": PerUser()}, user="who")
    assert (released["coin"] == data["coin"]).mean() == pytest.approx(0.75, abs=0.03)
    with pytest.raises(pg.UnknownLabel, match="neither of the two"):
        pg.tables.apply(data.assign(who="eve"), {"coin": PerUser()}, user="who")


def test_observations_are_read_from_its_probabilities() -> None:
    track = pg.tracking.Observations.of(Flip(), ["heads", "tails"])
    assert np.exp(track.log_likelihoods) == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))


def test_defaults_are_inherited_and_what_is_missing_is_refused() -> None:
    released, manifest = pg.tables.apply(frame(40), {"coin": WithDefaults()})
    assert len(released) == manifest.rows_out == 40
    with pytest.raises(pg.InvalidProblem, match="needs the mechanism"):
        pg.estimate(WithDefaults(), ["heads"])  # type: ignore[arg-type]  # it has no probabilities
    with pytest.raises(TypeError, match="abstract"):
        type("Incomplete", (pg.Sampleable,), {})()
    for other in (object(), Flip, {"secrets": COINS}):
        with pytest.raises(pg.InvalidProblem, match="needs a Mechanism"):
            pg.tables.Rule(mechanism=other)  # type: ignore[arg-type]


def test_the_librarys_own_mechanisms_have_its_members(tmp_path: Path) -> None:
    problem = pg.Problem(pg.Prior(COINS, [0.5, 0.5]))
    mechanism = pg.baselines.exponential(problem, epsilon=1.0)
    fleet = pg.fleet.design({"ann": problem.prior}, out=tmp_path / "fleet", epsilon=1.0, jobs=1)
    everything: list[pg.Sampleable] = [mechanism, pg.PublicMechanism.of(mechanism), fleet, fleet["ann"]]
    assert [each.per_user for each in everything] == [False, False, True, False]
    assert len({each.digest for each in everything}) == len(everything)
    assert {each.epsilon_guarantee.per for each in everything} == {mechanism.epsilon_guarantee.per}
    assert [each.constant for each in everything] == [False, False, None, False]
    finite: list[pg.FiniteMechanism] = [mechanism, pg.PublicMechanism.of(mechanism)]
    assert np.array_equal(finite[0].probabilities, finite[1].probabilities)

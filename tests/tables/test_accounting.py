"""What a release claims to cost, against what it costs: every answer to every secret, enumerated."""

import json
from itertools import product
from math import inf, log
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privacygames as pg
from privacygames.tables import ReleaseKey, Rule, apply

ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=0.8)
STEPS = pg.Numbers([0, 1, 3], unit="years")
STEP = pg.design(pg.Problem(pg.Prior.uniform(STEPS)), epsilon=0.5)


def largest_exponent_by_hand(mechanisms: list[pg.Mechanism]) -> float:
    """max ln P(all answers | all secrets) / P(all answers | other secrets), one mechanism a draw, by enumeration."""
    joint: Any = np.ones((1, 1))  # (all secrets, all answers): a row of products for each combination of secrets
    for mechanism in mechanisms:
        joint = np.kron(joint, mechanism.probabilities)
    largest = 0.0
    for one in joint:
        for other in joint:
            for p, q in zip(one.tolist(), other.tolist(), strict=True):
                if p > 0:
                    largest = inf if q == 0 else max(largest, log(p / q))
    return largest


def test_epsilon_adds_up_over_a_person_s_rows_and_columns() -> None:
    """Two rows of two columns, all 81 secrets against all others, all answers: the claim is what is reached."""
    data = pd.DataFrame({"who": ["ann", "bob", "ann"], "ill": ["flu", "none", "asthma"], "step": [0, 1, 3]})
    _, manifest = apply(data, {"ill": ILL, "step": STEP}, user="who")
    account = manifest.account
    assert account.rows == 2
    assert account.people == 2
    worst = largest_exponent_by_hand([ILL, ILL, STEP, STEP])
    assert account.per_user_any_pair == pytest.approx(worst, rel=1e-6)
    assert (account.per_user_any_pair or 0.0) >= worst
    assert manifest.epsilon_per_row == pytest.approx(0.8 + 0.5, rel=1e-6)
    assert manifest.epsilon_per_user == pytest.approx(2 * (0.8 + 0.5), rel=1e-6)


def test_the_metric_claim_holds_for_every_pair_of_histories() -> None:
    """ln ratio ≤ Σ ε·d over the rows, for all histories of two rows."""
    distance, table = STEPS.distance("absolute"), STEP.probabilities
    for one in product(range(3), repeat=2):
        for other in product(range(3), repeat=2):
            allowed = sum(0.5 * distance[s, t] for s, t in zip(one, other, strict=True))
            for answers in product(range(3), repeat=2):
                p = np.prod([table[s, o] for s, o in zip(one, answers, strict=True)])
                q = np.prod([table[t, o] for t, o in zip(other, answers, strict=True)])
                assert p <= np.exp(allowed) * q * (1 + 1e-9)


def test_distortion_is_claimed_for_a_single_answer_only() -> None:
    """Somebody's two columns may tell of each other, as two of her rows may."""
    data = pd.DataFrame({"who": ["ann", "bob"], "a": ["flu", "none"], "b": ["flu", "none"]})
    one, two = (apply(data, rules, user="who")[1].account.claims() for rules in ({"a": ILL}, {"a": ILL, "b": ILL}))
    assert not any("Distortion privacy" in claim for claim in one)
    assert any("Distortion privacy" in claim for claim in two)


def test_nothing_is_claimed_of_people_nobody_named() -> None:
    _, manifest = apply(pd.DataFrame({"ill": ["flu", "none"]}), {"ill": ILL})
    assert manifest.epsilon_per_user is None
    said = manifest.to_dict()["epsilon"]
    assert said["per_user"] is None
    assert any("nothing is claimed of people" in claim for claim in said["claims"])


def test_threshold_and_distortion_promises_are_told_as_what_they_are() -> None:
    within = pg.design(pg.Problem(pg.Prior.uniform(STEPS)), epsilon=0.5, within=1.0)
    plain = pg.design(pg.Problem(pg.Prior.uniform(STEPS)), distortion=0.2)
    data = pd.DataFrame({"a": [0, 1], "b": [1, 3]})
    _, manifest = apply(data, {"a": within, "b": plain})
    one, other = manifest.to_dict()["epsilon"]["per_row"]["columns"]
    assert "at most 1 years apart" in one["form"]
    assert other["epsilon"] == "inf"
    assert "no differential privacy" in other["form"]
    assert manifest.epsilon_per_row == inf
    json.dumps(manifest.to_dict(), allow_nan=False)
    with pytest.raises(pg.InvalidProblem, match="ε = inf"):
        apply(data, {"b": plain}, epsilon_limit=100.0)


def test_a_limit_is_checked_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.tables.kernel import Kernel

    def never(*_: Any) -> None:
        raise AssertionError("something was drawn")

    data = pd.DataFrame({"who": ["ann"] * 5, "ill": ["flu"] * 5})
    monkeypatch.setattr(Kernel, "answer", never)
    with pytest.raises(pg.InvalidProblem, match=r"has 5, ε = 4 over all columns, above the limit of 3.9"):
        apply(data, {"ill": ILL}, user="who", epsilon_limit=3.9)
    for wrong in (0, -1.0, "2", True, inf):
        with pytest.raises(pg.InvalidProblem, match="must be a positive number"):
            apply(data, {"ill": ILL}, epsilon_limit=wrong)  # type: ignore[arg-type]
    monkeypatch.undo()
    _, manifest = apply(data, {"ill": ILL}, user="who", epsilon_limit=4.1)
    assert manifest.epsilon_per_user == pytest.approx(4.0, rel=1e-6)


def test_a_repeated_secret_is_drawn_once_for_each_person() -> None:
    rows = 3000
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"who": rng.integers(0, 40, rows), "ill": rng.choice(["asthma", "flu", "none"], rows)})
    released, manifest = apply(data, {"ill": ILL}, user="who", repeat="same")
    answers = data.assign(answer=released["ill"]).groupby(["who", "ill"])["answer"].nunique()
    assert (answers == 1).all()
    kept = (released["ill"] == data["ill"]).groupby([data["who"], data["ill"]]).first().mean()
    assert 0.2 < kept < 0.8  # each person's secrets are drawn for themselves
    assert manifest.epsilon_per_user == pytest.approx(3 * 0.8, rel=1e-6)  # three secrets, however many rows
    assert any("distinct secrets add up" in claim for claim in manifest.to_dict()["epsilon"]["claims"])


def test_a_repeated_release_is_what_its_claim_says_by_enumeration() -> None:
    """Given which rows share a secret, one draw for each distinct secret; and the pattern itself does show."""
    table = ILL.probabilities
    same, different = {}, {}
    for answers in product(range(3), repeat=2):
        same[answers] = table[0, answers[0]] * (answers[0] == answers[1])  # secrets (0, 0): one draw
        different[answers] = table[0, answers[0]] * table[1, answers[1]]  # secrets (0, 1): two
    assert any(same[answers] == 0 and different[answers] > 0 for answers in same)  # no ε covers this: the claim says so
    two = largest_exponent_by_hand([ILL, ILL])
    data = pa.table({"who": ["ann"] * 4, "ill": ["flu", "none", "flu", "none"]})
    _, manifest = apply(data, {"ill": ILL}, user="who", repeat="same")
    assert manifest.account.per_user_any_pair is not None
    assert manifest.account.per_user_any_pair >= two


def test_two_rows_with_one_identity_and_two_secrets_are_drawn_independently() -> None:
    """The secret is part of what the bits depend on: no coupling of answers, even where keys are not what they seem."""
    many = 40_000
    key, rule = ReleaseKey(), {"ill": ILL}
    one, _ = apply(pa.table({"ill": ["flu"] * many}), rule, key=key)
    other, _ = apply(pa.table({"ill": ["none"] * many}), rule, key=key)
    truthful = [np.array(each["ill"].to_pylist()) == what for each, what in ((one, "flu"), (other, "none"))]
    assert abs(float(np.corrcoef(*truthful)[0, 1])) < 0.03  # six standard deviations


def test_another_mechanism_draws_other_bits() -> None:
    other = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=0.8000001)
    many, key = 40_000, ReleaseKey()
    made = [apply(pa.table({"ill": ["flu"] * many}), {"ill": each}, key=key)[0] for each in (ILL, other)]
    truthful = [np.array(each["ill"].to_pylist()) == "flu" for each in made]
    assert abs(float(np.corrcoef(*truthful)[0, 1])) < 0.03


def test_the_manifest_says_what_an_auditor_needs_and_nothing_secret(tmp_path: Any) -> None:
    key = ReleaseKey()
    data = pd.DataFrame({"who": ["Xanthippe", "Zbigniew"], "ill": ["flu", "flu"]})
    _, manifest = apply(data, {"ill": Rule(mechanism=ILL, original="drop")}, key=key, user="who")
    manifest.write(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    said = json.loads(text)
    column = said["columns"][0]
    assert column["mechanism"] == ILL.digest
    assert column["certificate"]["largest_ratio"] <= 1
    assert column["became"] == ["ill_released"]
    assert set(said["versions"]) == {"privacygames", "numpy", "pyarrow", "cryptography"}
    for secret in (
        "Xanthippe",
        "Zbigniew",
        "flu",
        key.derive("x").hex(),
        key.check_value(),
        ILL.certificate.hashes.prior,
    ):
        assert secret not in text


def test_answers_that_say_nothing_are_warned_of() -> None:
    nothing = pg.baselines.constant(pg.Problem(pg.Prior.uniform(ILLS)))
    skewed = pg.design(pg.Problem(pg.Prior.from_counts(ILLS, [98, 1, 1])), epsilon=1.0)
    data = pd.DataFrame({"a": ["flu"], "b": ["flu"]})
    sure = pg.Prior.from_counts(ILLS, [98, 1, 1])
    for told in (nothing, pg.PublicMechanism.of(pg.design(pg.Problem(sure), epsilon=0.1))):
        _, manifest = apply(data, {"a": told, "b": skewed})
        assert "a: the answers do not depend on the secret at all: they tell nobody anything." in manifest.warnings
    assert any(warning.startswith("b: ") for warning in manifest.warnings)

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
SECRET = bytes(range(32))
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=0.8)
PER_ILL = "per unit of the hamming distance"
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
    assert account.per_user is not None
    assert account.per_user.any_pair == pytest.approx(worst, rel=1e-6)
    assert account.per_user.any_pair >= worst
    assert manifest.per_row.epsilons == pytest.approx({PER_ILL: 0.8, "per year": 0.5}, rel=1e-6)
    assert account.per_user.epsilons == pytest.approx({PER_ILL: 1.6, "per year": 1.0}, rel=1e-6)


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
    assert manifest.per_user is None
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
    assert inf in manifest.per_row.epsilons.values()
    json.dumps(manifest.to_dict(), allow_nan=False)
    with pytest.raises(pg.InvalidProblem, match="ε = inf per year"):
        apply(data, {"b": plain}, per_unit_limit=100.0)


def test_a_limit_is_checked_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.tables.kernel import Kernel

    def never(*_: Any) -> None:
        raise AssertionError("something was drawn")

    data = pd.DataFrame({"who": ["ann"] * 5, "ill": ["flu"] * 5})
    monkeypatch.setattr(Kernel, "draw", never)
    with pytest.raises(pg.InvalidProblem, match=r"has 5, 4 between any two secrets, above any_pair_limit=3.9"):
        apply(data, {"ill": ILL}, user="who", any_pair_limit=3.9)
    with pytest.raises(pg.InvalidProblem, match=r"has 5, ε = 4 per unit of the hamming.* above per_unit_limit=3.9"):
        apply(data, {"ill": ILL}, user="who", per_unit_limit=3.9)
    for wrong in (0, -1.0, "2", True, inf):
        for limit in ("any_pair_limit", "per_unit_limit"):
            with pytest.raises(pg.InvalidProblem, match=f"{limit} is .*must be a positive number"):
                apply(data, {"ill": ILL}, **{limit: wrong})  # type: ignore[arg-type]
    monkeypatch.undo()
    _, manifest = apply(data, {"ill": ILL}, user="who", any_pair_limit=4.1, per_unit_limit=4.1)
    assert manifest.per_user is not None
    assert manifest.per_user.epsilons == pytest.approx({PER_ILL: 4.0}, rel=1e-6)


CITY = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
PLACE = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(CITY)), epsilon=0.7)
AGES = pg.Numbers(range(18, 91), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.2)
MIXED = pd.DataFrame(
    {"who": ["ann", "ann", "bob"], "age": [18, 90, 40], "ill": ["flu", "none", "flu"], "cell": "cell-1"}
)
COLUMNS = {"age": AGE, "cell": PLACE, "ill": ILL}


def test_numbers_of_different_units_are_said_with_them_and_never_added() -> None:
    """0.2 per year lets any two ages differ by an exponent of 14.4: both are said, and only the latter add up."""
    _, manifest = apply(MIXED, COLUMNS, user="who")
    assert set(manifest.per_row.epsilons) == {"per year", "per km", PER_ILL}
    assert manifest.per_row.epsilons["per year"] == pytest.approx(0.2, rel=1e-6)
    largest = [largest_exponent_by_hand([each]) for each in COLUMNS.values()]
    assert largest[0] == pytest.approx(0.2 * 72, rel=1e-2)
    assert manifest.per_row.any_pair == pytest.approx(sum(largest), rel=1e-6)
    assert manifest.per_user is not None
    assert manifest.per_user.any_pair == pytest.approx(2 * sum(largest), rel=1e-6)
    said = manifest.to_dict()["epsilon"]
    assert [each["form"] for each in said["per_row"]["columns"]] == ["per year", "per km", PER_ILL]
    assert {each["counted"] for each in said["per_user"]["epsilon"]} == {"per year", "per km", PER_ILL}
    for text in (str(manifest), str(manifest.per_row)):
        assert "per year" in text
        assert "per km" in text
        assert "between any two secrets" in text
    ages, places = apply(MIXED.assign(other=[20, 30, 40]), {"age": AGE, "other": AGE})[1].per_row, manifest.per_row
    assert ages.epsilons == pytest.approx({"per year": 0.4}, rel=1e-6)  # of one unit, they do add up
    assert places.epsilons["per km"] <= 0.7 * (1 + 1e-6)


def test_limits_say_which_they_limit() -> None:
    with pytest.raises(pg.InvalidProblem, match=r"epsilon_limit does not say.*any_pair_limit.*per_unit_limit"):
        apply(MIXED, COLUMNS, epsilon_limit=3.0)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match=r"counts .*'per year'.* one number cannot limit them all"):
        apply(MIXED, COLUMNS, per_unit_limit=3.0)
    with pytest.raises(pg.InvalidProblem, match=r"names 'per mile', but ε of this release counts 'per year'"):
        apply(MIXED, COLUMNS, per_unit_limit={"per mile": 3.0})
    with pytest.raises(pg.InvalidProblem, match=r"ε = 0.4 per year, above per_unit_limit=0.3"):
        apply(MIXED, COLUMNS, user="who", per_unit_limit={"per year": 0.3, "per km": 9.0})
    with pytest.raises(pg.InvalidProblem, match=r"a row 1[4-9][.\d]* between any two secrets, above any_pair_limit=10"):
        apply(MIXED, COLUMNS, any_pair_limit=10.0)
    apply(MIXED, COLUMNS, user="who", per_unit_limit={"per year": 0.5}, any_pair_limit=100.0)


def test_a_repeated_secret_is_drawn_once_for_each_person() -> None:
    rows = 3000
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"who": rng.integers(0, 40, rows), "ill": rng.choice(["asthma", "flu", "none"], rows)})
    released, manifest = apply(data, {"ill": ILL}, user="who", repeat="same")
    answers = data.assign(answer=released["ill"]).groupby(["who", "ill"])["answer"].nunique()
    assert (answers == 1).all()
    kept = (released["ill"] == data["ill"]).groupby([data["who"], data["ill"]]).first().mean()
    assert 0.2 < kept < 0.8  # each person's secrets are drawn for themselves
    assert manifest.per_user is not None
    assert manifest.per_user.epsilons == pytest.approx({PER_ILL: 3 * 0.8}, rel=1e-6)  # three secrets, however many rows
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
    assert manifest.per_user is not None
    assert manifest.per_user.any_pair >= two


def test_two_rows_with_one_identity_and_two_secrets_are_drawn_independently() -> None:
    """The secret is part of what the bits depend on: no coupling of answers, even where keys are not what they seem."""
    many = 40_000
    one, other = (
        apply(
            pa.table({"ill": [ill] * many, "id": range(many)}), {"ill": ILL}, key=ReleaseKey(SECRET), key_columns="id"
        )[0]
        for ill in ("flu", "none")  # two objects with one key: neither knows what the other was used for
    )
    truthful = [np.array(each["ill"].to_pylist()) == what for each, what in ((one, "flu"), (other, "none"))]
    assert abs(float(np.corrcoef(*truthful)[0, 1])) < 0.03  # six standard deviations


def test_another_mechanism_draws_other_bits() -> None:
    other = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=0.8000001)
    data = pa.table({"ill": ["flu"] * 40_000, "id": range(40_000)})
    made = [apply(data, {"ill": each}, key=ReleaseKey(SECRET), key_columns="id")[0] for each in (ILL, other)]
    truthful = [np.array(each["ill"].to_pylist()) == "flu" for each in made]
    assert abs(float(np.corrcoef(*truthful)[0, 1])) < 0.03


def test_the_manifest_says_what_an_auditor_needs_and_nothing_secret(tmp_path: Any) -> None:
    key = ReleaseKey()
    data = pd.DataFrame({"who": ["Xanthippe", "Zbigniew"], "ill": ["flu", "flu"]})
    _, manifest = apply(data, {"ill": Rule(mechanism=ILL, original="drop")}, key=key, user="who", key_columns="who")
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
        assert "a: the outputs do not depend on the secret at all: they tell nobody anything." in manifest.warnings
    assert any(warning.startswith("b: ") for warning in manifest.warnings)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_rows_that_name_nobody_are_not_one_person(kind: pa.DataType) -> None:
    """Null, NaN and empty users are refused with the numbers of their rows, which are charged to nobody."""
    floating = pa.types.is_floating(kind)
    names: list[Any] = [1.0, float("nan"), 2.0, None] if floating else ["ann", "", "bob", None]
    data = pa.table({"who": pa.array(names).cast(kind), "ill": ["flu", "none", "asthma", "flu"]})
    with pytest.raises(pg.InvalidProblem, match=r"user column 'who' is empty in 2 rows .* from 0: 1, 3"):
        apply(data, {"ill": ILL}, user="who")
    known = data.take([0, 2])
    assert apply(known, {"ill": ILL}, user="who")[1].account.people == 2


def test_a_fleet_answers_no_row_that_names_nobody(tmp_path: Any) -> None:
    priors = {name: pg.Prior.uniform(ILLS) for name in ("nan", "None", "ann")}
    fleet = pg.fleet.design(priors, out=tmp_path / "fleet", epsilon=0.8, default="pooled", jobs=1)
    for names in (
        pa.array(["ann", None]),
        pa.array([1.0, float("nan")]),
        pa.array(["ann", ""]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["ann", None])),
    ):
        for unknown in ("refuse", "default"):
            opened = pg.fleet.Fleet(fleet.folder, unknown=unknown)
            with pytest.raises(pg.UnknownLabel, match="is empty in 1 rows"):
                opened.row_sampler(names)

"""Findings are typed: each has a kind, a severity, its numbers with units, and one sentence."""

import json
from math import inf

import numpy as np
import pytest

import privacygames as pg
from privacygames.analysis import Finding, Quantity, Severity
from privacygames.analysis.findings import (
    LIMITATIONS,
    AdversaryError,
    BestGuess,
    ConstantOutputs,
    Limitation,
    OddsBound,
    OptimalityGap,
    UnservedSecrets,
)
from privacygames.immutable import to_json_value
from privacygames.presentation import limitations


@pytest.mark.parametrize(
    ("finding", "sentence"),
    [
        (
            BestGuess(Quantity(0.5, "km"), 0.75, "euclidean"),
            "is off by 0.5 km on average; their likeliest guess is exact in 75 % of cases.",
        ),
        (BestGuess(Quantity(0.5, "share"), 0.5, "hamming", after_output=False), "wrong in 50 % of cases."),
        (
            OddsBound(1.0, "1 km", inf),
            "1 km apart by more than a factor of 2.72; between some secrets nothing limits it.",
        ),
        (
            AdversaryError("home", Quantity(0.2, "share"), Quantity(0.1, "share"), Quantity(0.4, "share")),
            "Against “home” the best guesses after an output are wrong in 20 % of cases (10 % is guaranteed), 50 % of "
            "the error without an output.",
        ),
        (
            AdversaryError("side", Quantity(2.0, "km"), None, Quantity(0.0, "km")),
            "Against “side” the best guesses after an output err by 2 km.",
        ),
        (
            UnservedSecrets(9, 7, ("a", "b"), 0.25),
            "7 never get their best output (a, b and 5 more: 25 % of the prior).",
        ),
        (OptimalityGap(0.031, maximises_error=False), "the cost may be 3.1% above the least possible."),
        (OptimalityGap(0.031, maximises_error=True), "the adversary's error may be 3.1% below the most possible."),
    ],
)
def test_each_finding_has_a_sentence_and_plain_values(finding: Finding, sentence: str) -> None:
    assert str(finding).endswith(sentence)
    values = json.loads(json.dumps(to_json_value(finding.to_dict())))
    assert (values["kind"], values["severity"], values["text"]) == (finding.kind, finding.severity, str(finding))


def test_warnings_come_first_and_printing_joins_the_sentences() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    mechanism = pg.Mechanism.from_probabilities(problem, np.full((3, 3), 1 / 3))
    explanation = pg.explain(pg.evaluate(mechanism, problem), problem)
    assert isinstance(explanation[0], ConstantOutputs)
    assert [finding.severity for finding in explanation] == [Severity.DANGER] + 3 * [Severity.INFORMATION]
    assert str(explanation) == " ".join(str(finding) for finding in explanation)


def test_an_adversary_errs_in_the_unit_of_their_own_errors() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(3, 1)), cost="hamming")
    side = pg.Adversary.of_attribute("side", given=[[1, 0], [1, 0], [0, 1]], guesses=pg.Categories(["west", "east"]))
    mine = pg.Adversary("believes otherwise", prior=pg.Prior(problem.space, [0.2, 0.2, 0.6]))
    mechanism = pg.design(problem, epsilon=1.0)
    report = pg.evaluate(mechanism, problem, adversaries=[side, mine])
    units = [
        finding.realised.unit
        for finding in pg.explain(report, problem, adversaries=[side, mine])
        if isinstance(finding, AdversaryError)
    ]
    assert units == ["share", "km"]
    assert all(
        finding.realised.unit == "" for finding in pg.explain(report, problem) if isinstance(finding, AdversaryError)
    )


@pytest.mark.parametrize(
    ("bounds", "about"),
    [
        ({"epsilon": 1.0}, ["single_output", "no_error"]),
        ({"distortion": 1.0}, ["single_output", "no_epsilon", "average_error"]),
        ({"cost_at_most": 1.0, "epsilon": 1.0}, ["single_output", "average_error"]),
    ],
)
def test_limitations_are_of_what_is_not_guaranteed(bounds: dict[str, float], about: list[str]) -> None:
    found = limitations(pg.Bounds(**bounds))  # type: ignore[arg-type]
    assert [finding.about for finding in found if isinstance(finding, Limitation)] == about
    assert [str(finding) for finding in found] == [LIMITATIONS[each] for each in about]


def test_epsilon_of_a_grid_is_between_cells() -> None:
    town = pg.Grid(2, 2)
    (_, between, _) = limitations(pg.Bounds(epsilon=1.0), town)
    assert str(between) == LIMITATIONS["cells"]
    assert LIMITATIONS["cells"] not in map(str, limitations(pg.Bounds(distortion=0.1), town))
    assert LIMITATIONS["cells"] not in map(str, limitations(pg.Bounds(epsilon=1.0), pg.Numbers([1, 2])))

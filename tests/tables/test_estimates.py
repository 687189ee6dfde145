"""What a recipient can still find: unbiased to the last digit, likeliest by proof, and honest intervals."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import privacygames as pg
from privacygames.tables import preview, preview_file
from privacygames.tables.estimates import left_inverse

AGES = pg.Numbers(range(20, 28), unit="years")
PROBLEM = pg.Problem(pg.Prior.uniform(AGES))
RESPONSE = pg.baselines.randomised_response(PROBLEM, epsilon=2.0)
TRUTH = np.array([0.3, 0.0, 0.05, 0.1, 0.25, 0.1, 0.15, 0.05])


def seen(mechanism: pg.Mechanism, answers: int, generator: np.random.Generator, truth: Any = TRUTH) -> dict[Any, float]:
    """Answers to so many secrets of that distribution, counted."""
    counts = generator.multinomial(answers, truth @ mechanism.probabilities)
    return dict(zip(mechanism.observables.labels, counts.tolist(), strict=True))


def test_two_secrets_by_hand() -> None:
    """Randomised response over two: f = (c − q)/(p − q), with its standard error given the table: √(pq/n)/(p − q)."""
    ills = pg.Categories(["no", "yes"])
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ills)), epsilon=1.0)
    p, q = mechanism.probabilities[1, 1], mechanism.probabilities[0, 1]
    found = pg.estimate(mechanism, {"no": 600, "yes": 400}, method="unbiased")
    assert found["yes"].value == pytest.approx((0.4 - q) / (p - q), rel=1e-9)
    error = np.sqrt(p * q / 1000) / (p - q)
    assert (found["yes"].high - found["yes"].low) / 2 == pytest.approx(1.96 * error, rel=1e-2)
    likeliest = pg.estimate(mechanism, {"no": 600, "yes": 400})
    assert likeliest["yes"].value == pytest.approx(found["yes"].value, abs=1e-3)  # inside, both are the same
    edge = pg.estimate(mechanism, {"no": 900, "yes": 100})
    assert edge["yes"].value == pytest.approx(0.0, abs=1e-6)
    assert pg.estimate(mechanism, {"no": 900, "yes": 100}, method="unbiased")["yes"].value < 0


@pytest.mark.parametrize("observables", [None, "intervals"])
def test_unbiased_means_the_inverse_is_one(observables: str | None) -> None:
    mechanism = RESPONSE
    if observables:  # more observables than secrets
        every = pg.Subsets.all(AGES, at_most=2)
        table = np.random.default_rng(0).dirichlet(np.ones(len(every)), len(AGES))
        mechanism = pg.Mechanism.from_probabilities(pg.Problem(pg.Prior.uniform(AGES), observables=every), table)
    inverse = left_inverse(mechanism.probabilities)
    assert inverse is not None
    assert np.allclose(inverse @ mechanism.probabilities.T, np.eye(len(AGES)), atol=1e-9)


def test_the_likeliest_is_what_another_optimiser_finds() -> None:
    counts = seen(RESPONSE, 500, np.random.default_rng(4))
    shares = np.array(list(counts.values())) / 500
    found = pg.estimate(RESPONSE, counts)

    def loss(frequencies: Any) -> float:
        return -float(shares @ np.log(frequencies @ RESPONSE.probabilities))

    solved = minimize(
        loss,
        np.full(8, 1 / 8),
        method="SLSQP",
        bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda frequencies: frequencies.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert loss(found.frequencies) <= solved.fun + 2e-7
    assert found.frequencies.min() >= 0
    assert found.frequencies.sum() == pytest.approx(1.0)


RELEASES = 400
SURELY = 5.5 * np.sqrt(0.95 * 0.05 / RELEASES)
"""Further from 0.95 than this, a coverage of 0.95 comes once in some ten million runs."""


@pytest.mark.parametrize(("method", "epsilon"), [("unbiased", 5.0), ("likelihood", 4.0)])
def test_intervals_hold_the_table_s_own_numbers_as_often_as_they_say(method: Any, epsilon: float) -> None:
    """One table, released many times: 95 % intervals for its mean and frequencies hold them 95 % of the time.

    Intervals that also allowed for sampling the table from a population would nearly always hold them.
    """
    generator = np.random.default_rng(7)
    mechanism = pg.baselines.randomised_response(PROBLEM, epsilon=epsilon)
    rows = (TRUTH * 2000).round().astype(int)
    held, medians = np.zeros(3), []
    for number in range(RELEASES):
        pairs = zip(rows, mechanism.probabilities, strict=True)
        counts = sum(generator.multinomial(count, row / row.sum()) for count, row in pairs)
        labelled = dict(zip(mechanism.observables.labels, np.asarray(counts).tolist(), strict=True))
        found = pg.estimate(mechanism, labelled, method=method)
        mean, some, one = found.mean(), found.total([20, 24]), found[26]
        held += [
            mean.low <= float(TRUTH @ AGES.values) <= mean.high,
            some.low <= 0.55 <= some.high,
            one.low <= 0.15 <= one.high,
        ]
        if number % 10 == 0:
            median = found.quantile(0.5)
            medians.append(median.low <= 24 <= median.high)
    assert (np.abs(held / RELEASES - 0.95) < SURELY).all()
    assert (held < RELEASES).all()  # all of them: once in 800 million runs
    assert np.mean(medians) > 0.95 - SURELY * np.sqrt(10)  # numbers are far apart: wider than it need be


def test_intervals_of_certain_answers_have_hardly_any_width() -> None:
    """A mechanism that tells the truth leaves nothing to estimate, however few the rows are."""
    mechanism = pg.baselines.identity(PROBLEM)
    found = pg.estimate(mechanism, {20: 3, 25: 7})
    assert found[20].low == pytest.approx(0.3, abs=1e-6)
    assert found[20].high == pytest.approx(0.3, abs=1e-6)
    assert found.identifiable


def test_a_matrix_that_is_nearly_singular_determines_nothing() -> None:
    """Singular values in a ratio of 10⁻¹²; and less extreme ones, with too few answers for them."""
    space = pg.Categories("ab")

    def of(apart: float) -> pg.Mechanism:
        table = np.array([[0.5, 0.5 - 2 * apart, 2 * apart], [0.5, 0.5 - apart, apart]])
        problem = pg.Problem(pg.Prior.uniform(space), np.zeros((3, 2)), observables=pg.Categories("xyz"))
        return pg.Mechanism.from_probabilities(problem, table)

    counts = {"x": 5000, "y": 5000}
    for apart in (1e-12, 1e-7):
        found = pg.estimate(of(apart), counts)
        assert not found.identifiable
        assert found["a"].low == pytest.approx(0.0, abs=1e-9)
        assert found["a"].high == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(pg.InvalidProblem, match="no estimate is unbiased"):
        pg.estimate(of(1e-12), counts, method="unbiased")
    assert not pg.estimate(of(1e-7), counts, method="unbiased").identifiable
    assert pg.estimate(of(0.1), counts).identifiable
    few, many = (pg.estimate(of(1e-3), {"x": times, "y": times}) for times in (100, 1_000_000))
    assert not few.identifiable
    assert many.identifiable


def test_where_answers_do_not_tell_the_intervals_do() -> None:
    """Two secrets with one row: their sum is known, neither of them is."""
    table = np.array([[0.8, 0.2], [0.8, 0.2], [0.1, 0.9]])
    space = pg.Categories("abc")
    problem = pg.Problem(pg.Prior.uniform(space), np.zeros((2, 3)), observables=pg.Categories("xy"))
    mechanism = pg.Mechanism.from_probabilities(problem, table)
    counts = {"x": 4500, "y": 5500}  # 0.45 = 0.8·(a+b) + 0.1·c: a + b is one half
    with pytest.raises(pg.InvalidProblem, match="no estimate is unbiased"):
        pg.estimate(mechanism, counts, method="unbiased")
    found = pg.estimate(mechanism, counts)
    assert not found.identifiable
    assert found.total("ab").value == pytest.approx(0.5, abs=1e-3)
    assert found.total("ab").high - found.total("ab").low < 0.06
    assert found["a"].low == pytest.approx(0.0, abs=1e-9)
    assert found["a"].high > 0.49


def test_what_estimates_take() -> None:
    answers = RESPONSE.sample([20] * 50 + [25] * 50)
    as_column = pg.estimate(RESPONSE, pd.Series(answers, name="age").tolist())
    assert as_column.sample_size == 100
    public = pg.estimate(pg.PublicMechanism.of(RESPONSE), answers)
    assert np.array_equal(public.frequencies, as_column.frequencies)
    assert as_column.average(AGES.values).value == pytest.approx(as_column.mean().value)
    assert "20" in str(as_column.quantile(0.01).value)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((RESPONSE, []), {}, "no outputs"),
        ((RESPONSE, [99]), {}, "not one of"),
        ((RESPONSE, [20]), {"method": "guess"}, "method is 'guess'"),
        ((RESPONSE, [20]), {"confidence": 95}, "between 0 and 1"),
        (("mechanism", [20]), {}, "needs the mechanism"),
        ((pg.baselines.constant(PROBLEM), [27]), {}, "never draws some of the outputs"),
    ],
)
def test_wrong_questions_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.estimate(*arguments, **options)


def test_means_are_for_numbers() -> None:
    ills = pg.Categories(["no", "yes"])
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ills)), epsilon=1.0)
    found = pg.estimate(mechanism, ["no", "yes"])
    with pytest.raises(pg.InvalidProblem, match="Numbers have a mean"):
        found.mean()
    with pytest.raises(pg.InvalidProblem, match="share between 0 and 1"):
        pg.estimate(RESPONSE, [20]).quantile(50)
    with pytest.raises(pg.InvalidProblem, match="one finite number for each"):
        found.average([1.0])


def test_a_preview_tells_what_real_releases_then_show(tmp_path: Any) -> None:
    rows = 4000
    generator = np.random.default_rng(3)
    values = generator.choice(AGES.values, rows, p=TRUTH).astype(int)
    told = preview(RESPONSE, values)
    mean = next(each for each in told.statistics if each.statistic == "mean")
    errors, shifts = [], []
    for _ in range(200):
        answers = RESPONSE.sample(values.tolist())
        errors.append(pg.estimate(RESPONSE, answers).mean().value - values.mean())
        shifts.append(float(np.mean(answers)) - values.mean())
    assert mean.truth == pytest.approx(values.mean())
    assert mean.estimated_error == pytest.approx(
        float(np.sqrt(np.mean(np.square(errors)))), rel=0.6
    )  # five standard errors
    assert mean.released_error == pytest.approx(float(np.sqrt(np.mean(np.square(shifts)))), rel=0.2)
    assert abs((mean.estimated or 0.0) - mean.truth) < abs((mean.released or 0.0) - mean.truth)
    pd.DataFrame({"age": values}).to_csv(tmp_path / "ages.csv", index=False)
    (from_file,) = preview_file(tmp_path / "ages.csv", {"age": RESPONSE})
    assert from_file.rows_read == rows
    assert "50% quantile" in str(from_file)


def test_a_preview_of_files_reads_what_a_release_would(tmp_path: Any) -> None:
    pd.DataFrame({"age": [20, 21, 22]}).to_csv(tmp_path / "ages.csv", index=False)
    pd.DataFrame({"age": [20, 99, None]}).to_csv(tmp_path / "more.csv", index=False)
    for name in ("_old.csv", ".hidden.csv"):
        pd.DataFrame({"age": [20] * 50}).to_csv(tmp_path / name, index=False)
    (told,) = preview_file(tmp_path, {"age": RESPONSE})
    assert (told.rows_read, told.rows_left_out) == (4, 2)
    assert "4 rows (2 more hold no secret)" in told.title
    with pytest.raises(pg.InvalidProblem, match="no file or folder"):
        preview_file(tmp_path / "none.csv", {"age": RESPONSE})
    with pytest.raises(pg.InvalidProblem, match="no column 'years'"):
        preview_file(tmp_path, {"years": RESPONSE})


def test_a_preview_of_answers_that_do_not_determine_frequencies() -> None:
    intervals = pg.design(
        pg.Problem(pg.Prior.uniform(AGES), cost="absolute", observables=AGES.intervals(4)), epsilon=1.0
    )
    told = preview(intervals, [20] * 300 + [27] * 300)
    mean = told.statistics[0]
    assert mean.released is not None
    assert abs(mean.truth - 23.5) < 1e-9

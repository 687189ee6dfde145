"""Several adversaries at once: against a program written out here, by hand, and by what must always hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import privacygames as pg
from privacygames.arrays import FloatArray
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals
from privacygames.mechanism import binary_container, certify
from support import geolife

PLAIN = pg.Adversary("plain")
WRONG: Any = 7
SOLVERS: dict[str, pg.Solver] = {"highs": pg.Highs(), "blocks": pg.Interior()}


def written_out(problem: pg.Problem, bounds: pg.Bounds) -> float | None:
    """The optimum, by SciPy on the program as docs/theory/adversaries.md states it; None where nothing is feasible.

    Row by row, entry by entry, from the definitions: nothing of the library but the numbers.
    """
    (n, m), prior, cost = problem.shape, problem.prior.probabilities, problem.cost
    crowd = [(each.adversary, each.distortion) for each in bounds.distortion]
    tables = [
        (
            (prior if who.prior is None else who.prior.probabilities),
            (problem.distance if who.errors is None else who.errors),
        )
        for who, _ in crowd
    ]
    p = np.arange(n * m).reshape(n, m)
    x = n * m + np.arange(len(crowd) * m).reshape(len(crowd), m)
    y = n * m + len(crowd) * m
    size = y + 1
    below: list[FloatArray] = []
    limits: list[float] = []

    def at_most(terms: list[tuple[int, float]], limit: float) -> None:
        row = np.zeros(size)
        for place, value in terms:
            row[place] += value
        below.append(row)
        limits.append(limit)

    for k, (belief, errors) in enumerate(tables):
        for o in range(m):
            for g in range(len(errors)):
                at_most([(x[k, o], 1.0), *((p[s, o], -belief[s] * errors[g, s]) for s in range(n))], 0.0)
        least = crowd[k][1]
        if least is not None:
            at_most([(x[k, o], -1.0) for o in range(m)], -least)
    if bounds.epsilon is not None:
        for s in range(n):
            for z in range(n):
                apart = problem.distinguishability[s, z]
                if s != z and (bounds.within is None or apart <= bounds.within):
                    factor = np.exp(bounds.epsilon * (apart if bounds.within is None else 1.0))
                    for o in range(m):
                        at_most([(p[s, o], 1.0), (p[z, o], -factor)], 0.0)
    average = [(p[s, o], prior[s] * cost[o, s]) for s in range(n) for o in range(m)]
    own = [[(p[s, o], cost[o, s]) for o in range(m)] for s in range(n)]
    if bounds.worst_cost_at_most is not None:
        for terms in own:
            at_most(terms, bounds.worst_cost_at_most)
    objective = np.zeros(size)
    if bounds.cost_at_most is not None:
        for terms in own if bounds.worst_case else [average]:
            at_most(terms, bounds.cost_at_most)
        objective[x[0]] = -1.0
    elif bounds.worst_case:
        for terms in own:
            at_most([*terms, (y, -1.0)], 0.0)
        objective[y] = 1.0
    else:
        for place, value in average:
            objective[place] += value
    sums = np.zeros((n, size))
    for s in range(n):
        sums[s, p[s]] = 1.0
    box = [(0, None)] * (n * m) + [(None, None)] * (len(crowd) * m + 1)
    found = linprog(objective, np.array(below), limits, sums, np.ones(n), box, method="highs")
    if found.status == 2:
        return None
    assert found.status == 0
    return float(abs(found.fun))


def belief(generator: np.random.Generator, size: int) -> FloatArray:
    weights = generator.dirichlet(np.full(size, 0.7))
    weights[generator.random(size) < 0.2] = 0.0
    return weights / weights.sum() if weights.sum() else np.full(size, 1.0 / size)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pg.Problem, dict[str, Any]]:
    """A small problem with one to four adversaries, and any kind of bounds on them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m, count = draw(st.integers(2, 5)), draw(st.integers(2, 5)), draw(st.integers(1, 4))
    places = generator.random((n, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    space = pg.Categories([f"s{i}" for i in range(n)])
    problem = pg.Problem(
        pg.Prior(space, belief(generator, n)),
        cost=generator.random((m, n)),
        distance=apart,
        observables=pg.Categories([f"o{i}" for i in range(m)]),
    )
    crowd = []
    for k in range(count):
        prior = pg.Prior(space, belief(generator, n)) if draw(st.booleans()) else None
        guesses = draw(st.integers(1, 2 * n))
        errors = generator.random((guesses, n)) * generator.choice([0.1, 1, 10]) if draw(st.booleans()) else None
        crowd.append(pg.Adversary(f"adversary {k}", prior=prior, errors=errors))
    shares = [draw(st.sampled_from([0.0, 0.3, 0.8, 0.99, 1.0])) for _ in crowd]
    asked: dict[str, Any] = {}
    against: dict[pg.Adversary, float | None] = {
        who: share * pg.max_distortion(problem, who) for who, share in zip(crowd, shares, strict=True)
    }
    if draw(st.booleans()):
        asked["epsilon"] = draw(st.sampled_from([0.3, 1.0, 4.0]))
        if draw(st.booleans()):
            asked["within"] = draw(st.sampled_from([0.4, 2.0]))
    kind = draw(st.sampled_from(["average", "worst", "limited", "reverse", "reverse worst", "reverse both"]))
    dearest = float(problem.cost.max())
    if kind in ("worst", "reverse worst"):
        asked["worst_case"] = True
    if kind in ("limited", "reverse both"):
        asked["worst_cost_at_most"] = draw(st.floats(0.2, 0.9)) * dearest
    if kind.startswith("reverse"):
        asked["cost_at_most"] = draw(st.floats(0.2, 0.8)) * dearest
        against[crowd[0]] = None
    return problem, asked | {"distortion": against}


@pytest.mark.parametrize("engine", SOLVERS)
@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_every_engine_agrees_with_the_program_written_out(engine: str, case: tuple[pg.Problem, dict[str, Any]]) -> None:
    problem, asked = case
    bounds = pg.Bounds(**asked)
    assume(engine != "blocks" or pg.Interior().can_solve(problem, bounds))
    best = written_out(problem, bounds)
    try:
        found = pg.design(problem, **asked, solver=SOLVERS[engine])
    except pg.Infeasible:
        loose = written_out(problem, pg.Bounds(**(asked | _looser(bounds))))
        assert best is None or loose is None or abs(best - loose) > 1e-9  # nothing, or only just
        return
    assert best is not None
    certificate = found.certificate
    value = certificate.achieved if bounds.maximises_distortion else certificate.cost
    scale = max(
        best,
        1e-6
        * float(bounds.adversaries(problem)[0].errors.max() if bounds.maximises_distortion else problem.cost.max()),
    )
    assert value == pytest.approx(best, abs=3e-6 * scale)
    assert certificate.bound == pytest.approx(best, abs=3e-6 * scale)
    for promise, realised in zip(bounds.distortion, certificate.verification.adversary_distortions, strict=True):
        assert realised >= (promise.distortion or 0.0)


def _looser(bounds: pg.Bounds) -> dict[str, float]:
    names = ("cost_at_most", "worst_cost_at_most")
    return {name: getattr(bounds, name) * (1 + 1e-7) for name in names if getattr(bounds, name) is not None}


# What must always hold.


@settings(max_examples=40)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_promises_hold_for_every_mixture_of_beliefs(case: tuple[pg.Problem, dict[str, Any]], seed: int) -> None:
    problem, _ = case
    generator = np.random.default_rng(seed)
    n, _ = problem.shape
    errors = generator.random((n + 1, n))
    crowd = [
        pg.Adversary(f"{k}", prior=pg.Prior(problem.space, belief(generator, n)), errors=errors)
        for k in range(generator.integers(2, 5))
    ]
    assume(len({each.prior for each in crowd}) > 1)
    promises = {each: float(generator.uniform(0.3, 0.95)) * pg.max_distortion(problem, each) for each in crowd}
    found = pg.design(problem, distortion=promises)
    for weights in generator.dirichlet(np.ones(len(crowd)), 20):
        mixed = sum(weight * each.arrays(problem).prior for weight, each in zip(weights, crowd, strict=True))
        prior = pg.Prior(problem.space, mixed / np.sum(mixed))
        mixture = pg.Adversary("mixture", prior=prior, errors=errors)
        promised = float(weights @ list(promises.values()))
        assert pg.metrics.adversary_error(found, problem, mixture) >= promised * (1 - 1e-12)
    ((names, least),) = found.certificate.mixtures
    assert names == [each.name for each in crowd]
    assert least == min(promises.values())


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_no_dual_solution_proves_too_much(case: tuple[pg.Problem, dict[str, Any]], seed: int) -> None:
    problem, asked = case
    bounds = pg.Bounds(**asked)
    best = written_out(problem, bounds)
    try:
        made = pg.design(problem, **asked, solver=pg.Highs(), tolerance=1.0)
    except pg.Infeasible:
        assume(False)
    assert best is not None
    generator = np.random.default_rng(seed)
    (n, m), scale = problem.shape, float(10.0 ** generator.uniform(-3, 1))
    adversaries = bounds.adversaries(problem)
    random = DualSolution(
        cost_dual=scale * generator.random(),
        ratios=RatioDuals.none(),
        output_rows=np.arange(m),
        secret_weights=generator.dirichlet(np.ones(n)),
        adversaries=tuple(
            AdversaryDuals(
                scale * generator.random(), generator.dirichlet(np.full(len(adversary.errors), 0.3), m) + 1e-9
            )
            for adversary in adversaries
        ),
        worst_cost_duals=scale * generator.random(n) / n,
    )
    proved = certify(problem, bounds, made.weights, random, origin="random").certificate.bound
    assert proved is not None
    if bounds.maximises_distortion:
        assert proved >= best * (1 - 1e-7) - 1e-9
    else:
        assert proved <= best * (1 + 1e-7) + 1e-9


def test_mixtures_are_only_of_those_who_want_the_same() -> None:
    problem = sided()
    sharp = pg.Adversary("sharp", prior=problem.prior.sharpen(3.0))
    promises = {PLAIN: 0.3, sharp: 0.2, nosy(problem): 0.1}
    found = pg.design(problem, distortion=promises).certificate
    assert found.mixtures == [(["plain", "sharp"], 0.2)]
    assert found.to_dict()["mixtures"] == [{"adversaries": ["plain", "sharp"], "distortion": 0.2}]
    assert "for every mixture" in str(found)
    assert "for every mixture" not in str(pg.design(problem, distortion={PLAIN: 0.3, nosy(problem): 0.1}).certificate)


def sided() -> pg.Problem:
    """A 4 × 3 town with uneven visits."""
    town = pg.Grid(4, 3)
    return pg.Problem(pg.Prior.from_counts(town, [9, 3, 0, 1, 2, 12, 5, 0, 1, 4, 2, 7]), cost="euclidean")


def nosy(problem: pg.Problem, name: str = "which side") -> pg.Adversary:
    sides = [(cell, "west" if place % 4 < 2 else "east") for place, cell in enumerate(problem.space.labels)]
    return pg.Adversary.from_table(name, problem.space, sides)


@pytest.mark.parametrize("engine", SOLVERS)
@pytest.mark.parametrize(("plain", "sharp"), [(0.1, 0.25), (0.25, 0.25), (0.4, 0.1), (0.05, 0.2), (0.0, 0.25)])
def test_two_secrets_by_hand(engine: str, plain: float, sharp: float) -> None:
    """docs/theory/adversaries.md: with belief (t, 1−t) and promises d, D the least cost is max(d, D/2t)."""
    space = pg.Categories("ab")
    problem = pg.Problem(pg.Prior.uniform(space))
    t = 0.75
    other = pg.Adversary("sharp", prior=pg.Prior(space, [t, 1 - t]))
    assert pg.max_distortion(problem, other) == pytest.approx(1 - t)
    promises = {PLAIN: plain, other: min(sharp, pg.max_distortion(problem, other))}
    found = pg.design(problem, distortion=promises, solver=SOLVERS[engine])
    assert found.certificate.cost == pytest.approx(max(plain, sharp / (2 * t)), rel=1e-6)


@pytest.mark.parametrize("engine", SOLVERS)
def test_reductions_are_exact_where_somebody_believes_what_the_prior_does_not(engine: str) -> None:
    """A secret without a prior is left out only if no adversary believes in it, either."""
    problem = sided()
    counts = np.array([0, 0, 5, 0, 0, 1, 0, 5, 0, 0, 3, 0])
    foreign = pg.Adversary("elsewhere", prior=pg.Prior.from_counts(problem.space, counts))
    promises = {PLAIN: 0.7, foreign: 0.95 * pg.max_distortion(problem, foreign)}
    for epsilon in (None, 1.5):
        best = written_out(problem, pg.Bounds(epsilon=epsilon, distortion=promises))
        for solver in (SOLVERS[engine], pg.Interior(defer_zero_prior=False, merge_dominated=False)):
            found = pg.design(problem, epsilon=epsilon, distortion=promises, solver=solver)
            assert found.certificate.cost == pytest.approx(best, rel=2e-6)


def test_a_number_is_what_it_was() -> None:
    problem = sided()
    by_number = pg.design(problem, epsilon=1.0, distortion=0.8)
    by_mapping = pg.design(problem, epsilon=1.0, distortion={PLAIN: 0.8})
    assert by_number.certificate.bounds == pg.Bounds(epsilon=1.0, distortion=0.8)
    assert by_number.certificate.bounds.named_adversaries == ()
    assert by_mapping.certificate.cost == pytest.approx(by_number.certificate.cost, rel=2e-6)
    assert repr(by_number.certificate.bounds) == (
        "Bounds(epsilon=1.0, within=None, distortion=0.8, cost_at_most=None, worst_case=False)"
    )  # mechanisms' digests are made of it


# Files.


def test_files_keep_every_promise(tmp_path: Path) -> None:
    problem = sided()
    sharp = pg.Adversary("sharp", prior=problem.prior.sharpen(3.0))
    promises = {PLAIN: 0.8, sharp: 0.6, nosy(problem): 0.25}
    made = pg.design(problem, epsilon=2.0, distortion=promises, worst_cost_at_most=2.2)
    made.save(tmp_path / "all.pgm")
    assert (tmp_path / "all.pgm").read_bytes().startswith(b"privacygames mechanism 3\n")
    again = pg.load(tmp_path / "all.pgm")
    assert again.certificate == made.certificate
    assert again.digest == made.digest
    assert [each.adversary for each in again.certificate.bounds.distortion] == list(promises)
    assert json.dumps(again.certificate.to_dict())
    made.save(tmp_path / "bare.pgm", dual_solution=False)
    assert pg.verify(tmp_path / "bare.pgm").bound is None
    renamed = pg.design(problem, epsilon=2.0, distortion={pg.Adversary("plainer"): 0.8}, worst_cost_at_most=2.2)
    assert renamed.digest != pg.design(problem, epsilon=2.0, distortion={PLAIN: 0.8}, worst_cost_at_most=2.2).digest


def test_plain_files_are_of_the_old_format(tmp_path: Path) -> None:
    pg.design(sided(), epsilon=1.0, distortion=0.8).save(tmp_path / "plain.pgm")
    text = (tmp_path / "plain.pgm").read_bytes()
    assert text.startswith(b"privacygames mechanism 2\n")
    assert b"against" not in text
    assert b"worst_cost" not in text


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda header: header["promises"]["against"][1].update(distortion=5.0), pg.GuaranteeViolated),
        (
            lambda header: header["promises"]["against"][1].update(prior=None),
            pg.GuaranteeViolated,
        ),  # plain has less than 0.95
        (lambda header: header["promises"].update(worst_cost_at_most=0.5), pg.GuaranteeViolated),
        (lambda header: header["promises"]["against"][0].update(errors="nothing"), pg.InvalidFile),
        (lambda header: header["promises"]["against"][0].update(name="a\x00b"), pg.InvalidFile),
        (lambda header: header["promises"]["against"][0].pop("prior"), pg.InvalidFile),
        (lambda header: header["promises"].update(against=header["promises"]["against"][:1]), pg.InvalidFile),
        (lambda header: header["multipliers"].update(against=[1.0]), pg.InvalidFile),
        (lambda header: header["multipliers"].update(against=[-1.0, 0.0]), pg.InvalidFile),
    ],
)
def test_altered_files_are_refused(tmp_path: Path, change: Callable[[Any], object], error: type[Exception]) -> None:
    problem = sided()
    vague = pg.Adversary("vague", prior=pg.Prior.uniform(problem.space))
    made = pg.design(problem, epsilon=2.0, distortion={nosy(problem): 0.2, vague: 0.95}, worst_cost_at_most=2.5)
    assert made.certificate.verification.distortion < 0.95
    made.save(tmp_path / "file.pgm")
    header, arrays = binary_container.read(tmp_path / "file.pgm")
    header = {name: value for name, value in header.items() if name not in ("format", "arrays")}
    change(header)
    binary_container.write(tmp_path / "altered.pgm", header, arrays, version=3)
    with pytest.raises(error):
        pg.verify(tmp_path / "altered.pgm")


# Wrong input.


def test_what_cannot_be_promised_is_named() -> None:
    problem = sided()
    curious = nosy(problem, "nosy neighbour")
    most = pg.max_distortion(problem, curious)
    with pytest.raises(pg.Infeasible, match="'nosy neighbour'") as caught:
        pg.design(problem, epsilon=1.0, distortion={PLAIN: 0.5, curious: 1.01 * most})
    assert caught.value.limit == most
    pg.design(problem, epsilon=1.0, distortion={PLAIN: 0.5, curious: most})
    with pytest.raises(pg.Infeasible, match=r"every secret at most 0\.1") as caught:
        pg.design(problem, epsilon=1.0, worst_cost_at_most=0.1)
    limit = caught.value.limit
    assert pg.design(problem, epsilon=1.0, worst_cost_at_most=limit).certificate.verification.worst_cost <= limit
    with pytest.raises(pg.Infeasible, match="'plain'"):
        pg.design(problem, cost_at_most=0.3, distortion={PLAIN: 0.6})
    assert pg.design(problem, cost_at_most=0.7, distortion={PLAIN: 0.6}).certificate.achieved >= 0.6


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"distortion": {}}, "names no adversary"),
        ({"distortion": {"plain": 0.5}}, "keys must be of type Adversary"),
        ({"distortion": {PLAIN: None}, "epsilon": 1.0}, "only with cost_at_most"),
        ({"distortion": {PLAIN: "much"}}, "the distortion against 'plain' is 'much'"),
        ({"distortion": {PLAIN: -1.0}}, "the distortion against 'plain' is -1.0"),
        (
            {"distortion": {PLAIN: 0.1, pg.Adversary("plain", errors=np.ones((1, 12))): 0.1}},
            "two adversaries are called",
        ),
        ({"distortion": {PLAIN: 0.1, pg.Adversary("x", errors=np.ones((2, 5))): 0.1}}, "about 5 secrets"),
        ({"distortion": {pg.Adversary("x", prior=pg.Prior.uniform(pg.Grid(2, 2))): 0.1}}, "over other secrets"),
        ({"epsilon": 1.0, "worst_case": True, "worst_cost_at_most": 1.0}, "give one of them"),
        ({"worst_cost_at_most": 1.0}, "no guarantee is requested"),
        ({"epsilon": 1.0, "worst_cost_at_most": -1.0}, "worst_cost_at_most is -1.0"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.design(sided(), **asked)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pg.Adversary(""), "printable text"),
        (lambda: pg.Adversary("a\nb"), "printable text"),
        (lambda: pg.Adversary("x", prior=WRONG), "must be a Prior"),
        (lambda: pg.Adversary("x", errors=[1.0, 2.0]), "table"),
        (lambda: pg.Adversary("x", errors=[[-1.0]]), "negative"),
        (lambda: pg.Adversary("x", errors=[[np.inf]]), "infinite"),
        (lambda: pg.Adversary("x", guesses=pg.Categories("ab")), "give errors, too"),
        (lambda: pg.Adversary("x", errors=np.ones((3, 2)), guesses=pg.Categories("ab")), "shape"),
        (lambda: pg.Adversary.of_attribute("x", given=[[0.5, 0.4]]), "sum to 1"),
        (lambda: pg.Adversary.of_attribute("x", given=[[0.5, 0.5]], errors=[[1.0]]), "2 attributes need"),
        (lambda: pg.Adversary.from_table("x", pg.Categories("ab"), [("a", "red")]), "1 of 2 secrets do not occur"),
        (lambda: pg.Adversary.from_table("x", pg.Categories("ab"), [("c", "red")]), "not"),
        (lambda: pg.Adversary.from_table("x", pg.Categories("ab"), {("a", "red"): -1}), "numbers, 0 or more"),
        (lambda: pg.Adversary.from_table("x", pg.Categories("ab"), WRONG), "must be a list"),
    ],
)
def test_adversaries_that_are_none(make: Callable[[], pg.Adversary], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        make()


# Everything that measures.


def test_attacks_reports_and_comparisons_take_adversaries() -> None:
    problem = sided()
    curious = nosy(problem)
    promises = {PLAIN: 0.5, curious: 0.3}
    found = pg.design(problem, epsilon=2.0, distortion=promises)
    attack = pg.attacks.optimal(found, problem, adversary=curious)
    assert attack.estimates.labels == ("west", "east")
    assert attack.error == pytest.approx(found.certificate.verification.adversary_distortions[1], rel=1e-9)
    assert pg.attacks.from_matrix(found, problem, attack.matrix, adversary=curious).error == pytest.approx(attack.error)
    assert pg.attacks.uniform(found, problem, adversary=curious).matrix.shape == (12, 2)
    worst = pg.attacks.minmax(found, problem, adversary=curious)
    assert worst.error >= attack.error - 1e-9
    with pytest.raises(pg.InvalidProblem, match="guesses something else"):
        pg.attacks.bayesian(found, problem, adversary=curious)
    with pytest.raises(pg.InvalidProblem, match="leave out prior"):
        pg.attacks.optimal(found, problem, adversary=curious, prior=problem.prior)
    with pytest.raises(pg.InvalidProblem, match=r"attack\.error"):
        pg.metrics.distortion(found, problem, attack)
    report = pg.evaluate(found, problem)
    assert [(stand.adversary, stand.guaranteed) for stand in report.adversary_results] == [
        ("plain", 0.5),
        ("which side", 0.3),
    ]
    assert report.to_dict()["realised against which side"] == pytest.approx(attack.error)
    assert "“which side”" in str(pg.explain(report, problem))
    other = problem.with_prior(pg.Prior.uniform(problem.space))
    elsewhere = pg.evaluate(found, other).adversary_results
    assert [stand.guaranteed for stand in elsewhere] == [None, None]  # of another prior nothing was promised
    compared = pg.compare(problem, {"it": found}, adversaries=[PLAIN, curious])
    assert "best possible" in compared.table()
    assert compared.rows[0].to_dict()["promised against plain"] == 0.5
    figure = pg.plots.adversaries(compared)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["plain", "which side"]
    with pytest.raises(pg.InvalidProblem, match="no adversaries were compared"):
        pg.plots.adversaries(pg.compare(problem, {"it": found}))


def test_find_holds_the_others() -> None:
    problem = sided()
    curious = nosy(problem)
    found = pg.tightest_bound(
        problem, "distortion", adversary=curious, distortion={PLAIN: 0.6}, cost_at_most=0.7, epsilon=3.0
    )
    asked = pg.Bounds(epsilon=3.0, cost_at_most=0.7, distortion={curious: None, PLAIN: 0.6})
    assert found.value == pytest.approx(written_out(problem, asked), rel=2e-6)
    assert found.report.adversary_results[1].realised >= 0.6
    smallest = pg.tightest_bound(
        problem, "epsilon", distortion={PLAIN: 0.6, curious: 0.3}, cost_at_most=0.8, precision=0.01
    )
    assert smallest.bound < smallest.value <= 1.01 * smallest.bound
    assert smallest.mechanism.certificate.verification.adversary_distortions[1] >= 0.3
    blind = pg.tightest_bound(
        problem, "epsilon", distortion={PLAIN: 0.6, curious: 0.3}, cost_at_most=5.0
    )  # a constant answer
    assert [stand.guaranteed for stand in blind.mechanism.certificate.adversary_results] == [0.6, 0.3]
    assert [stand.guaranteed for stand in blind.report.adversary_results] == [0.6, 0.3]
    reached = pg.tightest_bound(
        problem, "distortion", adversary=curious, distortion={curious: 0.2, PLAIN: 0.6}, cost_at_most=0.7
    )
    assert reached.value >= 0.2
    assert ("realised epsilon", "not bounded by design") in reached.rows()
    with pytest.raises(pg.Infeasible, match="'which side'"):  # a number for her is no less of a promise
        pg.tightest_bound(
            problem, "distortion", adversary=curious, distortion={curious: 0.3, PLAIN: 0.1}, cost_at_most=0.15
        )
    with pytest.raises(pg.InvalidProblem, match='goes with "distortion" only'):
        pg.tightest_bound(problem, "cost", adversary=curious, epsilon=1.0)


def test_the_time_limit_leaves_a_valid_mechanism() -> None:
    problem = sided()
    promises = {PLAIN: 0.5, nosy(problem): 0.3}
    found = pg.design(problem, epsilon=2.0, distortion=promises, time_limit=1e-9)
    assert found.certificate.verification.adversary_distortions[1] >= 0.3


def test_a_number_that_was_not_reached_in_time_is_not_called_impossible() -> None:
    asked: dict[str, Any] = {"cost_at_most": 0.7, "distortion": {PLAIN: 0.6}}
    assert pg.design(sided(), **asked).certificate.achieved >= 0.6
    with pytest.raises(pg.SolveFailed, match=r"leaves 'plain' 0\.6 was found in time") as caught:
        pg.design(sided(), **asked, time_limit=1e-9)
    assert caught.value.status is pg.Status.TIME_LIMIT


# Where adversaries come from.


def test_attributes_from_tables_and_from_chances_are_the_same() -> None:
    problem = sided()
    given = np.array([[1.0, 0.0] if place % 4 < 2 else [0.0, 1.0] for place in range(12)])
    other = pg.Adversary.of_attribute("which side", given=given, guesses=pg.Categories(["west", "east"]))
    assert other == nosy(problem)
    ages = pg.Numbers([10, 20])
    shares = {("cell-0", 10): 3, ("cell-0", 20): 1} | {(cell, 20): 1 for cell in problem.space.labels[1:]}
    old = pg.Adversary.from_table("age", problem.space, shares, attributes=ages)
    assert old.errors is not None
    assert old.errors[:, 0].tolist() == [2.5, 7.5]  # |10 − a| and |20 − a|, a quarter of them 20


def test_resamples_and_sharper_priors() -> None:
    space = pg.Categories("abc")
    priors = pg.Prior.bootstrap(space, {"a": 60, "b": 30, "c": 10}, 200, generator=np.random.default_rng(1))
    mean = np.mean([prior.probabilities for prior in priors], axis=0)
    assert mean == pytest.approx([0.6, 0.3, 0.1], abs=0.015)
    spread = np.std([prior["a"] for prior in priors])
    assert spread == pytest.approx(np.sqrt(0.6 * 0.4 / 100), rel=0.2)
    sharper = pg.Prior(space, [0.5, 0.3, 0.2]).sharpen(3.0, places=1)
    assert sharper.probabilities == pytest.approx([0.75, 0.15, 0.1])
    for bad in ({"a": 0.5}, {}):
        with pytest.raises(pg.InvalidProblem):
            pg.Prior.bootstrap(space, bad, 2)
    with pytest.raises(pg.InvalidProblem, match=r"strength is 0\.5"):
        sharper.sharpen(0.5)


def test_at_the_papers_size() -> None:
    """Real visits, 300 cells: the promises bind, the block method takes them, and the certificate says so."""
    problem = geolife("35")
    crowd = [PLAIN, *(pg.Adversary(f"{k:g}", prior=problem.prior.sharpen(k)) for k in (2.0, 5.0))]
    promises = {each: 0.95 * pg.max_distortion(problem, each) for each in crowd}
    found = pg.design(problem, epsilon=0.9, distortion=promises).certificate
    assert found.provenance.solver.startswith("blocks")
    one = pg.design(problem, epsilon=0.9, distortion=promises[PLAIN])
    broken = pg.evaluate(one, problem, adversaries=crowd).adversary_results[2]
    assert broken.realised < 0.9 * promises[crowd[2]]
    assert all(stand.realised >= promises[each] for stand, each in zip(found.adversary_results, crowd, strict=True))
    assert found.bound is not None
    assert found.bound >= one.certificate.cost * (1 - 1e-6)

"""Cases solved on paper, with the arithmetic in the docstrings.

Two secrets 1 and 2 with prior (π, 1−π), answered with 1 or 2. A mechanism is two numbers: a = p(2|1) and
b = p(1|2), the chances of a wrong answer. With the Hamming cost it costs πa + (1−π)b.
"""

from math import exp

import numpy as np
import pytest

import privacygames as pg
from privacygames import attacks
from support import problem_of, two_secrets


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("prior", [0.5, 0.7, 0.95])
def test_differential(epsilon: float, prior: float) -> None:
    """The ratios say 1−a ≤ γb and 1−b ≤ γa (γ = e^ε; the other two follow from b ≤ 1, a ≤ 1 and γ ≥ 1).

    The feasible set is cut by two lines that meet at a = b = 1/(1+γ); its other vertices are (a,b) = (0,1) and
    (1,0). Costs there: 1/(1+γ), 1−π, π. With π ≥ 1/2 the least is min(1/(1+γ), 1−π).
    """
    expected = min(1 / (1 + exp(epsilon)), 1 - prior)
    assert pg.design(two_secrets(prior), epsilon=epsilon).certificate.cost == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("within", [5.0, 4.0])
def test_threshold(within: float) -> None:
    """Secrets 5 apart: within 5 the ratio is e^ε, cost 1/(1+e^ε); within 4 nothing is asked, cost 0."""
    cost = pg.design(two_secrets(0.5, apart=5.0), epsilon=1.0, within=within).certificate.cost
    assert cost == pytest.approx(1 / (1 + exp(1)) if within == 5 else 0.0, abs=1e-12)


def test_metric_form_counts_the_distance() -> None:
    """Secrets 5 apart in the metric form: γ = e^{5ε}."""
    cost = pg.design(two_secrets(0.5, apart=5.0), epsilon=0.2).certificate.cost
    assert cost == pytest.approx(1 / (1 + exp(1)), rel=1e-9)


@pytest.mark.parametrize("prior", [0.5, 0.8])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_distortion(prior: float, share: float) -> None:
    """While both answers are trusted, the attacker errs when the answer is wrong: πa + (1−π)b, which is the cost.

    So a distortion of d_m ≤ d_m^max = 1−π costs exactly d_m.
    """
    problem = two_secrets(prior)
    assert pg.max_distortion(problem) == pytest.approx(1 - prior, rel=1e-12)
    bound = share * pg.max_distortion(problem)
    assert pg.design(problem, distortion=bound).certificate.cost == pytest.approx(bound, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, 0.1), (1.0, 0.4), (3.0, 0.2), (0.1, 0.49)])
def test_joint(epsilon: float, bound: float) -> None:
    """Uniform prior, a = b: the cost is a; privacy needs a ≥ 1/(1+γ) and a ≥ d_m. So max(1/(1+γ), d_m)."""
    cost = pg.design(two_secrets(), epsilon=epsilon, distortion=bound).certificate.cost
    assert cost == pytest.approx(max(1 / (1 + exp(epsilon)), bound), rel=1e-9)


@pytest.mark.parametrize("prior", [0.5, 0.9, 1.0])
def test_worst_case(prior: float) -> None:
    """The worst secret costs max(a,b), least where a = b = 1/(1+γ), whatever the prior."""
    cost = pg.design(two_secrets(prior), epsilon=1.0, worst_case=True).certificate.cost
    assert cost == pytest.approx(1 / (1 + exp(1)), rel=1e-9)


@pytest.mark.parametrize(("limit", "expected"), [(0.0, 0.0), (0.2, 0.2), (0.3, 0.3), (0.9, 0.3)])
def test_reverse(limit: float, expected: float) -> None:
    """π = 0.7: distortion equals cost up to d_m^max = 0.3."""
    mechanism = pg.design(two_secrets(0.7), cost_at_most=limit)
    assert mechanism.certificate.verification.distortion == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_reverse_with_epsilon() -> None:
    """Uniform prior, ε = 1: costs below 1/(1+e) = 0.2689 are impossible; for 0.3, a = b = 0.3 gives 0.3."""
    with pytest.raises(pg.Infeasible) as caught:
        pg.design(two_secrets(), cost_at_most=0.2, epsilon=1.0)
    assert caught.value.limit == pytest.approx(1 / (1 + exp(1)), rel=1e-6)
    mechanism = pg.design(two_secrets(), cost_at_most=0.3, epsilon=1.0)
    assert mechanism.certificate.verification.distortion == pytest.approx(0.3, rel=1e-7)


def test_minmax_attack() -> None:
    """a = 0, b = 1/2. After answer 2 the secret is 2. After answer 1, guess 2 with chance t.

    E_1 = t, E_2 = (1−t)/2; equal at t = 1/3, so the least largest error is 1/3.
    """
    problem = two_secrets()
    mechanism = pg.Mechanism.from_probabilities(problem, np.array([[1, 0], [0.5, 0.5]]))
    attack = attacks.minmax(mechanism, problem)
    assert attack.error == pytest.approx(1 / 3)
    assert attack.matrix == pytest.approx(np.array([[2 / 3, 1 / 3], [0, 1]]))


def test_minmax_pairs_attack() -> None:
    """Three secrets, a constant mechanism: q is one distribution. E_{ŝ,s} = q(ŝ), least largest 1/3.

    The min-max over secrets is E_s = 1 − q(s), least largest 2/3.
    """
    problem = problem_of([1 / 3, 1 / 3, 1 / 3], np.zeros((1, 3)), 1 - np.eye(3))
    mechanism = pg.Mechanism.from_probabilities(problem, np.ones((3, 1)))
    assert attacks.minmax_pairs(mechanism, problem).error == pytest.approx(1 / 3)
    assert attacks.minmax(mechanism, problem).error == pytest.approx(2 / 3)


def test_entropies_and_vulnerability() -> None:
    """Uniform prior, a = b = 1/4: H(S) = 1 bit, H(S|O) = −¼log₂¼ − ¾log₂¾ = 0.8113; one guess is right in ¾."""
    problem = two_secrets()
    mechanism = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    report = pg.evaluate(mechanism, problem)
    assert report.prior_entropy == pytest.approx(1.0)
    assert report.posterior_entropy == pytest.approx(0.8112781244591328)
    assert report.mutual_information == pytest.approx(1 - 0.8112781244591328)
    assert report.prior_vulnerability == pytest.approx(0.5)
    assert report.vulnerability == pytest.approx(0.75)
    assert report.epsilon == pytest.approx(np.log(3))
    assert report.cost == report.worst_cost == pytest.approx(0.25)

"""The evidence for claims about scenarios 1, 2 and 3: one function per claim, from a scenario's table."""

from privacygames.jobs import Table, number, where
from privacygames_study.claims.evidence import Evidence, Triple, steps, summary, triples
from privacygames_study.tasks import DONE

METRE = 0.001
"""Kilometres of privacy that count as equal: one metre, less than a figure can show."""

NEAR_KM = 0.01
"""Kilometres of privacy that count as "the same" in a claim that is no theorem."""

SAME_COST = 1e-5
"""Difference of cost that counts as equal: ten times the tolerance of designs, for costs up to 1."""

NEAR_COST = 0.01
"""Relative difference of cost that counts as "the same" in a claim that is no theorem."""

MUCH = 1.1
"""Ratio of costs from which one is "much higher"."""

CONVERGED_KM = 1.0
"""The paper's "below 1 km"."""

METRES = "1 m"
TENS_OF_METRES = "10 m"


def privacy_falls_with_epsilon(table: Table) -> Evidence:
    """Along each user's line."""
    pairs = steps(where(table, mechanism="differential", status=DONE), ["user"], "epsilon")
    changes = [number(later, "privacy_km") - number(earlier, "privacy_km") for earlier, later in pairs]
    return Evidence(
        [change <= METRE for change in changes],
        f"change per step of ε {summary(changes, ' km')}",
        f"{METRES} per step",
    )


def privacy_converges(table: Table) -> Evidence:
    """At the largest ε."""
    done = where(table, mechanism="differential", status=DONE)
    most = max((number(row, "epsilon") for row in done), default=0.0)
    reached = [number(row, "privacy_km") for row in where(done, epsilon=most)]
    return Evidence(
        [value < CONVERGED_KM for value in reached],
        f"privacy at ε = {most:g} {summary(reached, ' km')}",
        "none",
    )


def distortion_is_cheaper(table: Table) -> Evidence:
    """At equal distortion privacy."""
    cases = triples(table)
    return Evidence(
        [_cost(case, "distortion") <= _cost(case, "differential") + SAME_COST for case in cases],
        f"cost of distortion {summary(_cost(case, 'distortion') for case in cases)}, "
        f"of differential {summary(_cost(case, 'differential') for case in cases)}",
        f"{SAME_COST:g} of cost",
    )


def differential_costs_much_more(table: Table) -> Evidence:
    """By a tenth at least."""
    ratios = [_ratio(_cost(case, "differential"), _cost(case, "distortion")) for case in triples(table)]
    return Evidence([ratio >= MUCH for ratio in ratios], f"times the cost {summary(ratios)}", "at least 1.1 times")


def joint_costs_as_differential(table: Table) -> Evidence:
    """Relatively; with how many of them are the same by a theorem."""
    cases = triples(table)
    extra = [_ratio(_cost(case, "joint"), _cost(case, "differential")) - 1 for case in cases]
    reused = sum(case["joint"]["reused"] is True for case in cases)
    return Evidence(
        [abs(value) <= NEAR_COST for value in extra],
        f"extra cost {summary(extra)}, as a share; in {reused} of {len(cases)} the differential mechanism gives d_m "
        "already and so is the joint optimum",
        "1 % of the cost",
    )


def cost_grows_with_privacy(table: Table) -> Evidence:
    """Along each user's line, for each mechanism: with lower ε, more privacy and a higher cost."""
    pairs = steps(where(table, status=DONE), ["user", "mechanism"], "epsilon")
    rises = [
        (number(private, "cost") - number(open_, "cost"), number(private, "privacy_km") - number(open_, "privacy_km"))
        for private, open_ in pairs
    ]
    moved = [(cost, privacy) for cost, privacy in rises if privacy > METRE]
    return Evidence(
        [cost >= -SAME_COST for cost, _ in moved],
        f"extra cost per km of privacy {summary(cost / privacy for cost, privacy in moved)}",
        f"{SAME_COST:g} of cost; steps that change privacy by more than {METRES}",
    )


def joint_is_best_for_its_cost(table: Table) -> Evidence:
    """It is not if the distortion mechanism gives as much privacy for less."""
    cases = triples(table)
    saved = [_cost(case, "joint") - _cost(case, "distortion") for case in cases]
    return Evidence(
        [
            cost <= SAME_COST or _privacy(case, "joint") > _privacy(case, "distortion") + METRE
            for case, cost in zip(cases, saved, strict=True)
        ],
        f"cost the distortion mechanism saves, at the same d_m, {summary(saved)}",
        f"{SAME_COST:g} of cost, {METRES}",
    )


def differential_resists_bayes(table: Table) -> Evidence:
    """Against the Bayesian attack, at equal privacy against the optimal one."""
    gains = [_bayes(case, "differential") - _bayes(case, "distortion") for case in triples(table)]
    return Evidence(
        [gain >= -METRE for gain in gains], f"differential minus distortion {summary(gains, ' km')}", METRES
    )


def optimal_attack_is_stronger(table: Table) -> Evidence:
    """For every mechanism (a theorem)."""
    excess = [number(row, "bayesian_km") - number(row, "privacy_km") for row in where(table, status=DONE)]
    return Evidence([value >= -1e-9 for value in excess], f"Bayesian minus optimal {summary(excess, ' km')}", "1e-9 km")


def bayes_errs_more_on_differential(table: Table) -> Evidence:
    """The difference between the attacks, mechanism against mechanism."""
    cases = triples(table)

    def excess(case: Triple, mechanism: str) -> float:
        return _bayes(case, mechanism) - _privacy(case, mechanism)

    return Evidence(
        [
            min(excess(case, "differential"), excess(case, "joint")) >= excess(case, "distortion") - METRE
            for case in cases
        ],
        f"Bayesian minus optimal: differential {summary(excess(case, 'differential') for case in cases)} km, "
        f"joint {summary(excess(case, 'joint') for case in cases)} km, "
        f"distortion {summary(excess(case, 'distortion') for case in cases)} km",
        METRES,
    )


def joint_has_at_least_both(table: Table) -> Evidence:
    """At least the larger of the two privacies."""
    over = [_privacy(case, "joint") - _most_privacy(case) for case in triples(table)]
    return Evidence([value >= -METRE for value in over], f"joint minus the larger {summary(over, ' km')}", METRES)


def joint_has_the_larger(table: Table) -> Evidence:
    """Neither less nor more than the larger of the two privacies."""
    cases = triples(table)
    off = [_privacy(case, "joint") - _most_privacy(case) for case in cases]
    reused = sum(case["joint"]["reused"] is True for case in cases)
    return Evidence(
        [abs(value) <= NEAR_KM for value in off],
        f"joint minus the larger {summary(off, ' km')}; the same mechanism as the differential in {reused}",
        TENS_OF_METRES,
    )


def joint_costs_the_larger(table: Table) -> Evidence:
    """No extra cost over the dearer of the two."""
    cases = triples(table)
    extra = [
        _ratio(_cost(case, "joint"), max(_cost(case, "differential"), _cost(case, "distortion"))) for case in cases
    ]
    apart = [value - 1 for value, case in zip(extra, cases, strict=True) if case["joint"]["reused"] is not True]
    return Evidence(
        [value - 1 <= NEAR_COST for value in extra],
        f"extra cost {summary(value - 1 for value in extra)}, as a share; where the differential one does not give "
        f"d_m by itself {summary(apart)}",
        "1 % of the cost",
    )


def joint_cost_is_not_additive(table: Table) -> Evidence:
    """Less than the sum."""
    cases = triples(table)
    shares = [_ratio(_cost(case, "joint"), _cost(case, "differential") + _cost(case, "distortion")) for case in cases]
    return Evidence([share < 1 for share in shares], f"joint as a share of the sum {summary(shares)}", "none")


def _cost(case: Triple, mechanism: str) -> float:
    return number(case[mechanism], "cost")


def _privacy(case: Triple, mechanism: str) -> float:
    return number(case[mechanism], "privacy_km")


def _bayes(case: Triple, mechanism: str) -> float:
    return number(case[mechanism], "bayesian_km")


def _most_privacy(case: Triple) -> float:
    return max(_privacy(case, "differential"), _privacy(case, "distortion"))


def _ratio(first: float, second: float) -> float:
    """How many times as much; nothing is as much as nothing."""
    if second > 0:
        return first / second
    return 1.0 if first <= SAME_COST else float("inf")

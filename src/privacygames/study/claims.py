"""The claims of the paper's evaluation, and whether they hold on the data at hand."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from privacygames.jobs import Table
from privacygames.study import comparing, robustness
from privacygames.study.evidence import Evidence

CLAIM_COLUMNS = (
    "claim",
    "figure",
    "statement",
    "holds",
    "cases",
    "share",
    "tolerance",
    "evidence",
    "verdict",
)


@dataclass(frozen=True)
class Claim:
    """Something the paper says.

    Attributes:
        name: a short name.
        figure: the figure that shows it.
        table: the table it is checked on.
        statement: what the paper says, in our words.
        evidence: checks it, case by case.
    """

    name: str
    figure: str
    table: str
    statement: str
    evidence: Callable[[Table], Evidence]


READINGS = {
    "secrets": "between far secrets",
    "both": "between far secrets, and between observables and far secrets",
}
"""Appendix C may be read in two ways: which constraints are left out."""


def _approximation_claims(kind: str, left_out: str) -> list[Claim]:
    """The claims of appendix C for one reading of it."""

    def claim(name: str, figure: str, statement: str, evidence: Callable[..., Evidence]) -> Claim:
        return Claim(f"{name}-{kind}", figure, "approximation", statement, partial(evidence, kind=kind))

    without = f"Leaving out constraints {left_out}"
    return [
        claim(
            "error-falls",
            "approximation-error",
            f"{without}: the error falls as the radius grows.",
            robustness.error_falls_with_radius,
        ),
        claim(
            "error-vanishes",
            "approximation-error",
            f"{without}: the error goes to zero as the radius grows.",
            robustness.error_vanishes,
        ),
        claim(
            "small-radius",
            "approximation-error",
            f"{without}: a relatively small radius gives almost the same privacy as the exact optimum.",
            robustness.small_radius_suffices,
        ),
        claim(
            "time-grows",
            "approximation-time",
            f"{without}: computing takes longer as the radius grows.",
            robustness.time_grows_with_radius,
        ),
        claim(
            "approximation-faster",
            "approximation-time",
            f"{without}: that is faster than designing exactly.",
            robustness.approximating_is_faster,
        ),
        claim(
            "epsilon-kept",
            "approximation-epsilon",
            f"{without}: the ε asked for is kept (the paper does not say so; its figure leaves ε out).",
            robustness.epsilon_is_kept,
        ),
    ]


CLAIMS = (
    Claim(
        "privacy-falls",
        "privacy-epsilon",
        "scenario-1",
        "Distortion privacy of the optimal differential mechanism falls as ε grows.",
        comparing.privacy_falls_with_epsilon,
    ),
    Claim(
        "below-1-km",
        "privacy-epsilon",
        "scenario-1",
        "For the largest ε, distortion privacy of the optimal differential mechanism is below 1 km for every user.",
        comparing.privacy_converges,
    ),
    Claim(
        "distortion-cheaper",
        "cost-privacy",
        "scenario-1",
        "For the same distortion privacy, a distortion mechanism costs no more than a differential one (a theorem).",
        comparing.distortion_is_cheaper,
    ),
    Claim(
        "much-higher",
        "cost-privacy",
        "scenario-1",
        "For the same distortion privacy, the cost is much higher for the differential mechanism than for distortion.",
        comparing.differential_costs_much_more,
    ),
    Claim(
        "joint-as-differential",
        "cost-privacy",
        "scenario-1",
        "With d_m set to what the differential mechanism gives, the joint one costs the same (a theorem).",
        comparing.joint_costs_as_differential,
    ),
    Claim(
        "privacy-costs",
        "cost-privacy",
        "scenario-1",
        "More privacy costs more, for each user and mechanism.",
        comparing.cost_grows_with_privacy,
    ),
    Claim(
        "best-for-its-cost",
        "cost-privacy",
        "scenario-1",
        "The joint mechanism gives the highest distortion privacy for its cost.",
        comparing.joint_is_best_for_its_cost,
    ),
    Claim(
        "bayesian-robust",
        "bayesian",
        "scenario-1",
        "Against the Bayesian attack, the differential mechanism protects more than the distortion mechanism.",
        comparing.differential_resists_bayes,
    ),
    Claim(
        "optimal-stronger",
        "attacks",
        "scenario-1",
        "The optimal attack is at least as strong as the Bayesian one, on every mechanism (a theorem).",
        comparing.optimal_attack_is_stronger,
    ),
    Claim(
        "attacks-differ",
        "attacks",
        "scenario-1",
        "The two attacks differ more on differential and joint mechanisms than on distortion mechanisms.",
        comparing.bayes_errs_more_on_differential,
    ),
    Claim(
        "joint-at-least-both",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one gives at least as much privacy as either.",
        comparing.joint_has_at_least_both,
    ),
    Claim(
        "joint-equals-distortion",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one has the distortion mechanism's privacy.",
        comparing.joint_has_the_larger,
    ),
    Claim(
        "joint-same-cost",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one gives more privacy at the same cost.",
        comparing.joint_costs_as_differential,
    ),
    Claim(
        "joint-privacy-least",
        "sorted-privacy",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism gives at least as much privacy as either alone.",
        comparing.joint_has_at_least_both,
    ),
    Claim(
        "joint-privacy-max",
        "sorted-privacy",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism's privacy is the larger of the two alone, no more.",
        comparing.joint_has_the_larger,
    ),
    Claim(
        "joint-cost-max",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism costs no more than the dearer of the two alone.",
        comparing.joint_costs_the_larger,
    ),
    Claim(
        "differential-dearer",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the dearer one alone is the differential mechanism in every experiment.",
        comparing.distortion_is_cheaper,
    ),
    Claim(
        "cost-not-additive",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism costs less than the two alone added up.",
        comparing.joint_cost_is_not_additive,
    ),
    Claim(
        "knowledge-helps",
        "prior",
        "prior",
        "An adversary who knows more about the most visited places errs less.",
        robustness.knowledge_helps,
    ),
    Claim(
        "equal-without-evidence",
        "prior",
        "prior",
        "With no more evidence than the prior, differential and distortion mechanisms give the same privacy.",
        robustness.equal_without_evidence,
    ),
    Claim(
        "differential-robust",
        "prior",
        "prior",
        "Against better informed adversaries, the differential mechanism protects more than the distortion mechanism.",
        robustness.differential_resists_knowledge,
    ),
    *(claim for kind, name in READINGS.items() for claim in _approximation_claims(kind, name)),
)
"""Everything the section claims that numbers can decide."""

OURS = (
    Claim(
        "robust-kept",
        "robust",
        "robust",
        "A distortion mechanism can promise better informed adversaries what a differential one leaves them (ours).",
        robustness.promises_are_kept,
    ),
    Claim(
        "robust-cost",
        "robust",
        "robust",
        "Promising better informed adversaries that costs no more than the differential mechanism (ours, a theorem).",
        robustness.robust_costs_no_more,
    ),
)
"""What we claim beyond the paper."""


def check_claims(tables: dict[str, Table]) -> Table:
    """The table of claims, the paper's and ours: those whose part was studied."""
    return [
        {
            "claim": claim.name,
            "figure": claim.figure,
            "statement": claim.statement,
            **claim.evidence(tables[claim.table]).columns(),
        }
        for claim in (*CLAIMS, *OURS)
        if claim.table in tables
    ]

"""The claims of the paper's evaluation and ours, and the check of each against the tables of a study."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from privacygames.jobs import Table
from privacygames_study.claims import robustness_evidence, scenario_evidence
from privacygames_study.claims.evidence import Evidence

CLAIM_COLUMNS = (
    "claim",
    "source",
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
    """A claim that can be checked against a table: the paper's if it has a quotation, otherwise ours.

    Attributes:
        name: a short name.
        figure: the figure that shows it.
        table: the table it is checked on.
        statement: the claim in our words.
        evidence: the function that checks it case by case.
        quote: from the paper's LaTeX source; empty for a claim of ours.
    """

    name: str
    figure: str
    table: str
    statement: str
    evidence: Callable[[Table], Evidence]
    quote: str = ""

    @property
    def source(self) -> str:
        """Who makes the claim: "paper" or "ours"."""
        return "paper" if self.quote else "ours"


READINGS = {
    "secrets": "ratio constraints between far secrets",
    "ratios": "ratio constraints between far secrets and on observables far from a secret",
    "both": "ratio constraints between far secrets and on observables far from a secret, and guess constraints on "
    "observables far from the estimate",
}
"""Three readings of appendix C: which constraints are left out. The first is half of what the paper describes.

The paper's figure considers "only the constraints for which the distance d() (in km) between observation and secret and
the distance between two secrets is less than the x-axis". Ratio constraints are about an observable and two secrets,
guess constraints (eq:lp:user:utility-privacy:game:c1) about an observable and an estimate: whether they are left out,
too, it does not say.
"""


def _approximation_claims(kind: str, left_out: str) -> list[Claim]:
    """The claims of appendix C for one reading. Those of the first, partial reading are ours."""

    def claim(name: str, figure: str, statement: str, evidence: Callable[..., Evidence], quote: str = "") -> Claim:
        whole = f"Leaving out {left_out}: {statement}"
        quoted = "" if kind == "secrets" else quote
        return Claim(f"{name}-{kind}", figure, "approximation", whole, partial(evidence, kind=kind), quoted)

    return [
        claim(
            "error-falls",
            "approximation-error",
            "the error falls as the radius grows.",
            robustness_evidence.error_falls_with_radius,
            "as the approximation error decreases (due to increasing the approximation threshold)",
        ),
        claim(
            "error-vanishes",
            "approximation-error",
            "the error goes to zero as the radius grows.",
            robustness_evidence.error_vanishes,
            "the approximation error goes to zero",
        ),
        claim(
            "small-radius",
            "approximation-error",
            "a relatively small radius gives almost the same privacy as the exact optimum.",
            robustness_evidence.small_radius_suffices,
            "if we choose a relatively small threshold the approximated protection mechanism provides almost the same "
            "privacy level as in the optimal solution",
        ),
        claim(
            "time-grows",
            "approximation-time",
            "computing takes longer as the radius grows.",
            robustness_evidence.time_grows_with_radius,
            "The computation time, however, increases as the approximation error decreases",
        ),
        claim(
            "approximation-faster",
            "approximation-time",
            "that is faster than designing exactly with the same solver.",
            robustness_evidence.approximating_is_faster,
            "the speed-up of their computation due to approximation",
        ),
        claim(
            "epsilon-kept",
            "approximation-epsilon",
            "the realised ε is at most the ε asked for.",
            robustness_evidence.epsilon_is_kept,
        ),
    ]


_ALL = (
    Claim(
        "privacy-falls",
        "privacy-epsilon",
        "scenario-1",
        "Distortion privacy of the optimal differential mechanism falls as ε grows.",
        scenario_evidence.privacy_falls_with_epsilon,
        "decreases as we increase the value of the lower-bound on differential privacy",
    ),
    Claim(
        "below-1-km",
        "privacy-epsilon",
        "scenario-1",
        "For the largest ε, distortion privacy of the optimal differential mechanism is below 1 km for every user.",
        scenario_evidence.privacy_converges,
        "expected error of adversary (the location privacy of users) converges down to below $1$km",
    ),
    Claim(
        "distortion-cheaper",
        "cost-privacy",
        "scenario-1",
        "For the same distortion privacy, a distortion mechanism costs no more than a differential one (a theorem).",
        scenario_evidence.distortion_is_cheaper,
    ),
    Claim(
        "much-higher",
        "cost-privacy",
        "scenario-1",
        "For the same distortion privacy, the cost is much higher for the differential mechanism than for distortion.",
        scenario_evidence.differential_costs_much_more,
        "the utility cost for achieving some level of distortion privacy is much higher for optimal "
        "differential and joint mechanisms compared with the optimal distortion mechanism",
    ),
    Claim(
        "joint-as-differential",
        "cost-privacy",
        "scenario-1",
        "With d_m set to what the differential mechanism gives, the joint one costs the same (a theorem).",
        scenario_evidence.joint_costs_as_differential,
        "the utility cost of differential and joint mechanisms are the same",
    ),
    Claim(
        "privacy-costs",
        "cost-privacy",
        "scenario-1",
        "More privacy costs no less, for each user and mechanism.",
        scenario_evidence.cost_grows_with_privacy,
    ),
    Claim(
        "best-for-its-cost",
        "cost-privacy",
        "scenario-1",
        "The joint mechanism gives the highest distortion privacy for its cost.",
        scenario_evidence.joint_is_best_for_its_cost,
        "it guarantees the highest privacy for a certain utility cost",
    ),
    Claim(
        "bayesian-robust",
        "bayesian",
        "scenario-1",
        "Against the Bayesian attack, the differential mechanism protects more than the distortion mechanism.",
        scenario_evidence.differential_resists_bayes,
        "the optimal differential mechanism is more robust to such attacks compared to the optimal distortion"
        " mechanisms",
    ),
    Claim(
        "optimal-stronger",
        "attacks",
        "scenario-1",
        "The optimal attack is at least as strong as the Bayesian one, on every mechanism (a theorem).",
        scenario_evidence.optimal_attack_is_stronger,
        "optimal attack outperforms the Bayesian attack",
    ),
    Claim(
        "attacks-differ",
        "attacks",
        "scenario-1",
        "The two attacks differ more on differential and joint mechanisms than on distortion mechanisms.",
        scenario_evidence.bayes_errs_more_on_differential,
        "the difference is more obvious for the case of differential protection and joint protection mechanisms",
    ),
    Claim(
        "joint-at-least-both",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one gives at least as much privacy as either.",
        scenario_evidence.joint_has_at_least_both,
    ),
    Claim(
        "joint-equals-distortion",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one has the distortion mechanism's privacy.",
        scenario_evidence.joint_has_the_larger,
        "users' privacy for the optimal joint mechanism is equal to their privacy for distortion mechanism",
    ),
    Claim(
        "joint-same-cost",
        "joint-privacy",
        "scenario-2",
        "With d_m above what the differential mechanism gives, the joint one gives more privacy at the same cost.",
        scenario_evidence.joint_costs_as_differential,
        "we can further increase the privacy of users (with the same utility cost)",
    ),
    Claim(
        "joint-privacy-least",
        "sorted-privacy",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism gives at least as much privacy as either alone.",
        scenario_evidence.joint_has_at_least_both,
    ),
    Claim(
        "joint-privacy-max",
        "sorted-privacy",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism's privacy is the larger of the two alone, no more.",
        scenario_evidence.joint_has_the_larger,
        "the privacy achieved by the optimal joint mechanism is equal to the maximum privacy that each of the"
        " individual differential/distortion mechanisms provides separately",
    ),
    Claim(
        "joint-cost-max",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism costs no more than the dearer of the two alone.",
        scenario_evidence.joint_costs_the_larger,
        "is the maximum of the two components",
    ),
    Claim(
        "differential-dearer",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the dearer one alone is the differential mechanism in every experiment.",
        scenario_evidence.distortion_is_cheaper,
        "which is the differential privacy mechanism in all tested experiments",
    ),
    Claim(
        "cost-not-additive",
        "sorted-cost",
        "scenario-3",
        "With ε and d_m chosen independently, the joint mechanism costs less than the two alone added up.",
        scenario_evidence.joint_cost_is_not_additive,
        "the utility cost of an optimal joint mechanism is not additive",
    ),
    Claim(
        "knowledge-helps",
        "prior",
        "prior",
        "An adversary who knows more about the most visited places errs less.",
        robustness_evidence.knowledge_helps,
        "a more informed adversary has a lower expected error",
    ),
    Claim(
        "equal-without-evidence",
        "prior",
        "prior",
        "With no more evidence than the prior, differential and distortion mechanisms give the same privacy.",
        robustness_evidence.equal_without_evidence,
        "both optimal protection mechanisms guarantee the same level of privacy",
    ),
    Claim(
        "differential-robust",
        "prior",
        "prior",
        "Against better informed adversaries, the differential mechanism protects more than the distortion mechanism.",
        robustness_evidence.differential_resists_knowledge,
        "an optimal differential protection mechanism compared to an optimal distortion mechanism is more "
        "robust to knowledgable adversaries",
    ),
    *(claim for kind, name in READINGS.items() for claim in _approximation_claims(kind, name)),
    Claim(
        "robust-kept",
        "robust",
        "robust",
        "A distortion mechanism can guarantee the differential one's privacy against better informed adversaries.",
        robustness_evidence.guarantees_hold,
    ),
    Claim(
        "robust-cost",
        "robust",
        "robust",
        "These guarantees cost no more than the differential mechanism (a theorem).",
        robustness_evidence.robust_costs_no_more,
    ),
)

CLAIMS = tuple(claim for claim in _ALL if claim.source == "paper")
"""The claims of the paper's section 8 and appendix C that numbers can decide."""

OURS = tuple(claim for claim in _ALL if claim.source == "ours")
"""Claims beyond the paper: theorems behind its claims, other readings of it, and new mechanisms."""


def check_claims(tables: dict[str, Table]) -> Table:
    """The table of the claims whose part was run, the paper's first.

    Args:
        tables: of a study, by name.
    """
    return [
        {
            "claim": claim.name,
            "source": claim.source,
            "figure": claim.figure,
            "statement": claim.statement,
            **claim.evidence(tables[claim.table]).columns(),
        }
        for claim in (*CLAIMS, *OURS)
        if claim.table in tables
    ]

"""What the page and other programs are shown: problems, mechanisms, beliefs and days as plain values."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from privacygames import attacks
from privacygames.analysis import (
    AdversaryError,
    Finding,
    OptimalityGap,
    Report,
    Severity,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    evaluate,
)
from privacygames.arrays import loss_matmul
from privacygames.attacks import Attack
from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.mechanism import Mechanism
from privacygames.presentation import explain, limitations
from privacygames.problem import PROBLEM_ADVERSARY, Adversary, Problem, max_distortion
from privacygames.releases import Releases
from privacygames.spaces import Categories, Grid, Label, Numbers, Space, find_label
from privacygames.studio.descriptions import Described
from privacygames.studio.export_files import EXPORTS
from privacygames.traces import Visits

View = dict[str, Any]
PLAIN_NAME = "knows your habits"
DIGITS = 6
MOST_USERS = 500
NEAR_ONE, SURE = 0.1, 7.0
"""Exponents at which odds hardly move, and at which they move a thousandfold."""

NEGLIGIBLE_GAP = 1e-6
"""Relative gap up to which a design counts as optimal: the tolerance of a design."""


@dataclass(frozen=True)
class Shelved:
    """A mechanism on the shelf, with the problem it was designed for (and its name) where that is known.

    ``own_bounds`` is whether its bounds are what the user asked for, and not computed from the prior.
    """

    mechanism: Mechanism
    tables: View | None = None
    described: Described | None = None
    problem: str = ""
    label: str = ""
    seconds: float | None = None
    own_bounds: bool = True

    @property
    def size(self) -> int:
        """About how many bytes it takes, with its problem, its multipliers and what is computed from it."""
        return 8 * self.mechanism.weights.nbytes + (0 if self.described is None else self.described.size)

    @cached_property
    def report(self) -> Report:
        """Everything measured."""
        return evaluate(self.mechanism, self.mechanism.problem)

    @cached_property
    def attackers(self) -> list[tuple[Adversary, Attack]]:
        """The one who knows the prior, and everybody something is promised against, with their best attacks."""
        against = [each.adversary for each in self.mechanism.certificate.bounds.against]
        named = [Adversary(PLAIN_NAME), *(each for each in against if each.prior or each.errors is not None)]
        return [(each, attacks.optimal(self.mechanism, self.mechanism.problem, adversary=each)) for each in named]


def problem_view(name: str, given: Described) -> View:
    """A problem for the page: labels, prior, and in which ranges its bounds make sense."""
    problem = given.problem
    cost, distance, per = cost_scale(problem), distance_scale(problem), distinguishability_scale(problem)
    blind = float(loss_matmul(problem.cost, problem.prior.probabilities).min())
    return {
        "id": name,
        "kind": kind_of(problem.space),
        "shape": list(problem.shape),
        "labels": labels(problem.space),
        "answers": labels(problem.observables),
        "same_answers": problem.observables == problem.space,
        "grid": _grid(problem.space),
        "prior": rounded(problem.prior.probabilities),
        "entropy": problem.prior.entropy(),
        "most_distortion": max_distortion(problem),
        "blind_cost": blind,
        "units": {"cost": cost.unit, "distance": distance.unit, "epsilon": per.per(), "distinguishability": per.unit},
        "measures": {"cost": cost.name, "distance": distance.name},
        "epsilon": _epsilon_range(problem),
        "asked": given.asked,
        "adversaries": [
            {"key": each.key, "name": each.name, "about": each.about, "possible": each.possible, "asked": each.asked}
            for each in given.offers
        ],
        "has_day": given.day is not None,
        "left_out": given.left_out,
    }


def visits_view(visits: Visits) -> View:
    """Traces for the page: whose they are, the most travelled first, and what was left out."""
    many = np.bincount(visits.user, minlength=len(visits.users))
    first = np.argsort(-many, kind="stable")[:MOST_USERS]
    users = [{"name": visits.users[each], "visits": int(many[each])} for each in first]
    skipped = {reason: count for reason, count in visits.skipped.items() if count}
    return {"users": users, "rows": visits.rows, "skipped": skipped}


def mechanism_view(name: str, kept: Shelved) -> View:
    """A mechanism for the page: what it promises, what was measured, what that means."""
    certificate, report = kept.mechanism.certificate, kept.report
    meaning = findings(kept)
    found = {
        "id": name,
        "label": kept.label,
        "seconds": kept.seconds,
        "certificate": certificate.to_dict(),
        "certificate_rows": certificate.rows(),
        "report": report.to_dict(),
        "report_rows": report.rows(),
        "findings": [finding.to_dict() for finding in meaning],
        "warnings": sentences(meaning, Severity.WARNING),
        "words": sentences(meaning, Severity.INFORMATION),
        "not_promised": sentences(meaning, Severity.LIMITATION),
        "gap": certificate.gap,
        "cost": certificate.verification.expected_cost,
        "worst_cost": certificate.verification.worst_cost,
        "distortion": report.distortion,
        "epsilon": report.epsilon if report.epsilon_promised else None,
        "any_pair": report.any_pair if report.epsilon_promised else None,
        "bound": certificate.bound,
        "against": [
            {"name": each.adversary, "promised": each.promised, "realised": each.realised, "possible": each.possible}
            for each in report.against
        ],
        "reproducible": kept.tables is not None,
        "exports": {key: each.to_dict() for key, each in EXPORTS.items()},
    }
    return dict(to_json_value(found))  # type: ignore[call-overload,no-any-return]


def answers_view(kept: Shelved, secret: object) -> View:
    """Where the answers of a secret go."""
    mechanism = kept.mechanism
    row = mechanism.probabilities[mechanism.secrets.index(label_from(mechanism.secrets, secret, "secret"))]
    return {"probabilities": rounded(row)}


def beliefs_view(kept: Shelved, observable: object) -> View:
    """What each attacker believes and guesses after an answer; None where they can never see it."""
    mechanism = kept.mechanism
    answer = label_from(mechanism.observables, observable, "observable")
    likelihood = mechanism.probabilities[:, mechanism.observables.index(answer)]
    found = []
    for adversary, attack in kept.attackers:
        prior = adversary.prior or mechanism.problem.prior
        possible = bool(likelihood[prior.probabilities > 0].any())
        found.append(
            {
                "name": adversary.name,
                "belief": rounded(prior.posterior(likelihood).probabilities) if possible else None,
                "guess": written(attack.estimate(answer)) if possible else None,
                "guesses_secret": adversary.errors is None,
                "error": attack.error,
            }
        )
    return {"attackers": found, "possible": bool(likelihood.any())}


def sent_view(kept: Shelved, secrets: list[Label], *, moving: bool) -> View:
    """Answers one after the other, and what an observer believes after each."""
    from privacygames.beliefs import Mobility

    mechanism = kept.mechanism
    known = kept.described if moving and kept.described is not None else None
    mobility = Mobility.still(mechanism.secrets) if known is None else known.mobility(mechanism.secrets)
    releases = Releases(mechanism.problem, mobility, mechanism=mechanism)
    steps = []
    for secret in secrets:
        made = releases.release(secret)
        step = {
            "secret": mechanism.secrets.index(secret),
            "answer": mechanism.observables.index(made.observable),
            "epsilon": made.spent,
            "any_pair": made.spent_any_pair,
            "error": made.realised,
            "entropy": made.entropy,
            "belief": rounded(releases.belief.probabilities),
        }
        steps.append(step)
    return dict(to_json_value({"steps": steps}))  # type: ignore[call-overload,no-any-return]


def label_from(space: Space, given: object, what: str) -> Label:
    """The label somebody sent; the message does not repeat it."""
    if isinstance(given, list):
        return space.labels[space.index(frozenset(str(each) for each in given))]
    if isinstance(given, str):
        return find_label(space, given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidProblem(f"the {what} must be a label: a text, a number or a list of texts")
    return space.labels[space.index(given)]


def kind_of(space: Space) -> str:
    """Which picture suits a space."""
    if isinstance(space, Grid):
        return "grid"
    return "numbers" if isinstance(space, Numbers) else "categories" if isinstance(space, Categories) else "other"


def labels(space: Space) -> list[object]:
    """Labels as JSON has them."""
    return [written(label) for label in space.labels]


def written(label: Label) -> object:
    """A label as JSON has it."""
    return sorted(label) if isinstance(label, frozenset) else label


def rounded(values: Any) -> list[float]:
    """Numbers for pictures: enough digits, and not more."""
    return [float(each) for each in np.round(np.asarray(values, dtype=float), DIGITS)]


def _grid(space: Space) -> View | None:
    if not isinstance(space, Grid):
        return None
    return {"columns": space.columns, "rows": space.rows, "width": space.width, "height": space.height}


def _epsilon_range(problem: Problem) -> View:
    """From where answers hardly depend on the secret to where neighbours are told apart almost surely."""
    apart = problem.distinguishability
    finite = apart[np.isfinite(apart) & (apart > 0)]
    if not finite.size:
        return {"low": 0.01, "high": 10.0, "near": 1.0, "far": 1.0, "farthest": None}
    near, far = float(finite.min()), float(np.median(finite))
    farthest = float(apart.max()) if np.isfinite(apart).all() else None  # None: nothing limits those any two
    return {"low": NEAR_ONE / far, "high": SURE / near, "near": near, "far": far, "farthest": farthest}


def findings(kept: Shelved) -> list[Finding]:
    """What a mechanism means: warnings first, then what was measured, then what is not guaranteed."""
    certificate, problem = kept.mechanism.certificate, kept.mechanism.problem
    named = {guarantee.adversary.name: guarantee.adversary for guarantee in certificate.bounds.against}
    explanation = [
        replace(finding, adversary=PLAIN_NAME) if _is_of_problem_adversary(finding) else finding
        for finding in explain(kept.report, problem, adversaries=[PROBLEM_ADVERSARY, *named.values()])
    ]
    gap = certificate.gap
    if gap is not None and gap > NEGLIGIBLE_GAP:
        explanation.append(OptimalityGap(gap, certificate.bounds.maximises_distortion))
    explanation.sort(key=lambda finding: finding.severity is not Severity.WARNING)  # stable: warnings come first
    return [*explanation, *limitations(certificate.bounds)]


def sentences(found: list[Finding], severity: Severity) -> list[str]:
    """The sentences of the findings of one severity."""
    return [str(finding) for finding in found if finding.severity is severity]


def _is_of_problem_adversary(finding: Finding) -> TypeGuard[AdversaryError]:
    return isinstance(finding, AdversaryError) and finding.adversary == PROBLEM_ADVERSARY.name

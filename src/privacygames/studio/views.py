"""JSON views of problems, mechanisms, beliefs and releases, for the page and other programs."""

from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from privacygames.analysis import (
    AdversaryError,
    Finding,
    OptimalityGap,
    Severity,
    cost_scale,
    distance_scale,
    distinguishability_scale,
)
from privacygames.arrays import loss_matmul
from privacygames.beliefs import Mobility, Prior
from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.presentation import explain, limitations
from privacygames.problem import PROBLEM_ADVERSARY, Problem, max_distortion
from privacygames.releases import Releases
from privacygames.spaces import Categories, Grid, Label, Numbers, Space, find_label
from privacygames.studio.dangers import dangers, with_metres
from privacygames.studio.exports import EXPORTS
from privacygames.studio.problem_source import ProblemSource
from privacygames.studio.starts import epsilon_gone, start_view
from privacygames.studio.stored_mechanism import PROBLEM_ADVERSARY_NAME, StoredMechanism
from privacygames.traces import Visits

View = dict[str, Any]
"""Plain values for JSON. The keys are part of the HTTP API; ``answer`` is its key for an output."""

DECIMALS = 6
"""Decimal places of probabilities for pictures: more cannot be seen."""

MOST_USERS = 500
"""Maximum number of users listed for a file of traces, those with most visits first."""

ODDS_UNMOVED, ODDS_DECIDED = 0.1, 7.0
"""Log-ratios at the ends of the control for ε: odds hardly change at the first, and a thousandfold at the second."""

NEGLIGIBLE_GAP = 1e-6
"""Relative gap up to which a design counts as optimal: the tolerance of a design."""


def problem_view(name: str, source: ProblemSource) -> View:
    """A problem: its labels, its prior, and the useful ranges of its bounds."""
    problem = source.problem
    cost, distance, per = cost_scale(problem), distance_scale(problem), distinguishability_scale(problem)
    most_distortion, epsilon = max_distortion(problem), _epsilon_range(problem)
    return {
        "id": name,
        "kind": _kind(problem.space),
        "shape": list(problem.shape),
        "labels": [json_label(label) for label in problem.space.labels],
        "answers": [json_label(label) for label in problem.observables.labels],
        "same_answers": problem.observables == problem.space,
        "grid": _grid(problem.space),
        "prior": rounded(problem.prior.probabilities),
        "entropy": problem.prior.entropy(),
        "most_distortion": most_distortion,
        "blind_cost": float(loss_matmul(problem.cost, problem.prior.probabilities).min()),
        "units": {"cost": cost.unit, "distance": distance.unit, "epsilon": per.per(), "distinguishability": per.unit},
        "measures": {"cost": cost.name, "distance": distance.name},
        "epsilon": epsilon | {"gone": epsilon_gone(epsilon)},
        **start_view(problem, epsilon, most_distortion=most_distortion),
        "asked": source.bounds,
        "adversaries": [
            {
                "key": preset.key,
                "name": preset.name,
                "about": preset.about,
                "possible": preset.possible,
                "asked": preset.guarantee,
            }
            for preset in source.presets
        ],
        "has_day": source.typical_day is not None,
        "left_out": source.visits_outside,
    }


def visits_view(visits: Visits) -> View:
    """Traces: their users, those with most visits first, and the number of skipped rows by reason."""
    counts = np.bincount(visits.user, minlength=len(visits.users))
    first = np.argsort(-counts, kind="stable")[:MOST_USERS]
    users = [{"name": visits.users[user], "visits": int(counts[user])} for user in first]
    skipped = {reason: count for reason, count in visits.skipped.items() if count}
    return {"users": users, "rows": visits.rows, "skipped": skipped}


def mechanism_view(name: str, stored: StoredMechanism) -> View:
    """A mechanism: its guarantees, its measurements, and sentences that explain both."""
    certificate, report = stored.mechanism.certificate, stored.report
    meaning = findings(stored)
    view = {
        "id": name,
        "label": stored.label,
        "seconds": stored.seconds,
        "certificate": certificate.to_dict(),
        "certificate_rows": rows_view(certificate.rows()),
        "report": report.to_dict(),
        "report_rows": rows_view(report.rows()),
        "findings": findings_view(meaning),
        "warnings": _sentences(meaning, Severity.DANGER, Severity.WARNING),
        "words": _sentences(meaning, Severity.INFORMATION),
        "not_promised": _sentences(meaning, Severity.LIMITATION),
        "gap": certificate.gap,
        "cost": certificate.verification.expected_cost,
        "worst_cost": certificate.verification.worst_cost,
        "distortion": report.distortion,
        "epsilon": report.epsilon if report.epsilon_guaranteed else None,
        "any_pair": report.any_pair if report.epsilon_guaranteed else None,
        "bound": certificate.bound,
        "against": [
            {
                "name": result.adversary,
                "promised": result.guaranteed,
                "realised": result.realised,
                "possible": result.maximum,
            }
            for result in report.adversary_results
        ],
        "reproducible": stored.tables is not None,
        "exports": {key: export.to_dict() for key, export in EXPORTS.items()},
    }
    return dict(to_json_value(view))  # type: ignore[call-overload,no-any-return]


def outputs_view(stored: StoredMechanism, secret: object) -> View:
    """The probability of each output for a secret."""
    mechanism = stored.mechanism
    row = mechanism.probabilities[mechanism.secrets.index(label_from(mechanism.secrets, secret, "secret"))]
    return {"probabilities": rounded(row)}


def beliefs_view(stored: StoredMechanism, observable: object) -> View:
    """Each adversary's belief and best guess after an output; None if their prior excludes the output."""
    mechanism = stored.mechanism
    output = label_from(mechanism.observables, observable, "observable")
    likelihood = mechanism.probabilities[:, mechanism.observables.index(output)]
    adversaries = []
    for adversary, attack in stored.attacks:
        prior = adversary.prior if isinstance(adversary.prior, Prior) else mechanism.problem.prior
        possible = bool(likelihood[prior.probabilities > 0].any())
        adversaries.append(
            {
                "name": adversary.name,
                "belief": rounded(prior.posterior(likelihood).probabilities) if possible else None,
                "guess": json_label(attack.estimate(output)) if possible else None,
                "guesses_secret": adversary.errors is None,
                "error": attack.error,
            }
        )
    return {"attackers": adversaries, "possible": bool(likelihood.any())}


def releases_view(stored: StoredMechanism, secrets: list[Label], *, moving: bool) -> View:
    """Successive releases, with the adversary's belief after each.

    Args:
        stored: the mechanism.
        secrets: the secret of each release.
        moving: whether the adversary knows how the user moves; otherwise the secret stays the same.
    """
    mechanism = stored.mechanism
    source = stored.source if moving else None
    mobility = Mobility.still(mechanism.secrets) if source is None else source.mobility(mechanism.secrets)
    releases = Releases(mechanism.problem, mobility, mechanism=mechanism)
    steps = []
    for secret in secrets:
        release = releases.release(secret)
        step = {
            "secret": mechanism.secrets.index(secret),
            "answer": mechanism.observables.index(release.observable),
            "epsilon": release.spent,
            "any_pair": release.spent_any_pair,
            "error": release.realised_error,
            "entropy": release.entropy,
            "belief": rounded(releases.belief.probabilities),
        }
        steps.append(step)
    return dict(to_json_value({"steps": steps}))  # type: ignore[call-overload,no-any-return]


def label_from(space: Space, value: object, field: str) -> Label:
    """The label in a request; the error about an unknown one does not repeat it."""
    if isinstance(value, list):
        return space.labels[space.index(frozenset(str(member) for member in value))]
    if isinstance(value, str):
        return find_label(space, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidProblem(f"the {field} must be a label: a text, a number or a list of texts", field=field)
    return space.labels[space.index(value)]


def json_label(label: Label) -> object:
    """A label as a JSON value."""
    return sorted(label) if isinstance(label, frozenset) else label


def rounded(values: Any) -> list[float]:
    """Probabilities, rounded for pictures."""
    return [float(value) for value in np.round(np.asarray(values, dtype=float), DECIMALS)]


def findings(stored: StoredMechanism) -> list[Finding]:
    """The findings about a mechanism: warnings, then measurements, then limitations."""
    certificate, problem = stored.mechanism.certificate, stored.mechanism.problem
    named = {adversary.name: adversary for adversary in certificate.bounds.named_adversaries}
    explanation: list[Finding] = dangers(stored.mechanism, stored.report)
    explanation += [
        replace(finding, adversary=PROBLEM_ADVERSARY_NAME) if _is_of_problem_adversary(finding) else finding
        for finding in explain(stored.report, problem, adversaries=[PROBLEM_ADVERSARY, *named.values()])
    ]
    gap = certificate.gap
    if gap is not None and gap > NEGLIGIBLE_GAP:
        explanation.append(OptimalityGap(gap, certificate.bounds.maximises_distortion))
    explanation.sort(
        key=lambda finding: (Severity.DANGER, Severity.WARNING, Severity.INFORMATION).index(finding.severity)
    )
    return [*explanation, *limitations(certificate.bounds, problem.space)]


def findings_view(statements: list[Finding]) -> list[View]:
    """Findings as plain values, their sentences with distances as the page writes them."""
    return [finding.to_dict() | {"text": with_metres(str(finding))} for finding in statements]


def rows_view(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows of a report, with distances as the page writes them."""
    return [(name, with_metres(value)) for name, value in rows]


def _sentences(statements: list[Finding], *severities: Severity) -> list[str]:
    """The sentences of the findings of some severities."""
    return [with_metres(str(finding)) for finding in statements if finding.severity in severities]


def _is_of_problem_adversary(finding: Finding) -> TypeGuard[AdversaryError]:
    return isinstance(finding, AdversaryError) and finding.adversary == PROBLEM_ADVERSARY.name


def _kind(space: Space) -> str:
    """The kind of picture that suits a space."""
    if isinstance(space, Grid):
        return "grid"
    return "numbers" if isinstance(space, Numbers) else "categories" if isinstance(space, Categories) else "other"


def _grid(space: Space) -> View | None:
    if not isinstance(space, Grid):
        return None
    return {
        "columns": space.columns,
        "rows": space.rows,
        "width": space.width,
        "height": space.height,
        "box": space.box,
    }


def _epsilon_range(problem: Problem) -> View:
    """Range of ε: at the low end outputs hardly depend on the secret; at the high end they almost reveal it."""
    apart = problem.distinguishability
    finite = apart[np.isfinite(apart) & (apart > 0)]
    if not finite.size:
        return {"low": 0.01, "high": 10.0, "near": 1.0, "far": 1.0, "farthest": None}
    near, far = float(finite.min()), float(np.median(finite))
    farthest = float(apart.max()) if np.isfinite(apart).all() else None  # None: ε does not bound any two secrets
    return {"low": ODDS_UNMOVED / far, "high": ODDS_DECIDED / near, "near": near, "far": far, "farthest": farthest}
